"""Which devices a pod gets: islands, parts of devices, their memory, turns."""

import pytest

from scheduling.engine.machines import WHOLE, Devices
from scheduling.engine.scoring.devices import (
    BY_MEMORY,
    PLAIN,
    Ask,
    chosen,
    crossed,
    sets,
    spare_of,
    suffice,
)
from scheduling.engine.snapshot import DeviceRequest
from scheduling.engine.terms import DeviceLocality
from scheduling.engine.usage import requested_devices

ANY, PREFER = DeviceLocality.ANY, DeviceLocality.PREFER
RESTRICTED, REQUIRE = DeviceLocality.RESTRICTED, DeviceLocality.REQUIRE
HALVES = ((0, 1, 2, 3), (4, 5, 6, 7))
GIB = 1024


def spare(count=8, *taken, islands=HALVES, **kwargs):
    """A node with whole devices ``taken``."""
    return spare_of(Devices(count, islands=islands, **kwargs)).less(Ask(len(taken)), taken)


def whole(count, locality=ANY):
    return Ask(count, locality=locality)


@pytest.mark.parametrize(
    ("taken", "count", "locality", "expected"),
    [
        pytest.param((0, 4), 4, REQUIRE, False, id="3 and 3 free are no island of 4"),
        pytest.param((0, 4), 4, ANY, True, id="whoever asks for no island gets 4 of them"),
        pytest.param((0, 4), 4, PREFER, True, id="a preference keeps nobody waiting"),
        pytest.param((0, 4), 4, RESTRICTED, False, id="4 need one island on the empty node"),
        pytest.param((0, 4), 3, REQUIRE, True, id="3 free in one island"),
        pytest.param((0,), 4, REQUIRE, True, id="after one of the two has ended, 4 fit"),
        pytest.param((1, 3, 5, 7), 4, REQUIRE, False, id="0, 2, 4, 6 are no island of 4"),
        pytest.param((1, 3, 5, 7), 2, REQUIRE, True, id="0 and 2 are near each other"),
        pytest.param((), 6, REQUIRE, False, id="no island has 6"),
        pytest.param((), 6, RESTRICTED, True, id="6 need both islands even on the empty node"),
        pytest.param((0, 4), 6, RESTRICTED, True, id="and get what is left of both"),
        pytest.param((0, 1, 4), 6, ANY, False, id="5 devices are no 6"),
        pytest.param((0, 4), 0, REQUIRE, True, id="who asks for none needs no island"),
    ],
)
def test_an_island_is_what_a_request_may_insist_on(taken, count, locality, expected):
    assert suffice(spare(8, *taken), whole(count, locality)) is expected


def test_where_no_island_is_declared_all_devices_are_one():
    node = spare(8, 0, 4, islands=())
    assert suffice(node, whole(6, REQUIRE))
    assert not suffice(node, whole(7, REQUIRE))
    assert crossed(node, (1, 7)) == 1


@pytest.mark.parametrize(
    ("taken", "count", "expected"),
    [
        pytest.param((), 4, (0, 1, 2, 3), id="the first of equal islands"),
        pytest.param((0,), 3, (1, 2, 3), id="the island with the fewest that are enough"),
        pytest.param((0,), 4, (4, 5, 6, 7), id="which leaves the other one as it is"),
        pytest.param((5,), 1, (4,), id="a single one opens no whole island"),
        pytest.param((0, 7), 2, (2, 3), id="an aligned pair before the pair at 1"),
        pytest.param((1, 3, 7), 2, (0, 2), id="any two of an island where no pair is left"),
        pytest.param((0, 4, 5), 4, (1, 2, 3, 6), id="as few as can be of a second island"),
        pytest.param((0, 1, 4), 5, (2, 3, 5, 6, 7), id="the largest island first"),
    ],
)
def test_devices_come_from_the_fewest_islands_the_tightest_first(taken, count, expected):
    for locality in (ANY, PREFER):
        assert chosen(spare(8, *taken), whole(count, locality)) == expected


def test_three_islands_are_left_for_the_two_that_are_enough():
    node = spare(8, islands=((0, 1), (2, 3, 4), (5, 6, 7)))
    assert chosen(node, whole(5)) == (0, 1, 2, 3, 4)
    assert crossed(node, (0, 1, 2, 3, 4)) == 2


def test_who_spreads_takes_the_island_with_most_left():
    assert chosen(spare(8, 0), whole(1), tight=False) == (4,)
    assert chosen(spare(8, 0), whole(1)) == (1,)


def test_a_device_that_no_island_names_is_near_nobody():
    node = spare(4, islands=((0, 1),))
    assert suffice(node, whole(2, REQUIRE))
    assert not suffice(node.less(whole(1), (0,)), whole(2, REQUIRE))


@pytest.mark.parametrize(
    ("devices", "ask", "pods"),
    [
        pytest.param(Devices(1, 24 * GIB), Ask(1, BY_MEMORY, 12 * GIB), 2, id="12 of 24 GiB"),
        pytest.param(Devices(2, 24 * GIB), Ask(1, BY_MEMORY, 16 * GIB), 2, id="not 3 of 48 GiB"),
        pytest.param(Devices(2, 24 * GIB), Ask(2, BY_MEMORY, 8 * GIB), 3, id="8 GiB of each"),
        pytest.param(Devices(1, 24 * GIB), Ask(1, BY_MEMORY, 25 * GIB), 0, id="more than it has"),
        pytest.param(Devices(1, 24 * GIB), Ask(1, 300, GIB), 3, id="three thirds of its time"),
        pytest.param(Devices(1, 24 * GIB), Ask(1, 300, 10 * GIB), 2, id="memory is what is short"),
        pytest.param(Devices(1), Ask(1, BY_MEMORY, 12 * GIB), 1, id="nobody knows: all of it"),
        pytest.param(Devices(2), Ask(1, 500), 4, id="halves"),
        pytest.param(Devices(2), Ask(1, 700), 2, id="0.3 and 0.3 are no 0.6"),
        pytest.param(Devices(2, replicas=4), Ask(1), 8, id="turns"),
        pytest.param(Devices(1, replicas=7), Ask(1), 7, id="seven turns are seven"),
        pytest.param(Devices(1, replicas=48), Ask(1), 48, id="and 48 are 48"),
        pytest.param(Devices(2, replicas=4), Ask(2), 4, id="two turns are on two devices"),
        pytest.param(Devices(2, replicas=4), Ask(3), 0, id="there are no three devices"),
        pytest.param(
            Devices(2, 24 * GIB, 4), Ask(1, memory=10 * GIB), 4, id="turns within the memory"
        ),
        pytest.param(Devices(2, replicas=4), Ask(1, alone=True), 2, id="alone in spite of turns"),
        pytest.param(Devices(2, replicas=3), Ask(1, WHOLE - 1), 2, id="more than all turns"),
    ],
)
def test_no_device_gives_more_than_it_has(devices, ask, pods):
    node, stood = spare_of(devices), 0
    while suffice(node, ask):
        node, stood = node.less(ask, chosen(node, ask)), stood + 1
    assert stood == pods


def test_who_wants_to_be_alone_takes_no_device_that_somebody_uses():
    node = spare_of(Devices(2, 24 * GIB, 4)).less(Ask(1, memory=GIB), (0,))
    alone = Ask(1, alone=True)
    assert chosen(node, alone) == (1,)
    node = node.less(alone, (1,))
    assert node.memory == (23 * GIB, 0)
    assert not suffice(node, alone)
    assert suffice(node, Ask(1, memory=GIB))


def test_parts_of_devices_go_where_least_is_left():
    node = spare_of(Devices(3)).less(Ask(1, 300), (1,))
    assert chosen(node, Ask(1, 500)) == (1,)
    assert chosen(node, Ask(1, 500), tight=False) == (0,)
    assert chosen(node, Ask(1, 800)) == (0,)


def test_of_devices_with_as_much_time_left_the_one_with_less_memory_goes_first():
    node = spare_of(Devices(2, 24 * GIB))
    node = node.less(Ask(1, 300, GIB), (0,)).less(Ask(1, 300, 9 * GIB), (1,))
    assert chosen(node, Ask(1, 300, GIB)) == (1,)
    assert chosen(node, Ask(1, 300, GIB), tight=False) == (0,)


def test_what_was_taken_is_given_back_exactly():
    node = spare_of(Devices(8, 24 * GIB, 4, HALVES))
    for ask in (Ask(3, memory=GIB), Ask(2, 300), Ask(2, alone=True), Ask(1, BY_MEMORY, 5 * GIB)):
        devices = chosen(node, ask)
        assert node.less(ask, devices).more(ask, devices) == node


def test_a_device_that_has_failed_holds_nothing_and_gets_nothing():
    """#44: six of eight are left, and a pod that stood on a lost one still stands in the rows."""
    node = spare(6, 5, 7, islands=())
    assert node.free == (WHOLE,) * 5 + (0,)
    assert node.more(Ask(2), (5, 7)).free == (WHOLE,) * 6


@pytest.mark.parametrize(
    ("node", "ask", "expected"),
    [
        pytest.param(spare(4, islands=()), whole(1), [(0,)], id="equal devices once"),
        pytest.param(spare(4, islands=()), whole(2), [(0, 1)], id="all pairs are equal"),
        pytest.param(spare(8, 0), whole(1), [(1,), (4,)], id="one in each kind of island"),
        pytest.param(spare(8, 0), whole(2), [(2, 3), (4, 5)], id="a pair in each kind of island"),
        pytest.param(spare(8, 0, 4), whole(4), [(1, 2, 3, 5)], id="across, where nothing else is"),
        pytest.param(
            spare_of(Devices(3)).less(Ask(1, 300), (2,)),
            Ask(1, 200),
            [(2,), (0,)],
            id="the tightest first",
        ),
    ],
)
def test_ways_differ_in_what_they_leave(node, ask, expected):
    assert list(sets(node, ask)) == expected


def test_devices_that_are_all_alike_are_the_plain_layout():
    assert spare_of(Devices(8)).layout is PLAIN


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        pytest.param({"cpu": 1000}, None, id="no GPU"),
        pytest.param({"nvidia.com/mig-3g.40gb": 2}, None, id="a MIG slice is no part of a device"),
        pytest.param({"nvidia.com/gpu": 2}, DeviceRequest(2), id="whole ones"),
        pytest.param(
            {"volcano.sh/vgpu-number": 2, "volcano.sh/vgpu-memory": 3000},
            DeviceRequest(2, BY_MEMORY, 3000),
            id="memory of each",
        ),
        pytest.param(
            {
                "volcano.sh/vgpu-number": 1,
                "volcano.sh/vgpu-memory": 3000,
                "volcano.sh/vgpu-cores": 25,
            },
            DeviceRequest(1, 250, 3000),
            id="and a quarter of its time",
        ),
        pytest.param(
            {
                "volcano.sh/vgpu-number": 1,
                "volcano.sh/vgpu-memory": 3000,
                "volcano.sh/vgpu-cores": 100,
            },
            DeviceRequest(1, WHOLE, 3000, alone=True),
            id="all of its time",
        ),
        pytest.param(
            {"volcano.sh/vgpu-number": 1},
            DeviceRequest(1, alone=True),
            id="no word on memory is all of it",
        ),
    ],
)
def test_requests_say_what_a_pod_asks_of_devices(requests, expected):
    assert requested_devices(requests) == expected


def test_whole_gpus_may_name_an_island_and_the_memory_they_need():
    asked = requested_devices({"nvidia.com/gpu": 4}, REQUIRE, 40 * GIB)
    assert asked == DeviceRequest(4, WHOLE, 40 * GIB, REQUIRE)
