"""Months in the billing time zone as half-open windows of instants. Pure.

A month runs from local midnight of its first day to local midnight of the next month's, both
as UTC instants: with summer time it has 743 or 745 hours, and that is what is billed.
Days near the ends of the calendar are taken by no door (:func:`is_day`).
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

FIRST, LAST = date(1900, 1, 1), date(9998, 12, 31)
_NAME = re.compile(r"(?P<year>[12]\d{3})-(?P<month>0[1-9]|1[0-2])", re.ASCII)


@dataclass(frozen=True, slots=True)
class Month:
    """A calendar month of a time zone: ``[starts_at, ends_at)``, both in UTC."""

    name: str  # "2026-06"
    time_zone: str
    starts_at: datetime
    ends_at: datetime

    @property
    def first_day(self) -> date:
        """Return the first local day."""
        return self.starts_at.astimezone(ZoneInfo(self.time_zone)).date()

    @property
    def last_day(self) -> date:
        """Return the last local day that belongs to the month."""
        return self.ends_at.astimezone(ZoneInfo(self.time_zone)).date() - timedelta(days=1)

    @property
    def hours(self) -> int:
        """Return how many hours really pass in it."""
        return (self.ends_at - self.starts_at) // timedelta(hours=1)


def is_day(value: date) -> bool:
    """Return whether a day, or the day of an instant, is one that doors take.

    It is so far from the ends of the calendar that days can be counted on from it, and that any
    time zone can be told of it.
    """
    return FIRST <= (value.date() if isinstance(value, datetime) else value) <= LAST


def month(name: str, time_zone: str = "UTC") -> Month:
    """Return the month called ``name`` (``"2026-06"``).

    Raises:
        ValueError: not the name of a month.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name[:20]!r} is not a month like 2026-06")
    year, number = int(match["year"]), int(match["month"])
    return Month(
        name,
        time_zone,
        _midnight(year, number, time_zone),
        _midnight(year + number // 12, number % 12 + 1, time_zone),
    )


def month_at(instant: datetime, time_zone: str = "UTC") -> Month:
    """Return the month that ``instant`` falls in, seen from ``time_zone``."""
    return month(f"{instant.astimezone(ZoneInfo(time_zone)):%Y-%m}", time_zone)


def month_before(later: Month) -> Month:
    """Return the month that ends where ``later`` begins."""
    return month_at(later.starts_at - timedelta(microseconds=1), later.time_zone)


def months_between(start: datetime, end: datetime, time_zone: str = "UTC") -> list[Month]:
    """Return every month that has a part in ``[start, end)``, in order."""
    found = []
    current = month_at(start, time_zone)
    while current.starts_at < end:
        found.append(current)
        current = month_at(current.ends_at, time_zone)
    return found


def _midnight(year: int, number: int, time_zone: str) -> datetime:
    return datetime(year, number, 1, tzinfo=ZoneInfo(time_zone)).astimezone(UTC)
