"""Blockers in order, with their numbers; one summary word."""

from scheduling.engine.cycle import decide
from scheduling.engine.machines import GPU, Flavor
from scheduling.engine.plan import Blocker, Hold
from scheduling.engine.snapshot import FlavorQuotas, Memory, Quota, ResourceGroup
from scheduling.engine.terms import BlockerCode as Code
from scheduling.engine.terms import PendingReason
from tests.engine.builders import World, pods, world

NODE = {"h100-node-01": 1}


def why(made: World, key: str = "p") -> tuple[PendingReason, list[tuple[Code, object, object]]]:
    decisions = decide(made.build()).decisions
    (hold,) = [d for d in decisions if isinstance(d, Hold) and d.workload == key]
    return hold.reason, [(b.code, b.needed, b.available) for b in hold.blockers]


def two_flavors(first: int, second: int, *, nodes: int = 0) -> World:
    group = ResourceGroup(
        (GPU,), (FlavorQuotas("x", {GPU: Quota(first)}), FlavorQuotas("y", {GPU: Quota(second)}))
    )
    made = world().queue("cq", cohort=None, groups=(group,)).nodes(nodes)
    made.flavors = {"x": Flavor("x"), "y": Flavor("y")}
    return made


def test_among_flavors_the_mildest_reason_counts() -> None:
    made = two_flavors(1, 4).running("r", "cq", gpus=3, flavor="y").pending("p", "cq", gpus=2)
    assert why(made) == (
        PendingReason.WAITING_FOR_QUOTA,
        [(Code.QUOTA_NOMINAL, 2, 1), (Code.FLAVOR_TOO_SMALL, 2, 1)],
    )


def blockers(made: World, key: str = "p") -> list[Blocker]:
    decisions = decide(made.build()).decisions
    (hold,) = [d for d in decisions if isinstance(d, Hold) and d.workload == key]
    return list(hold.blockers)


def test_every_flavor_has_its_reason_and_the_nearest_is_told_first() -> None:
    """Of 8 GPUs x has none left and y has six: y is nearer, although x comes first."""
    made = two_flavors(8, 8).running("x", "cq", gpus=8, flavor="x")
    made.running("y", "cq", gpus=2, flavor="y").pending("p", "cq", gpus=8)
    told = [(b.code, b.facts["flavor"], b.available) for b in blockers(made)]
    assert told == [(Code.QUOTA_NOMINAL, "y", 6), (Code.QUOTA_NOMINAL, "x", 0)]


def test_what_can_never_start_is_not_told_to_wait_and_stands_in_no_line() -> None:
    """Its ceiling is 4; that a node is busy as well would sound as if it could come free."""
    made = world().nodes(1).queue("cq", 4, None).running("r", "cq", gpus=3, on=NODE)
    made.pending("p", "cq", gpus=5).pending("q", "cq", gpus=4)
    assert {b.code for b in blockers(made)} == {Code.IMPOSSIBLE}
    holds = {d.workload: d.position for d in decide(made.build()).decisions if isinstance(d, Hold)}
    assert holds == {"p": None, "q": 1}


def test_what_can_never_start_promises_nothing_though_nodes_are_cordoned() -> None:
    """Room that comes free would not help it: the numbers of the nodes stand with the verdict."""
    made = world().nodes(2).nodes(1, schedulable=False).queue("cq", 4, None)
    told = blockers(made.pending("p", "cq", pods(4, 4)))
    assert {blocker.code for blocker in told} == {Code.IMPOSSIBLE}
    assert told[0].facts["excluded_cordoned"] == 1


def test_holders_are_told_without_what_is_kept_and_with_the_queue_itself() -> None:
    """Held 4, kept 4 for the first gang: the cohort of 8 is told once, not twice."""
    made = world().nodes(2).cohort("llm", nominal=8).queue("a").queue("b")
    made.running("r", "a", gpus=4, on=NODE, duration_s=600.0)
    made.pending("first", "a", pods(2, 4)).pending("p", "b", pods(1, 4))
    told = next(b for b in blockers(made) if b.code is Code.COHORT_EXHAUSTED)
    assert (told.facts["holders"], told.facts["kept"]) == ("a: 4", 4)
    own = next(b for b in blockers(made, "first") if b.code is Code.COHORT_EXHAUSTED)
    assert own.facts["holders"] == "a: 4"


def test_quota_that_is_kept_for_another_is_told_as_kept_and_not_as_used() -> None:
    """Four of eight are free; they are reserved for the older gang, so the other gets none."""
    made = world().nodes(2).cohort("llm", nominal=8).queue("a").queue("b")
    made.running("r", "a", gpus=4, on=NODE, duration_s=600.0)
    made.pending("first", "a", pods(2, 4)).pending("p", "b", pods(1, 4))
    told = next(b for b in blockers(made) if b.code is Code.COHORT_EXHAUSTED)
    assert (told.available, told.facts["cause"], told.facts["kept"]) == (0, "Kept", 4)
    own = next(b for b in blockers(made, "first") if b.code is Code.COHORT_EXHAUSTED)
    assert (own.available, own.facts.get("cause")) == (4, None)


def test_a_limit_that_only_kept_quota_reaches_is_told_as_kept() -> None:
    """Own 4 and a loan of 4 are free, and kept for the elder gang of the same queue."""
    made = world().nodes(3).queue("a", 4, borrow=4).queue("lender", 12)
    made.running("r", "lender", gpus=4, on=NODE, duration_s=1400.0)
    made.running("s", "lender", gpus=4, on={"h100-node-02": 1}, duration_s=1400.0)
    made.pending("first", "a", pods(2, 4))
    made.memory = decide(made.build()).memory
    told = {b.code: b for b in blockers(made.pending("p", "a", gpus=2))}
    assert told[Code.BORROW_LIMIT].available == 0
    assert told[Code.BORROW_LIMIT].facts["cause"] == "Kept"
    assert told[Code.BORROW_LIMIT].facts["kept"] == 8


def test_among_pod_sets_the_hardest_reason_counts() -> None:
    made = world().nodes(1).queue("cq", 4, None).running("r", "cq", gpus=3, on=NODE)
    made.pending("p", "cq", pods(1, 1, "a"), pods(1, 1, "b", node_selector={"accelerator": "z"}))
    assert why(made)[0] is PendingReason.NO_MATCHING_FLAVOR


def test_the_amounts_are_those_of_the_whole_gang() -> None:
    made = world().nodes(2).queue("cq", 8, None).running("r", "cq", gpus=2, on=NODE)
    made.pending("p", "cq", pods(1, 4, "master"), pods(1, 4, "worker"))
    assert why(made) == (
        PendingReason.WAITING_FOR_QUOTA,
        [(Code.QUOTA_NOMINAL, 8, 6), (Code.GANG_NO_FIT, 8, 6)],
    )


def test_a_borrowing_limit_further_up_is_named() -> None:
    made = (
        world()
        .nodes(2)
        .cohort("root", nominal=8)
        .cohort("x", "root", nominal=0, borrowing_limit=2)
    )
    made = made.queue("cq", 1, "x").running("r", "cq", gpus=2, on=NODE)
    reason, blockers = why(made.pending("p", "cq", gpus=2))
    assert reason is PendingReason.WAITING_FOR_QUOTA
    assert blockers == [(Code.QUOTA_NOMINAL, 2, 0), (Code.BORROW_LIMIT, 2, 1)]


def test_a_limit_stands_beside_lenders_that_would_not_give_that_much() -> None:
    """It asks for 4: with a loan of 2 it may hold 3 more, but the lender uses 3 of its 4."""
    made = world().nodes(3).queue("a", 2, borrow=2).queue("lender", 4)
    made.running("r", "lender", gpus=3, on=NODE)
    made.running("s", "a", gpus=1, on={"h100-node-02": 1}).pending("p", "a", pods(4, 1))
    assert why(made)[1][:3] == [
        (Code.QUOTA_NOMINAL, 4, 1),
        (Code.BORROW_LIMIT, 4, 3),
        (Code.LENDER_BUSY, 4, 2),
    ]


def test_a_busy_lender_is_named_with_its_use() -> None:
    made = world().nodes(1).queue("cq", 1).queue("lender", 3)
    made.running("r", "lender", gpus=3, on=NODE).pending("p", "cq", gpus=2)
    (hold,) = decide(made.build()).decisions
    assert isinstance(hold, Hold)
    nominal, busy = hold.blockers[:2]
    assert (nominal.code, nominal.where) == (Code.QUOTA_NOMINAL, "cq")
    assert (busy.code, busy.where, busy.facts["holders"]) == (Code.LENDER_BUSY, "llm", "lender: 3")


def test_never_and_not_now_are_told_apart() -> None:
    made = world().nodes(1).queue("cq", 4, None)
    never = made.pending("p", "cq", gpus=5)
    assert why(never)[0] is PendingReason.EXCEEDS_MAX_QUOTA
    assert why(never)[1][0] == (Code.IMPOSSIBLE, 5, 4)


def test_positions_count_from_one_among_those_who_wait() -> None:
    made = world().nodes(1).queue("cq", 4, None)
    for key in ("a", "b", "c"):
        made.pending(key, "cq", gpus=3)
    found = {d.workload: d.position for d in decide(made.build()).decisions if isinstance(d, Hold)}
    assert found == {"b": 1, "c": 2}


def test_a_blocked_workload_has_no_position_and_keeps_no_claim() -> None:
    made = world().queue("cq", 4, None).pending("p", "cq", blocked="QUEUE_STOPPED")
    made.memory = Memory()
    (hold,) = decide(made.build()).decisions
    assert isinstance(hold, Hold)
    assert (hold.reason, hold.position) == (PendingReason.ON_HOLD, None)


def _nominal(made: World) -> Blocker:
    return next(b for b in blockers(made) if b.code is Code.QUOTA_NOMINAL)


def test_a_request_beyond_the_own_quota_is_not_told_that_more_of_it_may_come_free() -> None:
    made = world().nodes(4).queue("a", 8).queue("lender", 8)
    made.running("r", "lender", gpus=8, on=NODE)
    told = _nominal(made.pending("p", "a", pods(3, 4)))
    assert (told.available, told.facts["cause"]) == (8, "TooSmall")
    assert "missing" not in told.facts


def test_a_queue_that_borrows_is_told_how_much_of_all_that_it_holds_must_end() -> None:
    """It holds 12 of 8 and needs 4: within its own it starts once 8 have ended."""
    made = world().nodes(4).queue("a", 8).queue("lender", 4)
    told = _nominal(made.running("r", "a", gpus=12).pending("p", "a", gpus=4))
    assert (told.available, told.facts["missing"]) == (0, 8)
