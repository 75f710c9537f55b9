"""Devices through the whole cycle: what a pod gets is what a page names and a device holds."""

from dataclasses import replace

import pytest

from scheduling.engine.atlas import Atlas
from scheduling.engine.books import Books
from scheduling.engine.cycle import decide
from scheduling.engine.feasibility import check_workload
from scheduling.engine.invariants import violations
from scheduling.engine.machines import GPU, Devices
from scheduling.engine.plan import Admit, Hold
from scheduling.engine.snapshot import Admission, Assignment, DeviceRequest
from scheduling.engine.terms import BlockerCode, DeviceLocality, PlacementPolicy
from tests.engine.builders import pods, world

ANY, PREFER = DeviceLocality.ANY, DeviceLocality.PREFER
RESTRICTED, REQUIRE = DeviceLocality.RESTRICTED, DeviceLocality.REQUIRE
HALVES = Devices(8, islands=((0, 1, 2, 3), (4, 5, 6, 7)))
GIB = 1024


def near(gpus, locality=REQUIRE, count=1):
    return pods(count, gpus, device=DeviceRequest(gpus, locality=locality))


def part(memory, count=1):
    """Pods that want some GiB of one device."""
    return pods(count, device=DeviceRequest(1, 0, memory * GIB))


def board(devices, *, gpus=8, nodes=1):
    return world().nodes(nodes, gpus, devices=devices).queue("cq", 99, cohort=None)


def decided(made):
    """Run one cycle; the devices by workload, None for who waits."""
    snapshot = made.build()
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    found = dict.fromkeys((w.key for w in snapshot.workloads if w.admission is None), None)
    for decision in plan.decisions:
        if isinstance(decision, Admit):
            (assignment,) = decision.assignments
            found[decision.workload] = dict(assignment.devices) or dict(assignment.nodes)
    return found


def on(made, key, *devices, node="h100-node-01", gpus=None):
    """Let a workload of one pod run on these devices."""
    made.running(key, "cq", pods(1, gpus or len(devices)), on={node: 1})
    last = made.workloads[-1]
    (assignment,) = last.admission.assignments
    seated = replace(assignment, devices={node: (devices,)})
    made.workloads[-1] = replace(last, admission=Admission(200.0, (seated,)))
    return made


ONE = "h100-node-01"


@pytest.mark.parametrize(
    ("taken", "gpus", "locality", "expected"),
    [
        ((0, 4), 4, REQUIRE, None),
        ((0, 4), 3, REQUIRE, {ONE: ((1, 2, 3),)}),
        ((0,), 4, REQUIRE, {ONE: ((4, 5, 6, 7),)}),
        ((1, 3, 5, 7), 4, REQUIRE, None),
        ((1, 3, 5, 7), 4, ANY, {ONE: ((0, 2, 4, 6),)}),
        ((0, 4), 4, RESTRICTED, None),
        ((0, 4), 4, PREFER, {ONE: ((1, 2, 3, 5),)}),
    ],
)
def test_an_island_is_never_counted_together_from_two(taken, gpus, locality, expected):
    made = board(HALVES)
    for device in taken:
        on(made, f"r{device}", device)
    made.pending("p", "cq", near(gpus, locality))

    assert decided(made) == {"p": expected}


def test_a_preference_takes_the_node_where_the_devices_are_near():
    made = board(HALVES, nodes=2)
    on(on(made, "a", 0), "b", 4)
    made.pending("p", "cq", near(4, PREFER)).pending("q", "cq", near(6, PREFER))

    found = decided(made)

    assert found["p"] == {"h100-node-02": ((0, 1, 2, 3),)}
    assert found["q"] == {ONE: ((1, 2, 3, 5, 6, 7),)}


def test_pods_of_a_gang_get_islands_of_their_own():
    made = board(HALVES, nodes=2).pending("p", "cq", near(4, count=4))

    both = ((0, 1, 2, 3), (4, 5, 6, 7))
    assert decided(made) == {"p": {ONE: both, "h100-node-02": both}}


def test_a_gang_that_needs_one_island_more_than_there_are_waits_whole():
    assert decided(board(HALVES, nodes=2).pending("p", "cq", near(3, count=5))) == {"p": None}


def test_three_pods_of_twelve_gib_are_two_on_a_device_of_24():
    """T10, #45."""
    made = board(Devices(1, 24 * GIB, 10), gpus=10)
    for key in "abc":
        made.pending(key, "cq", part(12))

    assert list(decided(made).values()) == [{ONE: ((0,),)}, {ONE: ((0,),)}, None]


def test_memory_that_is_free_on_two_devices_is_not_added_up():
    made = board(Devices(2, 24 * GIB, 10), gpus=20)
    for key in "abc":
        made.pending(key, "cq", part(16))

    assert list(decided(made).values()) == [{ONE: ((0,),)}, {ONE: ((1,),)}, None]


def test_a_gang_that_fails_leaves_the_memory_of_devices_as_it_was():
    """T10, second half: one of two fits, so none starts, and the next one finds all there was."""
    made = board(Devices(1, 24 * GIB, 10), gpus=10)
    made.running("r", "cq", part(12), on={ONE: 1})
    last = made.workloads[-1]
    seated = replace(last.admission.assignments[0], devices={ONE: ((0,),)})
    made.workloads[-1] = replace(last, admission=Admission(200.0, (seated,)))
    made.pending("gang", "cq", part(12, count=2)).pending("small", "cq", part(12))

    assert decided(made) == {"gang": None, "small": {ONE: ((0,),)}}


def test_turns_are_never_more_than_the_memory_of_a_device():
    made = board(Devices(2, 24 * GIB, 4), gpus=8)
    for key in "abcde":
        made.pending(key, "cq", pods(device=DeviceRequest(1, memory=10 * GIB)))

    assert [f is not None for f in decided(made).values()] == [True] * 4 + [False]


def test_turns_are_as_many_as_the_cluster_offers():
    made = (
        board(Devices(2, None, 4), gpus=8).pending("p", "cq", pods(9)).pending("q", "cq", pods(8))
    )

    assert decided(made) == {"p": None, "q": {ONE: ((0,),) * 4 + ((1,),) * 4}}


def test_a_node_that_lost_devices_takes_nothing_until_fewer_stand_there():
    """#44: eight became six, and seven are in use."""
    made = board(replace(HALVES), gpus=6)
    for device in range(7):
        on(made, f"r{device}", device)
    made.pending("p", "cq", pods())
    assert decided(made) == {"p": None}

    freed = replace(made, workloads=[w for w in made.workloads if w.key not in {"r0", "r1"}])
    assert decided(freed) == {"p": {ONE: ((7,),)}}


def test_what_the_cluster_offers_bounds_what_seems_free():
    made = board(HALVES, gpus=6)
    for device in range(3, 8):
        on(made, f"r{device}", device)
    made.pending("p", "cq", pods(1, 2)).pending("q", "cq", pods(1, 1))

    assert decided(made) == {"p": None, "q": {ONE: ((0,),)}}


def test_pods_outside_the_platform_are_not_assumed_where_it_suits():
    made = board(HALVES)
    made.node_list = [replace(n, unmanaged={GPU: 2}) for n in made.node_list]
    made.pending("p", "cq", near(4)).pending("q", "cq", near(3))

    assert decided(made) == {"p": None, "q": {ONE: ((0, 1, 2),)}}


def test_who_spreads_parts_takes_the_emptiest_device():
    made = board(Devices(2, 24 * GIB, 10), gpus=20)
    for key in "ab":
        made.pending(key, "cq", part(4))
    tight = decided(made)
    made.flavor(policy=PlacementPolicy.SPREAD)

    assert list(tight.values()) == [{ONE: ((0,),)}, {ONE: ((0,),)}]
    assert list(decided(made).values()) == [{ONE: ((0,),)}, {ONE: ((1,),)}]


def test_an_island_that_no_node_has_is_known_before_anything_waits():
    made = board(HALVES, nodes=2)
    work = made.pending("p", "cq", near(6)).build().workloads[-1]

    codes = [finding.code for finding in check_workload(made.build(), work)]

    assert codes == ["NEVER_FITS_ISLAND"]


def test_what_was_freed_for_a_preemptor_starts_on_just_those_devices():
    """Another device of the node comes free first: the preemptor waits for its own."""
    made = board(HALVES)
    for device in (0, 1, 4):
        on(made, f"r{device}", device)
    made.workloads[0] = replace(made.workloads[0], releasing=True)
    snapshot = made.pending("p", "cq", near(4)).build()
    books = Books(snapshot, Atlas(snapshot))
    where = Assignment("main", 1, {GPU: "h100-sxm"}, {ONE: 1}, {ONE: ((4, 5, 6, 7),)})
    free = replace(where, devices={ONE: ((2, 3, 5, 6),)})
    unknown = replace(where, devices={})
    work = snapshot.workloads[-1]

    assert not books.can_stand(work, (where,), books.both)
    assert not books.can_stand(work, (unknown,), books.both)
    any_four = replace(work, pod_sets=(near(4, ANY),))
    assert books.can_stand(any_four, (free,), books.both)


def test_parts_that_no_resource_names_are_bounded_by_devices_alone():
    """The trace of openb asks so: ten tenths of a device are no ten GPUs."""
    made = board(Devices(2), gpus=2)
    tenth = replace(pods(20, 0), device=DeviceRequest(1, 100))
    made.pending("p", "cq", tenth).pending("q", "cq", replace(tenth, count=1))

    found = decided(made)

    assert found == {"p": {ONE: ((0,),) * 10 + ((1,),) * 10}, "q": None}


@pytest.mark.parametrize(("locality", "cause"), [(REQUIRE, "Islands"), (RESTRICTED, "Islands")])
def test_who_waits_for_an_island_is_told_so(locality, cause):
    made = on(on(board(HALVES), "a", 0), "b", 4).pending("p", "cq", near(4, locality))

    (hold,) = [d for d in decide(made.build()).decisions if isinstance(d, Hold)]

    (blocker,) = hold.blockers
    assert blocker.code is BlockerCode.FRAGMENTED
    assert {"cause": cause, "free": 6, "near": 4}.items() <= blocker.facts.items()


def test_who_finds_no_four_gpus_at_all_is_not_told_of_islands():
    made = board(HALVES, nodes=2)
    for device in range(5):
        on(on(made, f"a{device}", device), f"b{device}", device, node="h100-node-02")

    (hold,) = [
        d
        for d in decide(made.pending("p", "cq", near(4)).build()).decisions
        if isinstance(d, Hold)
    ]

    assert "cause" not in hold.blockers[0].facts
