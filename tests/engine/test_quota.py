"""Quota arithmetic: the seed numbers of ``admission.md`` 3.2 and its laws."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.engine.quota import QuotaLedger
from scheduling.engine.snapshot import Quota
from scheduling.engine.tree import cohort_key, queue_key, quota_tree
from tests.engine.builders import H100, World, world


def ledger_of(made: World) -> QuotaLedger:
    return QuotaLedger(quota_tree(made.build()))


def pair(datos: dict[str, int], ia: dict[str, int]) -> World:
    return world().queue("datos", cohort="llm", **datos).queue("ia", cohort="llm", **ia)


@dataclass(frozen=True)
class Case:
    id: str
    world: World
    want: int
    used: dict[str, int] = field(default_factory=dict)
    queue: str = "datos"


def org_tree() -> World:
    """E2: org1 Q8 L4 over cq1 Q4, cq2 Q4 L2; org2 B6 over cq3 Q0."""
    return (
        world()
        .cohort("root")
        .cohort("org1", "root", nominal=8, lending_limit=4)
        .cohort("org2", "root", nominal=0, borrowing_limit=6)
        .queue("cq1", 4, "org1")
        .queue("cq2", 4, "org1", lend=2)
        .queue("cq3", 0, "org2")
    )


CASES = [
    Case("an idle cohort lends everything", pair({"nominal": 16}, {"nominal": 8}), 24),
    Case(
        "the borrowing limit caps what comes from the cohort",
        pair({"nominal": 16, "borrow": 4}, {"nominal": 8}),
        20,
    ),
    Case(
        "the lending limit of the sibling caps it too",
        pair({"nominal": 16, "borrow": 8}, {"nominal": 8, "lend": 4}),
        20,
    ),
    Case(
        "what a sibling has borrowed is gone until reclaimed",
        pair({"nominal": 16}, {"nominal": 8}),
        12,
        {"ia": 12},
    ),
    Case(
        "a guaranteed part stays free whatever the sibling does",
        pair({"nominal": 16, "lend": 6}, {"nominal": 8}),
        10,
        {"ia": 14},
    ),
    Case("quota cut below usage is debt", pair({"nominal": 4}, {"nominal": 0}), -2, {"datos": 6}),
    Case(
        "limits of a queue without cohort mean nothing",
        world().queue("datos", 4, None, borrow=8, lend=0),
        4,
    ),
    Case("E2 empty: cq1", org_tree(), 14, queue="cq1"),
    Case("E2 empty: cq2", org_tree(), 16, queue="cq2"),
    Case("E2 empty: cq3", org_tree(), 4, queue="cq3"),
    Case("E2 after cq3 uses 3: cq1", org_tree(), 11, {"cq3": 3}, "cq1"),
    Case("E2 after cq1 uses 10 too: cq3", org_tree(), 1, {"cq3": 3, "cq1": 10}, "cq3"),
    Case("E2 after cq1 uses 10 too: cq2", org_tree(), 3, {"cq3": 3, "cq1": 10}, "cq2"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_available(case: Case) -> None:
    ledger = ledger_of(case.world)
    for name, amount in case.used.items():
        ledger.reserve(queue_key(name), H100, amount)
    assert ledger.available(queue_key(case.queue), H100) == case.want


def test_a_cohort_that_is_only_named_exists() -> None:
    ledger = ledger_of(world().queue("a", 4, "implicit"))
    assert ledger.promised(cohort_key("implicit"), H100) == 4


def test_a_queue_and_a_cohort_may_share_a_name() -> None:
    ledger = ledger_of(world().queue("llm", 4, "llm"))
    assert ledger.available(queue_key("llm"), H100) == 4


def test_a_circle_of_cohorts_ends() -> None:
    made = world().cohort("x", "y").cohort("y", "x").queue("q", 4, "x")
    assert ledger_of(made).available(queue_key("q"), H100) == 4


def test_borrow_level_is_the_height_of_the_lowest_subtree_that_suffices() -> None:
    ledger = ledger_of(org_tree())
    levels = [ledger.borrow_level(queue_key("cq1"), H100, n) for n in (4, 5, 14, 15)]
    assert levels == [0, 1, 1, 2]


quota_st = st.builds(
    Quota,
    nominal=st.integers(0, 64),
    borrowing_limit=st.none() | st.integers(0, 64),
    lending_limit=st.none() | st.integers(0, 64),
)


def cohort_of(**quotas: Quota) -> World:
    made = world()
    for name, q in quotas.items():
        made.queue(name, q.nominal, "llm", borrow=q.borrowing_limit, lend=q.lending_limit)
    return made


requests_st = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 32)), max_size=20)


@given(a=quota_st, b=quota_st, c=quota_st, requests=requests_st)
def test_admitting_only_what_fits_never_oversells(a, b, c, requests) -> None:
    quotas = {"a": a, "b": b, "c": c}
    ledger = ledger_of(cohort_of(**quotas))
    admitted = dict.fromkeys(quotas, 0)
    for name, amount in requests:
        if amount <= ledger.available(queue_key(name), H100):
            ledger.reserve(queue_key(name), H100, amount)
            admitted[name] += amount

    assert sum(admitted.values()) <= sum(q.nominal for q in quotas.values())
    for name, quota in quotas.items():
        assert admitted[name] <= ledger.potential(queue_key(name), H100)
        if quota.borrowing_limit is not None:
            assert admitted[name] <= quota.nominal + quota.borrowing_limit
        if quota.lending_limit is not None:
            kept = max(0, quota.nominal - quota.lending_limit)
            assert ledger.available(queue_key(name), H100) >= kept - admitted[name]


@given(a=quota_st, b=quota_st, amounts=st.lists(st.integers(0, 32), max_size=8))
def test_release_undoes_reserve_in_any_order(a, b, amounts) -> None:
    ledger = ledger_of(cohort_of(a=a, b=b))
    before = [ledger.available(queue_key(name), H100) for name in "ab"]
    for amount in amounts:
        ledger.reserve(queue_key("a"), H100, amount)
    for amount in amounts:
        ledger.release(queue_key("a"), H100, amount)
    assert [ledger.available(queue_key(name), H100) for name in "ab"] == before


@given(a=quota_st, b=quota_st, requests=requests_st, keep=st.booleans())
def test_a_trial_is_undone_unless_kept(a, b, requests, keep) -> None:
    ledger = ledger_of(cohort_of(a=a, b=b, c=Quota(3)))

    def state() -> list[int]:
        return [ledger.used(key, H100) for key in ledger.nodes]

    before = state()
    with ledger.trial() as outer:
        with ledger.trial() as inner:
            for name, amount in requests:
                ledger.reserve(queue_key(name), H100, amount)
            inner.keep()
        inside = state()
        if keep:
            outer.keep()
    assert state() == (inside if keep else before)
