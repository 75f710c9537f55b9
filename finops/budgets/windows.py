r"""Windows of budgets by LiteLLM's duration grammar (finops.md 3.3). Pure.

``(\d+)(s|m|h|d|w|mo)`` and the words hourly, daily, weekly, monthly. ``1m`` is one *minute*. 7d
and 1w begin on Monday; ``30d``, ``monthly`` and ``1mo`` are calendar months; a day is a local one.
Seconds, minutes and hours are aligned to multiples from local midnight, the last of a day ends
with it. Other days and weeks follow each other from the budget's first day. LiteLLM counts those
from the day of its last reset, which nobody can tell afterwards.
"""

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from finops.sources.windows import Window

WORDS = {"hourly": "1h", "daily": "24h", "weekly": "7d", "monthly": "30d"}
_GRAMMAR = re.compile(r"(\d{1,6})(s|mo|m|hr|h|d|w)", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600}
DAY_S, WEEK_DAYS, MONTH_DAYS, LONGEST_DAYS = 86_400, 7, 30, 400


class BadDurationError(ValueError):
    """A text that is no duration of a budget, and why."""


def window_at(duration: str, now: datetime, time_zone: str, first_day: date) -> Window:
    """Return the window of a budget that ``now`` falls in, as instants in UTC.

    Raises:
        BadDurationError: no duration, one of nothing, several months, or over 400 days.
    """
    count, unit = parse(duration)
    zone = ZoneInfo(time_zone)
    today = now.astimezone(zone).date()
    if unit in _SECONDS:
        return _within_day(count * _SECONDS[unit], now, zone)
    if unit == "mo":
        first = today.replace(day=1)
        return _days(first, (first + timedelta(days=31)).replace(day=1), zone)
    days = count * (WEEK_DAYS if unit == "w" else 1)
    anchor = first_day
    if days == WEEK_DAYS:
        anchor = today - timedelta(days=today.weekday())
    passed = (today - anchor).days // days
    start = anchor + timedelta(days=passed * days)
    return _days(start, start + timedelta(days=days), zone)


def parse(duration: str) -> tuple[int, str]:
    """Return count and unit (s, m, h, d, w or mo) of a duration; months of days are ``mo``.

    Raises:
        BadDurationError: see :func:`window_at`.
    """
    text = WORDS.get(duration.strip(), duration.strip())
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise BadDurationError(f"{text[:20]!r} is not like 30d, 1mo, 7d or 24h")
    count, unit = int(match[1]), match[2].removesuffix("r")
    if not count:
        raise BadDurationError("a budget needs a window of some length")
    if unit == "mo" and count != 1:
        raise BadDurationError("only one month can be a window")
    if (count, unit) == (MONTH_DAYS, "d"):
        return 1, "mo"
    seconds = count * (_SECONDS.get(unit) or DAY_S * (WEEK_DAYS if unit == "w" else 1))
    if unit in _SECONDS and seconds > DAY_S:
        raise BadDurationError("a window of more than a day is given in days")
    if seconds > LONGEST_DAYS * DAY_S:
        raise BadDurationError(f"a window has at most {LONGEST_DAYS} days")
    return count, unit


def _within_day(seconds: int, now: datetime, zone: ZoneInfo) -> Window:
    local = now.astimezone(zone)
    midnight = _midnight(local.date(), zone)
    following = _midnight(local.date() + timedelta(days=1), zone)
    passed = int((now - midnight).total_seconds()) // seconds
    start = midnight + timedelta(seconds=passed * seconds)
    end = min(start + timedelta(seconds=seconds), following)
    return Window(start, following if seconds == DAY_S else end)


def _days(first: date, after: date, zone: ZoneInfo) -> Window:
    return Window(_midnight(first, zone), _midnight(after, zone))


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)
