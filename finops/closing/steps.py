"""The steps of a month: open, provisional, reviewed, closed by a second person (finops.md 4.6).

``_step`` is the only writer of a month's status. Every step makes the bills anew under the lock
of the month's row, so that what was seen, reviewed and closed are the same lines by their hash.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.utils.translation import gettext as _

from finops import billing
from finops.closing.freezing import freeze
from finops.closing.issuing import issue
from finops.closing_words import LEADS
from finops.drafts import ContradictionError
from finops.loader import MonthFacts
from finops.models import Acknowledgement, BillingPeriod, PeriodStep
from finops.models.bills import PeriodStatus
from finops.models.periods import Step
from finops.selectors.digests import Digest, digest_of
from finops.selectors.obstacles import Obstacle, obstacles
from gpuplatform.common import audit, clock
from gpuplatform.common.problems import Problem, Rejected, Stale
from queues.models import User

REASON_LENGTH = 500
DAY = timedelta(days=1)
NEEDS_REASON = frozenset({Step.SENT_BACK.value})


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asks for which step, why, and the hash of the lines that they have seen ("" = any)."""

    step: str
    actor: User | None
    reason: str = ""
    seen: str = ""


def take_step(name: str, asked: Asked, now: datetime | None = None) -> BillingPeriod:
    """Take a step of the month ``name``, whole or not at all; closing twice is closing once.

    Raises:
        Rejected: no such month, a step that does not lead on from here, a month that is not
            over, the same person twice, findings that nobody has acknowledged.
        Stale: the lines are not those that the caller, or the reviewer, has seen.
    """
    now = now or clock.now()
    _check_shape(asked)
    try:
        with transaction.atomic():
            period = _locked(name)
            if asked.step == Step.CLOSED and period.status == PeriodStatus.CLOSED:
                return period
            return _step(period, asked, now)
    except ContradictionError as error:
        raise Rejected([Problem(error.field, "facts_refused", error.message)]) from error


def put_forward_ended(now: datetime | None = None) -> list[str]:
    """Put forward the open months that ended a day ago or earlier; return their names."""
    now = now or clock.now()
    ended = BillingPeriod.objects.filter(status=PeriodStatus.OPEN, ends_at__lte=now - DAY)
    moved = []
    for name in ended.order_by("name").values_list("name", flat=True):
        try:
            take_step(name, Asked(Step.PUT_FORWARD.value, None), now)
        except Rejected:  # its draft says what is wrong; another process was faster
            continue
        moved.append(name)
    return moved


def acknowledge(name: str, code: str, subject: str, actor: User, reason: str) -> Acknowledgement:
    """Let a finding not stand in the way of closing, by name and with a reason.

    Raises:
        Rejected: no such finding stands in the way, it is one that nobody can let pass, the
            month is closed, or there is no reason.
    """
    if not reason.strip():
        raise Rejected([Problem("reason", "required", _("Say why it may stay as it is."))])
    with transaction.atomic():
        period = _locked(name)
        if period.status == PeriodStatus.CLOSED:
            raise Rejected([_closed(period)])
        found = _obstacle(period, code, subject)
        given, _created = Acknowledgement.objects.update_or_create(
            period=period,
            code=code,
            subject=subject,
            defaults={
                "numbers": dict(found.numbers),
                "by": actor,
                "by_name": actor.get_username(),
                "reason": reason.strip()[:REASON_LENGTH],
                "at": clock.now(),
            },
        )
        audit.record(
            actor,
            "billing_period.acknowledged",
            ("BillingPeriod", name),
            after={"code": code, "subject": subject, "numbers": dict(found.numbers)},
            reason=given.reason,
        )
        return given


# ---- one step ----------------------------------------------------------------------------------
def _check_shape(asked: Asked) -> None:
    if asked.step not in LEADS:
        sentence = _("{step} is no step of a month.").format(step=asked.step[:32])
        raise Rejected([Problem("step", "BAD_VALUE", sentence)])
    if asked.step in NEEDS_REASON and not asked.reason.strip():
        raise Rejected([Problem("reason", "required", _("Say why it goes back."))])


def _locked(name: str) -> BillingPeriod:
    period = BillingPeriod.objects.select_for_update().filter(name=name).first()
    if period is None:
        sentence = _("No bills of {month} were made yet.").format(month=name[:20])
        raise Rejected([Problem("period", "NO_BILLS", sentence)])
    return period


def _step(period: BillingPeriod, asked: Asked, now: datetime) -> BillingPeriod:
    before, after = LEADS[asked.step]
    _check_order(period, asked, before, now)
    facts = billing.remake(period, now)
    digest = digest_of(period)
    _check_seen(period, asked, digest)
    period.rebuilt_at = now
    if asked.step == Step.CLOSED:
        _close(period, facts, digest, now)
    period.status = after
    _sign(period, asked, before, digest, now)
    period.save(update_fields=["status", "rebuilt_at"])
    return period


def _sign(period: BillingPeriod, asked: Asked, before: str, digest: Digest, now: datetime) -> None:
    actor = asked.actor
    PeriodStep.objects.create(
        period=period,
        step=asked.step,
        at=now,
        by=actor,
        by_name=actor.get_username() if actor else "system",
        reason=asked.reason.strip()[:REASON_LENGTH],
        digest=digest.sha256,
    )
    audit.record(
        actor,
        f"billing_period.{asked.step}",
        ("BillingPeriod", period.name),
        before={"status": before},
        after={"status": period.status, "lines_sha256": digest.sha256},
        reason=asked.reason.strip()[:REASON_LENGTH],
    )


def _check_order(period: BillingPeriod, asked: Asked, before: str, now: datetime) -> None:
    if period.status != before:
        raise Rejected([_out_of_turn(period, before)])
    if period.ends_at > now:
        sentence = _("{month} is not over before {end} UTC.").format(
            month=period.name, end=f"{period.ends_at:%Y-%m-%d %H:%M}"
        )
        raise Rejected([Problem("period", "PERIOD_NOT_OVER", sentence)])
    if asked.step in {Step.REVIEWED, Step.CLOSED} and asked.actor is None:
        raise Rejected([Problem("actor", "SECOND_PERSON", _("Only a person can do this."))])
    if asked.step == Step.CLOSED:
        _check_second_person(period, asked)


def _out_of_turn(period: BillingPeriod, before: str) -> Problem:
    if period.status == PeriodStatus.CLOSED:
        return _closed(period)
    sentence = _("{month} is {status}; for this step it must be {before}.").format(
        month=period.name, status=period.get_status_display(), before=PeriodStatus(before).label
    )
    return Problem("step", "PERIOD_STEP", sentence)


def _closed(period: BillingPeriod) -> Problem:
    sentence = _("{month} is closed: it never changes and is never opened again.")
    return Problem("period", "PERIOD_CLOSED", sentence.format(month=period.name))


def _check_second_person(period: BillingPeriod, asked: Asked) -> None:
    reviewed = _last_review(period)
    if asked.actor is not None and reviewed.by_id == asked.actor.pk:
        sentence = _("{name} has reviewed the month; a second person closes it.")
        message = sentence.format(name=reviewed.by_name)
        raise Rejected([Problem("actor", "SECOND_PERSON", message)])


def _check_seen(period: BillingPeriod, asked: Asked, digest: Digest) -> None:
    """What is reviewed is what was seen; what is closed is what was reviewed.

    A month is sent back because its figures are no longer right: whatever was seen may go back.
    """
    if asked.step == Step.SENT_BACK:
        return
    sentence = _("The bills are not those that were seen: figures have changed since.")
    seen = {asked.seen} - {""}
    if asked.step == Step.CLOSED:
        seen.add(_last_review(period).digest)
        sentence = _(
            "The bills are not those that were reviewed: figures have changed since. "
            "Send the month back; its bills are made anew and reviewed again."
        )
    if seen - {digest.sha256}:
        raise Stale([Problem("seen", "FIGURES_CHANGED", sentence)])


def _last_review(period: BillingPeriod) -> PeriodStep:
    return PeriodStep.objects.filter(period=period, step=Step.REVIEWED).latest("id")


def _close(period: BillingPeriod, facts: MonthFacts, digest: Digest, now: datetime) -> None:
    standing = [one for one in obstacles(period) if one.blocks]
    if standing:
        raise Rejected([_as_problem(one) for one in standing])
    issue(period, digest, now)
    freeze(period, facts, digest, now)


def _as_problem(one: Obstacle) -> Problem:
    path = f"findings.{one.code}" + (f".{one.subject}" if one.subject else "")
    return Problem(path, one.code, one.sentence)


def _obstacle(period: BillingPeriod, code: str, subject: str) -> Obstacle:
    for one in obstacles(period):
        if (one.code, one.subject) == (code, subject):
            if one.may_be_acknowledged:
                return one
            sentence = _("Nobody can let this pass: {why}").format(why=one.sentence)
            raise Rejected([Problem("code", "NOT_TO_BE_HELPED", sentence)])
    sentence = _("No such finding stands in the way of closing {month}.")
    raise Rejected([Problem("code", "NOT_IN_THE_WAY", sentence.format(month=period.name))])
