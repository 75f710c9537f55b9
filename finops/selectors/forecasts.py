"""What a running month will come to: the forecast of budgets, for bills and for all cost.

One rule with budgets (``finops.budget_judging.forecast``) on the same days of the same bills.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from finops.budget_judging import WEEKDAYS_FROM, forecast
from finops.corrections import KIND as ADJUSTMENT
from finops.models import Bill, BillingPeriod
from finops.selectors.bills import CENTRAL, BillView
from gpuplatform.common import clock
from gpuplatform.common.money import digits, rounded

NOTHING = Decimal(0)
LOOKED_AT = 3  # months of bills whose days weigh
Days = Mapping[str, Mapping[date, Decimal]]
ASSUMPTIONS: Mapping[str, str | Promise] = {
    "weekdays": _("if each day to come costs what its weekday did"),
    "pace": _("if the days to come cost what those so far did"),
}


@dataclass(frozen=True, slots=True)
class MonthEnd:
    """What will have been billed when the month ends, and between which two four times in five."""

    expected: Decimal
    low: Decimal
    high: Decimal
    assumption: str  # one of ``ASSUMPTIONS``

    @property
    def assumed(self) -> str:
        """Return the assumption in words."""
        return str(ASSUMPTIONS[self.assumption])


def days_of_accounts() -> dict[str, dict[date, Decimal]]:
    """Return what each account cost by day, as the bills of the last three months have it.

    Teams by name, and the central account. Adjustments correct other months: no day cost them.
    """
    months = BillingPeriod.objects.order_by("-name").values("pk")[:LOOKED_AT]
    found: dict[str, dict[date, Decimal]] = defaultdict(dict)
    bills = Bill.objects.filter(period__in=months)
    for name, by_day in bills.values_list("team__name", "by_day"):
        found[name or CENTRAL] |= costs_by_day(by_day)
    return found


def costs_by_day(by_day: Mapping[str, Mapping[str, str]]) -> dict[date, Decimal]:
    """Return what each day of a bill cost, without what was adjusted on it."""
    costs = {
        day: [Decimal(amount) for kind, amount in kinds.items() if kind != ADJUSTMENT]
        for day, kinds in by_day.items()
    }
    return {date.fromisoformat(day): sum(parts, NOTHING) for day, parts in costs.items() if parts}


def month_end(views: Sequence[BillView], days: Days | None = None) -> MonthEnd | None:
    """Return what bills of one month will come to together, from their draft's time on.

    None where the month is over, has no draft, or has gone on for less than three days.
    """
    if not views or not views[0].is_running or views[0].period.rebuilt_at is None:
        return None
    period, seen = views[0].period, days_of_accounts() if days is None else days
    together: dict[date, Decimal] = defaultdict(Decimal)
    for view in views:
        for day, amount in seen.get(view.scope, {}).items():
            together[day] += amount
    spent = sum((view.total for view in views), NOTHING)
    once = sum((_adjusted(view) for view in views), NOTHING)
    made = min(period.rebuilt_at or clock.now(), clock.now())
    found = forecast(spent - once, (period.starts_at, period.ends_at), made, together)
    if found is None:
        return None
    assumption = "weekdays" if len(together) >= WEEKDAYS_FROM else "pace"
    expected, low, high = found.expected + once, found.low + once, found.high + once
    return MonthEnd(rounded(expected), rounded(low), rounded(high), assumption)


def _adjusted(view: BillView) -> Decimal:
    """Return the adjustments of a bill: they come once, and the month does not go on like them."""
    days = view.bill.by_day.values()
    return sum((Decimal(kinds.get(ADJUSTMENT, 0)) for kinds in days), NOTHING)


def month_end_json(found: MonthEnd | None) -> dict[str, Any] | None:
    """Return a forecast as REST and ``?format=json`` answer it."""
    if found is None:
        return None
    amounts = {name: digits(getattr(found, name)) for name in ("expected", "low", "high")}
    return {**amounts, "assumption": found.assumption}
