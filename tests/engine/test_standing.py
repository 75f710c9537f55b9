"""What admitted work still holds: finished pods, pods shed in place, and pods that come back."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.engine.cycle import decide
from scheduling.engine.invariants import violations
from scheduling.engine.kueue.cycle import HeadOutcome, decide_heads
from scheduling.engine.machines import CPU, GPU
from scheduling.engine.metering import split
from scheduling.engine.plan import Admit, Evict
from scheduling.engine.profile import Profile
from scheduling.engine.snapshot import (
    Admission,
    Assignment,
    FlavorQuotas,
    Memory,
    Quota,
    ResourceGroup,
    Snapshot,
    Workload,
)
from scheduling.engine.standing import shrunk, standing
from scheduling.engine.terms import EvictionReason
from scheduling.engine.usage import held_usage
from scheduling.engine.view import quota_rows
from tests.engine.builders import H100, RECLAIM_LOWER, World, pods, world
from tests.engine.simulator import Simulator


def admitted(granted: int, count: int, done: int = 0, **nodes: int) -> Workload:
    """A workload of one GPU a pod that was granted some pods, and asks for ``count`` now."""
    assignment = Assignment("main", granted, {GPU: "h100-sxm"}, nodes)
    return Workload(
        "w", "w", "cq", 0, 1.0, (pods(count),), Admission(1.0, (assignment,)),
        reclaimable={"main": done} if done else {},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("granted", "count", "done", "held"),
    [
        (8, 8, 0, 8),
        (8, 8, 3, 5),  # finished pods give their quota back
        (8, 8, 8, 0),
        (8, 8, 9, 0),  # never below nothing
        (5, 8, 2, 3),  # relative to what was granted, not to what was asked (#3141)
        (5, 8, 0, 5),
        (8, 4, 0, 4),  # shed in place
        (100, 50, 100, 0),  # shed below what had finished (#12670)
        (100, 50, 20, 30),
        (4, 8, 0, 4),  # more is asked for by a copy, never in place
    ],
)
def test_what_is_charged(granted, count, done, held):
    work = admitted(granted, count, done)
    assert [a.count for a in standing(work)] == [held]
    assert held_usage(work)[H100] == held


@pytest.mark.parametrize(
    ("nodes", "kept", "expected"),
    [
        ({"a": 4, "b": 2, "c": 1}, 7, {"a": 4, "b": 2, "c": 1}),
        ({"a": 4, "b": 2, "c": 1}, 6, {"a": 4, "b": 2}),  # the fewest go first
        ({"a": 4, "b": 2, "c": 1}, 5, {"a": 4, "b": 1}),
        ({"a": 2, "b": 2, "c": 2}, 4, {"a": 2, "b": 2}),  # then the last by name
        ({"a": 2, "b": 2, "c": 2}, 1, {"a": 1}),
        ({"a": 2}, 0, {}),
        ({}, 3, {}),
    ],
)
def test_which_pods_go_when_work_shrinks(nodes, kept, expected):
    assert shrunk(nodes, kept) == expected
    assert shrunk(dict(reversed(nodes.items())), kept) == expected


def test_shrunk_work_leaves_nodes_and_finished_pods_wait_for_their_host():
    (shed,) = standing(admitted(6, 4, a=4, b=2))
    assert (shed.count, shed.nodes) == (4, {"a": 4})
    (done,) = standing(admitted(6, 6, 2, a=4, b=2))
    assert (done.count, done.nodes) == (4, {"a": 4, "b": 2})


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 5)), st.integers(0, 30)
)  # fmt: skip
def test_shrinking_keeps_exactly_as_many_and_never_adds_to_a_node(nodes, kept):
    left = shrunk(nodes, kept)
    assert sum(left.values()) == min(kept, sum(nodes.values()))
    assert all(0 < left[name] <= nodes[name] for name in left)


def test_what_is_left_is_for_others_in_quota_on_nodes_and_in_the_figures():
    made = world().nodes(2).queue("cq", 8, None)
    made.running("w", "cq", pods(8), on={"h100-node-01": 4, "h100-node-02": 4})
    made.pending("next", "cq", gpus=4)
    made.workloads[0] = replace(made.workloads[0], pod_sets=(pods(4),))
    snapshot = made.build()
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    (admit,) = plan.decisions
    assert isinstance(admit, Admit)
    assert admit.assignments[0].nodes == {"h100-node-02": 1}
    assert [(s.workload, s.amount) for s in split(snapshot)] == [("w", 4)]
    assert [row.used for row in quota_rows(snapshot)] == [4]


def test_finished_pods_free_quota_for_work_that_has_nodes_of_its_own():
    made = world().nodes(2).queue("cq", 4, None)
    made.running("w", "cq", pods(4), on={"h100-node-01": 4}, reclaimable={"main": 3})
    made.pending("next", "cq", gpus=3).pending("after", "cq")
    snapshot = made.build()
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    admits = [d for d in plan.decisions if isinstance(d, Admit)]
    assert [(a.workload, a.assignments[0].nodes) for a in admits] == [
        ("next", {"h100-node-02": 1})
    ]


def test_the_kueue_profile_charges_what_is_left_as_well():
    made = world().queue("cq", 4, None)
    made.running("w", "cq", pods(4), reclaimable={"main": 3}).pending("next", "cq", gpus=3)
    (entry,) = decide_heads(made.build(), Profile.kueue()).entries
    assert entry.outcome is HeadOutcome.ADMITTED


# -- T5: a job set restarts after two of three pods have succeeded ----------------------------
def t5(**changes: object) -> World:
    """48 CPUs; a job set of 3 x 16 CPUs of which two pods have finished, and a job of 32."""
    group = ResourceGroup((CPU,), (FlavorQuotas("cpu", {CPU: Quota(48_000)}),))
    made = world().flavor("cpu").queue("cq", cohort=None, groups=(group,), **changes)
    job_set = pods(3, 0, cpu=16)
    made.running("set", "cq", job_set, flavor="cpu", reclaimable={"main": 2})
    return made.pending("job", "cq", pods(1, 0, cpu=32))


def restarted(snapshot: Snapshot) -> Snapshot:
    work = tuple(replace(w, reclaimable={}) if w.key == "set" else w for w in snapshot.workloads)
    return replace(snapshot, workloads=work)


def used(snapshot: Snapshot) -> int:
    return sum(sum(held_usage(w).values()) for w in snapshot.workloads)


def test_what_restarts_beyond_what_it_still_holds_leaves_and_asks_again():
    simulator = Simulator(t5().build())
    simulator.run()
    assert simulator.admitted() == {"set", "job"}
    assert used(simulator.snapshot) == 48_000
    simulator.snapshot = restarted(simulator.snapshot)
    simulator.step()
    (evict,) = [d for d in simulator.plan.decisions if isinstance(d, Evict)]
    assert (evict.workload, evict.reason) == ("set", EvictionReason.OUTGROWN)
    simulator.run()
    assert simulator.admitted() == {"job"}  # the set waits for all of its 48
    assert used(simulator.snapshot) == 32_000
    simulator.finish("job")
    simulator.run()
    assert simulator.admitted() == {"set"}
    assert used(simulator.snapshot) == 48_000


def test_what_restarts_by_right_of_priority_takes_its_whole_quota_back():
    made = t5(preemption=RECLAIM_LOWER)
    made.workloads[0] = replace(made.workloads[0], priority=9)
    simulator = Simulator(made.build())
    simulator.run()
    simulator.snapshot = restarted(simulator.snapshot)
    simulator.run()
    assert simulator.admitted() == {"set"}
    assert [v for v, _ in simulator.evictions] == ["set", "job"]


def test_what_restarts_into_room_that_nobody_took_just_takes_it():
    made = t5()
    made.workloads = made.workloads[:1]
    simulator = Simulator(made.build())
    simulator.run()
    assert simulator.plan.memory.held_less == {"set": {"main": 1}}
    simulator.snapshot = restarted(simulator.snapshot)
    simulator.run()
    assert simulator.evictions == []
    assert simulator.plan.memory.held_less == {}
    assert used(simulator.snapshot) == 48_000


def test_a_cut_of_quota_alone_is_debt_and_evicts_nobody():
    made = t5()
    simulator = Simulator(made.build())
    simulator.run()
    group = ResourceGroup((CPU,), (FlavorQuotas("cpu", {CPU: Quota(1000)}),))
    queue = replace(simulator.snapshot.cluster_queues["cq"], groups=(group,))
    simulator.snapshot = replace(simulator.snapshot, cluster_queues={"cq": queue})
    simulator.run()
    assert simulator.evictions == []


def test_of_two_that_come_back_the_lesser_leaves_and_the_other_stays_if_that_suffices():
    made = world().queue("cq", 6, None)
    for name, priority in (("high", 5), ("low", 1)):
        made.running(name, "cq", pods(3), priority=priority)
    made.running("third", "cq", gpus=1)
    held = {"high": {"main": 1}, "low": {"main": 1}}
    made.memory = Memory(held_less=held)
    snapshot = made.build()
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    assert [d.workload for d in plan.decisions if isinstance(d, Evict)] == ["low"]


def test_pods_that_come_back_without_a_node_have_no_place_to_stand():
    made = world().nodes(2).queue("cq", 8, None)
    made.running("w", "cq", pods(4), on={"h100-node-01": 2})  # the host named two that went
    made.memory = Memory(held_less={"w": {"main": 2}})
    (evict,) = decide(made.build()).decisions
    assert isinstance(evict, Evict)
    assert evict.reason is EvictionReason.OUTGROWN


def test_pods_that_come_back_to_a_node_that_others_took_leave_it():
    made = world().nodes(1).queue("cq", 8, None)
    made.running("w", "cq", pods(4), on={"h100-node-01": 4})
    made.running("other", "cq", gpus=2, on={"h100-node-01": 1})
    made.memory = Memory(held_less={"w": {"main": 2}})
    (evict,) = decide(made.build()).decisions
    assert isinstance(evict, Evict)
    assert evict.workload == "w"


def test_work_outside_every_queue_that_comes_back_is_judged_by_its_nodes():
    made = world().nodes(1).running("w", None, pods(4), on={"h100-node-01": 4})
    made.running("other", None, gpus=2, on={"h100-node-01": 1})
    made.memory = Memory(held_less={"w": {"main": 2}})
    (evict,) = decide(made.build()).decisions
    assert isinstance(evict, Evict)
