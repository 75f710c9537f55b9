"""Readers of sources: the list, one with its calendar, what waits for a judgement."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import Count, F, Max, Q

from finops.models import Coverage, Fetch, Source
from finops.models.sources import Outcome, Stored
from finops.sources.windows import last_whole_day
from gpuplatform.common.periods import Month, month, month_at

WEEK = 7
ATTEMPTS_SHOWN = 12
NOT_YET, BEFORE, OPEN_DAY = "coming", "before", "due"


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source, how much of it is there, and what it said last."""

    source: Source
    last_day: date | None  # the last day with rows
    loaded: int
    partial: int
    missing: int  # days since its first one that have no rows
    waiting: int
    failure: Fetch | None  # of the last attempt, where it failed


@dataclass(frozen=True, slots=True)
class Cell:
    """One day of the calendar. ``state``: a coverage's, or coming, before, due."""

    day: date
    state: str
    coverage: Coverage | None = None


@dataclass(frozen=True, slots=True)
class SourcePage:
    """One source with a month of days."""

    row: SourceRow
    month: Month
    earlier: str  # names of the months to turn to; "" where there is none
    later: str
    weeks: Sequence[Sequence[Cell | None]]
    waiting: Sequence[Coverage]
    doubtful: Sequence[Coverage]
    attempts: Sequence[Fetch]


def source_rows(now: datetime) -> list[SourceRow]:
    """Return all sources by name; a fixed number of queries."""
    counted = Source.objects.annotate(
        last_day=Max("days__day", filter=~Q(days__stored=Stored.MISSING)),
        loaded=Count("days", filter=Q(days__stored=Stored.LOADED)),
        partial=Count("days", filter=Q(days__stored=Stored.PARTIAL)),
        there=Count(
            "days", filter=Q(days__day__gte=F("first_day")) & ~Q(days__stored=Stored.MISSING)
        ),
        waiting=Count("days", filter=Q(days__quarantined__isnull=False)),
    )
    newest = Fetch.objects.order_by().values("source").annotate(last=Max("id")).values("last")
    last = {fetch.source_id: fetch for fetch in Fetch.objects.filter(pk__in=newest)}
    return [_row(source, last.get(source.pk), now) for source in counted]


def failed_readings(since: datetime, most: int = 100) -> list[Fetch]:
    """Return the attempts to load a day that have failed since then, newest first."""
    rows = Fetch.objects.filter(outcome=Outcome.FAILED, at__gte=since)
    return list(rows.select_related("source").order_by("-at", "-id")[:most])


def source_row(name: str, now: datetime) -> SourceRow | None:
    """Return one source, or None."""
    return next((row for row in source_rows(now) if row.source.name == name), None)


def _row(source: Source, last: Fetch | None, now: datetime) -> SourceRow:
    over = (last_whole_day(now, source.time_zone) - source.first_day).days + 1
    return SourceRow(
        source=source,
        last_day=source.last_day,  # type: ignore[attr-defined]
        loaded=source.loaded,  # type: ignore[attr-defined]
        partial=source.partial,  # type: ignore[attr-defined]
        missing=max(0, over - source.there),  # type: ignore[attr-defined]
        waiting=source.waiting,  # type: ignore[attr-defined]
        failure=last if last is not None and last.outcome == Outcome.FAILED else None,
    )


def source_page(name: str, month_name: str, now: datetime) -> SourcePage | None:
    """Return a source with the days of a month, by default of the running one; None: no such."""
    row = source_row(name, now)
    if row is None:
        return None
    source = row.source
    running = month_at(now, source.time_zone)
    shown = month(month_name, source.time_zone) if month_name else running
    days = source.days.select_related("applied", "quarantined", "last")
    of_month = {one.day: one for one in days.filter(day__range=(shown.first_day, shown.last_day))}
    return SourcePage(
        row=row,
        month=shown,
        earlier=f"{shown.first_day - timedelta(days=1):%Y-%m}",
        later=f"{shown.last_day + timedelta(days=1):%Y-%m}" if shown.name < running.name else "",
        weeks=list(_weeks(source, shown, of_month, now)),
        waiting=list(days.filter(quarantined__isnull=False).order_by("day")),
        doubtful=[one for one in of_month.values() if one.state != Stored.LOADED],
        attempts=list(source.fetches.all()[:ATTEMPTS_SHOWN]),
    )


def _weeks(
    source: Source, shown: Month, known: dict[date, Coverage], now: datetime
) -> Iterator[list[Cell | None]]:
    """Yield the weeks of a month from Monday on; None where a day is of another month."""
    last = last_whole_day(now, source.time_zone)
    start = shown.first_day - timedelta(days=shown.first_day.weekday())
    while start <= shown.last_day:
        week = (start + timedelta(days=number) for number in range(WEEK))
        yield [
            _cell(source, day, known.get(day), last)
            if day.month == shown.first_day.month
            else None
            for day in week
        ]
        start += timedelta(days=WEEK)


def _cell(source: Source, day: date, coverage: Coverage | None, last: date) -> Cell:
    if coverage is not None:
        return Cell(day, coverage.state, coverage)
    if day > last:
        return Cell(day, NOT_YET)
    return Cell(day, BEFORE if day < source.first_day else OPEN_DAY)


def coverage_rows(source: Source, first: date, last: date) -> list[Coverage]:
    """Return the days of a source that were ever tried, in order."""
    rows = source.days.filter(day__range=(first, last))
    return list(rows.select_related("applied", "quarantined", "last").order_by("day"))
