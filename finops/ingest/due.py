"""Which days of a source are to be loaded now. It looks at what is, not at what it was told."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from finops.models import BillingPeriod, Coverage, Source
from finops.models.bills import DRAFTED
from finops.models.sources import Outcome, Stored
from finops.sources.windows import last_whole_day
from gpuplatform.common.periods import month_at

LOOKBACK_DAYS = 3  # read again every night: late data
SETTLING = timedelta(minutes=30)  # after midnight, until the last day is asked for
RETRY = timedelta(hours=1)
AGAIN = timedelta(days=7)  # all days of open months


def due_days(source: Source, now: datetime) -> list[date]:
    """Return the days to load, the newest first: none where the source is switched off.

    The last three days once a night; a failed one an hour later; a gap or a part once a night,
    and every day once a week, as long as its month is open.
    """
    if not source.enabled:
        return []
    last = last_whole_day(now - SETTLING, source.time_zone)
    known = {one.day: one for one in source.days.select_related("last")}
    return [
        day
        for day in _days_back(last, _first_day(source, now))
        if _is_due(known.get(day), day > last - timedelta(days=LOOKBACK_DAYS), source, now)
    ]


def _first_day(source: Source, now: datetime) -> date:
    """Return the first day of the oldest open month, or of this one where none is billed yet."""
    running = month_at(now, source.time_zone).first_day
    oldest = BillingPeriod.objects.filter(status__in=DRAFTED).order_by("starts_at").first()
    zone = ZoneInfo(source.time_zone)
    first = oldest.starts_at.astimezone(zone).date() if oldest else running
    return max(source.first_day, min(first, running))


def _days_back(last: date, first: date) -> Iterator[date]:
    while last >= first:
        yield last
        last -= timedelta(days=1)


def _is_due(coverage: Coverage | None, is_recent: bool, source: Source, now: datetime) -> bool:
    if coverage is None or coverage.tried_at is None:
        return True
    if coverage.last is not None and coverage.last.outcome == Outcome.FAILED:
        return now - coverage.tried_at >= RETRY
    if is_recent or coverage.stored != Stored.LOADED:
        return coverage.tried_at < _tonight(now, source)
    return now - coverage.tried_at >= AGAIN


def _tonight(now: datetime, source: Source) -> datetime:
    """Return the beginning of the last night: local midnight and a while."""
    zone = ZoneInfo(source.time_zone)
    today = (now - SETTLING).astimezone(zone).date()
    return datetime.combine(today, time(), zone) + SETTLING
