"""What follows from what was spent: level, forecast, a verdict on work, an unusual day. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from statistics import mean, median, stdev

LEAST_DAYS = 3  # of which a forecast is made
WEEKDAYS_FROM = 28  # days of history from which weekdays weigh
BAND = Decimal("1.28")  # standard deviations: four in five
ROBUST = Decimal("0.6745")
UNUSUAL_Z, UNUSUAL_AMOUNT, UNUSUAL_PART = Decimal("3.5"), Decimal(20), Decimal("0.2")
DAY = timedelta(days=1)
Amount = Decimal


@dataclass(frozen=True, slots=True)
class Forecast:
    """What will have been spent at the end of the window, and between which two."""

    expected: Amount
    low: Amount
    high: Amount


@dataclass(frozen=True, slots=True)
class Unusual:
    """A day that costs other than its weekday does."""

    day: date
    amount: Amount
    usual: Amount


def part_of(spent: Amount, limit: Amount) -> Decimal:
    """Return how much of the budget is gone, in percent; of nothing everything is gone."""
    if not limit:
        return Decimal(100 if spent <= 0 else 1000)
    return 100 * spent / limit


def level_of(spent: Amount, limit: Amount, thresholds: Sequence[int]) -> int:
    """Return the highest threshold that is reached, 0 if none is."""
    gone = part_of(spent, limit)
    return max((one for one in thresholds if gone >= one), default=0)


def is_exhausted(spent: Amount, limit: Amount) -> bool:
    """Return whether nothing is left: at the limit, as LiteLLM's keys have it."""
    return spent >= limit


def forecast(
    spent: Amount, window: tuple[datetime, datetime], now: datetime, days: Mapping[date, Amount]
) -> Forecast | None:
    """Return the forecast for the end of ``window``, or None where too little has passed.

    Spent so far by the hours passed; from 28 whole days of ``days`` on each day to come weighs
    as its weekday did. The band is 1.28 standard deviations of a day (finops.md 6).
    """
    start, end = window
    passed, left = now - start, end - now
    if passed < LEAST_DAYS * DAY:
        return None
    known = sorted(days.items())[-2 * WEEKDAYS_FROM :]
    coming = Decimal(left / DAY)
    if len(known) >= WEEKDAYS_FROM:
        expected = spent + _by_weekday(known, now, end)
    else:
        expected = spent * Decimal((end - start) / passed)
    amounts = [amount for _day, amount in known]
    spread = stdev(amounts) if len(amounts) > 1 else Decimal(0)
    band = BAND * spread * max(coming, Decimal(0)).sqrt()
    return Forecast(expected, max(spent, expected - band), expected + band)


def _by_weekday(known: Sequence[tuple[date, Amount]], now: datetime, end: datetime) -> Amount:
    means = {
        weekday: mean([a for day, a in known if day.weekday() == weekday] or [Decimal(0)])
        for weekday in range(7)
    }
    total, at = Decimal(0), now
    while at < end:
        following = min(end, (at + DAY).replace(hour=0, minute=0, second=0, microsecond=0))
        total += means[at.weekday()] * Decimal((following - at) / DAY)
        at = following
    return total


def unusual(day: date, amounts: Mapping[date, Amount]) -> Unusual | None:
    """Return whether a day is out of the ordinary for its weekday of the last four weeks.

    A robust z over 3.5, more than 20 and more than 20 % of the median (finops.md 6).
    """
    before = [amounts.get(day - timedelta(weeks=back)) for back in range(1, 5)]
    known = [amount for amount in before if amount is not None]
    if len(known) < 4 or day not in amounts:  # noqa: PLR2004  # four weeks
        return None
    usual = median(known)
    off = abs(amounts[day] - usual)
    if off <= UNUSUAL_AMOUNT or off <= UNUSUAL_PART * usual:
        return None
    spread = median(abs(amount - usual) for amount in known)
    if spread and ROBUST * off / spread <= UNUSUAL_Z:
        return None
    return Unusual(day, amounts[day], usual)
