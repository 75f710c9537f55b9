"""Exact GPU-hours of intervals: no sampling, no rounding (finops.md 5)."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from zoneinfo import ZoneInfo

from finops.allocation.draft.facts import Period, Window

_MICROSECOND = timedelta(microseconds=1)
_MICROSECONDS_PER_HOUR = timedelta(hours=1) // _MICROSECOND


def hours_between(start: datetime, end: datetime) -> Fraction:
    """Return the hours from ``start`` to ``end`` as they really passed, whatever the zones."""
    elapsed = end.astimezone(UTC) - start.astimezone(UTC)
    return Fraction(elapsed // _MICROSECOND, _MICROSECONDS_PER_HOUR)


def clip(start: datetime, end: datetime | None, window: Window) -> Window | None:
    """Return the part of ``[start, end)`` inside ``window``, None if there is none."""
    first = max(start, window.start)
    last = window.end if end is None else min(end, window.end)
    return Window(first, last) if first < last else None


def gpu_hours(gpus: int, start: datetime, end: datetime | None, window: Window) -> Fraction:
    """Return the GPU-hours of ``gpus`` held in ``[start, end)``, clipped to ``window``."""
    part = clip(start, end, window)
    return gpus * hours_between(part.start, part.end) if part else Fraction(0)


def gpu_hours_by_day(
    gpus: int, start: datetime, end: datetime | None, period: Period
) -> dict[date, Fraction]:
    """Return GPU-hours by local day of the period; days without any are absent."""
    part = clip(start, end, period.window)
    if part is None:
        return {}
    return {
        day: gpus * hours_between(piece.start, piece.end)
        for day, piece in cut_by_day(part, period.time_zone)
    }


def cut_by_day(window: Window, time_zone: str) -> Iterator[tuple[date, Window]]:
    """Cut ``window`` at the local midnights of ``time_zone``; a day has 23, 24 or 25 hours."""
    day = window.start.astimezone(ZoneInfo(time_zone)).date()
    start = window.start
    while start < window.end:
        end = min(_midnight(day + timedelta(days=1), time_zone), window.end)
        if start < end:  # a zone that jumps over a day leaves an empty one (Samoa, 2011)
            yield day, Window(start, end)
        start = end
        day += timedelta(days=1)


@lru_cache(maxsize=4096)
def _midnight(day: date, time_zone: str) -> datetime:
    """Return the instant a local day begins, in UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(time_zone)).astimezone(UTC)
