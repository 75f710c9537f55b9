"""Stopped local queues and closed namespaces, as the rows tell the engine (K8, K9, K14)."""

from dataclasses import replace

import pytest

from scheduling.engine.cycle import decide
from scheduling.engine.invariants import violations
from scheduling.engine.kueue.cycle import decide_heads
from scheduling.engine.machines import GPU
from scheduling.engine.plan import Admit, Evict, Hold, Plan
from scheduling.engine.profile import Profile
from scheduling.engine.snapshot import Assignment, Claim, Memory
from scheduling.engine.terms import (
    BlockerCode,
    EvictionReason,
    PendingReason,
    QueueingStrategy,
    StopPolicy,
)
from tests.engine.builders import RECLAIM_LOWER, World, pods, world
from tests.engine.simulator import Simulator

STOPPED, FOREIGN = BlockerCode.QUEUE_STOPPED, BlockerCode.NAMESPACE_NOT_ALLOWED
MISSING = BlockerCode.QUEUE_MISSING
STRICT = QueueingStrategy.STRICT_FIFO


def plan_of(made: World) -> Plan:
    snapshot = made.build()
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    return plan


def evicted(plan: Plan) -> list[tuple[str, EvictionReason]]:
    return [(d.workload, d.reason) for d in plan.decisions if isinstance(d, Evict)]


def admitted(plan: Plan) -> list[str]:
    return [d.workload for d in plan.decisions if isinstance(d, Admit)]


@pytest.mark.parametrize(
    ("blocked", "reason", "code"),
    [
        (STOPPED, PendingReason.ON_HOLD, STOPPED),
        (FOREIGN, PendingReason.MISCONFIGURED, FOREIGN),
        (MISSING, PendingReason.MISCONFIGURED, MISSING),
        ("AdmissionGated", PendingReason.ON_HOLD, BlockerCode.QUEUE_INACTIVE),
    ],
)
@pytest.mark.parametrize("strategy", QueueingStrategy)
def test_who_may_not_enter_waits_for_that_reason_and_keeps_nobody_waiting(
    blocked, reason, code, strategy
):
    """A strict queue sets it aside as well: it is no head (K9)."""
    made = world().nodes(1).queue("cq", 4, None, queueing_strategy=strategy)
    made.pending("out", "cq", priority=9, blocked=blocked).pending("in", "cq")
    plan = plan_of(made)
    assert admitted(plan) == ["in"]
    (hold,) = [d for d in plan.decisions if isinstance(d, Hold)]
    assert (hold.reason, [b.code for b in hold.blockers]) == (reason, [code])
    assert hold.position is None


@pytest.mark.parametrize("blocked", [STOPPED, FOREIGN])
def test_who_may_not_enter_evicts_nobody(blocked):
    made = world().nodes(1).queue("cq", 4, None, preemption=RECLAIM_LOWER)
    made.running("low", "cq", gpus=4, on={"h100-node-01": 1})
    assert evicted(plan_of(made.pending("out", "cq", gpus=4, priority=9, blocked=blocked))) == []


@pytest.mark.parametrize("blocked", [STOPPED, FOREIGN, MISSING])
def test_what_was_kept_for_who_may_not_enter_any_more_is_free(blocked):
    """A reservation that has not become an admission is cancelled by any kind of stop (K14)."""
    made = world().nodes(1).queue("cq", 4, None)
    made.pending("out", "cq", gpus=4, priority=9, blocked=blocked).pending("in", "cq", gpus=4)
    where = (Assignment("main", 1, {GPU: "h100-sxm"}, {"h100-node-01": 1}),)
    made.memory = Memory(claims=(Claim("out", where, (), 9e9),))
    plan = plan_of(made)
    assert admitted(plan) == ["in"]
    assert plan.memory.claims == ()


def test_a_local_queue_on_hold_keeps_its_running_work():
    """The rows do not mark running work of a queue on hold; what waits in it is marked."""
    made = world().nodes(1).queue("cq", 4, None)
    made.running("run", "cq", gpus=2, on={"h100-node-01": 1})
    assert evicted(plan_of(made.pending("wait", "cq", blocked=STOPPED))) == []


def test_running_work_of_a_local_queue_on_hold_is_a_victim_like_any_other():
    made = world().nodes(1).queue("cq", 4, None, preemption=RECLAIM_LOWER)
    made.running("run", "cq", gpus=4, on={"h100-node-01": 1}, local_queue="held")
    made.pending("urgent", "cq", gpus=4, priority=9, local_queue="open")
    assert evicted(plan_of(made)) == [("run", EvictionReason.PREEMPTED)]


def test_a_drained_local_queue_loses_its_running_work_and_its_neighbours_get_the_room():
    made = world().nodes(1).queue("cq", 4, None)
    made.running("a", "cq", gpus=2, on={"h100-node-01": 1}, blocked=STOPPED, local_queue="left")
    made.running("b", "cq", gpus=2, on={"h100-node-01": 1}, local_queue="right")
    made.pending("next", "cq", gpus=2, local_queue="right")
    simulator = Simulator(made.build())
    simulator.step()
    assert evicted(simulator.plan) == [("a", EvictionReason.LOCAL_QUEUE_STOPPED)]
    simulator.run()
    assert simulator.admitted() == {"b", "next"}  # "a" is blocked by the rows and waits


@pytest.mark.parametrize("blocked", [FOREIGN, MISSING])
def test_running_work_whose_door_closed_otherwise_runs_on(blocked):
    """A namespace that is no longer allowed, a local queue that is gone: no eviction (K9)."""
    made = world().nodes(1).queue("cq", 4, None)
    made.running("run", "cq", gpus=4, on={"h100-node-01": 1}, blocked=blocked)
    assert evicted(plan_of(made)) == []


def test_both_doors_drained_the_cluster_queue_is_named():
    made = world().nodes(1).queue("cq", 4, None, stop_policy=StopPolicy.HOLD_AND_DRAIN)
    made.running("run", "cq", gpus=4, on={"h100-node-01": 1}, blocked=STOPPED)
    assert evicted(plan_of(made)) == [("run", EvictionReason.CLUSTER_QUEUE_STOPPED)]


@pytest.mark.parametrize(
    "changes", [{"stop_policy": StopPolicy.HOLD}, {"inactive": "FlavorNotFound"}]
)
def test_a_draining_local_queue_drains_whatever_else_its_queue_does(changes):
    made = world().nodes(1).queue("cq", 4, None, **changes)
    made.running("run", "cq", gpus=4, on={"h100-node-01": 1}, blocked=STOPPED)
    assert evicted(plan_of(made)) == [("run", EvictionReason.LOCAL_QUEUE_STOPPED)]


def test_a_cluster_queue_on_hold_keeps_its_work_and_lends_on():
    made = world().nodes(2).queue("held", 4, stop_policy=StopPolicy.HOLD).queue("open", 0)
    made.running("run", "held", gpus=2, on={"h100-node-01": 1})
    made.pending("wait", "held").pending("borrow", "open", gpus=2)
    plan = plan_of(made)
    assert evicted(plan) == []
    assert admitted(plan) == ["borrow"]


def test_a_copy_in_a_stopped_local_queue_waits_beside_its_original():
    made = world().nodes(1).queue("cq", 4, None)
    made.running("old", "cq", pods(1), on={"h100-node-01": 1})
    made.pending("new", "cq", pods(2), replaces="old", blocked=STOPPED)
    assert admitted(plan_of(made)) == []


@pytest.mark.parametrize("blocked", [STOPPED, FOREIGN])
def test_the_kueue_profile_sets_them_aside_as_well(blocked):
    made = world().queue("cq", 4, None, queueing_strategy=STRICT)
    made.pending("out", "cq", priority=9, blocked=blocked).pending("in", "cq")
    entries = decide_heads(made.build(), Profile.kueue()).entries
    assert [entry.workload.key for entry in entries] == ["in"]


def test_a_stop_is_lifted_without_a_trace():
    made = world().nodes(1).queue("cq", 4, None).pending("w", "cq", blocked=STOPPED)
    simulator = Simulator(made.build())
    simulator.run()
    assert simulator.admitted() == set()
    work = tuple(replace(w, blocked="") for w in simulator.snapshot.workloads)
    simulator.snapshot = replace(simulator.snapshot, workloads=work)
    simulator.run()
    assert simulator.admitted() == {"w"}
