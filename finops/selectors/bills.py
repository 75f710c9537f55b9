"""The only readers of bills and costs: page, CSV and REST show what stands here.

What an actor may not see is not found: a lead reads the own team's bill, finance, admins and
auditors read all, nobody else reads any.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

from django.conf import settings
from django.db.models import QuerySet

from finops.loader import Promised, has_facts, promised
from finops.models import Bill, BillingPeriod, BillLine, Finding, IssuedBill
from finops.models.bills import DRAFTED, PeriodStatus
from finops.selectors.figures import NOTHING, Figures, figures_of, parts_sentence
from finops.staleness import staleness
from finops.words import IDLE_COLUMN
from gpuplatform.common import clock
from gpuplatform.common.periods import Month, month, month_at, month_before
from gpuplatform.common.templatetags.money import money
from queues.access import Actor
from queues.choices import AccountingMode
from queues.models import Team

CENTRAL = "__central__"  # no team can be called so
WHOLE_CLUSTER = ""


@dataclass(frozen=True, slots=True)
class BillView:
    """One bill with all that its page, its file and its answer show."""

    bill: Bill
    period: BillingPeriod
    month: Month
    lines: tuple[BillLine, ...]
    figures: Figures
    is_stale: bool = False  # a price that touches it is newer: it is being made anew

    @property
    def team(self) -> Team | None:
        """Return whose bill it is; None is the central account."""
        return self.bill.team

    @property
    def scope(self) -> str:
        """Return the name of the bill in addresses and file names."""
        return self.bill.team.name if self.bill.team else CENTRAL

    @property
    def total(self) -> Decimal:
        """Return the sum of the lines."""
        return self.bill.total

    @property
    def status(self) -> str:
        """Return the bill's state in the words of files: an open month is a draft."""
        return bill_status(self.period)

    @property
    def is_draft(self) -> bool:
        """Return whether figures may still change: the month is not closed."""
        return self.period.status != PeriodStatus.CLOSED

    @property
    def issued(self) -> IssuedBill | None:
        """Return how the bill was issued; None before its month is closed."""
        return getattr(self.bill, "issued", None)

    @property
    def mode(self) -> str:
        """Return the accounting mode: that of the closing, before it the team's own."""
        if self.issued:
            return self.issued.mode
        return self.team.accounting_mode if self.team else "central"

    @property
    def is_charged(self) -> bool:
        """Return whether the team pays: its accounting mode is chargeback."""
        return self.mode == AccountingMode.CHARGEBACK

    @property
    def number(self) -> str:
        """Return the number of an issued bill that is charged, else ""."""
        return (self.issued.number or "") if self.issued else ""

    @property
    def team_name(self) -> str:
        """Return what the team is called, or was when the month was closed; "" is central."""
        if self.issued:
            return self.issued.team_name
        return str(self.team) if self.team else ""

    @property
    def cost_center(self) -> str:
        """Return the cost centre that is or would be debited, "" where there is none."""
        if self.issued:
            return self.issued.cost_center
        return self.team.cost_center if self.team else ""

    @property
    def is_running(self) -> bool:
        """Return whether the month goes on: figures are those so far."""
        return self.period.ends_at > clock.now()


@dataclass(frozen=True, slots=True)
class MonthView:
    """A month: the bills that the actor may see."""

    period: BillingPeriod
    month: Month
    bills: tuple[BillView, ...]  # teams by name, the central account last
    figures: Figures
    findings: tuple[Finding, ...] = ()
    is_whole: bool = False  # whether these are all bills of the month

    @property
    def status(self) -> str:
        """Return the month's state in the words of files."""
        return bill_status(self.period)

    @property
    def is_drafted(self) -> bool:
        """Return whether its bills are made anew, and its policy can be chosen."""
        return self.period.status in DRAFTED

    @property
    def sums_match(self) -> bool:
        """Return whether the bills add up to what everything cost, to the cent."""
        return self.figures.total == self.period.total_cost

    @property
    def parts(self) -> str:
        """Return what everything cost as a sum: capacity + storage ... + external tokens ..."""
        return parts_sentence(self.period, money)

    @property
    def is_stale(self) -> bool:
        """Return whether its bills are out of date."""
        return any(one.is_stale for one in self.bills)

    @property
    def is_running(self) -> bool:
        """Return whether the month goes on: figures are those so far."""
        return self.period.ends_at > clock.now()

    @property
    def is_metered(self) -> bool:
        """Return whether anything was there or was used in the month."""
        return bool(self.bills) or has_facts(self.period)


@dataclass(frozen=True, slots=True)
class CostView:
    """A month so far: what it costs, for whom, and through which queue."""

    month: Month
    period: BillingPeriod | None
    bills: tuple[BillView, ...]
    figures: Figures
    before: Figures | None  # last month, whole
    queues: tuple[tuple[str, Decimal], ...]  # cost of use, dearest first
    idle_by_day: tuple[tuple[date, Decimal], ...] = field(default_factory=tuple)
    is_whole: bool = False

    @property
    def is_stale(self) -> bool:
        """Return whether the month's bills are out of date."""
        return any(one.is_stale for one in self.bills)


def bill_status(period: BillingPeriod) -> str:
    """Return what files call the state of a period's bills."""
    if period.pk is None:
        return "none"
    return "draft" if period.status == PeriodStatus.OPEN else str(period.status)


def may_see_bills(actor: Actor) -> bool:
    """Return whether there is any bill that the actor may see."""
    return actor.may_see_bills or bool(actor.bill_team_ids)


def bill_months(actor: Actor) -> list[MonthView]:
    """Return all months with bills that the actor may see, newest first."""
    periods = BillingPeriod.objects.filter(bills__in=visible_bills(actor)).distinct()
    by_period = _views_by_period(visible_bills(actor).filter(period__in=periods))
    return [_month_view(actor, period, by_period[period.pk]) for period in periods]


def bill_month(actor: Actor, name: str) -> MonthView | None:
    """Return one month, without bills where the actor has none in it.

    None for somebody who may see no bill at all, and for a month that has not begun.
    """
    views = _views(visible_bills(actor).filter(period__name=name))
    if not views:
        return _month_without_bills(actor, name)
    period = views[0].period
    findings = tuple(period.findings.all()) if actor.may_see_bills else ()
    return _month_view(actor, period, views, findings)


def team_bill(actor: Actor, name: str, scope: str) -> BillView | None:
    """Return the bill of a team (or of the central account), or None if there is none to see."""
    whose = {"team": None} if scope == CENTRAL else {"team__name": scope}
    views = _views(visible_bills(actor).filter(period__name=name, **whose))
    return views[0] if views else None


def team_promise(view: BillView) -> Promised | None:
    """Return what the team was promised for the whole month, in money; None for the rest."""
    return promised(view.period, view.team) if view.team else None


def cost_so_far(actor: Actor, now: datetime) -> CostView:
    """Return the running month and its cost by team, queue and day, as far as the actor sees."""
    running = month_at(now, settings.BILLING_TIME_ZONE)
    last = month_before(running)
    bills = visible_bills(actor).filter(period__name__in=[running.name, last.name])
    by_month: dict[str, list[BillView]] = defaultdict(list)
    for view in _views(bills):
        by_month[view.period.name].append(view)
    current, before = by_month[running.name], by_month[last.name]
    return CostView(
        month=running,
        period=current[0].period if current else None,
        bills=tuple(current),
        figures=_together(current),
        before=_together(before) if before else None,
        queues=_queues(current),
        idle_by_day=_days([*before, *current], IDLE_COLUMN),
        is_whole=actor.may_see_bills,
    )


def days_of(view: BillView) -> dict[str, dict[str, Decimal]]:
    """Return day -> kind -> amount of a bill; the days add up to its lines."""
    return {
        day: {kind: Decimal(amount) for kind, amount in kinds.items()}
        for day, kinds in view.bill.by_day.items()
    }


# ---- rows --------------------------------------------------------------------------------------
def visible_bills(actor: Actor) -> QuerySet[Bill]:
    """Return the bills the actor may see: all, or those of the teams the actor leads."""
    bills = Bill.objects.annotate(is_stale=staleness("period__"))
    bills = bills.select_related("period", "team", "issued").prefetch_related("lines")
    return bills if actor.may_see_bills else bills.filter(team_id__in=actor.bill_team_ids)


def _views(bills: QuerySet[Bill]) -> list[BillView]:
    views = [_view(bill) for bill in bills]
    return sorted(views, key=lambda view: (view.team is None, view.scope))


def _views_by_period(bills: QuerySet[Bill]) -> dict[int, list[BillView]]:
    found: dict[int, list[BillView]] = defaultdict(list)
    for view in _views(bills):
        found[view.period.pk].append(view)
    return found


def _view(bill: Bill) -> BillView:
    lines, period = tuple(bill.lines.all()), bill.period
    of = month(period.name, period.time_zone)
    is_stale = bool(bill.is_stale)  # type: ignore[attr-defined]  # annotated by _visible
    return BillView(bill, period, of, lines, figures_of(lines), is_stale)


def _month_without_bills(actor: Actor, name: str) -> MonthView | None:
    try:
        asked = month(name, settings.BILLING_TIME_ZONE)
    except ValueError:  # an address of REST may name anything
        return None
    if not may_see_bills(actor) or asked.starts_at >= clock.now():
        return None
    # Not saved: a month gets its row with its first bill.
    period = BillingPeriod(
        name=asked.name,
        starts_at=asked.starts_at,
        ends_at=asked.ends_at,
        time_zone=asked.time_zone,
        currency=settings.CURRENCY,
    )
    return _month_view(actor, period, [])


def _month_view(
    actor: Actor,
    period: BillingPeriod,
    views: list[BillView],
    findings: tuple[Finding, ...] = (),
) -> MonthView:
    return MonthView(
        period=period,
        month=month(period.name, period.time_zone),
        bills=tuple(views),
        figures=_together(views),
        findings=findings,
        is_whole=actor.may_see_bills,
    )


# ---- sums --------------------------------------------------------------------------------------
def _together(views: Iterable[BillView]) -> Figures:
    return figures_of(line for view in views for line in view.lines)


def _queues(views: Iterable[BillView]) -> tuple[tuple[str, Decimal], ...]:
    costs: dict[str, Decimal] = defaultdict(lambda: NOTHING)
    for view in views:
        for queue, amount in view.bill.by_queue.items():
            costs[queue] += Decimal(amount)
    return tuple(sorted(costs.items(), key=lambda row: (-row[1], row[0])))


def _days(views: Iterable[BillView], kinds: frozenset[str]) -> tuple[tuple[date, Decimal], ...]:
    sums: dict[str, Decimal] = defaultdict(lambda: NOTHING)
    for view in views:
        for day, amounts in view.bill.by_day.items():
            sums[day] += sum((Decimal(amounts.get(kind, 0)) for kind in kinds), NOTHING)
    return tuple((date.fromisoformat(day), amount) for day, amount in sorted(sums.items()))
