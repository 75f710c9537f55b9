"""What this room raises alerts about: budgets, planes that differ, sources that are dead.

Levels and rules: ``finops.md`` 4.4 (drift: two days in a row, or at the close) and 6 (alert set).
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction

from finops.models import BillingPeriod, Budget, DriftSeen
from finops.models.bills import DRAFTED, PeriodStatus
from finops.reconciling import CRITICAL, WARNING, Check
from finops.selectors.budgets import BudgetRow
from finops.selectors.reconciliation import reconciliation
from finops.selectors.sources import SourceRow, source_rows
from finops.sources.windows import last_whole_day
from gpuplatform.common import clock
from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.money import plain
from queues.access import Actor
from scheduling.alerting import Audience, Concern, Kind, follow

OWNER = "cost"
SCOPE = "cost:read"
TOLD = (Audience.FINANCE, Audience.LEADS)
KINDS = (
    Kind("BUDGET_THRESHOLD", TOLD, scope=SCOPE),
    Kind("BUDGET_EXHAUSTED", TOLD, scope=SCOPE),
    Kind("BUDGET_FORECAST", TOLD, scope=SCOPE),
    Kind("COST_DRIFT", (Audience.FINANCE,), scope=SCOPE),
    Kind("COST_DRIFT_CRITICAL", (Audience.FINANCE,), scope=SCOPE),
    Kind("SOURCE_DEAD", (Audience.ADMINS, Audience.FINANCE), scope=SCOPE),
    Kind("SOURCE_JUDGEMENT", (Audience.FINANCE,), scope=SCOPE),
)
DEAD_AFTER = 2  # whole days in a row of which nothing is there
EVERYTHING = Actor(None, frozenset({"finance"}))  # alerts are told to each as far as they may read


def watch_cost(now: datetime | None = None) -> int:
    """Bring this room's alerts up to what holds now; return how many were raised or cleared."""
    now = now or clock.now()
    return follow(OWNER, [*_budgets(now), *_drift(now), *_sources(now)], now)


# ---- budgets -----------------------------------------------------------------------------------
def _budgets(now: datetime) -> Iterator[Concern]:
    for budget in Budget.objects.select_related("team", "state"):
        row = BudgetRow(budget, getattr(budget, "state", None))
        if row.state is None or row.state.ends_at <= now:
            continue  # a new window has begun, and nobody has measured it yet
        code = _level(row)
        if code:
            finding = Diagnostic(code, f"Budget/{budget.name}", "", _numbers(row))
            yield Concern(finding, team_id=budget.team_id)


def _level(row: BudgetRow) -> str:
    """Return what is told of a budget, the worst alone."""
    if row.is_gone:
        return "BUDGET_EXHAUSTED"
    if row.state is not None and row.state.level:
        return "BUDGET_THRESHOLD"
    return "BUDGET_FORECAST" if row.will_be_gone else ""


def _numbers(row: BudgetRow) -> dict[str, str | int]:
    """Return the sentence's numbers; those that grow by the minute only as far as a level."""
    state, budget = row.state, row.budget
    assert state is not None
    level = state.level if not row.is_gone else max(state.level, 100)
    return {
        "budget": budget.name,
        "percent": level,
        "spent": plain(state.spent, 0, 2),
        "limit": plain(budget.limit, 0, 2),
        "expected": "-" if state.expected is None else plain(state.expected, 0, 2),
        "ends": f"{state.ends_at:%Y-%m-%d %H:%M} UTC",
    }


# ---- planes that differ ------------------------------------------------------------------------
def _drift(now: datetime) -> Iterator[Concern]:
    """Yield the checks of open months that differ for the second day, or when it is closed."""
    today = now.astimezone(ZoneInfo(settings.BILLING_TIME_ZONE)).date()
    for period in BillingPeriod.objects.filter(status__in=(*DRAFTED, PeriodStatus.REVIEWED)):
        found = reconciliation(EVERYTHING, period)
        checks = {
            (row.check.id, row.check.subject): row.check
            for row in (found.rows if found else ())
            if row.check.status in (WARNING, CRITICAL)
        }
        since = _seen(period, set(checks), today)
        is_over = period.ends_at <= now
        for key, check in sorted(checks.items()):
            if is_over or since[key] < today:
                yield Concern(
                    _differs(period, check, since[key]), key=f"{check.id} {check.subject}"[:320]
                )


@transaction.atomic
def _seen(
    period: BillingPeriod, keys: set[tuple[str, str]], today: date
) -> dict[tuple[str, str], date]:
    """Note what differs today; return since which day it has, day after day."""
    yesterday = today - timedelta(days=1)
    since = {}
    for row in DriftSeen.objects.filter(period=period):
        key = row.check_id, row.subject
        if key not in keys:
            if row.last_day < today:
                row.delete()
            continue
        if row.last_day < yesterday:
            row.first_day = today  # it agreed, or nobody looked, in between
        if row.last_day < today:
            row.last_day = today
            row.save(update_fields=["first_day", "last_day"])
        since[key] = row.first_day
    for check, subject in sorted(keys - since.keys()):
        since[check, subject] = today
        DriftSeen.objects.get_or_create(  # another process may have seen it just now
            period=period,
            check_id=check,
            subject=subject[:320],
            defaults={"first_day": today, "last_day": today},
        )
    return since


def _differs(period: BillingPeriod, check: Check, since: date) -> Diagnostic:
    code = "COST_DRIFT_CRITICAL" if check.status == CRITICAL else "COST_DRIFT"
    numbers: dict[str, str | int] = {
        "check": check.id,
        "what": check.subject or "-",
        "month": period.name,
        "a": _shown(check.a),
        "b": _shown(check.b),
        "cause": check.cause or "-",
        "since": since.isoformat(),
    }
    return Diagnostic(code, f"BillingPeriod/{period.name}", "", numbers)


def _shown(value: Decimal | None) -> str:
    return "?" if value is None else plain(value, 0, 2)


# ---- sources -----------------------------------------------------------------------------------
def _sources(now: datetime) -> Iterator[Concern]:
    for row in source_rows(now):
        if not row.source.enabled:
            continue
        subject = f"Source/{row.source.name}"
        if (away := _away(row, now)) >= DEAD_AFTER:
            since = row.last_day.isoformat() if row.last_day else row.source.first_day.isoformat()
            numbers: dict[str, str | int]
            numbers = {"source": row.source.name, "days": away, "since": since}
            yield Concern(Diagnostic("SOURCE_DEAD", subject, "", numbers))
        if row.waiting:
            first = row.source.days.exclude(quarantined=None).order_by("day").first()
            since = first.day.isoformat() if first else "-"
            numbers = {"source": row.source.name, "days": row.waiting, "since": since}
            yield Concern(Diagnostic("SOURCE_JUDGEMENT", subject, "", numbers))


def _away(row: SourceRow, now: datetime) -> int:
    """Return how many whole days have passed since the last one of which something is there."""
    last = last_whole_day(now, row.source.time_zone)
    before = row.source.first_day - timedelta(days=1)
    return (last - max(row.last_day or before, before)).days
