"""Adjustments as lines of the month they stand in.

They correct closed months and are no cost of their own month: what the bills add up to is the
month's cost and these (decisions.md 6). Unlike the facts of ``finops.allocation`` they may be the
central account's, so that the two sides of a correction stand together (adr/0029).
"""

from decimal import Decimal

from django.db.models import Max

from finops.models import Adjustment, Bill, BillingPeriod, BillLine
from gpuplatform.common.money import digits
from gpuplatform.common.periods import month

KIND = "adjustment"
NOTHING = Decimal("0.00")


def add_adjustment_lines(period: BillingPeriod) -> None:
    """Write the adjustments of a month as the last lines of its bills, which were just made."""
    rows = list(period.adjustments.select_related("team"))
    bills = {bill.team_id: bill for bill in period.bills.all()}
    numbers = _last_numbers(period)
    lines = []
    for row in rows:
        bill = bills.get(row.team_id) or _new_bill(period, row)
        bills[row.team_id] = bill
        numbers[bill.pk] = numbers.get(bill.pk, 0) + 1
        lines.append(_line(bill, numbers[bill.pk], row))
        bill.total += row.amount
        _note_day(bill, period, row)
    BillLine.objects.bulk_create(lines)
    Bill.objects.bulk_update(bills.values(), ["total", "by_day"])
    period.adjustment_cost += sum((row.amount for row in rows), NOTHING)


def _last_numbers(period: BillingPeriod) -> dict[int, int]:
    rows = BillLine.objects.filter(bill__period=period).order_by()
    return dict(rows.values_list("bill").annotate(last=Max("number")))


def _new_bill(period: BillingPeriod, row: Adjustment) -> Bill:
    return Bill.objects.create(period=period, team=row.team)


def _line(bill: Bill, number: int, row: Adjustment) -> BillLine:
    return BillLine(
        bill=bill,
        number=number,
        kind=KIND,
        bucket="" if row.team else "platform",
        amount=row.amount,
        currency=row.currency,
        original_line=row.original_line,
        note=row.reason,
    )


def _note_day(bill: Bill, period: BillingPeriod, row: Adjustment) -> None:
    """An adjustment falls on the day it was made, in a month that was over on its last."""
    last = month(period.name, period.time_zone).last_day
    day = min(row.at.date(), last).isoformat()
    kinds = bill.by_day.setdefault(day, {})
    kinds[KIND] = digits(Decimal(kinds.get(KIND, 0)) + row.amount)
