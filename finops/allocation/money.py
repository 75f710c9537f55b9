"""Exact numbers: rounding once, at the edge, and refusal of anything inexact."""

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from math import lcm

CENT = Decimal("0.01")
ZERO = Fraction(0)

HOURS_PLACES = 6  # quantities of a bill line
RATE_PLACES = 8  # prices as stored, NUMERIC(18,8)

Exact = Decimal | Fraction | int


def exact(value: Decimal) -> Fraction | int:
    """Return a decimal number as it is, whole where it is whole."""
    found = Fraction(value)
    return found.numerator if found.denominator == 1 else found


def exact_sum(values: Iterable[Fraction | int]) -> Fraction:
    """Return the sum of exact numbers; of none, zero.

    Over one common denominator: reducing after each of many additions is what would cost.
    """
    found = Sum()
    for value in values:
        found.add(value)
    return found.total


class Sum:
    """An exact sum of many numbers, kept by denominator until it is asked for."""

    __slots__ = ("_numerators",)

    def __init__(self) -> None:
        self._numerators: dict[int, int] = {}

    def add(self, value: Fraction | int) -> None:
        """Add a number."""
        by, numerators = value.denominator, self._numerators
        numerators[by] = numerators.get(by, 0) + value.numerator

    @property
    def total(self) -> Fraction:
        """What was added; nothing is zero."""
        common = lcm(*self._numerators)
        return Fraction(
            sum(part * (common // by) for by, part in self._numerators.items()), common
        )


class InvalidFieldError(ValueError):
    """A value that cannot be meant; ``field`` names it for the form or the API."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


def round_half_up(value: Exact, places: int = 2) -> Decimal:
    """Return ``value`` with ``places`` decimals, halves away from zero, never ``-0``.

    This is the rounding of single values (finops.md 4.8); sums are split by ``apportion``.
    """
    scaled = abs(Fraction(value)) * 10**places
    units = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
    return from_units(-units if value < 0 else units, places)


def from_units(units: int, places: int = 2) -> Decimal:
    """Return ``units`` of 10**-places, whatever the precision of the decimal context."""
    return Decimal(f"{units}E-{places}")


def to_cents(amount: Decimal) -> int:
    """Return ``amount`` in cents; ValueError if it is not finite or not whole cents."""
    if not amount.is_finite():
        raise ValueError(f"not an amount: {amount}")
    cents = Fraction(amount) * 100
    if cents.denominator != 1:
        raise ValueError(f"not whole cents: {amount}")
    return cents.numerator


def require_decimal(field: str, value: object) -> Decimal:
    """Return a finite Decimal that is not negative; a float is refused, not converted."""
    if isinstance(value, bool) or not isinstance(value, Decimal | int):
        raise InvalidFieldError(field, f"must be a decimal number, not {type(value).__name__}")
    number = Decimal(value)
    if not number.is_finite():
        raise InvalidFieldError(field, "must be a finite number")
    if number < 0:
        raise InvalidFieldError(field, "must not be negative")
    return number


def require_count(field: str, value: object) -> int:
    """Return a whole number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidFieldError(field, f"must be a whole number, not {type(value).__name__}")
    if value < 0:
        raise InvalidFieldError(field, "must not be negative")
    return value
