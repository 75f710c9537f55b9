"""What was spent of each budget: from our own ledger, never from a counter of LiteLLM."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import cast
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction

from finops.allocation.bill import Outcome, chargeback
from finops.allocation.facts import IdlePolicy, Period, instant
from finops.allocation.money import round_half_up
from finops.allocation.places import Account
from finops.budget_judging import Forecast, forecast, level_of
from finops.budgets.check import BudgetCheck, is_gone
from finops.budgets.windows import window_at
from finops.loader import load_window, policy_of
from finops.models import BillingPeriod, Budget, BudgetState
from finops.models.budgets import BudgetMeasure, BudgetScope
from finops.selectors.forecasts import days_of_accounts
from finops.sources.windows import Window
from finops.words import USE_KINDS
from gpuplatform.common import clock
from scheduling.checks import tell

Known = Mapping[str, Mapping[str, Mapping[date, Decimal]]]  # measure -> team -> day
HISTORY = timedelta(weeks=8)  # as many days as a forecast looks at
NOTHING = Decimal(0)
PLACES = 6


def measure_budgets(now: datetime | None = None) -> list[BudgetState]:
    """Measure every budget in the window that ``now`` is in; twice is harmless.

    The ledger of a window is made once, however many budgets have it.
    """
    now = now or clock.now()
    by_window: dict[Window, list[Budget]] = defaultdict(list)
    for budget in Budget.objects.select_related("team"):
        window = window_at(budget.duration, now, settings.BILLING_TIME_ZONE, budget.first_day)
        by_window[window].append(budget)
    days = _known_days([one for budgets in by_window.values() for one in budgets], now)
    measured = []
    for window, budgets in sorted(by_window.items(), key=lambda pair: pair[0].start):
        outcome = _ledger(window, now)
        measured += [_measure(one, window, outcome, now, days) for one in budgets]
    return measured


def measure_budget(budget: Budget, now: datetime | None = None) -> BudgetState:
    """Measure one budget in the window that ``now`` is in, as :func:`measure_budgets` does."""
    now = now or clock.now()
    window = window_at(budget.duration, now, settings.BILLING_TIME_ZONE, budget.first_day)
    return _measure(budget, window, _ledger(window, now), now, _known_days([budget], now))


def spent_of(budget: Budget, outcome: Outcome) -> Decimal:
    """Return what a window's ledger says of a budget."""
    if budget.scope == BudgetScope.TEAM and budget.measure != BudgetMeasure.TOKENS:
        return _of_team(budget, outcome)
    rows = [row for row in outcome.tokens if _is_of(budget, row)]
    if budget.measure == BudgetMeasure.TOKENS:
        return Decimal(sum(row.tokens for row in rows))
    return round_half_up(sum(row.cost for row in rows), PLACES)


def _of_team(budget: Budget, outcome: Outcome) -> Decimal:
    account = Account(is_bucket=False, name=budget.subject)
    lines = [line for line in outcome.lines if line.account == account]
    if budget.measure == BudgetMeasure.MONEY:
        return sum((line.amount for line in lines), NOTHING)
    used = (line.quantity for line in lines if line.key.line_type in USE_KINDS)
    return round_half_up(sum(used), PLACES)


def _is_of(budget: Budget, row: object) -> bool:
    """A request counts once for its team, key and model, and once for each of its tags."""
    use, account = row.use, row.account  # type: ignore[attr-defined]  # TokenRow
    if budget.scope == BudgetScope.TEAM:
        return bool(account == Account(is_bucket=False, name=budget.subject))
    if budget.scope == BudgetScope.TAG:
        return budget.subject in use.tags
    said = use.key_alias if budget.scope == BudgetScope.KEY else use.model_group
    return bool(said == budget.subject)


def _ledger(window: Window, now: datetime, *, by_day: bool = False) -> Outcome:
    month = BillingPeriod.objects.filter(starts_at__lte=window.start, ends_at__gt=window.start)
    period = month.first() or BillingPeriod(
        time_zone=settings.BILLING_TIME_ZONE, currency=settings.CURRENCY
    )
    end = max(window.start, min(window.end, now))
    asked = Period(instant(window.start), instant(end), period.time_zone, period.currency)
    facts = load_window(asked, policy_of(period))
    return chargeback(facts.under(cast("IdlePolicy", period.idle_policy)), by_day=by_day)


def _known_days(budgets: Iterable[Budget], now: datetime) -> Known:
    """Return what each team used by day, as far as these budgets are forecast by it.

    Money as its bills have it; GPU-hours from the ledger of the last eight whole weeks, where a
    day without use counts as well.
    """
    measures = {one.measure for one in budgets if one.scope == BudgetScope.TEAM}
    known: dict[str, Mapping[str, Mapping[date, Decimal]]] = {}
    if BudgetMeasure.MONEY in measures:
        known[BudgetMeasure.MONEY.value] = days_of_accounts()
    if BudgetMeasure.GPU_HOURS in measures:
        known[BudgetMeasure.GPU_HOURS.value] = _hours_by_day(now)
    return known


def _hours_by_day(now: datetime) -> dict[str, dict[date, Decimal]]:
    zone = ZoneInfo(settings.BILLING_TIME_ZONE)
    today = datetime.combine(now.astimezone(zone), time(), zone)
    window = Window((today - HISTORY).astimezone(UTC), today.astimezone(UTC))
    used: dict[str, dict[date, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for line in _ledger(window, now, by_day=True).lines:
        if not line.account.is_bucket and line.key.line_type in USE_KINDS:
            for part in line.days:
                used[line.account.name][part.day] += part.quantity
    return {
        team: {
            day: round_half_up(hours.get(day, Fraction(0)), PLACES)
            for day in days_between(min(hours), today.date())
        }
        for team, hours in used.items()
        if hours
    }


def days_between(first: date, end: date) -> Iterator[date]:
    """Yield the days from ``first`` up to ``end``, which is none of them."""
    return (first + timedelta(days=number) for number in range((end - first).days))


def _measure(
    budget: Budget,
    window: Window,
    outcome: Outcome,
    now: datetime,
    days: Known,
) -> BudgetState:
    spent = spent_of(budget, outcome)
    is_of_team = budget.scope == BudgetScope.TEAM
    known = days.get(budget.measure, {}).get(budget.subject, {}) if is_of_team else {}
    seen = forecast(spent, (window.start, window.end), now, known)
    with transaction.atomic():
        before = BudgetState.objects.filter(budget=budget).select_related("budget").first()
        state, _made = BudgetState.objects.update_or_create(
            budget=budget,
            defaults={
                "starts_at": window.start,
                "ends_at": window.end,
                "spent": spent,
                "level": level_of(spent, budget.limit, budget.thresholds),
                **_columns(seen),
                "measured_at": now,
            },
        )
        was_gone = before is not None and is_gone(before, now)
        if budget.is_hard and was_gone != is_gone(state, now):
            tell(BudgetCheck.name, now)
    return state


def _columns(seen: Forecast | None) -> dict[str, Decimal | None]:
    if seen is None:
        return dict.fromkeys(("expected", "low", "high"))
    places = Decimal(1).scaleb(-PLACES)
    return {name: getattr(seen, name).quantize(places) for name in ("expected", "low", "high")}
