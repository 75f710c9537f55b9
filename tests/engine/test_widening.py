"""Which running work an edit puts at risk that it was not, and has no checkpoint."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.engine.cycle import decide
from scheduling.engine.machines import CPU
from scheduling.engine.plan import Evict
from scheduling.engine.snapshot import MinimumRuntime, Preemption
from scheduling.engine.terms import (
    BorrowWithinCohort,
    Fairness,
    ReclaimWithinCohort,
    WithinClusterQueue,
)
from scheduling.engine.widening import Exposed, exposed_by, has_checkpoint, widened
from tests.engine.builders import pods, world
from tests.engine.simulator import Simulator
from tests.engine.strategies import worlds

HOUR = 3600.0
NOW = 100 * HOUR
RECLAIM = Preemption(reclaim_within_cohort=ReclaimWithinCohort.ANY)
WHILE_BORROWING = replace(RECLAIM, borrow_within_cohort=BorrowWithinCohort.LOWER_PRIORITY)
RECLAIM_LOWER = Preemption(reclaim_within_cohort=ReclaimWithinCohort.LOWER_PRIORITY)
OWN = Preemption(within_cluster_queue=WithinClusterQueue.LOWER_PRIORITY)
OWN_NEWER = Preemption(within_cluster_queue=WithinClusterQueue.LOWER_OR_NEWER_EQUAL_PRIORITY)


def platform(lender=None, borrower=None, *, fairness=Fairness.NONE, **work):
    """``a`` lends 4 of its 4 GPUs to ``b``, whose gang of 8 has run for ten hours."""
    made = world().cohort("llm", fairness=fairness).nodes(4)
    made.queue("a", 4, **(lender or {}))
    made.queue("b", **{"nominal": 4, **(borrower or {})})
    made.running("r", "b", gpus=8, at=NOW - 10 * HOUR, **work)
    made.now = NOW
    return made.build()


# ---- what widens -------------------------------------------------------------------------------
WIDER = {
    "reclaim is switched on": (
        platform(),
        platform({"preemption": RECLAIM_LOWER}),
        "reclaim_within_cohort",
    ),
    "reclaim takes any priority": (
        platform({"preemption": RECLAIM_LOWER}),
        platform({"preemption": RECLAIM}),
        "reclaim_within_cohort",
    ),
    "the queue itself may evict": (
        platform(),
        platform(borrower={"preemption": OWN}),
        "within_cluster_queue",
    ),
    "newer work of equal priority too": (
        platform(borrower={"preemption": OWN}),
        platform(borrower={"preemption": OWN_NEWER}),
        "within_cluster_queue",
    ),
    "evicting while borrowing": (
        platform({"preemption": RECLAIM}),
        platform(
            {
                "preemption": replace(
                    RECLAIM, borrow_within_cohort=BorrowWithinCohort.LOWER_PRIORITY
                )
            }
        ),
        "borrow_within_cohort",
    ),
    "a higher threshold": (
        platform(
            {
                "preemption": Preemption(
                    WithinClusterQueue.NEVER,
                    ReclaimWithinCohort.ANY,
                    BorrowWithinCohort.LOWER_PRIORITY,
                    4,
                )
            },
            priority=5,
        ),
        platform(
            {
                "preemption": Preemption(
                    WithinClusterQueue.NEVER,
                    ReclaimWithinCohort.ANY,
                    BorrowWithinCohort.LOWER_PRIORITY,
                    5,
                )
            },
            priority=5,
        ),
        "max_priority_threshold",
    ),
    "a tree begins to share": (
        platform({"preemption": RECLAIM}),
        platform({"preemption": RECLAIM}, fairness=Fairness.HISTORY),
        "fairness",
    ),
    "the taker weighs more": (
        platform({"preemption": RECLAIM}, fairness=Fairness.SHARE),
        platform({"preemption": RECLAIM, "fair_weight": 2.0}, fairness=Fairness.SHARE),
        "fair_weight",
    ),
    "the borrower weighs less": (
        platform({"preemption": RECLAIM}, fairness=Fairness.SHARE),
        platform({"preemption": RECLAIM}, {"fair_weight": 0.5}, fairness=Fairness.SHARE),
        "fair_weight",
    ),
    "the minimum runtime is lowered": (
        platform({"preemption": RECLAIM}, {"minimum_runtime": MinimumRuntime(24 * HOUR)}),
        platform({"preemption": RECLAIM}, {"minimum_runtime": MinimumRuntime(12 * HOUR)}),
        "minimum_runtime_s",
    ),
    "it yields to its own": (
        platform(borrower={"preemption": OWN, "minimum_runtime": MinimumRuntime(24 * HOUR)}),
        platform(borrower={"preemption": OWN, "minimum_runtime": MinimumRuntime(24 * HOUR, True)}),
        "yields_to_own",
    ),
    "its quota is cut": (
        platform({"preemption": RECLAIM}, {"nominal": 8}),
        platform({"preemption": RECLAIM}, {"nominal": 4}),
        "groups",
    ),
    "its loans may be taken": (
        platform({"preemption": RECLAIM}, {"reclaimable": False}),
        platform({"preemption": RECLAIM}, {"reclaimable": True}),
        "reclaimable",
    ),
}


@pytest.mark.parametrize("case", WIDER)
def test_a_wider_right_puts_work_without_checkpoint_at_risk_and_names_the_field(case) -> None:
    before, after, field = WIDER[case]
    assert exposed_by(before, after) == Exposed(("r",), 80.0, (field,))


@pytest.mark.parametrize("case", WIDER)
def test_the_same_edit_backwards_puts_nothing_at_risk(case) -> None:
    before, after, _field = WIDER[case]
    assert exposed_by(after, before) == Exposed()
    assert exposed_by(after, after) == exposed_by(before, before) == Exposed()


@pytest.mark.parametrize("case", WIDER)
@pytest.mark.parametrize(
    "work",
    [
        {"stateless": True},
        {"last_checkpoint_at": NOW - HOUR, "checkpoint_interval_s": 2 * HOUR},
        {"last_checkpoint_at": NOW - 9 * HOUR},
        {"preemptible": False},
        {"releasing": True},
    ],
    ids="-".join,
)
def test_who_saves_progress_or_has_none_or_cannot_be_taken_is_not_at_risk(case, work) -> None:
    before, after, _field = WIDER[case]
    before, after = (
        replace(s, workloads=tuple(replace(w, **work) for w in s.workloads))
        for s in (before, after)
    )
    assert exposed_by(before, after) == Exposed()


def test_an_old_checkpoint_counts_for_what_it_saved_alone() -> None:
    work = {"last_checkpoint_at": NOW - 3 * HOUR, "checkpoint_interval_s": HOUR}
    found = exposed_by(platform(**work), platform({"preemption": RECLAIM}, **work))
    assert found == Exposed(("r",), 24.0, ("reclaim_within_cohort",))


def test_work_that_the_edit_cannot_reach_is_not_named() -> None:
    def build(**lender):
        made = world().cohort("llm").nodes(4).queue("a", 4, **lender).queue("b", 4).queue("c", 4)
        made.queue("far", 4, "other")
        made.running("borrows", "b", gpus=5, at=NOW - HOUR)
        made.running("own", "c", gpus=4, at=NOW - HOUR)
        made.running("elsewhere", "far", gpus=4, at=NOW - HOUR)
        made.now = NOW
        return made.build()

    found = exposed_by(build(), build(preemption=RECLAIM))
    assert found == Exposed(("borrows",), 5.0, ("reclaim_within_cohort",))


def test_work_without_gpus_loses_no_gpu_hours_and_is_named_last() -> None:
    def build(**lender):
        made = world().cohort("llm").nodes(4)
        made.queue("a", 4, cpu=8, **lender).queue("b", 0, cpu=0)
        made.running("cpu", "b", pods(1, 0, requests={CPU: 1000}), at=NOW - HOUR)
        made.running("gpu", "b", at=NOW - HOUR)
        made.now = NOW
        return made.build()

    found = exposed_by(build(), build(preemption=RECLAIM))
    assert (found.workloads, found.gpu_hours) == (("gpu", "cpu"), 1.0)


@pytest.mark.parametrize(
    ("work", "saved"),
    [
        ({}, False),
        ({"stateless": True}, True),
        ({"last_checkpoint_at": 0.0}, True),
        ({"last_checkpoint_at": NOW - HOUR, "checkpoint_interval_s": HOUR}, True),
        ({"last_checkpoint_at": NOW - HOUR - 1, "checkpoint_interval_s": HOUR}, False),
    ],
)
def test_a_checkpoint_is_as_good_as_it_is_recent(work, saved) -> None:
    (made,) = platform(**work).workloads
    assert has_checkpoint(made, NOW) is saved


# ---- laws --------------------------------------------------------------------------------------
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(snapshot=worlds(), name=st.sampled_from(["a", "b", "c", "d"]))
def test_every_victim_of_the_engine_was_a_possible_one(snapshot, name) -> None:
    """Beside a world in which nobody may evict, every victim is newly at risk."""
    sim = Simulator(snapshot)
    sim.run()
    never = {
        key: replace(queue, preemption=Preemption())
        for key, queue in sim.snapshot.cluster_queues.items()
    }
    before = replace(sim.snapshot, cluster_queues=never)
    wider = {right.victim for right in widened(before, sim.snapshot)}
    model = next((w for w in snapshot.workloads if w.queue == name), None)
    if model is not None:
        urgent = replace(model, key="urgent", name="urgent", priority=99)
        more = replace(sim.snapshot, workloads=(*sim.snapshot.workloads, urgent))
        decisions = [d for d in decide(more).decisions if isinstance(d, Evict)]
        assert {d.workload for d in decisions if d.preemptor == "urgent"} <= wider
