"""Small random worlds: two cohorts in a tree, four queues, mixed policies, a few nodes."""

from hypothesis import strategies as st

from scheduling.engine.snapshot import Preemption, Snapshot
from scheduling.engine.terms import (
    BorrowWithinCohort,
    Fairness,
    QueueingStrategy,
    ReclaimWithinCohort,
    StopPolicy,
    WithinClusterQueue,
)
from tests.engine.builders import BLOCK, RACK, pods, preferred, required, world

QUEUES = ("a", "b", "c", "d")

preemption_st = st.builds(
    Preemption,
    st.sampled_from((*WithinClusterQueue, WithinClusterQueue.LOWER_PRIORITY)),
    st.sampled_from((*ReclaimWithinCohort, ReclaimWithinCohort.ANY, ReclaimWithinCohort.ANY)),
    st.sampled_from(BorrowWithinCohort),
    st.none() | st.integers(0, 2),
)
topology_st = st.sampled_from([*[None] * 6, required(RACK), required(BLOCK), preferred(RACK)])
weight_st = st.sampled_from([1.0, 1.0, 2.0, 0.5, 0.0])
limit_st = st.sampled_from([None, None, None, 0, 1, 4])


@st.composite
def pod_sets_st(draw):
    sets = [pods(draw(st.integers(1, 2)), draw(st.integers(1, 4)), topology=draw(topology_st))]
    if draw(st.integers(0, 4)) == 0:
        sets.append(pods(1, draw(st.integers(0, 2)), "leader"))
    return tuple(sets)


@st.composite
def worlds(draw, stops=True) -> Snapshot:
    """Every workload starts pending; the simulator makes the rest."""
    made = world().topology().nodes(draw(st.sampled_from([2, 3, 4, 1, 0])))
    fairness = draw(st.sampled_from(Fairness))
    made.cohort("root", nominal=draw(st.integers(0, 2)), fairness=fairness)
    made.cohort(
        "left",
        "root",
        weight=draw(weight_st),
        nominal=draw(st.integers(0, 3)),
        borrowing_limit=draw(limit_st),
        lending_limit=draw(limit_st),
    )
    cohorts = ("left", "left", "root", None)
    for name, cohort in zip(QUEUES, cohorts, strict=True):
        stop = draw(st.integers(0, 9)) == 0 and stops
        made.queue(
            name,
            draw(st.sampled_from([4, 0, 2, 3, 6, 8])),
            cohort,
            borrow=draw(limit_st) if cohort else None,
            lend=draw(limit_st) if cohort else None,
            cpu=draw(st.none() | st.just(1)),
            preemption=draw(preemption_st),
            queueing_strategy=draw(st.sampled_from(QueueingStrategy)),
            stop_policy=draw(st.sampled_from(StopPolicy)) if stop else StopPolicy.NONE,
            reclaimable=draw(st.integers(0, 4)) > 0,
            fair_weight=draw(weight_st),
        )
    for number in range(draw(st.integers(2, 12))):
        queue = draw(st.sampled_from((*QUEUES, *QUEUES, None)))
        made.pending(
            f"w{number}",
            queue,
            *draw(pod_sets_st()),
            priority=draw(st.integers(0, 1)) + draw(st.integers(0, number // 3)),
            created_at=float(draw(st.integers(0, 3))),
            preemptible=draw(st.integers(0, 5)) > 0,
        )
    return made.build()
