"""Slices, groups and survivors: on nodes, through a cycle, and in what people are told."""

from collections import Counter
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.engine.atlas import Atlas
from scheduling.engine.capacity import FreeCapacity
from scheduling.engine.cycle import decide
from scheduling.engine.diagnostics import check_workload
from scheduling.engine.invariants import violations
from scheduling.engine.machines import CPU, GPU
from scheduling.engine.plan import Admit, Grow, Hold
from scheduling.engine.snapshot import PodSet, Quota, SliceLayer, Snapshot, TopologyRequest
from scheduling.engine.terms import BlockerCode, DiagnosticCode, TopologyMode
from scheduling.engine.together import assign_unit, replace_in, units_of
from tests.engine.builders import BLOCK, HOST, RACK, World, columns, node, pods, required, world

OPTION = {GPU: "h100-sxm"}


def sliced(mode: TopologyMode, level: str | None, *layers: tuple[str, int]) -> TopologyRequest:
    return TopologyRequest(mode, level, slices=tuple(SliceLayer(*layer) for layer in layers))


def grouped(mode: TopologyMode, level: str) -> TopologyRequest:
    return TopologyRequest(mode, level, group="g")


def cluster(**free: int) -> World:
    """Nodes ``n1`` ... of the samples (two a rack, two racks a block) with so many free GPUs."""
    made = world().topology()
    for name, gpus in free.items():
        made.node_list.append(node(int(name[1:]), 8, unmanaged={GPU: 8 - gpus}))
    return made


def short(nodes: dict[str, int] | None) -> dict[str, int] | None:
    if nodes is None:
        return None
    return {f"n{int(name.removeprefix('h100-node-'))}": count for name, count in nodes.items()}


def place(made: World, *unit: PodSet) -> list[dict[str, int]] | None:
    snapshot = made.build()
    atlas = Atlas(snapshot)
    placed = assign_unit(atlas, (FreeCapacity(atlas),), unit, [OPTION] * len(unit))
    return None if placed is None else [short(dict(a.nodes)) or {} for a in placed]


# ---- groups ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Group:
    id: str
    free: dict[str, int]
    level: str
    leader: dict[str, int]
    workers: tuple[int, int]
    want: list[dict[str, int]] | None


GROUPS = [
    Group(
        "leader and workers share the tightest rack that holds both",
        {"n1": 8, "n2": 8, "n3": 4, "n4": 5},
        RACK, {GPU: 1}, (2, 4), [{"n4": 1}, {"n3": 1, "n4": 1}],
    ),
    Group(
        "a rack for the workers alone is none for the group",
        {"n1": 4, "n2": 4, "n3": 4, "n4": 4},
        RACK, {GPU: 1}, (2, 4), None,
    ),
    Group(
        "the leader goes where it costs the workers nothing",
        {"n1": 5, "n2": 8},
        RACK, {GPU: 1}, (3, 4), [{"n1": 1}, {"n1": 1, "n2": 2}],
    ),
    Group(
        "a block where no rack holds both",
        {"n1": 4, "n2": 4, "n3": 4, "n4": 1},
        BLOCK, {GPU: 1}, (3, 4), [{"n4": 1}, {"n1": 1, "n2": 1, "n3": 1}],
    ),
    Group(
        "a leader without GPUs stands beside its workers",
        {"n1": 8, "n2": 0, "n3": 4, "n4": 0},
        RACK, {CPU: 1000}, (1, 4), [{"n3": 1}, {"n3": 1}],
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", GROUPS, ids=lambda case: case.id)
def test_where_a_leader_and_its_workers_stand(case: Group) -> None:
    request = grouped(TopologyMode.REQUIRED, case.level)
    leader = PodSet("leader", 1, case.leader, topology=request)
    count, gpus = case.workers
    workers = pods(count, gpus, "workers", topology=request)
    assert place(cluster(**case.free), leader, workers) == case.want


def test_a_group_that_should_stand_together_may_stand_in_several_domains() -> None:
    made = cluster(n1=4, n5=4)
    request = grouped(TopologyMode.PREFERRED, RACK)
    leader, workers = pods(1, 2, "a", topology=request), pods(1, 4, "b", topology=request)
    assert place(made, leader, workers) == [{"n5": 1}, {"n1": 1}]


def test_three_roles_of_one_group_share_a_block() -> None:
    request = grouped(TopologyMode.REQUIRED, BLOCK)
    unit = [pods(n, g, f"p{n}", topology=request) for n, g in ((1, 2), (2, 4), (3, 1))]
    placed = place(cluster(n1=8, n5=8, n6=4, n7=1), *unit)
    assert placed == [{"n6": 1}, {"n5": 2}, {"n6": 2, "n7": 1}]


def feasible(free: dict[str, int], leader: int, workers: tuple[int, int], depth: int) -> bool:
    """Try the leader on every node of every domain: how many workers fit beside it?"""
    count, each = workers
    domains = Counter((int(name[1:]) - 1) // (4 if depth == 1 else 2) for name in free)
    for domain in domains:
        inside = [n for n in free if (int(n[1:]) - 1) // (4 if depth == 1 else 2) == domain]
        for lead in inside:
            left = {n: free[n] - (leader if n == lead else 0) for n in inside}
            if left[lead] >= 0 and sum(gpus // each for gpus in left.values()) >= count:
                return True
    return False


@given(
    free=st.dictionaries(st.sampled_from([f"n{n}" for n in range(1, 9)]), st.integers(0, 8)),
    leader=st.integers(1, 4),
    workers=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    level=st.sampled_from([BLOCK, RACK]),
)
@settings(max_examples=80)
def test_a_leader_and_its_workers_are_placed_wherever_there_is_a_way(
    free, leader, workers, level
) -> None:
    request = grouped(TopologyMode.REQUIRED, level)
    made = cluster(**free) if free else cluster(n1=0)
    unit = (
        pods(1, leader, "leader", topology=request),
        pods(*workers, "workers", topology=request),
    )
    placed = place(made, *unit)
    assert (placed is not None) == feasible(free, leader, workers, 1 if level == BLOCK else 2)


def test_pod_sets_of_one_group_are_one_unit() -> None:
    request = grouped(TopologyMode.REQUIRED, RACK)
    one, two = pods(name="a", topology=request), pods(name="c", topology=request)
    alone = pods(name="b")
    assert units_of([one, alone, two]) == ((one, two), (alone,))


# ---- survivors -------------------------------------------------------------------------------
@dataclass(frozen=True)
class Loss:
    id: str
    free: dict[str, int]  # pods of one GPU
    request: TopologyRequest | None
    kept: dict[str, int]
    missing: int
    want: dict[str, int] | None


PREFERS = TopologyRequest(TopologyMode.PREFERRED, RACK)
LOSSES = [
    Loss("T6 c: the node beside the survivors, not one of another block",
         {"n4": 1, "n5": 1}, PREFERS, {"n1": 1, "n2": 1, "n3": 1}, 1, {"n4": 1}),
    Loss("the same rack before the same block",
         {"n2": 1, "n3": 1, "n4": 1}, PREFERS, {"n1": 1}, 1, {"n2": 1}),
    Loss("another block where that of the survivors is full",
         {"n4": 0, "n5": 1}, PREFERS, {"n1": 1, "n2": 1, "n3": 1}, 1, {"n5": 1}),
    Loss("not outside of a required block",
         {"n4": 0, "n5": 1}, required(BLOCK), {"n1": 1, "n3": 1}, 1, None),
    Loss("inside a required block, in the rack of most survivors",
         {"n2": 1, "n4": 1, "n5": 9}, required(BLOCK), {"n1": 2, "n3": 1}, 1, {"n2": 1}),
    Loss("a broken slice is completed in its own rack",
         {"n2": 1, "n3": 4, "n4": 4}, sliced(TopologyMode.REQUIRED, BLOCK, (RACK, 4)),
         {"n1": 3, "n3": 4}, 1, {"n2": 1}),
    Loss("or not at all",
         {"n2": 0, "n3": 4, "n4": 4}, sliced(TopologyMode.REQUIRED, BLOCK, (RACK, 4)),
         {"n1": 3, "n3": 4}, 1, None),
    Loss("a slice that was lost whole goes to another rack of the block",
         {"n2": 3, "n3": 4, "n5": 9}, sliced(TopologyMode.REQUIRED, BLOCK, (RACK, 4)),
         {"n1": 4}, 4, {"n3": 4}),
    Loss("slices of slices: the inner one on its host, the outer one in its rack",
         {"n1": 1, "n2": 2, "n3": 9}, sliced(TopologyMode.PREFERRED, BLOCK, (RACK, 4), (HOST, 2)),
         {"n1": 1, "n3": 4}, 3, {"n1": 1, "n2": 2}),
    Loss("without a request anywhere, the tightest first",
         {"n4": 3, "n5": 1}, None, {"n3": 1}, 1, {"n5": 1}),
    Loss("with nobody left as if for the first time",
         {"n4": 3, "n5": 2}, required(HOST), {}, 2, {"n5": 2}),
]  # fmt: skip


@pytest.mark.parametrize("case", LOSSES, ids=lambda case: case.id)
def test_where_lost_pods_are_replaced(case: Loss) -> None:
    made = cluster(**dict.fromkeys(case.kept, 0) | case.free)
    snapshot, pod_set = made.build(), pods(9, 1, topology=case.request)
    atlas = Atlas(snapshot)
    rooms = (FreeCapacity(atlas),)
    kept = {f"h100-node-0{name[1:]}": n for name, n in case.kept.items()}
    found = replace_in(atlas, rooms, pod_set, OPTION, kept=kept, missing=case.missing)
    assert short(found and dict(found.nodes)) == case.want


# ---- through a cycle -------------------------------------------------------------------------
def one_decision(made: World) -> Admit | Hold:
    snapshot = made.build()
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    (decision,) = plan.decisions
    return decision


def nodes_of(decision: Admit | Hold) -> list[dict[str, int] | None]:
    assert isinstance(decision, Admit)
    return [short(dict(a.nodes)) for a in decision.assignments]


def test_slices_of_slices_start_where_whole_ones_fit() -> None:
    made = cluster(n1=3, n2=4, n3=4, n4=4, n5=4, n6=4, n7=4, n8=4).queue("cq", 64)
    request = sliced(TopologyMode.PREFERRED, BLOCK, (BLOCK, 16), (RACK, 8))
    made.pending("g", "cq", pods(16, 1, topology=request))
    assert nodes_of(one_decision(made)) == [{"n5": 4, "n6": 4, "n7": 4, "n8": 4}]


def test_who_lacks_whole_slices_is_told_which() -> None:
    made = cluster(n1=8, n2=8, n3=8, n4=8).queue("cq", 64)
    made.running("a", "cq", gpus=5, on={"h100-node-01": 1})
    made.running("b", "cq", gpus=5, on={"h100-node-03": 1})
    request = sliced(TopologyMode.REQUIRED, BLOCK, (RACK, 12))
    decision = one_decision(made.pending("g", "cq", pods(12, 1, topology=request)))
    assert isinstance(decision, Hold)
    (blocker,) = decision.blockers
    assert blocker.code is BlockerCode.TOPOLOGY_NO_DOMAIN
    assert (blocker.needed, blocker.available, blocker.where) == (12, 0, BLOCK)
    assert blocker.facts == {
        "cause": "Slices", "pods": 12, "fits": 0, "pod_set": "main",
        "slice_level": RACK, "slice_size": 12, "slices": 1, "fits_slices": 0,
    }  # fmt: skip


def test_a_group_that_finds_no_domain_is_told_so_with_both_names() -> None:
    made = cluster(n1=8, n2=8, n3=8, n4=8).queue("cq", 64)
    made.running("a", "cq", gpus=2, on={"h100-node-01": 1})
    made.running("b", "cq", gpus=2, on={"h100-node-03": 1})
    request = grouped(TopologyMode.REQUIRED, RACK)
    made.pending(
        "g", "cq", pods(1, 3, "lead", topology=request), pods(3, 4, "work", topology=request)
    )
    decision = one_decision(made)
    assert isinstance(decision, Hold)
    (blocker,) = decision.blockers
    assert blocker.code is BlockerCode.TOPOLOGY_NO_DOMAIN
    assert (blocker.facts["cause"], blocker.facts["group"]) == ("Group", "lead, work")
    assert (blocker.facts["pods"], blocker.facts["fits"]) == (4, 3)


def test_a_group_takes_one_flavor_even_where_its_parts_would_fit_on_two() -> None:
    request = grouped(TopologyMode.REQUIRED, BLOCK)
    made = cluster(n1=2, n2=2, n5=8).flavor("h100-sxm").flavor("a100")
    made.node_list[2] = node(5, 8, labels={**node(5).labels, "accelerator": "a100"})
    quotas = {GPU: Quota(16)}
    group = columns("h100-sxm", quotas)
    both = replace(group, flavors=(*group.flavors, *columns("a100", quotas).flavors))
    made.queue("cq", groups=(both,))
    made.pending(
        "g", "cq", pods(1, 2, "lead", topology=request), pods(1, 4, "work", topology=request)
    )
    decision = one_decision(made)
    assert isinstance(decision, Admit)
    assert {a.flavors[GPU] for a in decision.assignments} == {"a100"}


# ---- what can never be -----------------------------------------------------------------------
def never(made: World, *pod_sets: PodSet) -> list[tuple[DiagnosticCode, dict[str, object]]]:
    snapshot: Snapshot = made.queue("cq", 64).pending("g", "cq", *pod_sets).build()
    return [(f.code, dict(f.numbers)) for f in check_workload(snapshot, snapshot.workloads[0])]


def test_slices_that_no_rack_could_ever_hold_are_impossible_with_the_numbers() -> None:
    request = sliced(TopologyMode.PREFERRED, RACK, (RACK, 3))
    ((code, numbers),) = never(world().topology().nodes(8, 4), pods(6, 3, topology=request))
    assert code is DiagnosticCode.NEVER_FITS_TOPOLOGY
    assert (numbers["cause"], numbers["slices"], numbers["fits_slices"]) == ("Slices", 2, 0)


def test_a_group_that_no_rack_could_ever_hold_is_impossible() -> None:
    request = grouped(TopologyMode.REQUIRED, RACK)
    unit = pods(1, 2, "lead", topology=request), pods(2, 4, "work", topology=request)
    ((code, numbers),) = never(world().topology().nodes(4, 4), *unit)
    assert code is DiagnosticCode.NEVER_FITS_TOPOLOGY
    assert (numbers["cause"], numbers["pods"], numbers["largest_pods"]) == ("Group", 3, 2)


def test_t6_a_an_impossible_gang_in_one_rack_names_what_fits() -> None:
    ((code, numbers),) = never(world().topology().nodes(8, 2), pods(3, 2, topology=required(RACK)))
    assert code is DiagnosticCode.NEVER_FITS_TOPOLOGY
    assert (numbers["largest_pods"], numbers["pods"], numbers["largest"]) == (2, 3, 4)


# ---- gangs, sizes ----------------------------------------------------------------------------
def test_surplus_comes_in_whole_slices_beside_those_that_stand() -> None:
    made = cluster(n1=4, n2=3, n3=4, n4=4, n5=8).queue("cq", 64)
    request = sliced(TopologyMode.REQUIRED, BLOCK, (RACK, 4))
    made.pending("g", "cq", pods(20, 1, topology=request), min_member=4)
    plan = decide(made.build())
    assert violations(made.build(), plan) == ()
    (decision,) = (d for d in plan.decisions if isinstance(d, Admit))
    assert nodes_of(decision) == [{"n1": 4, "n3": 4, "n4": 4}]


def test_surplus_of_a_role_without_pods_joins_its_group() -> None:
    request = grouped(TopologyMode.REQUIRED, RACK)
    made = cluster(n1=4, n2=1, n3=4).queue("cq", 64)
    roles = (
        pods(4, 1, "work", topology=request, role_minimum=4),
        pods(2, 1, "help", topology=request, role_minimum=0),
    )
    snapshot = made.pending("g", "cq", *roles, min_member=4).build()
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    (decision,) = (d for d in plan.decisions if isinstance(d, Admit))
    assert nodes_of(decision) == [{"n1": 4}, {"n2": 1}]


def test_whoever_is_content_with_less_gets_whole_slices() -> None:
    made = cluster(n1=4, n2=3, n3=4).queue("cq", 64)
    request = sliced(TopologyMode.PREFERRED, BLOCK, (RACK, 4))
    made.pending("g", "cq", pods(16, 1, min_count=4, topology=request))
    decision = one_decision(made)
    assert isinstance(decision, Admit)
    assert [a.count for a in decision.assignments] == [8]


def test_a_grown_copy_stands_near_its_original() -> None:
    made = cluster(n1=4, n2=1, n3=1, n5=4).queue("cq", 64)
    mine = pods(4, 1, topology=PREFERS)
    made.running("old", "cq", mine, on={"h100-node-01": 4})
    made.pending("new", "cq", replace(mine, count=6), replaces="old")
    made.node_list[0] = node(1, 4)
    decision = one_decision(made)
    assert nodes_of(decision) == [{"n1": 4, "n2": 1, "n3": 1}]


def after_a_loss(
    request: TopologyRequest, free: dict[str, int], on: dict[str, int]
) -> dict[str, int] | None:
    """Where a gang stands once a node of its has left the cluster; None: it waits for room."""
    made = cluster(**free).queue("cq", 64)
    count, nodes = sum(on.values()), {f"h100-node-0{name[1:]}": n for name, n in on.items()}
    made.running("g", "cq", pods(count, 1, topology=request), on=nodes, min_member=count)
    snapshot = made.build()
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    grown = [d for d in plan.decisions if isinstance(d, Grow)]
    return short(dict(grown[0].assignments[0].nodes)) if grown else None


def test_t6_c_a_lost_member_comes_back_beside_the_others() -> None:
    free = {"n1": 1, "n2": 1, "n3": 1, "n4": 1, "n5": 1}
    stands = after_a_loss(PREFERS, free, {"n1": 1, "n2": 1, "n3": 1, "n8": 1})
    assert stands == {"n1": 1, "n2": 1, "n3": 1, "n4": 1}


def test_a_broken_slice_is_completed_in_its_rack_or_waits() -> None:
    request = sliced(TopologyMode.REQUIRED, BLOCK, (RACK, 4))
    on = {"n1": 2, "n2": 2, "n3": 4}
    assert after_a_loss(request, {"n1": 4, "n3": 4, "n4": 4}, on) == {"n1": 4, "n3": 4}
    assert after_a_loss(request, {"n1": 3, "n3": 4, "n4": 4}, on) is None
