"""What comes late: a closed month is billed again and never changed; the difference is booked.

The difference of each line, between what the rows of today give and what was closed (with the
adjustments that stand in months which are reviewed or closed), is an adjustment of an open month.
Until that month is reviewed its late adjustments are made anew each time, as its bills are, so
that doing this twice changes nothing (adr/0029).
"""

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple, cast

from django.conf import settings
from django.db import transaction

from finops import billing
from finops.allocation.facts import IdlePolicy
from finops.corrections import KIND
from finops.drafts import ContradictionError, draft
from finops.loader import load_facts
from finops.models import Adjustment, BillingPeriod, BillLine, IssuedBill
from finops.models.bills import DRAFTED, PeriodStatus
from finops.models.periods import AdjustmentKind
from finops.selectors.digests import hash_of, line_columns
from gpuplatform.common import audit, clock
from gpuplatform.common.money import digits
from queues.models import Team

logger = logging.getLogger(__name__)
LOOKS_BACK = timedelta(days=400)  # as long as the answers of the sources are kept
# What two lines may differ in and yet be the same line of a bill.
AMOUNTS = frozenset(
    {
        *("number", "quantity", "unit", "amount", "currency", "policy"),
        *("origin", "hidden", "original_line", "note"),
    }
)
NOTHING = Decimal("0.00")
LONGEST = 255  # characters of a name


class LineName(NamedTuple):
    """Which line is corrected: the account ("" is the central one) and what it is called.

    A line that was closed is called by bill and number, ``GPU-2026-000001#3``; one that was not
    there by what it names, ``2026-06/datos#new gpu_direct h100-sxm 1.4``.
    """

    team: str
    line: str


Differences = Mapping[LineName, Decimal]


def book_late_data(now: datetime | None = None) -> list[str]:
    """Bill the closed months again; return those whose adjustments are others than before."""
    now = now or clock.now()
    closed = BillingPeriod.objects.filter(
        status=PeriodStatus.CLOSED, ends_at__gt=now - LOOKS_BACK
    ).order_by("name")
    return [period.name for period in closed if _book(period, now)]


def differences(period: BillingPeriod, now: datetime) -> Differences:
    """Return by line what a closed month would cost more today, booked adjustments included.

    Raises:
        ContradictionError: metering that cannot all be right.
    """
    made = draft(load_facts(period, now), cast("IdlePolicy", period.idle_policy))
    names = _Names(period)
    found: dict[LineName, Decimal] = defaultdict(lambda: NOTHING)
    for team, lines in billing.lines_of(period, made).items():
        for line in lines:
            found[names.of(team, line)] += line.amount
    for line in names.closed:
        found[names.of(_account(line), line)] -= line.amount
    for row in _settled(period):
        found[LineName(row.team.name if row.team else "", row.original_line)] -= row.amount
    return {name: amount for name, amount in found.items() if amount}


# ---- booking -----------------------------------------------------------------------------------
def _book(period: BillingPeriod, now: datetime) -> bool:
    try:
        with transaction.atomic():
            target = _target(period, now)
            wanted = list(_adjustments(period, target, now))
            return _replace(period, target, wanted, now)
    except ContradictionError as error:
        logger.error("late_data.refused", extra={"period": period.name, "why": str(error)})  # noqa: TRY400
        return False


def _target(period: BillingPeriod, now: datetime) -> BillingPeriod:
    """Return the month that corrections go to, locked: the next one to be closed after it."""
    drafts = BillingPeriod.objects.select_for_update().filter(
        status__in=DRAFTED, starts_at__gte=period.ends_at
    )
    return drafts.order_by("name").first() or billing.period_at(now)


def _adjustments(
    period: BillingPeriod, target: BillingPeriod, now: datetime
) -> Iterator[Adjustment]:
    found = differences(period, now)
    if max(map(abs, found.values()), default=NOTHING) < settings.ADJUSTMENT_THRESHOLD:
        if found:
            amounts = {name.line: digits(amount) for name, amount in found.items()}
            logger.info("late_data.ignored", extra={"period": period.name, "amounts": amounts})
        return
    teams = {team.name: team for team in Team.objects.filter(name__in={n.team for n in found})}
    for name, amount in sorted(found.items()):
        yield Adjustment(
            period=target,
            kind=AdjustmentKind.LATE,
            team=teams.get(name.team),
            original=period,
            original_line=name.line,
            amount=amount,
            currency=period.currency,
            reason=f"late data of {period.name}",
            by_name="system",
            at=now,
        )


def _replace(
    period: BillingPeriod, target: BillingPeriod, wanted: list[Adjustment], now: datetime
) -> bool:
    standing = period.corrections.filter(kind=AdjustmentKind.LATE, period__status__in=DRAFTED)
    if _facts(standing) == _facts(wanted):
        return False
    touched = {target.pk, *standing.values_list("period", flat=True)}
    standing.delete()
    Adjustment.objects.bulk_create(wanted)
    BillingPeriod.objects.filter(pk__in=touched).order_by().update(rebuilt_at=None)
    audit.record(
        None,
        "billing_period.corrected",
        ("BillingPeriod", period.name),
        after={
            "in": target.name,
            "lines": {one.original_line: digits(one.amount) for one in wanted},
        },
        reason=f"late data of {period.name}",
    )
    for month in BillingPeriod.objects.filter(pk__in=touched):
        billing.rebuild_draft(month.name, now=now)
    return True


def _facts(rows: object) -> set[tuple[object, ...]]:
    return {
        (row.period_id, row.team_id, row.original_line, row.amount)
        for row in cast("list[Adjustment]", rows)
    }


# ---- which line is which -----------------------------------------------------------------------
class _Names:
    """What the lines of a closed month are called; ``closed`` are those that were closed."""

    def __init__(self, period: BillingPeriod) -> None:
        self.period = period
        lines = BillLine.objects.filter(bill__period=period).exclude(kind=KIND)
        self.closed = list(lines.select_related("bill__team").order_by("bill", "number"))
        self.columns = [name for name in line_columns() if name not in AMOUNTS]
        self.bills = {
            (one.bill.team.name if one.bill.team else ""): one.number
            for one in IssuedBill.objects.filter(period=period).select_related("bill__team")
        }
        self.numbers = {self._key(_account(line), line): line.number for line in self.closed}

    def of(self, team: str, line: BillLine) -> LineName:
        """Return what a line is called, closed or made today."""
        bill = self.bills.get(team) or f"{self.period.name}/{team or 'central'}"
        key = self._key(team, line)
        number = self.numbers.get(key)
        what = " ".join(("new", *filter(None, key[1:]))) if number is None else number
        name = f"{bill}#{what}"
        return LineName(team, name if len(name) <= LONGEST else f"{bill}#new {hash_of(key)}")

    def _key(self, team: str, line: BillLine) -> tuple[str, ...]:
        return (team, *(_spelled(getattr(line, name)) for name in self.columns))


def _settled(period: BillingPeriod) -> list[Adjustment]:
    """Return the corrections of a month that will not be made anew."""
    rows = period.corrections.filter(kind=AdjustmentKind.LATE)
    return list(rows.exclude(period__status__in=DRAFTED).select_related("team"))


def _account(line: BillLine) -> str:
    return line.bill.team.name if line.bill.team else ""


def _spelled(value: object) -> str:
    """Return a cell so that a row and an unsaved row of equal content are equal."""
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return "" if value is None else str(value)
