"""What a person decides about a reading that was not applied by itself."""

from datetime import date

from django.utils.translation import gettext as _

from finops.ingest.judging import judge
from finops.ingest.loading import apply, writing
from finops.ingest.reaching import replayed
from finops.models import Coverage, Fetch, Source
from finops.models.sources import Outcome
from finops.sources.failures import SourceError
from finops.sources.recording import unpacked
from finops.sources.windows import Window, day_window
from gpuplatform.common import audit, reasons
from gpuplatform.common.problems import Problem, Rejected
from queues.models import User


def accept_reading(source: Source, day: date, actor: User, reason: str) -> Fetch:
    """Apply the reading of a day that waits for judgement, from the kept answer.

    Raises:
        Rejected: none waits, no reason is given, or its answer is not kept or readable any more.
    """
    _check_reason(reason)
    window = day_window(day, source.time_zone)
    with writing(source, day, window) as coverage:
        fetch = _waiting(coverage)
        _apply_again(coverage, fetch, window)
        fetch.outcome = Outcome.ACCEPTED
        fetch.save(update_fields=["outcome", "rows"])
        coverage.save()
        _record(actor, "source_day.accepted", fetch, reason)
    return fetch


def reject_reading(source: Source, day: date, actor: User, reason: str) -> Fetch:
    """Drop the reading of a day that waits for judgement; what is stored stays.

    The same answer is not brought up again.

    Raises:
        Rejected: none waits, or no reason is given.
    """
    _check_reason(reason)
    with writing(source, day, day_window(day, source.time_zone)) as coverage:
        fetch = _waiting(coverage)
        fetch.outcome = Outcome.REJECTED
        fetch.save(update_fields=["outcome"])
        coverage.quarantined = None
        coverage.save()
        _record(actor, "source_day.rejected", fetch, reason)
    return fetch


def _apply_again(coverage: Coverage, fetch: Fetch, window: Window) -> None:
    source = coverage.source
    if fetch.payload is None:
        raise Rejected([Problem("day", "PAYLOAD_GONE", _("The answer is not kept any more."))])
    try:
        reading = replayed(source, unpacked(bytes(fetch.payload.body))).read(window)
    except SourceError as error:
        sentence = reasons.sentence(error.code, error.numbers)
        raise Rejected([Problem("day", error.code, sentence, error.numbers)]) from error
    apply(coverage, fetch, window, reading, judge(reading, window, source, coverage))


def _check_reason(reason: str) -> None:
    if not reason.strip():
        raise Rejected([Problem("reason", "REQUIRED", _("Say why."))])


def _waiting(coverage: Coverage) -> Fetch:
    if coverage.quarantined is None:
        message = _("No reading of this day waits for a judgement.")
        raise Rejected([Problem("day", "NOT_QUARANTINED", message)])
    return coverage.quarantined


def _record(actor: User, action: str, fetch: Fetch, reason: str) -> None:
    subject = ("SourceDay", f"{fetch.source.name} {fetch.day}")
    after = {"code": fetch.code, "measures": fetch.measures, "sha256": fetch.sha256}
    audit.record(actor, action, subject, after=after, reason=reason)
