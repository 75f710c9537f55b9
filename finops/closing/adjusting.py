"""Adjustments by hand: a line of a month that is still a draft, with a reason."""

from dataclasses import dataclass
from decimal import Decimal

from django.db import transaction
from django.utils.translation import gettext as _

from finops import billing
from finops.models import Adjustment, BillingPeriod, BillLine
from finops.models.bills import DRAFTED
from finops.models.periods import AdjustmentKind, IssuedBill
from gpuplatform.common import audit, clock
from gpuplatform.common.money import CENT, digits
from gpuplatform.common.problems import Problem, Rejected
from queues.models import Team, User

REASON_LENGTH = 500
HIGHEST = Decimal(1_000_000_000)
LONGEST_NUMBER = 10  # digits of a line's number, less one


@dataclass(frozen=True, slots=True)
class AdjustmentSpec:
    """What is adjusted: a team's account, or with "" the central one; any sign, whole cents."""

    team: str
    amount: Decimal
    reason: str
    original: str = ""  # the closed month that it corrects
    original_line: str = ""


def adjust(name: str, spec: AdjustmentSpec, actor: User) -> Adjustment:
    """Add an adjustment to the open month ``name`` and make its bills anew.

    Raises:
        Rejected: the month is not a draft, no such team or closed month, not whole cents.
    """
    with transaction.atomic():
        period = BillingPeriod.objects.select_for_update().filter(name=name).first()
        team = Team.objects.filter(name=spec.team).first() if spec.team else None
        original = BillingPeriod.objects.filter(name=spec.original, status="closed").first()
        problems = _problems(period, spec, team, original)
        if problems or period is None:
            raise Rejected(problems)
        row = Adjustment.objects.create(
            period=period,
            kind=AdjustmentKind.MANUAL,
            team=team,
            original=original,
            original_line=spec.original_line,
            amount=spec.amount,
            currency=period.currency,
            by=actor,
            by_name=actor.get_username(),
            reason=spec.reason.strip(),
        )
        audit.record(
            actor,
            "billing_period.adjusted",
            ("BillingPeriod", name),
            after={"team": spec.team, "amount": digits(spec.amount), "of": spec.original},
            reason=row.reason,
            team=spec.team,
        )
        billing.rebuild_draft(name, now=clock.now())
        return row


def take_back(name: str, pk: int, actor: User) -> None:
    """Take an adjustment by hand out of the open month ``name`` and make its bills anew.

    Raises:
        Rejected: the month is not a draft, or it has no such adjustment; one for late data comes
            and goes with that.
    """
    with transaction.atomic():
        period = BillingPeriod.objects.select_for_update().filter(name=name).first()
        if period is None or period.status not in DRAFTED:
            raise Rejected([_not_open()])
        row = period.adjustments.filter(pk=pk, kind=AdjustmentKind.MANUAL).first()
        if row is None:
            sentence = _("{month} has no such adjustment by hand.").format(month=name)
            raise Rejected([Problem("adjustment", "not_found", sentence)])
        team = row.team.name if row.team else ""
        audit.record(
            actor,
            "billing_period.adjustment_taken_back",
            ("BillingPeriod", name),
            before={"team": team, "amount": digits(row.amount), "reason": row.reason},
            team=team,
        )
        row.delete()
        billing.rebuild_draft(name, now=clock.now())


def _not_open() -> Problem:
    return Problem("period", "PERIOD_NOT_OPEN", _("Only a draft can be adjusted."))


def _problems(
    period: BillingPeriod | None,
    spec: AdjustmentSpec,
    team: Team | None,
    original: BillingPeriod | None,
) -> list[Problem]:
    found = []
    if period is None or period.status not in DRAFTED:
        found.append(_not_open())
    if spec.team and team is None:
        found.append(Problem("team", "no_such_team", _("There is no such team.")))
    if spec.original and original is None:
        sentence = _("{month} is not a closed month.").format(month=spec.original[:20])
        found.append(Problem("original", "not_found", sentence))
    is_there = original is not None and _has_line(original, team, spec.original_line)
    if spec.original_line and not is_there:
        sentence = _(
            "No closed bill of this account has the line {line}; a line is named "
            "GPU-2026-000001#1."
        )
        words = sentence.format(line=spec.original_line[:50])
        found.append(Problem("original_line", "not_found", words))
    if not spec.reason.strip():
        found.append(Problem("reason", "required", _("Say what is adjusted and why.")))
    return found + _problems_of_amount(spec.amount)


def _has_line(period: BillingPeriod, team: Team | None, name: str) -> bool:
    """Return whether the account's closed bill has a line of this name.

    It is named as :mod:`finops.closing.late` does: its bill by the number it was issued under,
    else by month and account. None is the central account.
    """
    bill, _sign, number = name.rpartition("#")
    lines = BillLine.objects.filter(bill__period=period, bill__team=team, number=_number(number))
    issued = IssuedBill.objects.filter(period=period, number=bill).values("bill")
    month, _slash, account = bill.partition("/")
    if month != period.name:
        return lines.filter(bill__in=issued).exists()
    return account == (team.name if team else "central") and lines.exists()


def _number(text: str) -> int:
    """Return a number of a line, 0 for what is none: lines are counted from 1."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < LONGEST_NUMBER else 0


def _problems_of_amount(amount: Decimal) -> list[Problem]:
    if not amount.is_finite() or abs(amount) >= HIGHEST:
        sentence = _("An amount must be below 1,000,000,000.")
        return [Problem("amount", "OUT_OF_RANGE", sentence)]
    if not amount or amount != amount.quantize(CENT):
        return [Problem("amount", "not_cents", _("An amount is whole cents and not zero."))]
    return []
