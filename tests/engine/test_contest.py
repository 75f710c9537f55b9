"""Whose turn it is: nobody gets two turns in one cycle."""

from dataclasses import replace

from scheduling.engine.cycle import decide
from scheduling.engine.decay import Decayed
from scheduling.engine.invariants import violations
from scheduling.engine.plan import Admit, Evict
from scheduling.engine.snapshot import Assignment, Claim, Preemption, Snapshot
from scheduling.engine.terms import Fairness, ReclaimWithinCohort, WithinClusterQueue
from tests.engine.builders import RECLAIM_LOWER, world

EVICTS = Preemption(WithinClusterQueue.LOWER_PRIORITY, ReclaimWithinCohort.ANY)


def overtaken_champion() -> Snapshot:
    """``urgent`` leads its tree, is overtaken by ``second`` once that is offered, leads again.

    Quota is short, and what is free is kept for ``claimant``: only by evicting can it start.
    """
    made = world().cohort("root", nominal=2, fairness=Fairness.HISTORY)
    made.queue("a", 3, "root", lend=1)
    made.queue("b", 0, "root", borrow=4, preemption=EVICTS, fair_weight=0.0)
    made.queue("d", 4, "root", borrow=2, lend=2)
    made.queue("c", 3, "root", borrow=4, preemption=RECLAIM_LOWER)
    made.running("a-work", "a", gpus=4).running("b-work", "b", priority=4)
    made.running("leaving", "c", releasing=True).running("d-work", "d", gpus=3)
    made.pending("claimant", "c", gpus=4, priority=9)
    made.pending("second", "c", gpus=2, priority=2)
    made.pending("urgent", "b", priority=12)
    claim = Claim(
        "claimant", (Assignment("main", 1, {"nvidia.com/gpu": "h100-sxm"}),), ("leaving",), 1600.0
    )
    made.memory = replace(made.memory, claims=(claim,), history={"b": Decayed(9.0, 1.0, 990.0)})
    return made.build()


def test_a_champion_that_evicts_has_no_second_turn_in_the_cycle() -> None:
    snapshot = overtaken_champion()
    plan = decide(snapshot)
    evictions = [d for d in plan.decisions if isinstance(d, Evict)]
    assert [(d.workload, d.preemptor) for d in evictions] == [("b-work", "urgent")]
    assert [d for d in plan.decisions if isinstance(d, Admit)] == []
    assert [claim.workload for claim in plan.memory.claims] == ["claimant", "urgent"]
    assert violations(snapshot, plan) == ()


def test_a_waiting_preemptor_has_its_turn_in_a_fair_tree_as_well() -> None:
    snapshot = overtaken_champion()
    left = tuple(w for w in snapshot.workloads if w.key not in ("leaving", "b-work"))
    plan = decide(replace(snapshot, workloads=left))
    assert [d.workload for d in plan.decisions if isinstance(d, Admit)] == ["claimant", "urgent"]
