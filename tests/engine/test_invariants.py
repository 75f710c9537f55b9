"""The oracle itself: each law catches the plan that breaks it."""

from dataclasses import replace

import pytest

from scheduling.engine.cycle import decide
from scheduling.engine.invariants import violations
from scheduling.engine.machines import GPU
from scheduling.engine.plan import Admit, Evict, Hold, Plan
from scheduling.engine.snapshot import Assignment, Snapshot
from scheduling.engine.terms import EvictionReason, PendingReason, PreemptionReason
from tests.engine.builders import RECLAIM_ANY, world

NODE = {"h100-node-01": 1}


def snapshot_of() -> Snapshot:
    made = world().nodes(1).cohort("llm").queue("a", 2, borrow=1, preemption=RECLAIM_ANY)
    made.queue("b", 1).running("r", "b", gpus=1, on=NODE).pending("p", "a", gpus=2)
    return made.build()


def admit(count: int = 1, nodes: dict[str, int] | None = None, key: str = "p") -> Admit:
    where = NODE if nodes is None else nodes
    return Admit(key, (Assignment("main", count, {GPU: "h100-sxm"}, where),))


EVICT = Evict("r", EvictionReason.PREEMPTED, "p", PreemptionReason.IN_COHORT_RECLAMATION)
HOLD = Hold("p", PendingReason.WAITING_FOR_QUOTA, ())

BROKEN = {
    "nobody decided": (Plan(()), "p was decided 0 times"),
    "decided twice": (Plan((admit(), HOLD)), "p was decided 2 times"),
    "a gang without nodes": (Plan((admit(nodes={}),)), "p has 0 of 1 pods placed"),
    "a gang of the wrong size": (Plan((admit(2),)), "p starts without some of its pods"),
    "an unknown node": (
        Plan((admit(nodes={"x": 1}),)),
        "work is placed on x, which cannot take any",
    ),
    "a victim within its quota": (Plan((EVICT, HOLD)), "r is protected from p"),
    "an eviction without a claim": (Plan((EVICT, HOLD)), "p evicts and claims nothing"),
    "drained from an open queue": (
        Plan((Evict("r", EvictionReason.CLUSTER_QUEUE_STOPPED), HOLD)),
        "r is drained from an open queue",
    ),
    "evicted twice": (Plan((EVICT, EVICT, HOLD)), "r is evicted 2 times or does not run"),
}


@pytest.mark.parametrize(("plan", "sentence"), BROKEN.values(), ids=BROKEN)
def test_the_law_is_named(plan: Plan, sentence: str) -> None:
    assert sentence in violations(snapshot_of(), plan)


def test_oversold_nodes_and_quota() -> None:
    snapshot = snapshot_of()
    big = replace(
        snapshot.workloads[1],
        pod_sets=(replace(snapshot.workloads[1].pod_sets[0], requests={GPU: 4}),),
    )
    found = violations(replace(snapshot, workloads=(snapshot.workloads[0], big)), Plan((admit(),)))
    assert any(s.startswith("h100-node-01 carries 5 of 4") for s in found)
    assert any(s.startswith("a holds 4 of") for s in found)
    assert any(s.startswith("cohort llm gives 5 of") for s in found)


def test_a_sound_plan_breaks_nothing() -> None:
    assert violations(snapshot_of(), decide(snapshot_of())) == ()
