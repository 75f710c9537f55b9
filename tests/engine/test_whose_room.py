"""Who waits behind reservations is told of those that really stand in its way, and of no other."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from scheduling.engine.cycle import decide
from scheduling.engine.machines import GPU
from scheduling.engine.patience import Patience
from scheduling.engine.plan import Blocker, Hold, Plan
from scheduling.engine.snapshot import FlavorQuotas, Quota, ResourceGroup
from tests.engine.builders import World, columns, pods, world

KEPT = ("RESERVED", "HELD")
PATIENT = Patience(after_s=60.0)
SLOW, FAST = 9_000.0, 600.0


def pool(made: World, name: str, queue: str, cohort: str) -> None:
    """Two nodes of 4 GPUs that only this pool has, and a queue of a cohort of its own."""
    made.flavor(name).nodes(2, labels={"accelerator": name})
    made.cohort(cohort).queue(queue, 0, cohort, groups=(columns(name, {GPU: Quota(50)}),))


def on(number: int) -> dict[str, int]:
    return {f"h100-node-{number:02}": 1}


def cluster(*, slow: float | None = SLOW) -> World:
    """Each pool has work on one of its nodes and a gang in front of it that needs both.

    The work of the first ends in ten minutes, that of the second in hours, or nobody knows when.
    """
    made = world()
    pool(made, "first", "cq-a", "ca")
    pool(made, "second", "cq-b", "cb")
    made.running("a", "cq-a", gpus=4, on=on(1), flavor="first", at=900.0, duration_s=FAST)
    made.running("b", "cq-b", gpus=4, on=on(3), flavor="second", at=900.0, duration_s=slow)
    made.pending("gang-a", "cq-a", pods(2, 4)).pending("gang-b", "cq-b", pods(2, 4))
    return made


def kept(plan: Plan, key: str) -> list[Blocker]:
    def told() -> Iterator[Blocker]:
        for one in plan.decisions:
            if isinstance(one, Hold) and one.workload == key:
                yield from one.blockers

    return [blocker for blocker in told() if blocker.code.value in KEPT]


@pytest.mark.parametrize(
    ("queue", "gang", "until"), [("cq-a", "gang-a", 1_500), ("cq-b", "gang-b", 9_900)]
)
def test_the_promise_of_another_cohort_on_other_nodes_is_not_named(queue, gang, until) -> None:
    plan = decide(cluster().pending("late", queue, gpus=4).build())
    assert {one.workload for one in plan.memory.reservations} == {"gang-a", "gang-b"}
    (blocker,) = kept(plan, "late")
    assert (blocker.code.value, dict(blocker.facts)) == (
        "RESERVED",
        {"reserved_for": gang, "until": until},
    )


def test_nodes_held_elsewhere_make_no_promise_less_firm() -> None:
    starving = replace(
        cluster(slow=None).pending("late", "cq-a", gpus=4).build(), patience=PATIENT
    )
    plan = decide(starving)
    reserved = {one.workload: one.promised for one in plan.memory.reservations}
    assert reserved == {"gang-a": True, "gang-b": False}
    assert [b.code.value for b in kept(plan, "late")] == ["RESERVED"]


@pytest.mark.parametrize(
    ("pod_sets", "names", "until"),
    [
        ((pods(1, 4),), "gang-a", 1_500),
        ((pods(1, 4, "here"), pods(1, 4, "there")), "gang-a, gang-b", 9_900),
    ],
    ids=["on the nodes of either", "on the nodes of both"],
)
def test_of_two_in_its_way_those_are_named_that_it_waits_for(pod_sets, names, until) -> None:
    made, quotas = cluster(), {GPU: Quota(50)}
    both = tuple(FlavorQuotas(name, quotas) for name in ("first", "second"))
    made.queue("cq-c", 0, None, groups=(ResourceGroup((GPU,), both),))
    (blocker,) = kept(decide(made.pending("wide", "cq-c", *pod_sets).build()), "wide")
    assert dict(blocker.facts) == {"reserved_for": names, "until": until}
