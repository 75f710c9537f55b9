"""Each policy by cases: which of two nodes a pod takes, and which of its devices."""

import pytest

from scheduling.engine.scoring.holes import Hole, Shape, after, fits, loosest, tightest, ways
from scheduling.engine.scoring.policies import (
    STEPS,
    Scale,
    binpack,
    fragmentation,
    policy_of,
    scale_of,
    spread,
)
from scheduling.engine.scoring.popularity import Popularity, typical

ONE, TWO, EIGHT = Shape((1,), 1), Shape((1,), 2), Shape((1,), 8)
HALF, THIRD = Shape((1,), 1, 500), Shape((1,), 1, 300)
CPU_ONLY = Shape((4,))
NOBODY = Popularity({})


SCALE = Scale((8, 8000), (1, 1))


def best(rate, nodes, shape):
    """Look at every node: largest merit, then lowest number."""
    seats = {number: rate(hole, shape) for number, hole in nodes.items() if fits(hole, shape)}
    number = min(seats, key=lambda number: (-seats[number].merit, number), default=None)
    return None if number is None else (number, seats[number].devices)


def hole(*devices, cpu=8, kind="a"):
    return Hole((cpu,), devices, kind)


@pytest.mark.parametrize(
    ("free", "shape", "answer"),
    [
        (hole(1000), ONE, True),
        (hole(999), ONE, False),
        (hole(999), HALF, True),
        (hole(500, 500), ONE, False),
        (hole(1000, 0, 1000), TWO, True),
        (hole(1000, cpu=0), ONE, False),
        (hole(cpu=4), CPU_ONLY, True),
        (hole(1000), ONE._replace(kinds=frozenset("ab")), True),
        (hole(1000), ONE._replace(kinds=frozenset("b")), False),
    ],
)
def test_a_pod_fits_where_each_thing_it_asks_for_is_there(free, shape, answer):
    assert fits(free, shape) is answer


def test_what_is_left_is_what_was_free_less_what_was_asked():
    left = after(hole(1000, 700, 1000), HALF, (1,))
    assert left == hole(1000, 200, 1000, cpu=7)


@pytest.mark.parametrize(
    ("free", "shape", "tight", "loose"),
    [
        (hole(1000, 600, 500), HALF, (2,), (0,)),
        (hole(600, 600), HALF, (0,), (0,)),
        (hole(400, 1000), HALF, (1,), (1,)),
        (hole(1000, 300, 1000, 1000), TWO, (0, 2), (0, 2)),
        (hole(1000), CPU_ONLY, (), ()),
    ],
)
def test_devices_are_taken_by_what_is_free_then_by_index(free, shape, tight, loose):
    assert tightest(free, shape) == tight
    assert loosest(free, shape) == loose


def test_equally_free_devices_are_tried_once():
    assert list(ways(hole(1000, 600, 1000, 400, 600), HALF)) == [(1,), (0,)]
    assert list(ways(hole(1000, 1000, 1000), TWO)) == [(0, 1)]
    assert list(ways(hole(1000), CPU_ONLY)) == [()]


@pytest.mark.parametrize(
    ("weights", "free", "fragment"),
    [
        pytest.param({ONE: 1}, hole(1000, 1000), 0, id="all of it is of use"),
        pytest.param({ONE: 1}, hole(1000, 600), 600, id="too little on one device"),
        pytest.param({TWO: 1}, hole(1000, 600), 1600, id="the shape does not fit at all"),
        pytest.param({ONE: 1}, hole(1000, cpu=0), 1000, id="no CPU, so the GPU is stranded"),
        pytest.param({CPU_ONLY: 1}, hole(1000), 1000, id="who asks for no device uses none"),
        pytest.param({ONE: 1, HALF: 3}, hole(1000, 600), 600, id="weighed by popularity"),
        pytest.param({ONE: 0, HALF: 1}, hole(600), 0, id="a shape that never comes"),
        pytest.param({}, hole(1000, 600), 0, id="nobody comes"),
        pytest.param(
            {ONE._replace(kinds=frozenset("b")): 1}, hole(1000), 1000, id="another kind is asked"
        ),
        pytest.param({ONE: 1}, hole(cpu=8), 0, id="no devices, no fragment"),
    ],
)
def test_the_fragment_of_a_hole(weights, free, fragment):
    assert Popularity(weights).fragment(free) == fragment


def test_a_fragment_is_worked_out_once_for_holes_that_nobody_could_tell_apart():
    popularity = Popularity({Shape((2,), 1): 1})
    for free in (hole(1000, 600), hole(600, 1000), hole(600, 1000, cpu=2), hole(600, 1000, cpu=1)):
        popularity.fragment(free)
    assert popularity.worked_out == 2  # CPU enough, and too little


def test_typical_shapes_are_the_most_frequent_until_enough_are_covered():
    counts = {ONE: 50, HALF: 30, THIRD: 10, TWO: 10}
    assert typical(counts, 80) == {ONE: 50, HALF: 30}
    assert typical(counts, 81) == {ONE: 50, HALF: 30, TWO: 10}  # of equals the larger
    assert typical({}, 95) == {}


@pytest.mark.parametrize(
    ("policy", "nodes", "shape", "place"),
    [
        pytest.param(
            fragmentation, [hole(1000, 1000), hole(1000, 600)], THIRD, (1, (1,)), id="open device"
        ),
        pytest.param(
            fragmentation, [hole(*[1000] * 8), hole(1000, 1000)], ONE, (1, (0,)), id="small node"
        ),
        pytest.param(
            fragmentation, [hole(*[1000] * 2), hole(*[1000] * 2)], ONE, (0, (0,)), id="number"
        ),
        pytest.param(binpack, [hole(1000, 1000), hole(0, 1000)], ONE, (1, (1,)), id="fuller"),
        pytest.param(binpack, [hole(1000, 600)], HALF, (0, (1,)), id="tighter device"),
        pytest.param(binpack, [hole(cpu=8), hole(cpu=5)], CPU_ONLY, (1, ()), id="CPU alone"),
        pytest.param(
            binpack, [hole(*[1000] * 8), hole(1000, 1000)], ONE, (1, (0,)), id="small node"
        ),
        pytest.param(binpack, [hole(1000), hole(1000)], ONE, (0, (0,)), id="number"),
        pytest.param(spread, [hole(0, 1000), hole(1000, 1000)], ONE, (1, (0,)), id="emptier"),
        pytest.param(spread, [hole(600, 1000)], HALF, (0, (1,)), id="looser device"),
        pytest.param(spread, [hole(1000), hole(1000)], ONE, (0, (0,)), id="number"),
        pytest.param(spread, [hole(600)], ONE, None, id="nowhere"),
    ],
)
def test_which_node_and_devices_a_pod_takes(policy, nodes, shape, place):
    popularity = Popularity({EIGHT: 1, ONE: 2, HALF: 1})
    rate = policy_of(policy.__name__, popularity, SCALE)
    assert best(rate, dict(enumerate(nodes)), shape) == place


def test_small_differences_of_the_gradient_are_a_tie_that_the_number_settles():
    popularity = Popularity({ONE: 1})
    shares = (500, 505, 700)  # what is left of the device is a fragment then
    pods = [Shape((1,), 1, share) for share in shares]
    merits = [fragmentation(popularity, hole(1000), pod).merit for pod in pods]
    assert merits[0] == merits[1] < merits[2]


@pytest.mark.parametrize(
    ("nodes", "number"),
    [
        pytest.param([hole(1000, 1000), hole(0, 1000)], 1, id="untouched last"),
        pytest.param([hole(1000), hole(1000, 1000)], 0, id="both untouched: the number"),
        pytest.param([hole(0, 1000, 1000), hole(0, 0, 1000)], 0, id="both in use: the number"),
        pytest.param([hole(500, 1000), hole(0, 1000)], 0, id="a part in use is use"),
        pytest.param([hole(), hole(cpu=4)], 1, id="no devices told apart: the fullest"),
    ],
)
def test_of_nodes_that_tie_the_untouched_go_last(nodes, number):
    rate = policy_of("fragmentation", Popularity({CPU_ONLY: 1}), SCALE)
    assert best(rate, dict(enumerate(nodes)), Shape((1,)))[0] == number


def test_a_fragment_less_outweighs_that_a_node_is_untouched():
    rate = policy_of("fragmentation", Popularity({TWO: 1}), SCALE)
    assert best(rate, {0: hole(0, 1000, 1000), 1: hole(1000)}, ONE) == (1, (0,))


def test_of_devices_with_one_gradient_the_tightest_is_taken():
    assert fragmentation(NOBODY, hole(1000, 600, 1000), HALF).devices == (1,)


def test_merits_of_the_gradient_have_so_many_steps():
    popularity = Popularity({EIGHT: 1})
    ends = [fragmentation(popularity, free, ONE).merit for free in (hole(*[1000] * 8), hole(1000))]
    assert 0 <= ends[0] < STEPS // 2 <= ends[1] < STEPS


@pytest.mark.parametrize(
    ("weights", "place"),
    [((1, 0), (0, (0,))), ((0, 1), (1, (1,))), ((), (1, (1,)))],
)
def test_weights_say_what_packing_looks_at(weights, place):
    empty = [Hole((8,), (1000,) * 2), Hole((16,), (1000,) * 2)]
    nodes = {0: Hole((4,), (1000, 1000)), 1: Hole((8,), (0, 1000))}
    rate = policy_of("binpack", NOBODY, scale_of(empty, weights))
    assert best(rate, nodes, ONE) == place


def test_the_scale_is_the_largest_node_and_devices_count_as_much_as_all_else():
    empty = [Hole((8, 64), (1000,) * 8), Hole((16, 32), ())]
    assert scale_of(empty) == Scale((16, 64, 8000), (1, 1, 2))
    assert scale_of([Hole((), (1000,))]) == Scale((1000,), (1,))
    assert spread(scale_of(empty), empty[1], Shape((0, 32))).merit == 25  # 16 of 16 CPU, no more
    assert spread(scale_of([hole()]), hole(), CPU_ONLY).merit == 25  # nobody has a device


def test_without_any_shape_to_come_every_node_is_as_good_as_the_other():
    assert (
        len({fragmentation(NOBODY, free, ONE).merit for free in (hole(1000), hole(1000, 1))}) == 1
    )


def test_an_unknown_policy_is_no_policy():
    with pytest.raises(KeyError):
        policy_of("random", NOBODY, SCALE)
