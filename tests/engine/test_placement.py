"""Gang placement on a table of free capacity."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.engine.atlas import Atlas
from scheduling.engine.capacity import FreeCapacity
from scheduling.engine.machines import GPU, Node, Taint, Toleration
from scheduling.engine.placement import place_pod_set
from scheduling.engine.sharing import share_out
from scheduling.engine.snapshot import PodSet, Snapshot
from tests.engine.builders import (
    BLOCK,
    HOST,
    RACK,
    node,
    pods,
    preferred,
    required,
    world,
)


def place(snapshot: Snapshot, pod_set: PodSet, flavors=("h100-sxm",)) -> dict[str, int] | None:
    atlas = Atlas(snapshot)
    return place_pod_set(atlas, (FreeCapacity(atlas),), pod_set, flavors)


def cluster(free: dict[str, int]) -> Snapshot:
    made = world()
    labels = {"accelerator": "h100-sxm"}
    made.node_list = [Node(n, labels, {GPU: gpus, "pods": 110}) for n, gpus in free.items()]
    return made.build()


@dataclass(frozen=True)
class Case:
    id: str
    free: dict[str, int]
    want: dict[str, int] | None


CASES = [
    Case("fits exactly", {"n1": 4, "n2": 8}, {"n1": 1, "n2": 2}),
    Case("one pod short: nobody starts", {"n1": 4, "n2": 7}, None),
    Case("the fullest node first", {"n1": 16, "n2": 4, "n3": 8}, {"n2": 1, "n3": 2}),
    Case("ties go to the smaller name", {"n2": 8, "n1": 8}, {"n1": 2, "n2": 1}),
    Case("splinters are useless", {"n1": 3, "n2": 3, "n3": 3, "n4": 3}, None),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_three_pods_of_four_gpus(case: Case) -> None:
    assert place(cluster(case.free), pods(3, 4)) == case.want


def test_small_pods_use_up_splinters_before_they_break_a_whole_node() -> None:
    assert place(cluster({"n1": 2, "n2": 1, "n3": 1}), pods(2)) == {"n2": 1, "n3": 1}


def test_a_cluster_without_any_node_asks_for_none() -> None:
    assert place(world().build(), pods(8, 4)) == {}


def test_pod_slots_are_a_resource() -> None:
    made = world()
    made.node_list = [Node("n1", {"accelerator": "h100-sxm"}, {GPU: 8, "pods": 3})]
    assert place(made.build(), pods(3)) == {"n1": 3}
    assert place(made.build(), pods(4)) is None


GPU_TAINT = Taint("nvidia.com/gpu")
TOLERATES = Toleration("nvidia.com/gpu", "Exists")


@dataclass(frozen=True)
class Filter:
    id: str
    node: Node
    pod_set: PodSet
    fits: bool


FILTERS = [
    Filter("a healthy node", node(1), pods(), fits=True),
    Filter("a node that is not ready", node(1, ready=False), pods(), fits=False),
    Filter("a cordoned node", node(1, schedulable=False), pods(), fits=False),
    Filter("a taint that nobody tolerates", node(1, taints=(GPU_TAINT,)), pods(), fits=False),
    Filter(
        "a taint that the pods tolerate",
        node(1, taints=(GPU_TAINT,)),
        pods(tolerations=(TOLERATES,)),
        fits=True,
    ),
    Filter(
        "a soft taint",
        node(1, taints=(Taint("x", effect="PreferNoSchedule"),)),
        pods(),
        fits=True,
    ),
    Filter("a selector that matches", node(1), pods(node_selector={RACK: "rack-0"}), fits=True),
    Filter("a selector that does not", node(1), pods(node_selector={RACK: "rack-9"}), fits=False),
    Filter("pods outside the platform", node(1, unmanaged={GPU: 4}), pods(), fits=False),
]


@pytest.mark.parametrize("case", FILTERS, ids=lambda case: case.id)
def test_filters(case: Filter) -> None:
    made = world()
    made.node_list = [case.node]
    assert (place(made.build(), case.pod_set) is not None) is case.fits


def test_the_flavor_may_tolerate_the_taint_for_its_pods() -> None:
    made = world().flavor(tolerations=(TOLERATES,)).nodes(1, taints=(GPU_TAINT,))
    assert place(made.build(), pods()) == {"h100-node-01": 1}


def names(*numbers: int) -> dict[str, int]:
    return {f"h100-node-{number:02d}": 1 for number in numbers}


def test_required_takes_the_tightest_domain_that_is_close_enough() -> None:
    made = world().topology().nodes(8)
    made.node_list[0] = node(1, unmanaged={GPU: 4})
    assert place(made.build(), pods(2, 4, topology=required(BLOCK))) == names(3, 4)
    assert place(made.build(), pods(3, 4, topology=required(BLOCK))) == names(2, 3, 4)
    assert place(made.build(), pods(5, 4, topology=required(BLOCK))) is None


def test_preferred_climbs_and_at_the_top_takes_several_domains() -> None:
    made = world().topology().nodes(8)
    assert place(made.build(), pods(2, 4, topology=preferred(RACK))) == names(1, 2)
    assert place(made.build(), pods(3, 4, topology=preferred(RACK))) == names(1, 2, 3)
    assert place(made.build(), pods(5, 4, topology=preferred(RACK))) == names(1, 2, 3, 4, 5)
    assert place(made.build(), pods(9, 4, topology=preferred(RACK))) is None


def test_required_host_means_one_node() -> None:
    made = world().topology().nodes(2)
    assert place(made.build(), pods(4, 1, topology=required(HOST))) == {"h100-node-01": 4}
    assert place(made.build(), pods(5, 1, topology=required(HOST))) is None


def test_a_node_without_the_rack_label_is_outside_the_topology() -> None:
    made = world().topology().nodes(1)
    bare = dict(made.node_list[0].labels)
    del bare[RACK]
    made.node_list[0] = node(1, labels=bare)
    assert place(made.build(), pods(topology=required(RACK))) is None
    assert place(made.build(), pods()) == names(1)


def site(free: dict[str, int], levels=("zone",)) -> Snapshot:
    """Return nodes with so many GPUs, in the zone that is their name's first letter."""
    made = world().topology(*levels)
    for name, gpus in free.items():
        places = {level: name[: depth + 1] for depth, level in enumerate(levels)}
        labels = {"accelerator": "h100-sxm", **places}
        made.node_list.append(Node(name, labels, {GPU: gpus, "pods": 110}))
    return made.build()


def test_zone_a_with_racks_two_and_one() -> None:
    """``placement.md`` 1.11, KAI's example."""
    capacity = {"a1": 2, "a2": 1, "a3": 1, "a4": 1, "b1": 2, "b2": 2, "b3": 2}
    assert place(site(capacity), pods(3, topology=required("zone"))) == {"a1": 2, "a2": 1}


def test_largest_rooms_first_then_best_fit() -> None:
    assert share_out({("x",): 19, ("y",): 10, ("z",): 2}, 20) == {("x",): 19, ("z",): 1}


capacity_st = st.dictionaries(
    st.tuples(st.sampled_from("AB"), st.sampled_from("rst"), st.sampled_from("0123")),
    st.integers(0, 5),
    max_size=12,
)


@given(capacity=capacity_st, count=st.integers(1, 20), depth=st.integers(1, 3), soft=st.booleans())
def test_a_gang_is_placed_whole_or_not_at_all(capacity, count, depth, soft) -> None:
    free = {"".join(path): pods_ for path, pods_ in capacity.items()}
    levels = ("zone", RACK, HOST)
    request = (preferred if soft else required)(levels[depth - 1])
    placed = place(site(free, levels), pods(count, topology=request))
    domains: dict[str, int] = {}
    for name, pods_ in free.items():
        domain = "" if soft else name[:depth]
        domains[domain] = domains.get(domain, 0) + pods_
    if not free:
        return
    if max(domains.values()) < count:
        assert placed is None
        return
    assert placed is not None
    assert sum(placed.values()) == count
    assert all(0 < n <= free[name] for name, n in placed.items())
    if not soft:
        assert len({name[:depth] for name in placed}) == 1


@given(
    free=st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 16)), count=st.integers(1, 9)
)
def test_placement_does_not_depend_on_the_order_of_nodes(free, count) -> None:
    turned = dict(reversed(free.items()))
    assert place(cluster(free), pods(count, 3)) == place(cluster(turned), pods(count, 3))
