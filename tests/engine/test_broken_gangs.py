"""Gangs that lose a node: survivors stay, the missing come first, and after a grace all leave."""

from dataclasses import replace

import pytest

from scheduling.engine.cycle import advance, decide
from scheduling.engine.plan import Evict, Grow, Shrink
from scheduling.engine.snapshot import Subgroups, Workload
from scheduling.engine.state import State
from scheduling.engine.terms import EvictionReason
from tests.engine.builders import RACK, RECLAIM_LOWER, node, pods, required, world
from tests.engine.simulator import Simulator


def gang(key: str, *pod_sets, at: float = 100.0, **changes) -> Workload:
    return Workload(key, key, "q", changes.pop("priority", 0), at, pod_sets, **changes)


def running(*gangs: Workload, nodes: int = 2, gpus: int = 1, nominal: int = 100) -> Simulator:
    made = world().nodes(nodes, gpus).topology().flavor(topology="datacenter")
    made.queue("q", nominal, None, preemption=RECLAIM_LOWER)
    sim = Simulator(made.build(), step_s=10.0)
    sim.submit(*gangs)
    sim.run()
    return sim


def away(sim: Simulator, *numbers: int) -> None:
    gone = {f"h100-node-{number:02d}" for number in numbers}
    nodes = tuple(n for n in sim.snapshot.nodes if n.name not in gone)
    sim.snapshot = replace(sim.snapshot, nodes=nodes)


def back(sim: Simulator, *numbers: int, gpus: int = 1, **changes) -> None:
    away(sim, *numbers)
    nodes = (*sim.snapshot.nodes, *(node(number, gpus, **changes) for number in numbers))
    sim.snapshot = replace(sim.snapshot, nodes=nodes)


def moves(sim: Simulator, *kinds: type) -> list:
    return [d for d in sim.plan.decisions if isinstance(d, kinds)]


def steps(sim: Simulator, seconds: float) -> None:
    for _ in range(round(seconds / sim.step_s)):
        sim.step()


def test_a_gang_gets_its_node_back_before_a_later_pod() -> None:
    """T5, first half (public case 3)."""
    sim = running(gang("g", pods(2)))
    away(sim, 2)
    sim.submit(gang("x", pods(1), at=500.0))
    steps(sim, 30)
    assert (sim.pods("g"), sim.pods("x")) == (2, 0)
    back(sim, 2)
    steps(sim, 100)
    assert (sim.pods("g"), sim.pods("x")) == (2, 0)
    assert sim.evictions == []


@pytest.mark.parametrize("spare", [0, 1])
def test_who_wants_no_part_replaced_leaves_whole_at_once(spare: int) -> None:
    sim = running(gang("g", pods(2), mends=False), nodes=2 + spare)
    away(sim, 2)
    sim.step()
    (evict,) = moves(sim, Evict)
    assert (evict.workload, evict.reason) == ("g", EvictionReason.NODE_FAILURES)
    sim.run()
    assert sim.pods("g") == 2 * spare


def test_after_the_grace_it_leaves_whole_and_keeps_its_age() -> None:
    """T5, second half."""
    sim = running(gang("g", pods(2)))
    away(sim, 2)
    sim.submit(gang("x", pods(1), at=500.0))
    sim.step()
    lost_at = sim.snapshot.now
    assert sim.plan.look_again_at == lost_at + 60.0
    steps(sim, 50)
    assert sim.pods("g") == 2
    sim.step()
    (evict,) = moves(sim, Evict)
    assert (evict.workload, evict.reason) == ("g", EvictionReason.NODE_FAILURES)
    sim.run()
    assert (sim.pods("g"), sim.pods("x")) == (0, 1)
    assert next(w for w in sim.snapshot.workloads if w.key == "g").created_at == 100.0


def test_what_is_missing_comes_before_older_work_of_its_priority_elsewhere() -> None:
    sim = running(gang("g", pods(2)))
    away(sim, 2)
    sim.submit(gang("older", pods(1), at=1.0))
    back(sim, 3)
    sim.step()
    (grow,) = moves(sim, Grow)
    assert grow.assignments[0].nodes == {"h100-node-01": 1, "h100-node-03": 1}
    assert sim.pods("older") == 0


def test_higher_priority_comes_before_what_is_missing() -> None:
    sim = running(gang("g", pods(2)))
    away(sim, 2)
    sim.submit(gang("urgent", pods(1), at=500.0, priority=5))
    back(sim, 3)
    sim.step()
    assert (sim.pods("urgent"), len(moves(sim, Grow))) == (1, 0)


def test_room_for_a_part_of_what_is_missing_is_kept() -> None:
    sim = running(gang("g", pods(3)), nodes=3)
    away(sim, 2, 3)
    back(sim, 4)
    sim.submit(gang("older", pods(1), at=1.0))
    steps(sim, 50)
    assert (sim.pods("g"), sim.pods("older")) == (3, 0)
    steps(sim, 30)
    assert (sim.pods("g"), sim.pods("older")) == (0, 1)


def test_missing_pods_stay_in_the_rack_of_the_others() -> None:
    sim = running(gang("g", pods(2, topology=required(RACK))))  # nodes 1 and 2 are a rack
    away(sim, 2)
    back(sim, 3)
    sim.step()
    assert moves(sim, Grow) == []
    back(sim, 2)
    steps(sim, 100)
    assert sim.evictions == []


def test_lost_quota_is_held_while_the_grace_runs() -> None:
    sim = running(gang("g", pods(2)), nominal=2)
    away(sim, 2)
    back(sim, 3)
    back(sim, 4)
    sim.submit(gang("x", pods(1), at=1.0))
    sim.step()
    assert (sim.pods("g"), sim.pods("x")) == (2, 0)


def test_lost_surplus_is_given_up_at_once_and_grows_again() -> None:
    sim = running(gang("g", pods(8), min_member=4), gpus=4)
    away(sim, 2)
    sim.step()
    (shrink,) = moves(sim, Shrink)
    assert shrink.reason is EvictionReason.NODE_FAILURES
    assert sim.pods("g") == 4
    back(sim, 3, gpus=4)
    sim.run()
    assert sim.pods("g") == 8
    assert sim.evictions == []


def test_a_gang_gets_back_what_it_needs_where_not_all_fits() -> None:
    sim = running(gang("g", pods(8), min_member=6), gpus=4)
    away(sim, 2)
    back(sim, 3, gpus=3)
    sim.step()
    (grow,) = moves(sim, Grow)
    assert sim.pods("g") == 6 or sum(grow.assignments[0].nodes.values()) == 6
    sim.run()
    assert sim.pods("g") == 7


def test_a_torn_subgroup_leaves_whole() -> None:
    sim = running(gang("g", pods(9, subgroups=Subgroups(3, 1))), nodes=3, gpus=4)
    places = {"h100-node-01": 4, "h100-node-02": 4, "h100-node-03": 1}
    assert sim.snapshot.workloads[0].admission.assignments[0].nodes == places
    away(sim, 3)
    sim.step()
    assert sim.pods("g") == 6
    assert moves(sim, Evict) == []


def test_work_of_which_nothing_is_left_waits_again_at_once() -> None:
    sim = running(gang("g", pods(1)))
    away(sim, 1)
    sim.step()
    (evict,) = moves(sim, Evict)
    assert evict.reason is EvictionReason.NODE_FAILURES
    sim.run()
    assert sim.pods("g") == 1


@pytest.mark.parametrize(("grace", "left"), [(0.0, 0), (-1.0, 2), (20.0, 0), (600.0, 2)])
def test_the_grace_is_for_the_platform_to_say(grace: float, left: int) -> None:
    sim = running(gang("g", pods(2)))
    sim.snapshot = replace(sim.snapshot, gang_grace_s=grace)
    away(sim, 2)
    steps(sim, 40 if grace else 10)
    assert sim.pods("g") == left


def test_a_node_that_is_not_ready_gets_the_grace_to_come_back() -> None:
    sim = running(gang("g", pods(2)))
    back(sim, 2, ready=False)
    steps(sim, 60)
    assert sim.pods("g") == 2
    assert sim.plan.look_again_at is not None
    back(sim, 2)
    sim.step()
    assert sim.plan.memory.absent == {}
    back(sim, 2, ready=False)
    back(sim, 3)
    steps(sim, 60)
    assert moves(sim, Grow) == []
    sim.step()
    (grow,) = moves(sim, Grow)
    assert grow.assignments[0].nodes == {"h100-node-01": 1, "h100-node-03": 1}


def test_a_kept_state_decides_as_a_fresh_one() -> None:
    sim = running(gang("g", pods(2)), gang("y", pods(1), at=900.0))
    away(sim, 2)
    state = State(sim.snapshot)
    for now in (1100.0, 1130.0, 1161.0, 1200.0):
        kept = advance(state, now).moves
        fresh = decide(replace(sim.snapshot, now=now)).decisions
        assert kept == [d for d in fresh if isinstance(d, Evict | Grow | Shrink)]
        sim.snapshot = state.snapshot()
    assert state.releasing.keys() == {"g"}
