"""Load a day of a source: ask, judge, store. Twice is harmless, and so is dying in between.

The network is asked outside of every transaction, under a lease that keeps other processes
from asking the same source; what came is written in one transaction, all of it or nothing.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date

from django.utils.translation import gettext as _

from finops.ingest.judging import Verdict, judge
from finops.ingest.reaching import opened
from finops.ingest.storing import keep_payload, replace_day
from finops.models import Coverage, Fetch, Source
from finops.models.sources import Outcome
from finops.outdating import outdate_drafts
from finops.sources.failures import SourceError
from finops.sources.http import CONNECT_S, READ_S
from finops.sources.recording import Recording
from finops.sources.rows import Reading
from finops.sources.windows import Window, day_window, last_whole_day
from gpuplatform.common import clock, leases
from gpuplatform.common.money import digits
from gpuplatform.common.problems import Problem, Rejected

LEASE_S = int(CONNECT_S + READ_S) + 30  # prolonged before each question
WRITING_S = 120
logger = logging.getLogger(__name__)


def load_day(source: Source, day: date) -> Fetch:
    """Load one day; return what became of it. A source that is down is a failed attempt.

    Raises:
        Rejected: the day is not over, or another process is reading this source.
    """
    _check_over(source, day)
    window = day_window(day, source.time_zone)
    with _alone(source) as prolong:
        recording = Recording()
        try:
            with opened(source, recording, prolong) as reader:
                reading = reader.read(window)
        except SourceError as error:
            return _note_failure(source, day, window, recording, error)
        return _take(source, day, window, recording, reading)


def _check_over(source: Source, day: date) -> None:
    last = last_whole_day(clock.now(), source.time_zone)
    if day > last:
        words = _("{day} is not over yet; the last whole day is {last}.")
        message = words.format(day=day, last=last)
        raise Rejected([Problem("day", "DAY_NOT_OVER", message, {"last": str(last)})])


@contextmanager
def _alone(source: Source) -> Iterator[Callable[[], None]]:
    """Hold the source's lease; yield what prolongs it.

    Raises:
        Rejected: somebody else has it.
    """
    name, holder = lease_name(source), leases.unique_holder()
    held = leases.acquire(name, holder, LEASE_S)
    if held is None:
        raise Rejected([Problem("", "SOURCE_BUSY", _("Another process is reading this source."))])
    try:
        yield lambda: _prolong(name, holder)
    finally:
        newest = leases.acquire(name, holder, 0)
        if newest is not None:
            leases.release(newest)


def lease_name(source: Source) -> str:
    """Return the name of the lease of everything that reads or judges a source."""
    return f"source:{source.pk}"


def _prolong(name: str, holder: str) -> None:
    if leases.acquire(name, holder, LEASE_S) is None:
        raise SourceError("SOURCE_BUSY")


def _note_failure(
    source: Source, day: date, window: Window, recording: Recording, error: SourceError
) -> Fetch:
    """Write that a day could not be loaded. Rows that it has stay as they are."""
    logger.warning(
        "source.failed", extra={"source": source.name, "day": str(day), "code": error.code}
    )
    with writing(source, day, window) as coverage:
        fetch = note_fetch(
            coverage, Outcome.FAILED, recording, code=error.code, numbers=dict(error.numbers)
        )
        coverage.save()
    return fetch


def _take(
    source: Source, day: date, window: Window, recording: Recording, reading: Reading
) -> Fetch:
    """Store a reading, or keep it for somebody's judgement."""
    with writing(source, day, window) as coverage:
        known = _known_already(coverage, recording)
        verdict = judge(reading, window, source, coverage)
        if known is not None:
            outcome = known
        elif verdict.code:
            outcome = Outcome.QUARANTINED
        else:
            outcome = Outcome.APPLIED
        fetch = note_fetch(coverage, outcome, recording, reading, verdict)
        if outcome == Outcome.APPLIED:
            apply(coverage, fetch, window, reading, verdict)
        elif outcome == Outcome.QUARANTINED:
            _supersede(coverage)
            coverage.quarantined = fetch
        elif _is_applied(coverage, fetch):  # the source says again what is stored
            _supersede(coverage)
            coverage.quarantined = None
        coverage.save()
    logger.info(
        "source.loaded",
        extra={"source": source.name, "day": str(day), "outcome": outcome, "rows": fetch.rows},
    )
    return fetch


def _known_already(coverage: Coverage, recording: Recording) -> Outcome | None:
    """Return what an equal answer came to before, where that still stands."""
    mark = recording.fingerprint()
    if coverage.applied is not None and coverage.applied.sha256 == mark:
        return Outcome.UNCHANGED
    before = Fetch.objects.filter(source=coverage.source, day=coverage.day, sha256=mark)
    judged = before.filter(outcome__in=(Outcome.REJECTED, Outcome.QUARANTINED)).first()
    if judged is None:
        return None
    if judged.outcome == Outcome.REJECTED:
        return Outcome.REJECTED
    return Outcome.UNCHANGED if coverage.quarantined_id == judged.pk else None


def _is_applied(coverage: Coverage, fetch: Fetch) -> bool:
    return coverage.applied is not None and coverage.applied.sha256 == fetch.sha256


@contextmanager
def writing(source: Source, day: date, window: Window) -> Iterator[Coverage]:
    """Yield the day's coverage in a transaction that nobody else of this source is in.

    Raises:
        Rejected: the lease was lost to somebody who reads or judges the same source.
    """
    holder = leases.unique_holder()
    with leases.transaction_under(f"{lease_name(source)}:w", holder, WRITING_S) as held:
        if held is None:
            message = _("Another process is writing what it read of this source.")
            raise Rejected([Problem("", "SOURCE_BUSY", message)])
        coverage, _made = Coverage.objects.select_related("applied", "quarantined").get_or_create(
            source=source,
            day=day,
            defaults={"starts_at": window.start, "ends_at": window.end},
        )
        yield coverage


def note_fetch(
    coverage: Coverage,
    outcome: Outcome,
    recording: Recording,
    reading: Reading | None = None,
    verdict: Verdict | None = None,
    *,
    code: str = "",
    numbers: dict[str, str | int] | None = None,
) -> Fetch:
    """Write one attempt and let the day's coverage point to it; the caller saves that."""
    payload = keep_payload(recording)
    fetch = Fetch.objects.create(
        source=coverage.source,
        day=coverage.day,
        outcome=outcome,
        code=verdict.code if verdict else code,
        numbers=dict(verdict.numbers) if verdict else numbers or {},
        notes=[[note.code, dict(note.numbers)] for note in verdict.notes] if verdict else [],
        rows=len(reading.rows) if reading else 0,
        measures={k: digits(v) for k, v in reading.measures.items()} if reading else {},
        payload=payload,
        sha256=payload.sha256 if payload else "",
    )
    coverage.last, coverage.tried_at = fetch, fetch.at
    return fetch


def apply(
    coverage: Coverage, fetch: Fetch, window: Window, reading: Reading, verdict: Verdict
) -> None:
    """Let the day's rows be those of a reading; the caller saves the coverage."""
    fetch.rows = replace_day(coverage.source, coverage.day, window, reading.rows)
    outdate_drafts(window.start, window.end, ask=False)  # the join makes them anew
    _supersede(coverage)
    coverage.stored, coverage.ratio = verdict.stored, verdict.ratio
    coverage.starts_at, coverage.ends_at = window.start, window.end
    coverage.applied, coverage.quarantined = fetch, None


def _supersede(coverage: Coverage) -> None:
    """Close what waits for a judgement: a later reading has come."""
    waiting = coverage.quarantined
    if waiting is not None and waiting.outcome == Outcome.QUARANTINED:
        waiting.outcome = Outcome.SUPERSEDED
        waiting.save(update_fields=["outcome"])
