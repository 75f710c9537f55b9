"""The only readers of budgets: page, file and REST show what stands here."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings

from finops.budget_judging import Unusual, part_of, unusual
from finops.models import Bill, BillingPeriod, Budget, BudgetState
from finops.selectors.forecasts import costs_by_day
from gpuplatform.common import clock
from queues.access import Actor

BUDGET_COLUMNS = (
    *("name", "scope", "subject", "measure", "limit", "duration", "kind", "starts_at", "ends_at"),
    *("spent", "percent", "level", "expected", "low", "high", "measured_at"),
)
LOOKED_AT = 3  # months of bills in which unusual days are looked for


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """A budget and how far it is gone; ``state`` None was not measured yet."""

    budget: Budget
    state: BudgetState | None

    @property
    def percent(self) -> Decimal | None:
        """Return how much is gone, in percent; of a limit of nothing everything."""
        if self.state is not None and not self.budget.limit:
            return Decimal(100)
        return None if self.state is None else part_of(self.state.spent, self.budget.limit)

    @property
    def whole_percent(self) -> int | None:
        """Return the same in whole percent, of which 100 are only told once all is gone."""
        return None if self.percent is None else int(self.percent)

    @property
    def is_gone(self) -> bool:
        """Return whether nothing is left."""
        return self.state is not None and self.state.spent >= self.budget.limit

    @property
    def will_be_gone(self) -> bool:
        """Return whether the forecast is at or over the limit."""
        expected = self.state.expected if self.state else None
        return expected is not None and expected >= self.budget.limit


def budget_rows(actor: Actor, name: str = "") -> list[BudgetRow]:
    """Return the budgets that the actor may see: all, or those of the teams led."""
    budgets = Budget.objects.select_related("team", "state")
    if not actor.may_see_bills:
        budgets = budgets.filter(team__in=actor.bill_team_ids)
    if name:
        budgets = budgets.filter(name=name)
    return [BudgetRow(one, getattr(one, "state", None)) for one in budgets]


def budget_cells(row: BudgetRow) -> dict[str, Any]:
    """Return a budget as files and answers have it."""
    budget, state = row.budget, row.state
    names = ("name", "scope", "subject", "measure", "limit", "duration")
    measured = ("starts_at", "ends_at", "spent", "level", "expected", "low", "high", "measured_at")
    percent = row.percent
    return {
        **{name: getattr(budget, name) for name in names},
        "kind": "hard" if budget.is_hard else "soft",
        **{name: getattr(state, name, None) for name in measured},
        "percent": None if percent is None else percent.quantize(Decimal("0.1")),
    }


def unusual_days(actor: Actor) -> Sequence[tuple[str, Unusual]]:
    """Return the unusual days of the running month by team, the latest first (finops.md 6).

    A day that is not over has not cost what it will, so it is not judged.
    """
    today = clock.now().astimezone(ZoneInfo(settings.BILLING_TIME_ZONE)).date()
    months = list(BillingPeriod.objects.order_by("-name")[:LOOKED_AT])
    bills = Bill.objects.filter(period__in=months).exclude(team=None)
    if not actor.may_see_bills:
        bills = bills.filter(team__in=actor.bill_team_ids)
    amounts: dict[str, dict[date, Decimal]] = {}
    for bill in bills.select_related("team"):
        amounts.setdefault(str(bill.team), {}).update(costs_by_day(bill.by_day))
    running = months[0].name if months else ""
    found = [
        (team, seen)
        for team, days in amounts.items()
        for day in days
        if f"{day:%Y-%m}" == running and day < today and (seen := unusual(day, days))
    ]
    return sorted(found, key=lambda pair: (pair[1].day, pair[0]), reverse=True)
