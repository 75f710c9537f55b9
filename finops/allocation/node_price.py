"""What a GPU-hour of a node should cost, and a token on it (decisions.md 6).

A calculator beside the declared price: it bills nothing. Every number is rounded once, half
up, from exact fractions.
"""

from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction

from finops.allocation.money import (
    InvalidFieldError,
    require_count,
    require_decimal,
    round_half_up,
)

HOURS_PER_YEAR = 8760
SHOWN_PLACES = 4


@dataclass(frozen=True, slots=True)
class NodeCost:
    """What a node costs to own and run. Amounts are in one currency.

    ``availability`` raises the price of an hour: billing all hours of a month then recovers
    more than the purchase (finops.md 2.9.6).
    """

    purchase_price: Decimal  # once, for the node
    years: Decimal  # time over which it is written off
    availability: Decimal  # part of that time it can be sold, above 0, at most 1
    gpus: int
    watts_per_gpu: Decimal  # under load, taken for every hour
    pue: Decimal  # power usage effectiveness of the site, at least 1
    kwh_price: Decimal
    operations_per_hour: Decimal  # people, space, licences, for the node

    def __post_init__(self) -> None:
        require_count("gpus", self.gpus)
        for field in fields(self):
            require_decimal(field.name, getattr(self, field.name))
        for name in ("years", "availability", "gpus"):
            if not getattr(self, name):
                raise InvalidFieldError(name, "must be above 0")
        if self.availability > 1:
            raise InvalidFieldError("availability", "must be at most 1 (0.9 is 90 %)")
        if self.pue < 1:
            raise InvalidFieldError("pue", "must be at least 1")


@dataclass(frozen=True, slots=True)
class NodePrice:
    """Cost of a node per hour by part, and per GPU-hour, beside the declared price."""

    capex_per_hour: Decimal
    energy_per_hour: Decimal
    operations_per_hour: Decimal
    node_per_hour: Decimal
    gpu_hour: Decimal
    declared_gpu_hour: Decimal | None
    declared_minus_calculated: Decimal | None


def node_price(
    cost: NodeCost, declared_gpu_hour: Decimal | None = None, places: int = SHOWN_PLACES
) -> NodePrice:
    """Return the price of a node's hour, each figure with ``places`` decimals."""
    sold_hours = Fraction(cost.years) * HOURS_PER_YEAR * Fraction(cost.availability)
    capex = Fraction(cost.purchase_price) / sold_hours
    kilowatts = cost.gpus * Fraction(cost.watts_per_gpu) * Fraction(cost.pue) / 1000
    energy = kilowatts * Fraction(cost.kwh_price)
    operations = Fraction(cost.operations_per_hour)
    node = capex + energy + operations
    declared = (
        None
        if declared_gpu_hour is None
        else require_decimal("declared_gpu_hour", declared_gpu_hour)
    )
    return NodePrice(
        capex_per_hour=round_half_up(capex, places),
        energy_per_hour=round_half_up(energy, places),
        operations_per_hour=round_half_up(operations, places),
        node_per_hour=round_half_up(node, places),
        gpu_hour=round_half_up(node / cost.gpus, places),
        declared_gpu_hour=declared,
        declared_minus_calculated=(
            None
            if declared is None
            else round_half_up(Fraction(declared) - node / cost.gpus, places)
        ),
    )


def token_price(
    node_per_hour: Decimal, tokens_per_second: Decimal | int, places: int = SHOWN_PLACES
) -> Decimal:
    """Return the price of a million tokens on a node that is busy all the time.

    Real cost is higher by the part of the time it is not (finops.md 2.9.4).
    """
    hourly = Fraction(require_decimal("node_per_hour", node_per_hour))
    rate = Fraction(require_decimal("tokens_per_second", tokens_per_second))
    if not rate:
        raise InvalidFieldError("tokens_per_second", "must be above 0")
    return round_half_up(hourly * 1_000_000 / (rate * 3600), places)
