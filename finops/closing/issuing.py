"""Bills as they are issued: what is charged gets a number and a posting, the rest is retained."""

from collections.abc import Iterable
from datetime import datetime
from zoneinfo import ZoneInfo

from django.conf import settings

from finops.closing.numbering import numbers, series_of
from finops.models import Bill, BillingPeriod, IssuedBill
from finops.selectors.cost_centers import cost_centers
from finops.selectors.digests import Digest, hash_of
from queues.choices import AccountingMode

CENTRAL = "central"


def issue(period: BillingPeriod, digest: Digest, now: datetime) -> list[IssuedBill]:
    """Issue every bill of a month in the order of the teams' names.

    A charged bill without a line moves nothing and gets no number. One below zero is a credit
    note: it has a series of its own, and its posting the negative amount.
    """
    bills = list(period.bills.select_related("team"))
    centers = cost_centers(period, [bill.team for bill in bills if bill.team])
    issued = [
        _unnumbered(bill, centers.get(bill.team_id or 0, ""), digest, now)
        for bill in sorted(bills, key=_name)
    ]
    year = now.astimezone(ZoneInfo(period.time_zone)).year
    charged = [one for one in issued if _is_charged(one, digest)]
    for is_credit in (False, True):
        of_series = [one for one in charged if (one.amount < 0) == is_credit]
        series = series_of(settings.INVOICE_PREFIX, year, is_credit=is_credit)
        _number(of_series, series)
    return IssuedBill.objects.bulk_create(issued)


def _name(bill: Bill) -> tuple[bool, str]:
    return (bill.team is None, bill.team.name if bill.team else "")


def _unnumbered(bill: Bill, cost_center: str, digest: Digest, now: datetime) -> IssuedBill:
    team = bill.team
    return IssuedBill(
        bill=bill,
        period=bill.period,
        mode=team.accounting_mode if team else CENTRAL,
        team_name=str(team) if team else "",
        cost_center=cost_center,
        amount=bill.total,
        currency=bill.period.currency,
        sha256=digest.by_bill.get(bill.pk, hash_of([])),
        issued_at=now,
    )


def _is_charged(one: IssuedBill, digest: Digest) -> bool:
    is_posted = bool(one.cost_center) and one.bill_id in digest.by_bill
    return one.mode == AccountingMode.CHARGEBACK and is_posted


def _number(bills: Iterable[IssuedBill], series: str) -> None:
    wanted = list(bills)
    for one, (sequence, number) in zip(wanted, numbers(series, len(wanted)), strict=True):
        one.series, one.sequence, one.number = series, sequence, number
        one.debit, one.credit = one.cost_center, settings.PLATFORM_COST_CENTER
