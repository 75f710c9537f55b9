"""What admitted work has earned: a minimum runtime, and a price for its eviction."""

from dataclasses import replace
from itertools import permutations

import pytest

from scheduling.engine import codec
from scheduling.engine.atlas import Atlas
from scheduling.engine.books import Books
from scheduling.engine.candidates import Attempt, Grounds, Running, Selection, victim_order
from scheduling.engine.cycle import decide
from scheduling.engine.invariants import violations
from scheduling.engine.plan import Blocker, Evict, Hold, Plan
from scheduling.engine.profile import Profile
from scheduling.engine.queue_rules import MinimumRuntime
from scheduling.engine.terms import BlockerCode, PendingReason, StopPolicy, WithinClusterQueue
from scheduling.engine.tree import queue_key
from tests.engine.builders import H100, RECLAIM_ANY, RECLAIM_LOWER, World, pods, world
from tests.engine.simulator import Simulator

NODE = {"h100-node-01": 1}
HOUR = 3600.0


def lent(seconds: float = 0.0, *, yields: bool = False, **changes: object) -> World:
    """Queue b holds GPUs that a owns; b's work is safe for ``seconds``."""
    made = world().queue("a", 4, preemption=RECLAIM_ANY)
    grant = MinimumRuntime(seconds, yields_to_own=yields)
    return made.queue("b", 0, minimum_runtime=grant, preemption=RECLAIM_LOWER, **changes)


def evicted(plan: Plan) -> list[str]:
    return [d.workload for d in plan.decisions if isinstance(d, Evict)]


def blockers(plan: Plan, key: str) -> tuple[Blocker, ...]:
    (hold,) = [d for d in plan.decisions if isinstance(d, Hold) and d.workload == key]
    return hold.blockers


# -- minimum runtime ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ran", "granted", "want"),
    [
        pytest.param(10.0, 0.0, ["young"], id="no minimum: everybody may go at once"),
        pytest.param(599.0, 600.0, [], id="a second too early"),
        pytest.param(600.0, 600.0, ["young"], id="at the very instant"),
        pytest.param(9999.0, 600.0, ["young"], id="long after it"),
    ],
)
def test_nobody_is_preempted_before_the_minimum_runtime_of_its_queue(ran, granted, want) -> None:
    made = lent(granted).running("young", "b", gpus=4, at=1000.0 - ran)
    made.pending("owner", "a", gpus=2, priority=9)
    assert evicted(decide(made.build())) == want


def test_the_minimum_runtime_is_the_victims_not_the_preemptors() -> None:
    made = lent().running("young", "b", gpus=4, at=999.0).pending("owner", "a", gpus=2)
    made.queues["a"] = replace(made.queues["a"], minimum_runtime=MinimumRuntime(600.0))
    assert evicted(decide(made.build())) == ["young"]


@pytest.mark.parametrize(
    ("yields", "priority", "want"),
    [
        pytest.param(False, 9, [], id="its own queue waits as well"),
        pytest.param(True, 9, ["young"], id="unless it yields to a higher priority"),
        pytest.param(True, 5, [], id="the same priority is not higher"),
    ],
)
def test_own_queue_and_minimum_runtime(yields, priority, want) -> None:
    made = world().queue("cq", 4, None, minimum_runtime=MinimumRuntime(600.0, yields))
    newer = replace(
        RECLAIM_LOWER, within_cluster_queue=WithinClusterQueue.LOWER_OR_NEWER_EQUAL_PRIORITY
    )
    made.queues["cq"] = replace(made.queues["cq"], preemption=newer)
    made.running("young", "cq", gpus=4, at=900.0, priority=5, created_at=500.0)
    made.pending("p", "cq", gpus=2, priority=priority, created_at=1.0)
    assert evicted(decide(made.build())) == want


def test_yielding_to_its_own_protects_from_the_others_all_the_same() -> None:
    made = lent(600.0, yields=True).running("young", "b", gpus=4, at=900.0)
    made.pending("owner", "a", gpus=2, priority=9)
    assert evicted(decide(made.build())) == []


def test_an_older_victim_is_taken_in_place_of_a_younger_one() -> None:
    made = lent(600.0).running("old", "b", gpus=2, at=100.0)
    made.running("young", "b", gpus=2, at=900.0)
    assert evicted(decide(made.pending("owner", "a", gpus=2).build())) == ["old"]


def test_the_held_preemptor_is_told_how_many_are_protected_and_until_when() -> None:
    made = lent(600.0)
    for number, at in enumerate((500.0, 700.0, 600.0, 900.0)):
        made.running(f"young-{number}", "b", at=at)
    plan = decide(made.pending("owner", "a", gpus=3, priority=9).build())
    first = blockers(plan, "owner")[0]
    assert first == Blocker(
        BlockerCode.MINIMUM_RUNTIME, where="a", facts={"victims": 3, "until": 1300}
    ), "three of them have run long enough at 1300, not before"
    assert plan.look_again_at == 1300.0
    (hold,) = plan.decisions
    assert isinstance(hold, Hold)
    assert hold.reason is PendingReason.WAITING_FOR_QUOTA


def test_it_is_looked_at_again_then_and_starts() -> None:
    made = lent(600.0).running("young", "b", gpus=4, at=900.0).pending("owner", "a", gpus=4)
    sim = Simulator(made.build())
    sim.step()
    assert sim.plan.look_again_at == 1500.0
    sim.snapshot = replace(sim.snapshot, now=1500.0 - sim.step_s)
    sim.run()
    assert sim.evictions == [("young", "owner")]
    assert sim.admitted() == {"owner"}


def test_time_that_would_not_help_is_no_reason_to_look_again() -> None:
    made = lent(600.0).running("young", "b", gpus=1, at=900.0)
    made.running("own", "a", gpus=3, at=900.0).pending("owner", "a", gpus=2)
    plan = decide(made.build())
    assert plan.look_again_at is None
    assert all(b.code is not BlockerCode.MINIMUM_RUNTIME for b in blockers(plan, "owner"))


def test_a_claim_that_ends_is_a_reason_to_look_again() -> None:
    made = lent().running("r", "b", gpus=4, at=1.0).pending("owner", "a", gpus=4)
    plan = decide(made.build())
    assert plan.look_again_at == plan.memory.claims[0].expires_at == 1600.0
    assert codec.decode_plan(codec.encode_plan(plan)) == plan


def test_nothing_that_time_could_change_gives_no_instant() -> None:
    assert decide(lent(600.0).running("r", "b", at=1.0).build()).look_again_at is None


def test_a_drained_queue_loses_its_work_whatever_its_minimum_runtime() -> None:
    made = lent(600.0, stop_policy=StopPolicy.HOLD_AND_DRAIN).running("young", "b", at=999.0)
    assert evicted(decide(made.build())) == ["young"]


def test_an_endless_minimum_runtime_is_no_instant() -> None:
    made = lent(float("inf")).running("r", "b", gpus=4, at=1.0).pending("owner", "a", gpus=4)
    plan = decide(made.build())
    assert evicted(plan) == []
    assert plan.look_again_at is None


def test_the_watchman_knows_the_minimum_runtime_too() -> None:
    made = lent().running("young", "b", gpus=4, at=999.0).pending("owner", "a", gpus=4)
    plan = decide(made.build())
    made.queues["b"] = replace(made.queues["b"], minimum_runtime=MinimumRuntime(600.0))
    assert violations(made.build(), plan) == ("young is protected from owner",)


# -- the cheapest eviction ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpus", "at", "checkpoint", "lost"),
    [
        pytest.param(4, 1000.0 - HOUR, None, 4.0, id="GPUs held times hours since the start"),
        pytest.param(4, 1000.0 - HOUR, 1000.0 - 900, 1.0, id="since the last checkpoint"),
        pytest.param(4, 1000.0 - 900, 1.0, 1.0, id="a checkpoint of an earlier run counts not"),
        pytest.param(4, 1000.0 - HOUR, 2000.0, 0.0, id="a checkpoint ahead of the clock: nothing"),
        pytest.param(0, 1000.0 - HOUR, None, 0.0, id="no GPUs: nothing"),
    ],
)
def test_what_an_eviction_loses(gpus, at, checkpoint, lost) -> None:
    made = lent(stop_policy=StopPolicy.HOLD_AND_DRAIN, cpu=1).running(
        "r", "b", pods(1, gpus, cpu=1), at=at, last_checkpoint_at=checkpoint
    )
    (evict,) = decide(made.build()).decisions
    assert isinstance(evict, Evict)
    assert evict.lost_gpu_hours == lost


def four_of_one_priority() -> World:
    """In the order in which they go: 0, 1, 2 and 4 GPU-hours lost."""
    made = lent().running("saved", "b", at=1000.0 - 9 * HOUR, last_checkpoint_at=1000.0)
    made.running("new", "b", at=1000.0 - HOUR)
    made.running("old", "b", at=1000.0 - 2 * HOUR)
    return made.running("older", "b", at=1000.0 - 4 * HOUR)


def test_who_loses_the_fewest_gpu_hours_goes_first() -> None:
    order = ["saved", "new", "old", "older"]
    for gpus in range(1, 5):
        made = four_of_one_priority().pending("owner", "a", gpus=gpus)
        assert sorted(evicted(decide(made.build()))) == sorted(order[:gpus]), gpus


def test_a_small_old_job_is_cheaper_than_a_large_new_one() -> None:
    made = lent().running("large-new", "b", gpus=3, at=1000.0 - HOUR)
    made.running("small-old", "b", gpus=1, at=1000.0 - 2 * HOUR)
    assert evicted(decide(made.pending("owner", "a", gpus=1).build())) == ["small-old"]


def test_a_less_urgent_one_goes_before_a_cheaper_one() -> None:
    made = four_of_one_priority()
    made.workloads = [replace(w, priority=int(w.key != "older")) for w in made.workloads]
    assert evicted(decide(made.pending("owner", "a").build())) == ["older"]


def test_without_progress_to_compare_the_newest_goes_first() -> None:
    """Kueue #840; equal cost: latest admission, then key, in whatever order they are listed."""
    at = {"one": 1.0, "two": 2.0, "three": 3.0, "four": 3.0}
    for names in permutations(at):
        made = lent()
        for name in names:
            made.running(name, "b", at=at[name], last_checkpoint_at=1000.0)
        assert evicted(decide(made.pending("owner", "a").build())) == ["four"]


def test_the_switch_off_means_latest_admitted_first() -> None:
    made = four_of_one_priority().pending("owner", "a")
    snapshot = made.build()
    books = Books(snapshot, Atlas(snapshot))
    attempt = Attempt(snapshot.workloads[-1], queue_key("a"), {H100: 1}, frozenset({H100}))

    def order(profile: Profile) -> list[str]:
        ledger, queues = books.soon.ledger, snapshot.cluster_queues
        running = Running(snapshot.workloads)
        grounds = Grounds(ledger, books.staying, queues, running, snapshot.now, profile)
        found = Selection(attempt, grounds, ()).collect()
        return [candidate.workload.key for candidate in found.all]

    recommended = Profile.recommended()
    assert order(recommended) == ["saved", "new", "old", "older"]
    assert order(replace(recommended, cheapest_eviction=False)) == ["new", "old", "older", "saved"]
    made.queues["b"] = replace(made.queues["b"], minimum_runtime=MinimumRuntime(2 * HOUR))
    snapshot = made.build()
    assert order(recommended) == ["saved", "old", "older"]
    assert order(replace(recommended, minimum_runtime=False)) == ["saved", "new", "old", "older"]


def test_the_order_of_victims_is_total() -> None:
    snapshot = four_of_one_priority().build()
    keys = [victim_order(work, snapshot.now) for work in snapshot.workloads]
    assert keys == sorted(set(keys))
