"""Days of a time zone as half-open windows of instants, and parts of them. Pure.

A day runs from local midnight to the next, so it has 23 or 25 hours where the clock changes
(finops.md 4.7). Other systems are asked for instants in UTC, never for words like "yesterday".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

SLICE = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class Window:
    """``[start, end)``, both in UTC."""

    start: datetime
    end: datetime

    @property
    def length(self) -> timedelta:
        """How long it is."""
        return self.end - self.start

    def slices(self, length: timedelta = SLICE) -> Iterator["Window"]:
        """Yield it in parts of ``length``, the last one shorter where it does not divide."""
        start = self.start
        while start < self.end:
            end = min(start + length, self.end)
            yield Window(start, end)
            start = end


def day_window(day: date, time_zone: str = "UTC") -> Window:
    """Return the window of a local day."""
    return Window(_midnight(day, time_zone), _midnight(day + timedelta(days=1), time_zone))


def local_day(window: Window, time_zone: str = "UTC") -> date:
    """Return the local day that a window begins in."""
    return window.start.astimezone(ZoneInfo(time_zone)).date()


def last_whole_day(now: datetime, time_zone: str = "UTC") -> date:
    """Return the last local day that is over."""
    return now.astimezone(ZoneInfo(time_zone)).date() - timedelta(days=1)


def zulu(instant: datetime) -> str:
    """Return an instant as every OpenCost reads it: ``2026-06-01T00:00:00Z``."""
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _midnight(day: date, time_zone: str) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(time_zone)).astimezone(UTC)
