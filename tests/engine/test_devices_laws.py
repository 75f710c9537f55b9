"""What holds for every node and every history of pods on its devices."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.engine.machines import WHOLE, Devices
from scheduling.engine.scoring.devices import (
    BY_MEMORY,
    Ask,
    chosen,
    crossed,
    sets,
    spare_of,
    suffice,
)
from scheduling.engine.terms import DeviceLocality

LAWS = settings(max_examples=60, deadline=None)


@st.composite
def devices_st(draw):
    count = draw(st.integers(1, 8))
    order = draw(st.permutations(range(count)))
    cuts = sorted(draw(st.sets(st.integers(1, count), max_size=3)))
    islands = tuple(tuple(order[a:b]) for a, b in zip([0, *cuts], [*cuts, count], strict=True))
    islands = tuple(island for island in islands if island) if cuts else ()
    memory = draw(st.sampled_from([None, 40, 81]))
    return Devices(count, memory, draw(st.integers(1, 7)), islands)


asks_st = st.builds(
    Ask,
    st.integers(0, 8),
    st.sampled_from([WHOLE, WHOLE, 700, 500, 300, 1, BY_MEMORY]),
    st.sampled_from([0, 1, 20, 40, 50]),
    st.sampled_from(DeviceLocality),
    st.booleans(),
)
history_st = st.lists(st.tuples(asks_st, st.booleans(), st.integers(0, 99)), max_size=16)


def told(standing, devices, layout):
    """Add up what stands on each device, word by word."""
    shares, memory = [0] * devices.count, [0] * devices.count
    for ask, taken in standing:
        for device in taken:
            shares[device] += ask.share_on(layout)
            memory[device] += ask.memory_on(layout)
    return shares, memory


@LAWS
@given(devices_st(), history_st)
def test_no_device_no_memory_and_no_island_is_promised_twice(devices, history):
    node = empty = spare_of(devices)
    standing = []
    for ask, tight, leaves in history:
        if suffice(node, ask):
            taken = chosen(node, ask, tight=tight)
            assert len(set(taken)) == len(taken) == ask.devices
            if ask.locality is DeviceLocality.REQUIRE and taken:
                assert crossed(node, taken) == 1
            node = node.less(ask, taken)
            standing.append((ask, taken))
        if standing and leaves % 3 == 0:
            node = node.more(*standing.pop(leaves % len(standing)))
        shares, memory = told(standing, devices, node.layout)
        assert all(0 <= share <= node.layout.full for share in shares)
        assert node.free == tuple(node.layout.full - share for share in shares)
        if devices.memory is not None:
            assert all(mib <= devices.memory for mib in memory)
            assert node.memory == tuple(devices.memory - mib for mib in memory)
        assert node.layout == empty.layout
    for ask, taken in standing:
        node = node.more(ask, taken)
    assert node == empty


@st.composite
def used_st(draw):
    """A node on which some pods stand already."""
    node = spare_of(draw(devices_st()))
    for ask, tight, _ in draw(history_st)[:4]:
        if suffice(node, ask):
            node = node.less(ask, chosen(node, ask, tight=tight))
    return node


def every_set(node, ask):
    """All sets of devices that the pod may have, by trying each."""
    share, memory = ask.share_on(node.layout), ask.memory_on(node.layout)
    fitting = [
        d
        for d, free in enumerate(node.free)
        if free >= share and (not node.memory or node.memory[d] >= memory)
    ]
    found = list(combinations(fitting, ask.devices))
    if ask.locality is DeviceLocality.REQUIRE:
        found = [f for f in found if crossed(node, f) <= 1]
    if ask.locality is DeviceLocality.RESTRICTED:
        islands = node.layout.islands or (range(len(node.free)),)
        fewest = (
            next(
                n
                for n in range(len(islands) + 1)
                if any(sum(map(len, some)) >= ask.devices for some in combinations(islands, n))
            )
            if sum(map(len, islands)) >= ask.devices
            else -1
        )
        found = [f for f in found if crossed(node, f) <= fewest or not f]
    return found


@LAWS
@given(used_st(), asks_st)
def test_a_pod_fits_exactly_where_some_set_of_devices_would_do(node, ask):
    assert suffice(node, ask) == bool(every_set(node, ask))


@LAWS
@given(used_st(), asks_st, st.booleans())
def test_the_chosen_devices_are_of_the_fewest_islands(node, ask, tight):
    possible = every_set(node, ask)
    if possible:
        taken = chosen(node, ask, tight=tight)
        assert taken in possible
        assert crossed(node, taken) == min(crossed(node, one) for one in possible)


@LAWS
@given(used_st(), asks_st)
def test_every_way_is_possible_and_the_first_is_the_tightest(node, ask):
    possible = every_set(node, ask)
    if possible:
        named = list(sets(node, ask))
        assert set(named) <= set(possible)
        assert named[0] == chosen(node, ask)
        assert len(set(named)) == len(named)


@LAWS
@given(devices_st(), st.permutations(range(3)))
def test_the_order_of_islands_changes_nothing(devices, order):
    islands = list(devices.islands)
    moved = [islands[i] for i in order if i < len(islands)] + islands[3:]
    other = Devices(devices.count, devices.memory, devices.replicas, tuple(moved))
    assert spare_of(other) == spare_of(devices)
