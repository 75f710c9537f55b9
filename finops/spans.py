"""Windows as people and OpenCost write them: words, durations, pairs of instants. Pure.

Days are local days of the billing time zone, so that ``lastmonth`` is what a bill covers; a window
that has not ended yet ends now. Source of the grammar: finops.md 1.3.
"""

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from finops.sources.windows import Window
from gpuplatform.common.periods import is_day

WORDS = ("today", "yesterday", "week", "lastweek", "month", "lastmonth")
LONGEST = timedelta(days=400)
_DURATION = re.compile(r"([1-9]\d{0,4})([mhdw])", re.ASCII)
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1)}


class BadSpanError(ValueError):
    """A text that is no window, and why."""


def span_of(text: str, now: datetime, time_zone: str) -> Window:
    """Return the window that ``text`` means at ``now``, up to now.

    ``today`` ... ``lastmonth``; ``45m``, ``24h``, ``7d`` (six days and today), ``2w``; a month
    like ``2026-06``; or two RFC 3339 instants with a comma.

    Raises:
        BadSpanError: no window, an empty one, one that has not begun, or one of over 400 days.
    """
    zone = ZoneInfo(time_zone)
    try:
        start, end = _bounds(text.strip(), now, zone)
    except (ValueError, OverflowError) as error:
        raise BadSpanError(f"{text[:60]!r} is not a window") from error
    if start >= now:
        raise BadSpanError("the window has not begun")
    end = min(end, now)
    if start >= end:
        raise BadSpanError("the window ends before it began")
    if end - start > LONGEST:
        raise BadSpanError(f"the window is longer than {LONGEST.days} days")
    return Window(start.astimezone(UTC), end.astimezone(UTC))


def _bounds(text: str, now: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    today = now.astimezone(zone).date()
    if text in WORDS:
        first, last = _days_of(text, today)
        return _midnight(first, zone), _midnight(last, zone)
    if "," in text:
        first_text, last_text = text.split(",", 1)
        return _instant(first_text), _instant(last_text)
    if re.fullmatch(r"[12]\d{3}-(0[1-9]|1[0-2])", text, re.ASCII):
        first = date.fromisoformat(f"{text}-01")
        return _midnight(first, zone), _midnight(_month_after(first), zone)
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(text)
    number, unit = int(match[1]), match[2]
    if unit in _UNITS:
        return now - number * _UNITS[unit], now
    days = number * (7 if unit == "w" else 1)
    return _midnight(today - timedelta(days=days - 1), zone), _midnight(_next(today), zone)


def _days_of(word: str, today: date) -> tuple[date, date]:
    """Return the first day of a word, and the day after its last."""
    sunday = today - timedelta(days=(today.weekday() + 1) % 7)  # OpenCost's weeks begin then
    first = today.replace(day=1)
    return {
        "today": (today, _next(today)),
        "yesterday": (today - timedelta(days=1), today),
        "week": (sunday, _next(today)),
        "lastweek": (sunday - timedelta(days=7), sunday),
        "month": (first, _next(today)),
        "lastmonth": ((first - timedelta(days=1)).replace(day=1), first),
    }[word]


def _next(day: date) -> date:
    return day + timedelta(days=1)


def _month_after(first: date) -> date:
    return (first + timedelta(days=32)).replace(day=1)


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone)


def _instant(text: str) -> datetime:
    found = datetime.fromisoformat(text.strip())
    if found.tzinfo is None or not is_day(found):
        raise ValueError(text)
    return found
