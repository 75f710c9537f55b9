"""What holds for every policy and every cluster, whatever its nodes and the pods that come."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.engine.scoring import board as board_module
from scheduling.engine.scoring import popularity as popularity_module
from scheduling.engine.scoring.board import Board
from scheduling.engine.scoring.holes import Hole, Shape, after, fits
from scheduling.engine.scoring.policies import Scale, policy_of
from scheduling.engine.scoring.popularity import Popularity

SCALE = Scale((9, 9, 4000), (1, 1, 2))
LAWS = settings(max_examples=40, deadline=None)
POLICIES = ("fragmentation", "binpack", "spread")

devices_st = st.lists(st.sampled_from([0, 200, 500, 700, 1000]), max_size=4).map(tuple)
kinds_st = st.frozensets(st.sampled_from("ab"), max_size=2)


@st.composite
def holes_st(draw):
    free = draw(st.integers(0, 9)), draw(st.integers(0, 9))
    return Hole(free, draw(devices_st), draw(st.sampled_from("ab")))


@st.composite
def shapes_st(draw):
    amounts, devices = (draw(st.integers(0, 4)), draw(st.integers(0, 4))), draw(st.integers(0, 3))
    share = draw(st.sampled_from([200, 500, 1000])) if devices == 1 else 1000
    return Shape(amounts, devices, share, draw(kinds_st))


weights_st = st.dictionaries(shapes_st(), st.integers(0, 5), max_size=5)
nodes_st = st.lists(holes_st(), max_size=6).map(lambda holes: dict(enumerate(holes)))
policy_st = st.sampled_from(POLICIES)


def fragment(weights, hole) -> Fraction:
    """The definition, word by word: `placement.md` 4.1."""
    total, idle = Fraction(0), sum(hole.devices)
    for shape, weight in weights.items():
        of_use = sum(free for free in hole.devices if free >= shape.share)
        total += weight * (idle - of_use if shape.devices and fits(hole, shape) else idle)
    return total


def scan(nodes, rate, shape):
    """Look at every node: largest merit, then lowest number."""
    seats = {number: rate(hole, shape) for number, hole in nodes.items() if fits(hole, shape)}
    best = min(seats, key=lambda number: (-seats[number].merit, number), default=None)
    return None if best is None else (best, seats[best].devices)


@LAWS
@given(weights_st, holes_st())
def test_a_fragment_is_what_the_definition_says(weights, hole):
    assert Popularity(weights).fragment(hole) == fragment(weights, hole)


@LAWS
@given(weights_st, holes_st(), st.randoms(use_true_random=False))
def test_the_order_of_devices_and_shapes_changes_no_fragment(weights, hole, chance):
    devices, shapes = list(hole.devices), list(weights.items())
    chance.shuffle(devices)
    chance.shuffle(shapes)
    other = Popularity(dict(shapes)).fragment(hole._replace(devices=tuple(devices)))
    assert Popularity(weights).fragment(hole) == other


@LAWS
@given(weights_st, nodes_st, st.lists(shapes_st(), max_size=8), st.integers(2, 5))
def test_twice_as_many_of_each_shape_is_the_same_popularity(weights, nodes, pods, times):
    more = {shape: weight * times for shape, weight in weights.items()}
    rates = [policy_of("fragmentation", Popularity(one), SCALE) for one in (weights, more)]
    for pod in pods:
        assert scan(nodes, rates[0], pod) == scan(nodes, rates[1], pod)


@LAWS
@given(nodes_st, shapes_st())
def test_without_popularity_the_fullest_node_that_fits_is_taken(nodes, pod):
    boards = [
        Board(nodes, policy_of(p, Popularity({}), SCALE)) for p in ("fragmentation", "binpack")
    ]
    places = [board.best(pod) for board in boards]
    assert places[0] == places[1]


@pytest.mark.parametrize("policy", POLICIES)
@LAWS
@given(weights=weights_st, nodes=nodes_st, pods=st.lists(shapes_st(), max_size=8))
def test_the_kept_order_is_that_of_looking_at_every_node(policy, weights, nodes, pods):
    compare_with_a_scan(policy, weights, nodes, pods)


@pytest.mark.long
@settings(max_examples=3000, deadline=None)
@given(policy=policy_st, weights=weights_st, nodes=nodes_st, pods=st.lists(shapes_st()))
def test_the_kept_order_is_that_of_looking_at_every_node_at_full_size(
    policy, weights, nodes, pods
):
    compare_with_a_scan(policy, weights, nodes, pods)


@LAWS
@given(
    policy=policy_st, weights=weights_st, nodes=nodes_st, pods=st.lists(shapes_st(), max_size=8)
)
def test_what_is_forgotten_is_worked_out_again(policy, weights, nodes, pods):
    with pytest.MonkeyPatch.context() as patch:
        for module in (board_module, popularity_module):
            patch.setattr(module, "REMEMBERED", 1)
        compare_with_a_scan(policy, weights, nodes, pods)


def compare_with_a_scan(policy, weights, nodes, pods):
    rate = policy_of(policy, Popularity(weights), SCALE)
    board, standing = Board(nodes, rate), []
    for pod in (*pods, *pods):
        place = board.best(pod)
        assert place == scan(dict(board.holes()), rate, pod)
        if place:
            board.take(place, pod)
            standing.append((place, pod))
        elif standing:
            board.give(*standing.pop(0))


@LAWS
@given(policy_st, weights_st, nodes_st, st.lists(shapes_st(), max_size=8))
def test_the_order_in_which_numbered_nodes_are_named_changes_nothing(policy, weights, nodes, pods):
    turned = dict(reversed(nodes.items()))
    boards = [Board(one, policy_of(policy, Popularity(weights), SCALE)) for one in (nodes, turned)]
    for pod in pods:
        places = [board.best(pod) for board in boards]
        assert places[0] == places[1]
        for board, place in zip(boards, places, strict=True):
            if place:
                board.take(place, pod)


@LAWS
@given(policy_st, weights_st, nodes_st, st.lists(shapes_st(), max_size=8))
def test_nothing_is_overcommitted_and_what_leaves_leaves_nothing_behind(
    policy, weights, nodes, pods
):
    board, standing = Board(nodes, policy_of(policy, Popularity(weights), SCALE)), []
    for pod in pods:
        place = board.best(pod)
        if place:
            before = board.hole(place.number)
            assert len(set(place.devices)) == pod.devices
            assert all(before.devices[device] >= pod.share for device in place.devices)
            board.take(place, pod)
            assert board.hole(place.number) == after(before, pod, place.devices)
            assert min((*board.hole(place.number).amounts, *board.hole(place.number).devices)) >= 0
            standing.append((place, pod))
    for place, pod in standing:
        board.give(place, pod)
    assert dict(board.holes()) == nodes


@LAWS
@given(weights_st, nodes_st, shapes_st())
def test_asking_again_looks_at_nothing_again(weights, nodes, pod):
    board = Board(nodes, policy_of("fragmentation", Popularity(weights), SCALE))
    first = board.best(pod)
    looked = board.work["looked"]
    assert board.best(pod) == first
    assert board.work["looked"] == looked == len(nodes)
