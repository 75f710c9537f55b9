"""The public failures of gang schedulers, each as the smallest world in which it would show.

Source: ``placement.md`` 6.1 (T1 ...), section 6 names the public issue behind each. T3, T4 and T12
stand beside the rules of surplus (``test_gangs.py``), T5 in ``test_broken_gangs.py``, T6c in
``test_together.py``, T9 in ``test_reservations.py``, T10 in ``test_devices_placed.py``.
"""

from dataclasses import replace

import pytest

from scheduling.engine.cycle import decide
from scheduling.engine.diagnostics import check_promises
from scheduling.engine.invariants import violations
from scheduling.engine.machines import CPU, GPU, Node
from scheduling.engine.plan import Admit, Hold, Plan
from scheduling.engine.snapshot import PodSet, Quota, Snapshot
from scheduling.engine.terms import BlockerCode, DiagnosticCode
from scheduling.engine.usage import held_usage
from tests.engine.builders import (
    BLOCK,
    HOST,
    RACK,
    RECLAIM_ANY,
    World,
    columns,
    pods,
    preferred,
    required,
    world,
)
from tests.engine.simulator import Simulator


def plan_of(snapshot: Snapshot) -> Plan:
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    return plan


def started(plan: Plan) -> dict[str, dict[str, int]]:
    return {
        d.workload: {node: n for a in d.assignments for node, n in a.nodes.items()}
        for d in plan.decisions
        if isinstance(d, Admit)
    }


def hold_of(plan: Plan, key: str) -> Hold:
    (hold,) = [d for d in plan.decisions if isinstance(d, Hold) and d.workload == key]
    return hold


def used(snapshot: Snapshot, queue: str) -> int:
    held = [held_usage(w) for w in snapshot.workloads if w.queue == queue]
    return sum(amount for usage in held for amount in usage.values())


def slots(*sizes: int, resource: str = GPU, **labels: str) -> World:
    """Nodes n1, n2 ... with so many slots each, and nothing else that could be short."""
    made = world().topology()
    made.node_list = [
        Node(f"n{i}", {"accelerator": "h100-sxm", HOST: f"n{i}", **labels}, {resource: size})
        for i, size in enumerate(sizes, start=1)
    ]
    return made


def cpus(count: int, each: int = 1, **changes: object):
    return replace(pods(count, 0, **changes), requests={CPU: each})


def cpu_queue(made: World, name: str, nominal: int, cohort: str | None = "all") -> World:
    group = columns("h100-sxm", {CPU: Quota(nominal)})
    return made.queue(name, 0, cohort, groups=(group,), preemption=RECLAIM_ANY)


@pytest.mark.parametrize("turned", [False, True])
def test_t1_of_two_gangs_that_each_need_everything_one_starts_whole(turned: bool) -> None:
    """Two gangs of 100 on 100 slots, submitted in the same second (volcano#3373)."""
    made = slots(*[1] * 100).queue("team", 200, None)
    for key in ("b", "a") if turned else ("a", "b"):
        made.pending(key, "team", pods(100), created_at=100.0)
    sim = Simulator(made.build())
    sim.step()
    assert sim.admitted() == {"a"}
    blocker = hold_of(sim.plan, "b").blockers[0]
    assert (blocker.code, blocker.needed, blocker.available) == (BlockerCode.GANG_NO_FIT, 100, 0)
    assert used(sim.snapshot, "team") == 100
    sim.finish("a")
    sim.run()
    assert sim.admitted() == {"b"}


def test_t2_who_was_reclaimed_from_does_not_take_it_back() -> None:
    """One eviction, then rest for twenty cycles (volcano#4947)."""
    made = slots(8, resource=CPU)
    cpu_queue(cpu_queue(made, "q1", 3), "q2", 5)
    made.running("p1", "q1", cpus(1, 4), on={"n1": 1}).running("p2", "q2", cpus(1), on={"n1": 1})
    made.pending("p3", "q2", cpus(1, 4))
    sim = Simulator(made.build())
    for _ in range(20):
        sim.step()
    assert sim.evictions == [("p1", "p3")]
    assert sim.admitted() == {"p2", "p3"}
    assert (used(sim.snapshot, "q1"), used(sim.snapshot, "q2")) == (0, 5)


def test_t6a_a_gang_that_no_rack_can_hold_is_told_the_largest() -> None:
    """Three racks of one node with 2 CPUs each; two pods of 2 CPUs in one rack (volcano#5189)."""
    made = slots(2, 2, 2, resource=CPU)
    made.topology(RACK, HOST)
    made.node_list = [
        replace(n, labels={**n.labels, RACK: f"r{i}"}) for i, n in enumerate(made.node_list)
    ]
    cpu_queue(made, "team", 6, None).pending("g", "team", cpus(2, 2, topology=required(RACK)))
    snapshot = made.build()
    blocker = hold_of(plan_of(snapshot), "g").blockers[0]
    assert (blocker.code, blocker.where) == (BlockerCode.IMPOSSIBLE, RACK)
    assert blocker.facts["sub_code"] == DiagnosticCode.NEVER_FITS_TOPOLOGY
    assert (blocker.facts["pods"], blocker.facts["largest_pods"]) == (2, 1)


def test_t6b_a_gang_that_prefers_one_rack_fills_racks_of_one_block() -> None:
    """Blocks s3 = s0 + s1 and s4 = s2, two nodes a rack (volcano#4343, #5514)."""
    made = slots(*[1] * 6)
    racks, blocks = ("s0", "s0", "s1", "s1", "s2", "s2"), ("s3",) * 4 + ("s4",) * 2
    made.node_list = [
        replace(n, labels={**n.labels, RACK: rack, BLOCK: block})
        for n, rack, block in zip(made.node_list, racks, blocks, strict=True)
    ]
    made.queue("team", 6, None).pending("g", "team", pods(4, topology=preferred(RACK)))
    assert started(plan_of(made.build())) == {"g": dict.fromkeys(("n1", "n2", "n3", "n4"), 1)}


def test_t8_a_gang_one_short_holds_nothing_and_the_next_one_runs() -> None:
    """Nine free slots, gangs of ten and of three (scheduler-plugins#713)."""
    made = slots(9).queue("team", 20, None)
    made.pending("a", "team", pods(10)).pending("b", "team", pods(3))
    snapshot = made.build()
    sim = Simulator(snapshot)
    sim.step()
    assert started(sim.plan) == {"b": {"n1": 3}}
    assert used(sim.snapshot, "team") == 3
    assert sim.plan.memory.claims == ()


def test_t11_guarantees_beyond_the_cluster_are_an_alert_and_no_fault() -> None:
    """10 CPUs, guarantees of 12 and 4 (volcano#3127, #2364, #4104)."""
    made = slots(10, resource=CPU)
    cpu_queue(cpu_queue(made, "large", 12), "small", 4)
    made.pending("twelve", "large", cpus(12)).pending("ten", "large", cpus(10))
    made.pending("four", "small", cpus(4))
    snapshot = made.build()
    (finding,) = alerts(snapshot)
    assert (finding.numbers["sum"], finding.numbers["capacity"]) == (16, 10)
    assert set(started(plan_of(snapshot))) == {"ten"}
    (node,) = snapshot.nodes
    grown = replace(snapshot, nodes=(replace(node, allocatable={CPU: 20}),))
    assert alerts(grown) == []
    assert set(started(plan_of(grown))) == {"twelve", "four"}


def alerts(snapshot: Snapshot) -> list:
    code = DiagnosticCode.GUARANTEES_EXCEED_CAPACITY
    return [finding for finding in check_promises(snapshot) if finding.code is code]


@pytest.mark.parametrize("order", ["ac", "ca"])
def test_t13_gangs_that_need_each_other_are_one_unit(order: str) -> None:
    """Gangs a + b and c + d on two slots: one by one, each would hold half (koordinator#872).

    Gangs that need each other are roles of one workload here, so their group cannot be split.
    """
    made = slots(1, 1).queue("team", 10, None)
    groups = {"ac"[0]: ("a", "b"), "ac"[1]: ("c", "d")}
    for first in order:
        made.pending(
            first, "team", *(pods(1, name=name) for name in groups[first]), created_at=1.0
        )
    sim = Simulator(made.build())
    sim.run()
    assert sim.admitted() == {"a"}
    assert used(sim.snapshot, "team") == 2
    sim.finish("a")
    sim.run()
    assert sim.admitted() == {"c"}


def test_a_queue_in_mig_slices_admits_only_pods_of_that_slice() -> None:
    mig = "nvidia.com/mig-3g.40gb"
    made = slots(2, resource=mig).queue("cq", groups=(columns("h100-sxm", {mig: Quota(2)}),))
    for key, resource in (("whole", GPU), ("first", mig), ("second", mig), ("third", mig)):
        made.pending(key, "cq", PodSet("main", 1, {resource: 1}))
    plan = plan_of(made.build())
    assert started(plan) == {"first": {"n1": 1}, "second": {"n1": 1}}
    told = {blocker.code: blocker for blocker in hold_of(plan, "whole").blockers}
    mismatch = told[BlockerCode.FLAVOR_MISMATCH]
    assert (mismatch.resource, mismatch.facts["offers"]) == (GPU, mig)
    assert hold_of(plan, "third").blockers[0].code == BlockerCode.QUOTA_NOMINAL
