from dataclasses import replace
from decimal import Decimal

import pytest

from finops.allocation.money import InvalidFieldError
from finops.allocation.node_price import NodeCost, NodePrice, node_price, token_price

ARTICLES_NODE = NodeCost(
    purchase_price=Decimal(140_000),
    years=Decimal(4),
    availability=Decimal("0.9"),
    gpus=4,
    watts_per_gpu=Decimal(700),
    pue=Decimal("1.4"),
    kwh_price=Decimal("0.12"),
    operations_per_hour=Decimal("0.70"),
)


def test_the_articles_node_costs_5_61_an_hour_and_not_5_60() -> None:
    assert node_price(ARTICLES_NODE, Decimal("1.40")) == NodePrice(
        capex_per_hour=Decimal("4.4394"),
        energy_per_hour=Decimal("0.4704"),
        operations_per_hour=Decimal("0.7000"),
        node_per_hour=Decimal("5.6098"),
        gpu_hour=Decimal("1.4024"),
        declared_gpu_hour=Decimal("1.40"),
        declared_minus_calculated=Decimal("-0.0024"),
    )


def test_without_a_declared_price_there_is_nothing_to_compare() -> None:
    price = node_price(ARTICLES_NODE, places=8)

    assert (price.declared_gpu_hour, price.declared_minus_calculated) == (None, None)
    assert price.gpu_hour == Decimal("1.40244272")


def test_a_million_tokens() -> None:
    assert token_price(Decimal("5.60"), 2000) == Decimal("0.7778")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("years", Decimal(0)),
        ("gpus", 0),
        ("gpus", Decimal("1.5")),
        ("availability", Decimal(0)),
        ("availability", Decimal(90)),
        ("pue", Decimal("0.9")),
        ("purchase_price", Decimal(-1)),
        ("kwh_price", Decimal("NaN")),
        ("watts_per_gpu", 0.7),
        ("operations_per_hour", None),
    ],
)
def test_a_node_that_cannot_be_is_refused_by_field(field, value) -> None:
    with pytest.raises(ValueError, match=f"^{field}: ") as refusal:
        replace(ARTICLES_NODE, **{field: value})
    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("node_per_hour", "tokens_per_second", "field"),
    [(Decimal("5.60"), 0, "tokens_per_second"), (Decimal(-1), 1, "node_per_hour")],
)
def test_a_token_price_needs_tokens(node_per_hour, tokens_per_second, field) -> None:
    with pytest.raises(InvalidFieldError, match=field):
        token_price(node_per_hour, tokens_per_second)


def test_a_declared_price_must_be_a_price() -> None:
    with pytest.raises(InvalidFieldError, match="declared_gpu_hour"):
        node_price(ARTICLES_NODE, Decimal(-1))
