from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finops.allocation.apportion import apportion, split_cents, split_in_order, split_tree
from finops.allocation.money import CENT, round_half_up

GPU_HOURS = {"datos": Decimal(1080), "ia": Decimal(432), "plataforma": Decimal(252)}


def cents(**parts: str) -> dict[str, Decimal]:
    return {key: Decimal(part) for key, part in parts.items()}


@pytest.mark.parametrize(
    ("total", "weights", "parts"),
    [
        pytest.param(
            "1562.40",
            GPU_HOURS,
            cents(datos="956.57", ia="382.63", plataforma="223.20"),
            id="the articles' idle: the spare cent goes to the largest fraction",
        ),
        pytest.param(
            "-1562.40",
            GPU_HOURS,
            cents(datos="-956.57", ia="-382.63", plataforma="-223.20"),
            id="a credit is split like the debt it takes back",
        ),
        pytest.param(
            "0.01", {"b": 1, "a": 1}, cents(b="0.00", a="0.01"), id="equal weights: key ascending"
        ),
        pytest.param(
            "0.02",
            {"a": 1, "b": 3},
            cents(a="0.00", b="0.02"),
            id="equal fractions: the larger weight goes first",
        ),
        pytest.param("0.00", {"a": 0}, cents(a="0.00"), id="nothing among nobody"),
    ],
)
def test_the_missing_cents_go_by_largest_remainder(total, weights, parts) -> None:
    assert apportion(Decimal(total), weights) == parts


@pytest.mark.parametrize(
    ("total", "weights", "message"),
    [
        ("1.00", {"datos": 0}, "nothing to split"),
        ("1.00", {}, "nothing to split"),
        ("1.005", {"datos": 1}, "not whole cents"),
        ("NaN", {"datos": 1}, "not an amount"),
        ("1.00", {"datos": 2, "ia": -1}, "must not be negative"),
    ],
)
def test_what_cannot_be_split_is_an_error(total, weights, message) -> None:
    with pytest.raises(ValueError, match=message):
        apportion(Decimal(total), weights)


def test_a_node_of_the_tree_is_rounded_as_the_format_says() -> None:
    exact = {"a": Fraction("3.335"), "b": Fraction("3.335"), "c": Fraction("3.33")}

    assert split_cents(Decimal("10.00"), exact) == cents(a="3.34", b="3.33", c="3.33")


def test_a_sum_that_is_not_the_sum_is_refused() -> None:
    with pytest.raises(ValueError, match="not the sum"):
        split_cents(Decimal("10.02"), {"a": Fraction(10)})


money_st = st.integers(-(10**9), 10**9).map(lambda number: number * CENT)
weights_st = st.dictionaries(
    st.text("abc", min_size=1), st.decimals(0, 10**6, places=3), min_size=1
).filter(lambda weights: any(weights.values()))
amounts_st = st.fractions(-1000, 1000, max_denominator=700)


@settings(max_examples=100)
@given(total=money_st, weights=weights_st)
def test_every_cent_is_billed_once(total, weights) -> None:
    parts = apportion(total, weights)

    assert sum(parts.values()) == total
    for key, part in parts.items():
        exact = Fraction(total) * Fraction(weights[key]) / Fraction(sum(weights.values()))
        assert abs(Fraction(part) - exact) < CENT
    assert apportion(total, dict(reversed(weights.items()))) == parts


@settings(max_examples=100)
@given(
    leaves=st.dictionaries(
        st.tuples(st.sampled_from("xy"), st.sampled_from("ab"), st.sampled_from("12")),
        amounts_st,
        min_size=1,
    )
)
def test_every_node_of_a_tree_is_its_exact_amount_rounded_down_or_up(leaves) -> None:
    total = round_half_up(sum(leaves.values(), Fraction(0)))
    parts = split_tree(total, leaves)

    assert sum(parts.values()) == total
    for depth in range(4):
        for prefix in {path[:depth] for path in leaves}:
            below = [path for path in leaves if path[:depth] == prefix]
            exact = sum(leaves[path] for path in below)
            assert abs(Fraction(sum(parts[path] for path in below)) - exact) < CENT


@pytest.mark.parametrize(
    ("value", "places", "shown"),
    [
        (Fraction(1, 200), 2, "0.01"),
        (Fraction(-1, 200), 2, "-0.01"),
        (Fraction(-1, 300), 2, "0.00"),
        (Decimal("1.40"), 8, "1.40000000"),
        (10**40, 2, f"{10**40}.00"),
    ],
)
def test_single_values_round_half_away_from_zero(value, places, shown) -> None:
    assert str(round_half_up(value, places)) == shown


@given(st.lists(st.fractions(0, 1000, max_denominator=9999), min_size=1, max_size=40))
def test_what_comes_later_moves_no_part_but_the_last(amounts: list[Fraction]) -> None:
    known: dict[int, Decimal] = {}
    for count in range(1, len(amounts) + 1):
        exact = dict(enumerate(amounts[:count]))
        total = round_half_up(sum(exact.values(), Fraction(0)))
        found = split_in_order(total, exact)
        assert sum(found.values()) == total
        off = [abs(Fraction(part) - exact[key]) for key, part in found.items()]
        assert min(found.values()) >= 0
        assert max(off) < 2 * Fraction(CENT)
        settled = {key: found[key] for key in range(count - 1)}
        assert settled == {key: known.setdefault(key, part) for key, part in settled.items()}
