"""How one field of the facts is read: the table "field alone" of FORMAT.md 1.

A reader takes a JSON value that is not null and returns what it means, or raises ``BadField``
with the codes of what is wrong. A fraction is never a float: JSON numbers with a fraction or
an exponent arrive as one, and are refused.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from fractions import Fraction
from typing import Any, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from finops.allocation.facts import Instant, Number, instant

LONGEST_NUMBER = 60  # digits; no amount, quantity or price comes near

Reader = Callable[[object], Any]

_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]"
_INSTANT = re.compile(
    rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T{_CLOCK}:[0-5][0-9](\.[0-9]{{1,6}})?(Z|[+-]{_CLOCK})"
)
_FRACTION = re.compile(r"\.([0-9]+)")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class BadField(ValueError):
    """A value that cannot be meant; ``codes`` say why."""

    def __init__(self, *codes: str) -> None:
        super().__init__(", ".join(codes))
        self.codes = codes


def text(value: object) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str):
        raise BadField("bad_type")
    if not value:
        raise BadField("empty")
    return value


def text_or_empty(value: object) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise BadField("bad_type")
    return value


def flag(value: object) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise BadField("bad_type")
    return value


def signed_number(value: object) -> Number:
    """Return the exact number of a decimal string or a JSON integer."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise BadField("bad_number")
    if isinstance(value, int):
        if value.bit_length() > LONGEST_NUMBER * 4:
            raise BadField("bad_number")
        return value
    if len(value) > LONGEST_NUMBER or not _DECIMAL.fullmatch(value):
        raise BadField("bad_number")
    exact = Fraction(value)
    return exact.numerator if exact.denominator == 1 else exact


def number(value: object) -> Number:
    """Return an exact number that is not negative."""
    found = signed_number(value)
    if found < 0:
        raise BadField("negative")
    return found


def count(value: object) -> int:
    """Return a JSON integer that is not negative."""
    if isinstance(value, str):
        raise BadField("bad_number")
    found = number(value)
    assert isinstance(found, int)
    return found


def at(value: object) -> Instant:
    """Return an RFC 3339 instant with seconds and a zone."""
    if not isinstance(value, str) or not _INSTANT.fullmatch(value):
        raise BadField("bad_time")
    six_digits = _FRACTION.sub(lambda found: f".{found[1]:0<6}", value)
    try:
        return instant(datetime.fromisoformat(six_digits))
    except (ValueError, OverflowError) as error:
        raise BadField("bad_time") from error


def day(value: object) -> Instant:
    """Return 00:00Z of a date."""
    if not isinstance(value, str) or not _DAY.fullmatch(value):
        raise BadField("bad_time")
    try:
        date.fromisoformat(value)
    except ValueError as error:
        raise BadField("bad_time") from error
    return at(f"{value}T00:00:00Z")


def time_zone(value: object) -> str:
    """Return the name of a zone that is known here."""
    name = text(value)
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadField("unknown_time_zone") from error
    return name


def choice(literal: Any) -> Reader:
    """Return a reader of the words of ``literal``."""
    words = get_args(literal)

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise BadField("bad_choice")
        return value

    return read


def texts(value: object) -> dict[str, str]:
    """Return a map of texts; a label may be empty."""
    if not isinstance(value, dict):
        raise BadField("bad_type")
    if not all(isinstance(entry, str) for entry in value.values()):
        raise BadField("bad_type")
    return value


def tags(value: object) -> tuple[str, ...]:
    """Return a list of texts."""
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise BadField("bad_type")
    return tuple(value)


def percentages(value: object) -> Mapping[str, Number]:
    """Return a map of numbers that are not negative; every wrong entry is named at the map."""
    if not isinstance(value, dict):
        raise BadField("bad_type")
    codes: set[str] = set()
    parts: dict[str, Number] = {}
    for team, part in value.items():
        try:
            parts[team] = number(part)
        except BadField as error:
            codes.update(error.codes)
    if codes:
        raise BadField(*sorted(codes))
    return parts
