"""Questions to LiteLLM about a day: its requests, and what it added up itself, to compare.

The same questions go to its API or to its database; ``litellm_tables`` answers the second.
Counters of teams and keys are reset and never asked for (finops.md 0.5).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime

from finops.sources.decoding import decoded
from finops.sources.failures import Note, SourceError
from finops.sources.http import Asker
from finops.sources.litellm import LOGS, Activity, Log, LogPage, requests_of, team_day, team_days
from finops.sources.rows import Reading, Request, Row, TeamDay, token_measures
from finops.sources.windows import Window, local_day

PAGE = 1000  # of requests, by API
MOST_PAGES = 5000
DAYS_PAGE = 100
REPEATS = 3  # pages in a row without anything new: the pages do not move on
BEGINNING = datetime(2020, 1, 1, tzinfo=UTC)  # there was no LiteLLM before


@dataclass(frozen=True, slots=True)
class LiteLLMApiReader:
    """Reads one LiteLLM through its API."""

    asker: Asker
    time_zone: str = "UTC"

    def read(self, window: Window) -> Reading:
        """Return the requests that began in a window, and its own sums of that day.

        Raises:
            SourceError: no answer, or none that says whether there were requests at all.
        """
        notes: list[Note] = []
        requests = requests_of(self._logs(window, notes), window)
        days = self._days(local_day(window, self.time_zone), notes)
        before = self._has_any(BEGINNING, window.start)
        if not requests:
            notes += _silence(
                before, bool(days), lambda: self._has_any(window.end, _after(window))
            )
        return _reading(requests, days, notes, before)

    def _logs(self, window: Window, notes: list[Note]) -> Iterator[Log]:
        """Yield what all pages hold, until one is empty; totals of pages are not trusted."""
        seen: set[str] = set()
        total, fruitless = 0, 0
        for page in range(1, MOST_PAGES + 1):
            found = self._page(window.start, window.end, page, PAGE)
            if not found.data:
                break
            if page == 1 and not found.total_is_capped:
                total = found.total or 0
            new = [log for log in found.data if log.request_id not in seen]
            fruitless = 0 if new else fruitless + 1
            if fruitless == REPEATS:
                raise SourceError("SOURCE_REPEATS", pages=page)
            seen.update(log.request_id for log in new)
            yield from found.data
        else:
            raise SourceError("SOURCE_TOO_MANY_PAGES", limit=MOST_PAGES)
        if len(seen) < total:
            notes.append(Note("SOURCE_PAGES_SHIFTED", {"found": len(seen), "total": total}))

    def _page(self, start: datetime, end: datetime, page: int, size: int) -> LogPage:
        """Return a page; both ends are included there, so what began at the end is cut later."""
        body = self.asker.get(
            LOGS,
            start_date=f"{start:%Y-%m-%d %H:%M:%S}",
            end_date=f"{end:%Y-%m-%d %H:%M:%S}",
            page=page,
            page_size=size,
            sort_by="startTime",
            sort_order="asc",
        )
        found: LogPage = decoded(body, LogPage)
        return found

    def _has_any(self, start: datetime, end: datetime) -> bool:
        return bool(self._page(start, end, 1, 1).data)

    def _days(self, day: date, notes: list[Note]) -> tuple[TeamDay, ...]:
        """Return its own sums, which the requests can do without."""
        try:
            return team_days(list(self._activity(day)), day.isoformat())
        except SourceError as error:
            notes.append(Note("SOURCE_NO_SUMS", {"code": error.code}))
            return ()

    def _activity(self, day: date) -> Iterator[Activity]:
        for page in range(1, MOST_PAGES + 1):
            body = self.asker.get(
                "team/daily/activity",
                start_date=day.isoformat(),
                end_date=day.isoformat(),
                page=page,
                page_size=DAYS_PAGE,
            )
            found: Activity = decoded(body, Activity)
            yield found
            if not found.metadata.has_more:
                return
        raise SourceError("SOURCE_TOO_MANY_PAGES", limit=MOST_PAGES)


@dataclass(frozen=True, slots=True)
class LiteLLMTablesReader:
    """Reads one LiteLLM through its own tables."""

    asker: Asker
    time_zone: str = "UTC"

    def read(self, window: Window) -> Reading:
        """Return the requests that began in a window, and its own sums of that day.

        Raises:
            SourceError: no answer, or none that says whether there were requests at all.
        """
        requests = requests_of(self._logs(window), window)
        notes: list[Note] = []
        days = self._days(local_day(window, self.time_zone), notes)
        earliest, latest = self._bounds()
        before = earliest is not None and earliest < window.start
        if not requests:
            after = latest is not None and latest >= window.end
            notes += _silence(before, bool(days), lambda: after)
        return _reading(requests, days, notes, before)

    def _logs(self, window: Window) -> Iterator[Log]:
        """Yield all rows of a window, page by page after the last key."""
        after: dict[str, str | int] = {}
        while True:
            body = self.asker.get(
                "requests",
                start=window.start.isoformat(),
                end=window.end.isoformat(),
                **after,
            )
            found: list[Log] = decoded(body, list[Log])
            yield from found
            if not found:
                return
            last = found[-1]
            after = {"after_at": last.started.isoformat(), "after_id": last.request_id}

    def _days(self, day: date, notes: list[Note]) -> tuple[TeamDay, ...]:
        try:
            rows = decoded(self.asker.get("sums", day=day.isoformat()), list[list[str | int]])
        except SourceError as error:
            notes.append(Note("SOURCE_NO_SUMS", {"code": error.code}))
            return ()
        found = (
            team_day((str(team), str(group), str(model), str(key)), *measured)
            for team, group, model, key, *measured in rows
        )
        return tuple(sorted(found, key=lambda row: row.key))

    def _bounds(self) -> tuple[datetime | None, datetime | None]:
        bounds = decoded(self.asker.get("bounds"), list[datetime | None])
        earliest, latest = (None if at is None else at.replace(tzinfo=UTC) for at in bounds)
        return earliest, latest


def _after(window: Window) -> datetime:
    """Return an instant that lies after everything that was logged until now."""
    return window.end.replace(year=window.end.year + 10, day=1)


def _silence(before: bool, summed: bool, after: Callable[[], bool]) -> list[Note]:
    """Take a day without requests for quiet only where the log went on around it.

    Where its own sums know of requests, they are kept to tell what is lacking: a part of the day.

    Raises:
        SourceError: the log does not reach that far.
    """
    if summed:
        return [Note("SOURCE_LOG_IS_OFF")]
    if not (before and after()):
        raise SourceError("SOURCE_NO_DATA")
    return []


def _reading(
    requests: tuple[Request, ...], days: tuple[TeamDay, ...], notes: list[Note], before: bool
) -> Reading:
    """Return a reading; a log that begins within the day may have been cut."""
    rows: tuple[Row, ...] = (*requests, *days)
    cut = () if before else (Note("SOURCE_LOG_BEGINS"),)
    return Reading(rows, token_measures(rows), (*notes, *cut))
