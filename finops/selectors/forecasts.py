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

    Teams by name, and the central account.
    """
    months = BillingPeriod.objects.order_by("-name").values("pk")[:LOOKED_AT]
    found: dict[str, dict[date, Decimal]] = defaultdict(dict)
    bills = Bill.objects.filter(period__in=months)
    for name, by_day in bills.values_list("team__name", "by_day"):
        for day, kinds in by_day.items():
            amount = sum(map(Decimal, kinds.values()), NOTHING)
            found[name or CENTRAL][date.fromisoformat(day)] = amount
    return found


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
    made = min(period.rebuilt_at or clock.now(), clock.now())
    found = forecast(spent, (period.starts_at, period.ends_at), made, together)
    if found is None:
        return None
    assumption = "weekdays" if len(together) >= WEEKDAYS_FROM else "pace"
    return MonthEnd(rounded(found.expected), rounded(found.low), rounded(found.high), assumption)


def month_end_json(found: MonthEnd | None) -> dict[str, Any] | None:
    """Return a forecast as REST and ``?format=json`` answer it."""
    if found is None:
        return None
    amounts = {name: digits(getattr(found, name)) for name in ("expected", "low", "high")}
    return {**amounts, "assumption": found.assumption}
