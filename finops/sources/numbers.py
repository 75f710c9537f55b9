"""Numbers of other systems as exact decimals that our columns can hold. Pure."""

from decimal import ROUND_HALF_UP, Decimal

from finops.sources.failures import SourceError

HOURS = Decimal("0.000001")
COST = Decimal("0.00000001")
HIGHEST = Decimal(10) ** 11  # nothing that is measured in a day comes near it
GIB = 2**30
ZERO = Decimal(0)


def hours(number: Decimal) -> Decimal:
    """Return hours with six decimals."""
    return _placed(number, HOURS)


def cost(number: Decimal) -> Decimal:
    """Return an amount of money with eight decimals, of either sign."""
    return _placed(number, COST)


def gib(number: Decimal) -> Decimal:
    """Return byte-hours as GiB-hours."""
    return _placed(number / GIB, HOURS)


def _placed(number: Decimal, places: Decimal) -> Decimal:
    if not number.is_finite() or abs(number) >= HIGHEST:
        raise SourceError("SOURCE_WRONG_SHAPE", problem=f"{str(number)[:40]} is no usable number")
    return number.quantize(places, ROUND_HALF_UP)
