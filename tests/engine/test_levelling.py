"""Running gangs take surplus up to their fair share where the tree says so (T4, kai#1934)."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from scheduling.engine.snapshot import Preemption, Quota, Workload
from scheduling.engine.terms import Fairness, ReclaimTo, ReclaimWithinCohort
from tests.engine.builders import H100, RECLAIM_ANY, World, node, pods, world
from tests.engine.simulator import Simulator


def elastic(key: str, queue: str, count: int, each: int = 1, **changes: object) -> Workload:
    at = float(changes.pop("at", 100.0))
    return Workload(key, key, queue, 0, at, (pods(count, each),), min_member=1, **changes)


def shared(gpus: int, **queues: float) -> World:
    """One node, no quota of anybody's own, and queues by weight."""
    made = world().cohort("llm", fairness=Fairness.SHARE)
    made.cohorts["llm"] = replace(
        made.cohorts["llm"], reclaim_to=ReclaimTo.FAIR_SHARE, quotas={H100: Quota(gpus)}
    )
    for name, weight in queues.items():
        made.queue(name, 0, preemption=RECLAIM_ANY, fair_weight=weight)
    made.node_list.append(node(1, gpus))
    return made


def ran(made: World, *gangs: Workload) -> Simulator:
    """Let one gang come after the other, and the world come to rest each time."""
    sim = Simulator(made.build(), leave_after=2)
    for gang in gangs:
        sim.submit(gang)
        sim.run()
    return sim


def test_three_queues_end_with_equal_parts() -> None:
    gangs = [elastic(key, f"q{key}", 12, at=float(ord(key))) for key in "abc"]
    sim = ran(shared(12, qa=1, qb=1, qc=1), *gangs)
    assert [sim.pods(key) for key in "abc"] == [4, 4, 4]


def test_weights_count() -> None:
    sim = ran(shared(12, qa=1, qb=2), elastic("a", "qa", 12), elastic("b", "qb", 12, at=200.0))
    assert (sim.pods("a"), sim.pods("b")) == (4, 8)


def test_nobody_is_evicted_and_no_minimum_is_touched() -> None:
    whole = Workload("a", "a", "qa", 0, 1.0, (pods(12),), min_member=9)
    sim = ran(shared(12, qa=1, qb=1), whole, elastic("b", "qb", 12))
    assert (sim.evictions, sim.pods("a"), sim.pods("b")) == ([], 9, 3)


def test_what_leaves_is_waited_for_and_not_taken_twice() -> None:
    sim = ran(shared(8, qa=1, qb=1), elastic("a", "qa", 8), elastic("b", "qb", 8, at=200.0))
    assert sum(pods for _, _, pods in sim.shrinks) == 4
    assert (sim.pods("a"), sim.pods("b")) == (4, 4)


@pytest.mark.parametrize(
    "changes",
    [
        {"preemption": Preemption(reclaim_within_cohort=ReclaimWithinCohort.NEVER)},
        {"preemption": Preemption(reclaim_within_cohort=ReclaimWithinCohort.LOWER_PRIORITY)},
    ],
    ids=["no right", "a right over lower priority alone"],
)
def test_it_needs_the_right_to_reclaim(changes: dict[str, object]) -> None:
    made = shared(8, qa=1, qb=1)
    made.queues["qb"] = replace(made.queues["qb"], **changes)
    small = replace(elastic("b", "qb", 8), created_at=1.0)
    other = Workload("c", "c", "qa", 0, 0.0, (pods(6),))
    sim = ran(made, other, small, elastic("a", "qa", 8, at=2.0))
    sim.finish("c")
    before = sim.shrinks[:]
    sim.run()
    assert sim.shrinks == before


def check_it_ends(random: Random) -> None:
    """Whatever comes and goes, there is rest, and the laws hold in each step."""
    names = ["qa", "qb", "qc", "qd"][: random.randint(2, 4)]
    made = shared(random.randint(4, 16), **{n: random.choice((1, 1, 2, 0.5)) for n in names})
    for name in names:
        weight = made.queues[name].fair_weight
        made.queue(name, random.choice((0, 0, 2)), preemption=RECLAIM_ANY, fair_weight=weight)
    sim = Simulator(made.build(), random.randint(1, 3))
    for number in range(12):
        size, each = random.randint(2, 9), random.choice((1, 1, 2))
        sim.submit(elastic(f"w{number}", random.choice(names), size, each, at=float(number)))
        if sim.admitted() and random.randrange(3) == 0:
            sim.finish(random.choice(sorted(sim.admitted())))
        sim.step()
    sim.run()
    shrinks, evictions = len(sim.shrinks), len(sim.evictions)
    for _ in range(10):
        sim.step()
    assert (len(sim.shrinks), len(sim.evictions)) == (shrinks, evictions)


@settings(max_examples=15, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.integers(0, 2**32 - 1))
def test_in_any_tree_it_ends(seed: int) -> None:
    check_it_ends(Random(seed))


@pytest.mark.long
def test_in_many_trees_it_ends() -> None:
    for seed in range(1000):
        check_it_ends(Random(seed))
