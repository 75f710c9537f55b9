"""What holds for every policy and every cluster, whatever its nodes and the pods that come."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.engine.scoring import popularity as popularity_module
from scheduling.engine.scoring.holes import Hole, Shape, after, fits, fitting, tightest
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
policy_st = st.sampled_from(POLICIES)


def fragment(weights, hole) -> Fraction:
    """The definition, word by word: `placement.md` 4.1."""
    total, idle = Fraction(0), sum(hole.devices)
    for shape, weight in weights.items():
        of_use = sum(free for free in hole.devices if free >= shape.share)
        total += weight * (idle - of_use if shape.devices and fits(hole, shape) else idle)
    return total


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
@given(weights_st, holes_st(), shapes_st(), st.integers(2, 5))
def test_twice_as_many_of_each_shape_is_the_same_popularity(weights, hole, pod, times):
    more = {shape: weight * times for shape, weight in weights.items()}
    rates = [policy_of("fragmentation", Popularity(one), SCALE) for one in (weights, more)]
    if fits(hole, pod):
        assert rates[0](hole, pod) == rates[1](hole, pod)


@LAWS
@given(holes_st(), holes_st(), shapes_st())
def test_without_popularity_the_fullest_node_that_fits_is_best(one, other, pod):
    if not (fits(one, pod) and fits(other, pod)):
        return
    rates = [policy_of(p, Popularity({}), SCALE) for p in ("fragmentation", "binpack")]
    gaps = [rate(one, pod).merit - rate(other, pod).merit for rate in rates]
    assert gaps[0] == gaps[1]


@LAWS
@given(policy_st, weights_st, holes_st(), shapes_st())
def test_seats_are_free_devices_and_nothing_is_overcommitted(policy, weights, hole, pod):
    if not fits(hole, pod):
        return
    seat = policy_of(policy, Popularity(weights), SCALE)(hole, pod)
    assert len(set(seat.devices)) == pod.devices
    left = after(hole, pod, seat.devices)
    assert min((*left.amounts, *left.devices)) >= 0
    assert after(left, pod, seat.devices, -1) == hole


@LAWS
@given(weights_st, holes_st())
def test_fragments_that_are_forgotten_are_worked_out_again(weights, hole):
    kept = Popularity(weights).fragment(hole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(popularity_module, "REMEMBERED", 1)
        popularity = Popularity(weights)
        popularity.fragment(hole._replace(kind="z"))
        assert popularity.fragment(hole) == kept


@LAWS
@given(holes_st(), shapes_st())
def test_so_many_fit_as_can_be_put_there_one_by_one(hole, pod):
    if not any(pod.amounts) and not pod.devices:
        return
    left, pods = hole, 0
    while fits(left, pod):
        left, pods = after(left, pod, tightest(left, pod)), pods + 1
    assert fitting(hole, pod) == pods
