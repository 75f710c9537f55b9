"""The index of free room against a naive look at every node, through trials and undoing."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.engine import views as views_module
from scheduling.engine.atlas import Atlas
from scheduling.engine.capacity import FreeCapacity
from scheduling.engine.journal import Journal
from scheduling.engine.machines import CPU, GPU, Devices, Flavor, Node, Topology
from scheduling.engine.placement import (
    assign_pod_set,
    fitting_pods,
    largest_domain,
    place_pod_set,
)
from scheduling.engine.scoring.holes import after, fits
from scheduling.engine.snapshot import (
    Assignment,
    DeviceRequest,
    PodSet,
    Recent,
    Snapshot,
    TopologyRequest,
)
from scheduling.engine.terms import PlacementPolicy, TopologyMode
from scheduling.engine.usual import expect
from tests.engine.builders import BLOCK, HOST, RACK

LEVELS = (BLOCK, RACK, HOST)
LAWS = settings(max_examples=60, deadline=None)


def node(index: int, cpu: int, gpus: int, *, told_apart: bool, racks: int) -> Node:
    labels = {BLOCK: f"b{index % 2}", RACK: f"r{index % racks}", HOST: f"n{index}"}
    whole = {CPU: cpu * 1000, GPU: gpus, "pods": 5}
    return Node(f"n{index}", labels, whole, devices=Devices(gpus) if told_apart else None)


@st.composite
def clusters(draw) -> Snapshot:
    racks = draw(st.integers(1, 4))
    nodes = [
        node(
            index,
            draw(st.integers(0, 6)),
            draw(st.integers(0, 4)),
            told_apart=draw(st.booleans()),
            racks=racks,
        )
        for index in range(draw(st.integers(1, 7)))
    ]
    policy = draw(st.sampled_from(PlacementPolicy))
    recent = draw(st.lists(st.tuples(pod_sets_st(), st.integers(1, 9)), max_size=3))
    return Snapshot(
        now=0.0,
        flavors={"any": Flavor("any", topology="site", policy=policy)},
        topologies={"site": Topology("site", LEVELS)},
        nodes=tuple(nodes),
        cohorts={},
        cluster_queues={},
        workloads=(),
        shapes=tuple(Recent(*one) for one in recent),
    )


@st.composite
def pod_sets_st(draw) -> PodSet:
    mode = draw(st.sampled_from([None, *TopologyMode]))
    level = None if mode is TopologyMode.UNCONSTRAINED else draw(st.sampled_from(LEVELS))
    gpus = draw(st.integers(0, 2))
    share = draw(st.sampled_from([None, None, 500, 300]))
    return PodSet(
        "main",
        draw(st.integers(1, 6)),
        {CPU: draw(st.integers(0, 2)) * 1000, GPU: 0 if share else gpus},
        topology=TopologyRequest(mode, level) if mode else None,
        device=DeviceRequest(1, share) if share else None,
    )


class Desk:
    """Two rooms that share a journal, and what was put into them, for the naive look."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.atlas, journal = Atlas(snapshot), Journal()
        expect(self.atlas, snapshot.shapes)
        self.rooms = FreeCapacity(self.atlas, journal), FreeCapacity(self.atlas, journal)

    def find(self, pod_set: PodSet):
        return assign_pod_set(self.atlas, self.rooms, pod_set, {GPU: "any"})

    def take(self, pod_set: PodSet, found, rooms=None, sign: int = 1) -> None:
        for room in rooms or self.rooms:
            room.take_all(pod_set, found.nodes, sign, found.devices)

    def fitting(self, pod_set: PodSet) -> dict[str, int]:
        """Look at every node."""
        names = self.atlas.suitable(pod_set, ["any"]).nodes
        return {name: self.on_node(name, pod_set) for name in names}

    def on_node(self, name: str, pod_set: PodSet) -> int:
        if self.atlas.nodes[name].devices is not None:
            return self.filled(name, pod_set)
        if pod_set.device is not None:
            return 0  # a part of a device that is only counted
        asked = {r: n for r, n in {**pod_set.requests, "pods": 1}.items() if n}
        rooms = self.rooms
        return max(0, min(room.free(name, r) // n for room in rooms for r, n in asked.items()))

    def filled(self, name: str, pod_set: PodSet) -> int:
        """Fill one node pod by pod, on devices that are free in both rooms, in a trial."""
        one = replace(pod_set, count=1, topology=None, node_selector={HOST: name})
        pods = 0
        with self.rooms[0].trial():
            while (found := self.find(one)) is not None:
                assert all(room.fitting(name, one) for room in self.rooms)
                self.take(one, found)
                pods += 1
        return pods


def check(desk: Desk, pod_set: PodSet) -> None:
    """Compare counters, domains and the answer itself with a look at every node."""
    fitting = desk.fitting(pod_set)
    args = desk.atlas, desk.rooms, pod_set, ["any"]
    assert fitting_pods(*args) == sum(fitting.values())
    request = pod_set.topology
    placed = place_pod_set(*args)
    if placed is not None:
        assert sum(placed.values()) == pod_set.count
        assert all(0 < pods <= fitting[name] for name, pods in placed.items())
    if request is None or request.mode is not TopologyMode.REQUIRED:
        assert (placed is not None) == (sum(fitting.values()) >= pod_set.count)
        return
    depth = LEVELS.index(request.level) + 1
    domains: dict[tuple[str, ...], int] = {}
    paths = {n: tuple(desk.atlas.nodes[n].labels[v] for v in LEVELS[:depth]) for n in fitting}
    for name, pods in fitting.items():
        domains[paths[name]] = domains.get(paths[name], 0) + pods
    largest = max(domains.values(), default=0)
    assert largest_domain(*args) == largest
    assert (placed is not None) == (largest >= pod_set.count)
    if placed:
        assert len({paths[name] for name in placed}) == 1


steps_st = st.lists(
    st.tuples(pod_sets_st(), st.sampled_from(["keep", "undo", "soon", "leave", "ask"])),
    max_size=8,
)


@LAWS
@given(clusters(), steps_st)
def test_the_index_says_what_a_look_at_every_node_says(snapshot, steps) -> None:
    play(snapshot, steps)


@LAWS
@given(clusters(), steps_st)
def test_what_is_forgotten_changes_no_answer(snapshot, steps) -> None:
    kept = play(snapshot, steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(views_module, "KEPT", 1)
        assert play(snapshot, steps) == kept


@LAWS
@given(clusters(), st.lists(pod_sets_st(), max_size=8))
def test_without_a_topology_request_each_pod_takes_the_best_node_then(snapshot, asked) -> None:
    desk = Desk(snapshot)
    for pod_set in asked:
        loose = replace(pod_set, topology=None)
        found = desk.find(loose)
        assert found == naive(desk, loose)
        if found is not None:
            desk.take(loose, found)


def naive(desk: Desk, pod_set: PodSet) -> Assignment | None:
    """Put pod after pod on the best of all nodes that still fit it, then on the lowest."""
    ground = desk.atlas.ground
    shape = ground.footprint_of(pod_set).shape
    rate = desk.atlas.views.policy(desk.atlas.snapshot.flavors["any"].policy)
    names = desk.atlas.suitable(pod_set, ["any"]).nodes
    holes = {name: ground.holes[desk.rooms[0].holes[ground.numbers[name]]] for name in names}
    nodes: dict[str, int] = {}
    devices: dict[str, tuple[tuple[int, ...], ...]] = {}
    for _ in range(pod_set.count):
        seats = {name: rate(hole, shape) for name, hole in holes.items() if fits(hole, shape)}
        if not seats:
            return None
        name = min(seats, key=lambda name: (-seats[name].merit, name))
        nodes[name] = nodes.get(name, 0) + 1
        if holes[name].devices and shape.devices:
            devices[name] = (*devices.get(name, ()), seats[name].devices)
        holes[name] = after(holes[name], shape, seats[name].devices)
    return Assignment("main", pod_set.count, {GPU: "any"}, dict(sorted(nodes.items())), devices)


def play(snapshot, steps) -> list[object]:
    """Let pod sets come, go and be tried; return what was answered."""
    desk, standing, answers = Desk(snapshot), [], []
    for pod_set, what in steps:
        check(desk, pod_set)
        before = [list(room.holes) for room in desk.rooms]
        found = desk.find(pod_set)
        answers.append(found)
        if found is None or what == "ask":
            assert [list(room.holes) for room in desk.rooms] == before
        elif what == "undo":
            with desk.rooms[0].trial():
                desk.take(pod_set, found)
                check(desk, pod_set)
            assert [list(room.holes) for room in desk.rooms] == before
        elif what == "leave" and standing:
            desk.take(*standing.pop(0), sign=-1)
        else:
            rooms = (desk.rooms[1],) if what == "soon" else desk.rooms
            desk.take(pod_set, found, rooms)
            if rooms is desk.rooms:
                standing.append((pod_set, found))
        for room in desk.rooms:
            holes = [desk.atlas.ground.holes[hole] for hole in room.holes]
            assert all(min(hole.amounts) >= 0 for hole in holes)
            assert all(min(hole.devices, default=0) >= 0 for hole in holes)
        check(desk, pod_set)
    return answers


@LAWS
@given(clusters(), st.lists(pod_sets_st(), max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_nodes_in_the_snapshot_changes_nothing(snapshot, asked, chance) -> None:
    nodes = list(snapshot.nodes)
    chance.shuffle(nodes)
    turned = replace(snapshot, nodes=tuple(nodes))
    desks = Desk(snapshot), Desk(turned)
    for pod_set in asked:
        found = [desk.find(pod_set) for desk in desks]
        assert found[0] == found[1]
        if found[0] is not None:
            for desk in desks:
                desk.take(pod_set, found[0])
