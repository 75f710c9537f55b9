"""Nominal quota by weight: laws that hold for every capacity, weight, ceiling and guarantee."""

from hypothesis import given
from hypothesis import strategies as st

from queues.manifests.weights import Claim, nominal_by_weight


@st.composite
def claims(draw) -> list[Claim]:
    found = []
    for name in "abcde"[: draw(st.integers(1, 5))]:
        guarantee = draw(st.sampled_from([0, 0, 0, 2, 5]))
        ceiling = draw(st.none() | st.integers(guarantee, 40))
        found.append(Claim(name, draw(st.integers(0, 9)), ceiling, guarantee))
    return found


@given(claims(), st.integers(0, 60))
def test_nobody_gets_less_than_its_guarantee_or_more_than_its_ceiling(queues, capacity):
    shares = nominal_by_weight(queues, capacity)
    for queue in queues:
        assert shares[queue.name] >= queue.guarantee
        assert queue.capability is None or shares[queue.name] <= queue.capability


@given(claims(), st.integers(0, 60))
def test_no_more_is_given_than_there_is_and_all_of_it_if_somebody_can_take_it(queues, capacity):
    shares = nominal_by_weight(queues, capacity)
    guaranteed = sum(queue.guarantee for queue in queues)
    assert sum(shares.values()) <= max(capacity, guaranteed)
    thirsty = [q for q in queues if q.weight and (q.capability is None)]
    if thirsty and guaranteed <= capacity:
        assert sum(shares.values()) == capacity


@given(claims(), st.integers(0, 60))
def test_of_two_alike_the_heavier_gets_no_less(queues, capacity):
    shares = nominal_by_weight(queues, capacity)
    for a in queues:
        for b in queues:
            alike = (a.capability, a.guarantee) == (b.capability, b.guarantee)
            if alike and a.weight > b.weight:
                assert shares[a.name] >= shares[b.name]


@given(claims(), st.integers(0, 60), st.randoms(use_true_random=False))
def test_the_order_of_the_queues_means_nothing(queues, capacity, random):
    shuffled = list(queues)
    random.shuffle(shuffled)
    assert nominal_by_weight(shuffled, capacity) == nominal_by_weight(queues, capacity)


@given(claims(), st.integers(0, 60))
def test_more_capacity_takes_at_most_a_unit_of_rounding_from_anybody(queues, capacity):
    fewer, more = (nominal_by_weight(queues, n) for n in (capacity, capacity + 1))
    assert all(more[name] >= fewer[name] - 1 for name in fewer)
