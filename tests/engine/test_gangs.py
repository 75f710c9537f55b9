"""Gangs with minima: they start with those, grow as room allows, and lose surplus alone."""

from dataclasses import replace

import pytest

from scheduling.engine.cycle import decide
from scheduling.engine.gangs import least_members, may_lack_pods, minima, next_steps, stands
from scheduling.engine.plan import Admit, Grow, Hold, Shrink
from scheduling.engine.snapshot import Quota, Subgroups, Workload
from scheduling.engine.terms import Fairness, QueueingStrategy, ReclaimTo, TopologyMode
from tests.engine.builders import (
    H100,
    RACK,
    RECLAIM_ANY,
    RECLAIM_LOWER,
    node,
    pods,
    preferred,
    required,
    world,
)
from tests.engine.simulator import Simulator


def gang(key: str, queue: str, *pod_sets, at: float = 100.0, **changes) -> Workload:
    return Workload(key, key, queue, changes.pop("priority", 0), at, pod_sets, **changes)


def one_queue(nodes: int = 3, nominal: int = 100, **changes):
    return world().nodes(nodes).queue("q", nominal, None, preemption=RECLAIM_LOWER, **changes)


def started(made, *gangs: Workload) -> Simulator:
    sim = Simulator(made.build())
    sim.submit(*gangs)
    sim.run()
    return sim


# ---- the arithmetic --------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("pod_sets", "min_member", "least"),
    [
        ([pods(4)], None, {"main": 4}),
        ([pods(4)], 2, {"main": 2}),
        ([pods(4)], 9, {"main": 4}),
        ([pods(1, name="head"), pods(8)], 5, {"head": 1, "main": 4}),
        ([pods(4, name="a"), pods(4, name="b", role_minimum=3)], 5, {"a": 2, "b": 3}),
        ([pods(4, name="a"), pods(4, name="b", role_minimum=3)], None, {"a": 4, "b": 3}),
        ([pods(6, name="a", role_minimum=1), pods(5, name="b")], None, {"a": 1, "b": 5}),
        ([pods(8, subgroups=Subgroups(4, 1))], None, {"main": 4}),
        ([pods(8, subgroups=Subgroups(4, 1))], 5, {"main": 8}),
        ([pods(10, subgroups=Subgroups(4, 0))], 1, {"main": 4}),
        ([pods(10, subgroups=Subgroups(4, 0))], None, {"main": 10}),
    ],
)
def test_a_gang_needs_its_minimum_and_that_of_every_role(pod_sets, min_member, least) -> None:
    work = gang("g", "q", *pod_sets, min_member=min_member)
    assert minima(work) == least
    assert stands(work, least)
    assert may_lack_pods(work) == (least != {p.name: p.count for p in pod_sets})
    for name in least:
        assert not stands(work, {**least, name: least[name] - 1})


def test_who_says_nothing_starts_whole() -> None:
    assert least_members(gang("g", "q", pods(3), pods(2, name="b"))) == 5


def test_the_role_that_lacks_most_is_next_and_subgroups_come_whole() -> None:
    work = gang("g", "q", pods(10, subgroups=Subgroups(4, 1)), pods(4, name="b"), min_member=1)
    assert next_steps(work, {"main": 8, "b": 1}) == [("b", 1), ("main", 2)]
    assert next_steps(work, {"main": 0, "b": 4}) == [("main", 4)]


# ---- starting --------------------------------------------------------------------------------
def test_it_starts_with_all_pods_where_they_fit() -> None:
    sim = started(one_queue(), gang("g", "q", pods(12), min_member=5))
    assert sim.pods("g") == 12
    assert not [d for d in sim.plan.decisions if isinstance(d, Hold)]


def test_it_starts_with_what_fits_and_says_why_the_rest_waits() -> None:
    made = one_queue()
    made.workloads.append(gang("g", "q", pods(20), min_member=5))
    admit, hold = decide(made.build()).decisions
    assert isinstance(admit, Admit)
    assert isinstance(hold, Hold)
    assert sum(a.count for a in admit.assignments) == 12
    assert hold.workload == "g"
    assert hold.blockers[0].needed == 1  # the next pod


def test_below_any_minimum_nothing_starts() -> None:
    """T8, and the public cases 2, 8 and 10: all minima count at once."""
    made = one_queue(nodes=2)  # eight GPUs
    made.workloads += [
        gang("all", "q", pods(9), min_member=9),
        gang("role", "q", pods(7, name="a"), pods(4, 2, name="b", role_minimum=4), min_member=8),
        gang("parts", "q", pods(12, subgroups=Subgroups(3, 3)), min_member=2),
    ]
    assert {type(d) for d in decide(made.build()).decisions} == {Hold}


def test_a_larger_gang_that_does_not_fit_leaves_the_room_to_the_next() -> None:
    """T8: nine free slots; a gang of 10 holds nothing, and a gang of 3 runs."""
    made = world().queue("q", 100, None)
    made.node_list.append(node(1, 9))
    sim = started(made, gang("a", "q", pods(10)), gang("b", "q", pods(3), at=200.0))
    assert (sim.pods("a"), sim.pods("b")) == (0, 3)


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_gangs_for_everything_the_older_gets_all(turned: bool) -> None:
    """T1: never a part of each."""
    made = world().queue("q", 200, None)
    made.node_list += [node(number, 1) for number in range(1, 101)]
    gangs = [gang(key, "q", pods(100), min_member=100) for key in ("a", "b")]
    sim = started(made, *(reversed(gangs) if turned else gangs))
    assert (sim.pods("a"), sim.pods("b")) == (100, 0)
    sim.finish("a")
    sim.run()
    assert sim.pods("b") == 100


def test_minima_of_all_come_before_surplus_of_any() -> None:
    gangs = [gang(key, "q", pods(12), min_member=4, at=float(key == "b")) for key in "ab"]
    sim = started(one_queue(), *gangs)
    assert (sim.pods("a"), sim.pods("b")) == (8, 4)
    assert sim.evictions == sim.shrinks == []


def test_subgroups_are_added_whole() -> None:
    work = gang("g", "q", pods(12, subgroups=Subgroups(4, 1)))
    made = one_queue()
    made.running("busy", "q", pods(3), on={"h100-node-01": 3})
    sim = started(made, work)
    assert sim.pods("g") == 8


def test_a_gang_that_has_just_started_is_put_down_where_all_of_it_fits() -> None:
    """The minimum fits best into a rack that is nearly full, all pods into an empty one."""
    made = one_queue(nodes=4).topology()
    made.flavor(topology="datacenter")
    made.running("busy", "q", pods(5), on={"h100-node-01": 4, "h100-node-02": 1})
    sim = started(made, gang("g", "q", pods(8, topology=required(RACK)), min_member=3))
    assert sim.pods("g") == 8


def test_surplus_stays_in_the_rack_of_the_others() -> None:
    made = one_queue(nodes=4).topology()
    made.flavor(topology="datacenter")
    made.running("busy", "q", pods(6), on={"h100-node-01": 4, "h100-node-02": 2})
    made.running("big", "q", pods(7), on={"h100-node-03": 4, "h100-node-04": 3})
    sim = started(made, gang("g", "q", pods(4, topology=required(RACK)), min_member=2))
    assert sim.pods("g") == 2
    sim.finish("big")  # the other rack is free
    sim.run()
    assert sim.pods("g") == 2
    sim.finish("busy")
    sim.run()
    assert sim.pods("g") == 4


def test_a_strict_head_that_waits_gets_the_room_before_surplus() -> None:
    made = one_queue(nodes=3, queueing_strategy=QueueingStrategy.STRICT_FIFO)
    made.running("busy", "q", pods(4), on={"h100-node-01": 4}, priority=5)
    sim = started(made, gang("g", "q", pods(6), min_member=2, at=1.0, priority=1))
    assert sim.pods("g") == 6
    sim = started(made, gang("g", "q", pods(6), min_member=2, at=1.0), gang("head", "q", pods(9)))
    assert (sim.pods("g"), sim.pods("head")) == (2, 0)


# ---- growing and shrinking -------------------------------------------------------------------
def test_surplus_is_taken_for_an_equal_that_starts_and_comes_back_later() -> None:
    """T12: two gangs of 10 with minimum 5 in a queue of 10."""
    sim = started(one_queue(nominal=10), gang("j1", "q", pods(10), min_member=5))
    assert sim.pods("j1") == 10
    sim.submit(gang("j2", "q", pods(10), min_member=5, at=200.0))
    sim.run()
    assert (sim.pods("j1"), sim.pods("j2")) == (5, 5)
    assert sim.shrinks == [("j1", "j2", 5)]
    assert sim.evictions == []
    sim.finish("j2")
    sim.run()
    assert sim.pods("j1") == 10


def test_one_pod_that_needs_one_slot_takes_exactly_one() -> None:
    """T3: a node of 11, a gang of 11 with minimum 1 of a queue that borrows."""
    made = world().queue("qa", 1, preemption=RECLAIM_ANY).queue("qb", 10, preemption=RECLAIM_ANY)
    made.node_list.append(node(1, 11))
    sim = started(made, gang("a", "qa", pods(11), min_member=1))
    sim.submit(gang("b", "qb", pods(1), at=200.0))
    sim.run()
    assert (sim.pods("a"), sim.pods("b")) == (10, 1)
    for _ in range(20):
        sim.step()
    assert sim.shrinks == [("a", "b", 1)]
    assert sim.evictions == []


@pytest.mark.parametrize("fairness", [Fairness.NONE, Fairness.SHARE])
def test_surplus_never_takes_back(fairness: Fairness) -> None:
    """T4: five slots, two gangs of 5 with minimum 1; one eviction, then twenty quiet cycles."""
    made = world().cohort("llm", fairness=fairness)
    made.queue("qa", 3, preemption=RECLAIM_ANY).queue("qb", 2, preemption=RECLAIM_ANY)
    made.node_list.append(node(1, 5))
    sim = started(made, gang("a", "qa", pods(5), min_member=1))
    sim.submit(gang("b", "qb", pods(5), min_member=1, at=200.0))
    sim.run()
    for _ in range(20):
        sim.step()
    assert (sim.pods("a"), sim.pods("b")) == (4, 1)
    assert sim.shrinks == [("a", "b", 1)]


@pytest.mark.parametrize("nominal", [(3, 2), (5, 0), (0, 0)])
def test_where_the_tree_says_so_surplus_is_taken_up_to_the_fair_share(nominal) -> None:
    """T4 with ``reclaim_to: fair_share``: the odd slot stays with who had it, and then rest."""
    made = world().cohort("llm", fairness=Fairness.SHARE)
    made.cohorts["llm"] = replace(
        made.cohorts["llm"],
        reclaim_to=ReclaimTo.FAIR_SHARE,
        quotas={H100: Quota(5 - sum(nominal))},
    )
    for name, own in zip(("qa", "qb"), nominal, strict=True):
        made.queue(name, own, preemption=RECLAIM_ANY)
    made.node_list.append(node(1, 5))
    sim = started(made, gang("a", "qa", pods(5), min_member=1))
    sim.submit(gang("b", "qb", pods(5), min_member=1, at=200.0))
    sim.run()
    for _ in range(20):
        sim.step()
    kept = (5, 0) if nominal == (5, 0) else (3, 2)
    assert (sim.pods("a"), sim.pods("b")) == kept
    assert sum(pods for _, _, pods in sim.shrinks) == 5 - kept[0]


def test_a_slot_that_comes_free_goes_to_the_smaller_share() -> None:
    made = world().cohort("llm", fairness=Fairness.SHARE).queue("qa", 2).queue("qb", 2)
    made.queue("qc", 2)
    made.node_list.append(node(1, 6))
    sim = started(made, gang("a", "qa", pods(6), min_member=4))
    sim.submit(
        gang("c", "qc", pods(1), at=150.0), gang("b", "qb", pods(6), min_member=1, at=200.0)
    )
    sim.run()
    before = sim.pods("a"), sim.pods("b")
    sim.finish("c")
    sim.run()
    assert sim.pods("b") == before[1] + (1 if before[1] else 0)


def test_a_gang_without_surplus_is_a_victim_whole_or_not_at_all() -> None:
    """Public case 21."""
    made = one_queue()
    sim = started(made, gang("low", "q", pods(12, role_minimum=10), min_member=10))
    sim.submit(gang("high", "q", pods(4), priority=5, at=200.0))
    sim.run()
    assert sim.evictions == [("low", "high")]
    assert sim.shrinks == []
    assert (sim.pods("low"), sim.pods("high")) == (0, 4)


def test_surplus_goes_before_whole_gangs_of_lower_priority() -> None:
    made = one_queue()
    elastic = gang("elastic", "q", pods(8), min_member=4, priority=3, at=1.0)
    sim = started(made, elastic, gang("whole", "q", pods(4), priority=1, at=2.0))
    sim.submit(gang("high", "q", pods(4), priority=5, at=200.0))
    sim.run()
    assert sim.shrinks == [("elastic", "high", 4)]
    assert sim.evictions == []


def test_a_gang_that_goes_takes_its_surplus_along() -> None:
    """The helpers use nothing that is short, so nobody would take them by themselves."""
    made = one_queue(nodes=1, nominal=4, cpu=1000)
    helpers = pods(10, 0, name="helper", cpu=10, role_minimum=0)
    main = pods(1, 4, cpu=10, role_minimum=1)
    sim = started(made, gang("low", "q", main, helpers, min_member=1))
    assert sim.pods("low") == 11
    sim.submit(gang("high", "q", pods(1, 4, cpu=100), priority=5, at=200.0))
    sim.run()
    assert sim.evictions == [("low", "high")]
    assert (sim.pods("low"), sim.pods("high")) == (0, 1)


def test_whole_subgroups_are_taken() -> None:
    made = one_queue()
    sim = started(made, gang("low", "q", pods(12, subgroups=Subgroups(3, 2))))
    sim.submit(gang("high", "q", pods(2), priority=5, at=200.0))
    sim.run()
    assert sim.shrinks == [("low", "high", 3)]
    assert sim.pods("low") == 9


def test_a_part_behind_the_last_subgroup_goes_with_it() -> None:
    sim = started(one_queue(), gang("low", "q", pods(11, subgroups=Subgroups(3, 2))))
    sim.submit(gang("high", "q", pods(3), priority=5, at=200.0))
    sim.run()
    assert sim.shrinks == [("low", "high", 5)]
    assert sim.pods("low") == 6 + 3  # a subgroup came back beside the four of the other


def test_what_is_taken_is_kept_for_its_preemptor_until_it_has_left() -> None:
    sim = started(one_queue(nominal=10), gang("j1", "q", pods(10), min_member=5))
    sim.leave_after = 4
    sim.submit(gang("j2", "q", pods(5), at=200.0), gang("late", "q", pods(1), at=300.0))
    for _ in range(4):
        sim.step()
        assert (sim.pods("j2"), sim.pods("late")) == (0, 0)
        assert sum(w.part_of == "j1" for w in sim.snapshot.workloads) == 1
    sim.run()
    assert (sim.pods("j1"), sim.pods("j2"), sim.pods("late")) == (5, 5, 0)


def test_what_is_taken_says_what_it_costs() -> None:
    made = one_queue(nominal=10)
    sim = started(made, gang("j1", "q", pods(10), min_member=5))
    admitted = sim.snapshot.now
    sim.submit(gang("j2", "q", pods(5), at=200.0))
    sim.snapshot = replace(sim.snapshot, now=admitted + 3600.0 - sim.step_s)
    sim.step()
    (shrink,) = [d for d in sim.plan.decisions if isinstance(d, Shrink)]
    assert shrink.lost_gpu_hours == pytest.approx(5.0, rel=0.02)


def test_a_gang_grows_when_room_comes_free_and_says_where_all_its_pods_are() -> None:
    made = one_queue().topology().flavor(topology="datacenter")
    made.running("busy", "q", pods(8), on={"h100-node-01": 4, "h100-node-02": 4})
    sim = started(made, gang("g", "q", pods(9, topology=preferred(RACK)), min_member=2))
    assert sim.pods("g") == 4
    sim.finish("busy")
    sim.step()
    (grow,) = sim.plan.decisions
    assert isinstance(grow, Grow)
    assert sum(grow.assignments[0].nodes.values()) == 9
    assert grow.assignments[0].nodes["h100-node-03"] == 4
    assert preferred(RACK).mode is TopologyMode.PREFERRED


def test_a_gang_whose_pods_are_leaving_does_not_grow_at_once() -> None:
    """What one cycle takes, the next does not give back elsewhere."""
    made = one_queue(nodes=3, nominal=12)
    sim = started(made, gang("g", "q", pods(12), min_member=4))
    sim.leave_after = 3
    sim.submit(gang("high", "q", pods(1, 4), priority=5, at=200.0))
    sim.step()
    larger = {"q": one_queue(nominal=99).queues["q"]}
    nodes = (*sim.snapshot.nodes, node(4), node(5))
    sim.snapshot = replace(sim.snapshot, nodes=nodes, cluster_queues=larger)
    sim.step()
    assert sim.pods("g") == 8
    sim.run()
    assert (sim.pods("g"), sim.pods("high")) == (12, 1)
