"""What users of other schedulers complained about in public (``admission.md`` 5), at full size."""

from dataclasses import replace

import pytest

from scheduling.engine.atlas import Atlas
from scheduling.engine.books import Books
from scheduling.engine.candidates import Attempt, Grounds, Running, Selection
from scheduling.engine.cycle import advance, decide
from scheduling.engine.machines import CPU, GPU
from scheduling.engine.plan import Admit
from scheduling.engine.profile import Profile
from scheduling.engine.snapshot import (
    FlavorQuotas,
    PodSet,
    Preemption,
    Quota,
    ResourceGroup,
    Workload,
)
from scheduling.engine.state import State
from scheduling.engine.terms import QueueingStrategy, ReclaimWithinCohort
from scheduling.engine.tree import queue_key
from scheduling.engine.usage import quota_usage
from tests.engine.builders import RECLAIM_ANY, World, pods, world
from tests.engine.simulator import Simulator

DEEP = 10_000


# -- T10: a deep queue -------------------------------------------------------------------------


def deep(strategy: QueueingStrategy = QueueingStrategy.BEST_EFFORT_FIFO) -> World:
    """All GPUs taken; ten thousand gangs of one shape wait, and last of all a job of 4 CPUs."""
    made = world().nodes(2, gpus=8)
    made.queue("cq", 16, None, cpu=240, queueing_strategy=strategy, preemption=RECLAIM_ANY)
    for number in (1, 2):
        made.running(f"r{number}", "cq", gpus=8, on={f"h100-node-{number:02d}": 1}, priority=9)
    for number in range(DEEP):
        made.pending(f"gang{number:05d}", "cq", gpus=8)
    return made.pending("small", "cq", pods(1, 0, cpu=4))


def test_behind_ten_thousand_gangs_the_small_job_starts_at_once_and_one_is_tried() -> None:
    plan = decide(deep().build())
    assert [d.workload for d in plan.decisions if isinstance(d, Admit)] == ["small"]
    assert (plan.work["passed"], plan.work["heads"]) == (1, 1), "one gang, and the small job"
    assert plan.work["pod_sets_tried"] <= 4
    assert plan.work["trials"] == 0


def test_it_still_does_while_ends_of_others_wake_the_queue_again_and_again() -> None:
    """Ten times a second some CPU job ends and another comes: no cycle looks at more than that."""
    state = State(deep().build())
    advance(state, 1000.0)
    for beat in range(1, 21):
        now = 1000.0 + beat / 10
        state.drop("small" if beat == 1 else f"small{beat - 1}")
        fresh = (pods(1, 0, cpu=4),)
        state.put(Workload(f"small{beat}", f"small{beat}", "cq", 0, now, fresh))
        desk = advance(state, now)
        assert [move.workload for move in desk.moves] == [f"small{beat}"]
        assert desk.work["heads"] + desk.work["passed"] <= 2
        assert desk.work["pod_sets_tried"] <= 4


def test_each_gang_that_finds_room_starts_in_its_turn() -> None:
    state = State(deep().build())
    advance(state, 1000.0)
    state.drop("r1")
    desk = advance(state, 1001.0)
    assert [move.workload for move in desk.moves] == ["gang00000"]
    assert desk.work["heads"] + desk.work["passed"] <= 3


# -- T3: a head that can never be ----------------------------------------------------------------


@pytest.mark.parametrize("strategy", QueueingStrategy)
def test_an_oversized_head_evicts_nobody_and_the_next_one_evicts_once(strategy) -> None:
    made = world().queue("a", 3, preemption=RECLAIM_ANY, queueing_strategy=strategy)
    made.queue("b", 0).running("b1", "b").pending("a4", "a", gpus=4).pending("a3", "a", gpus=3)
    sim = Simulator(made.build())
    sim.run()
    assert sim.evictions == [("b1", "a3")]
    assert sim.admitted() == {"a3"}
    for _ in range(20):
        sim.step()
    assert len(sim.evictions) == 1


# -- T9: contested columns -----------------------------------------------------------------------


def borrowed_cpus() -> World:
    """The owner of one GPU needs two CPUs that it must borrow, and that are free."""

    def both(gpus: int, cpus: int) -> tuple[ResourceGroup, ...]:
        quotas = {GPU: Quota(gpus), CPU: Quota(cpus)}
        return (ResourceGroup((GPU, CPU), (FlavorQuotas("h100-sxm", quotas),)),)

    never = Preemption(reclaim_within_cohort=ReclaimWithinCohort.ANY)
    made = world().queue("cq1", groups=both(1, 0), preemption=never)
    made.queue("cq2", groups=both(0, 0)).queue("cq3", groups=both(0, 4))
    work = PodSet("main", 1, {GPU: 1, CPU: 2})
    return made.running("borrower", "cq2", work).pending("owner", "cq1", work)


@pytest.mark.parametrize(
    ("contested_only", "while_borrowing"),
    [
        pytest.param(True, [True], id="its CPUs are not contested: it may borrow them"),
        pytest.param(False, [False], id="Kueue: only if it borrows nothing at all"),
    ],
)
def test_the_switch_for_contested_columns(contested_only, while_borrowing) -> None:
    snapshot = borrowed_cpus().build()
    profile = replace(Profile.recommended(), contested_only=contested_only)
    books, owner = Books(snapshot, Atlas(snapshot)), snapshot.workloads[-1]
    usage = quota_usage(owner.pod_sets[0], 1, dict.fromkeys((GPU, CPU), "h100-sxm"))
    (gpus,) = [fr for fr in usage if fr.resource == GPU]
    attempt = Attempt(owner, queue_key("cq1"), usage, frozenset({gpus}))
    ledger, queues, running = books.soon.ledger, snapshot.cluster_queues, Running(())
    for work in snapshot.workloads[:-1]:
        running.add(work)
    grounds = Grounds(ledger, books.staying, queues, running, snapshot.now, profile)
    found = Selection(attempt, grounds, ()).collect()
    assert [candidate.while_borrowing for candidate in found.all] == while_borrowing


def test_an_owner_gets_its_gpus_back_though_its_cpus_are_borrowed() -> None:
    sim = Simulator(borrowed_cpus().build())
    sim.run()
    assert sim.evictions == [("borrower", "owner")]
    assert sim.admitted() == {"owner"}
