"""Bring drafts of bills up to date with the rows of metering and prices.

A draft is always made from scratch: whatever was there before is replaced in one transaction,
so that doing it twice, or two at once, gives the same rows.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import cast

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from finops.allocation.encoding import memo_json, shown_number
from finops.allocation.facts import IdlePolicy as AllocationPolicy
from finops.corrections import add_adjustment_lines
from finops.drafts import ContradictionError, Draft, DraftLine, draft
from finops.loader import MonthFacts, first_metered_at, has_facts, load_facts
from finops.models import Bill, BillingPeriod, BillLine, Finding
from finops.models.bills import DRAFTED, IdlePolicy, UsageSource
from finops.staleness import stale_periods
from finops.words import KINDS
from gpuplatform.common import audit, clock
from gpuplatform.common.money import digits
from gpuplatform.common.periods import Month, month, month_at, month_before, months_between
from gpuplatform.common.problems import Problem, Rejected, Stale
from queues.models import Team, User

CENTRAL = ""
OWNERS = ("owner", "owner_net")
logger = logging.getLogger(__name__)
READING_ORDER = tuple(KINDS)  # own use first, then loans, then idle; the sort keeps the rest
Amounts = dict[str, dict[str, str]]
MEMO = ("gpu_hours", "loans", "models", "teams", "tags")  # parts of the memo that are kept
WRITTEN = (
    *("capacity_cost", "other_cost", "external_cost", "fixed_cost", "adjustment_cost"),
    *("capacity_gpu_hours", "rests_on", "memo"),
)


def rebuild_draft(name: str, *, now: datetime | None = None) -> BillingPeriod:
    """Make the draft bills of the month ``name`` anew and return its period.

    Raises:
        Rejected: not a month, a month that has not begun, or one that is no longer open; or
            metering that contradicts itself, which leaves the last draft and a critical finding.
    """
    now = now or clock.now()
    month_asked = _month(name, now)
    try:
        with transaction.atomic():
            return _rebuild(_ensure_period(month_asked), now)
    except ContradictionError as error:
        raise _contradiction(month_asked, error) from error


def rebuild_open(now: datetime | None = None) -> list[BillingPeriod]:
    """Rebuild what is due: months out of date, metered ones without bills, the last and this.

    The last month and this one only where something was metered.
    """
    now = now or clock.now()
    current = month_at(now, settings.BILLING_TIME_ZONE)
    looked_at = (month_before(current), current)
    due = {one.name for one in looked_at if has_facts(_unsaved(one))}
    return rebuild_months(due | outdated_months(now), now)


def outdated_months(now: datetime | None = None) -> set[str]:
    """Return the open months whose draft is out of date, and metered ones without bills."""
    now = now or clock.now()
    current = month_at(now, settings.BILLING_TIME_ZONE)
    billed = set(BillingPeriod.objects.values_list("name", flat=True))
    first = first_metered_at()
    metered = months_between(first, now, current.time_zone) if first else ()
    unbilled = {one.name for one in metered if one.name not in billed and has_facts(_unsaved(one))}
    return unbilled | {period.name for period in stale_periods()}


def rebuild_months(names: Iterable[str], now: datetime | None = None) -> list[BillingPeriod]:
    """Rebuild the months of ``names`` that are open, oldest first; twice is harmless."""
    now = now or clock.now()
    closed = set(BillingPeriod.objects.exclude(status__in=DRAFTED).values_list("name", flat=True))
    rebuilt = []
    for name in sorted(set(names) - closed):
        try:
            rebuilt.append(rebuild_draft(name, now=now))
        except Rejected as refusal:  # one broken month must not keep the others old
            logger.error("bills.refused", extra={"period": name, "why": str(refusal)})  # noqa: TRY400
    return rebuilt


def choose_idle_policy(
    name: str, policy: str, actor: User | None, reason: str = "", if_version: int | None = None
) -> BillingPeriod:
    """Set who pays idle GPUs in one open month, and rebuild its bills in the same transaction.

    ``if_version`` is that of the month's rules that was seen; None takes any.

    Raises:
        Stale: the rules are not of the version that was seen; nothing was changed.
        Rejected: an unknown policy, one that does not go with whose hours are billed, or a month
            that is not open.
    """
    if policy not in IdlePolicy.values:
        sentence = _("{policy} is not an idle policy.").format(policy=policy[:32])
        raise Rejected([Problem("idle_policy", "BAD_VALUE", sentence)])
    now = clock.now()
    with transaction.atomic():
        period = _ensure_period(_month(name, now))
        if if_version not in (None, period.policy_version):
            raise stale_rules(period)
        before = period.idle_policy
        refuse_together(policy, period.usage_source)
        if policy != before:
            open_one = BillingPeriod.objects.filter(pk=period.pk, status__in=DRAFTED)
            seen = open_one.filter(policy_version=period.policy_version)
            grown = {"policy_version": period.policy_version + 1}
            if not seen.update(idle_policy=policy, **grown) and open_one.exists():
                raise stale_rules(period)
            subject = ("BillingPeriod", name)
            audit.record(
                actor,
                "billing_period.idle_policy_chosen",
                subject,
                before={"idle_policy": before},
                after={"idle_policy": policy},
                reason=reason,
            )
        return rebuild_draft(name, now=now)


def stale_rules(period: BillingPeriod) -> Stale:
    """Return the refusal of a change to rules that are not those that were seen."""
    words = _("Somebody has changed the rules of {month} since they were seen.")
    return Stale([Problem("version", "stale", words.format(month=period.name))])


def refuse_together(idle_policy: str, usage_source: str) -> None:
    """Refuse that owners pay their idle where use is not our own metering's (FORMAT.md 1).

    Raises:
        Rejected: the two do not go together.
    """
    if idle_policy in OWNERS and usage_source == UsageSource.OPENCOST:
        words = _("Owners can pay their idle only where use comes from our own metering.")
        raise Rejected([Problem("idle_policy", "needs_scheduler", words)])


def open_month(name: str, now: datetime) -> BillingPeriod:
    """Return a month's period, made where there is none yet; call it in a transaction.

    Raises:
        Rejected: not a month, or one that has not begun.
    """
    return _ensure_period(_month(name, now))


def _rebuild(period: BillingPeriod, now: datetime) -> BillingPeriod:
    # The guarded update makes a second rebuild wait for this one, on both databases.
    if not BillingPeriod.objects.filter(pk=period.pk, status__in=DRAFTED).update(rebuilt_at=now):
        sentence = _("{month} is no longer open.").format(month=period.name)
        raise Rejected([Problem("period", "PERIOD_NOT_OPEN", sentence)])
    period.refresh_from_db()
    remake(period, now)
    return period


def remake(period: BillingPeriod, now: datetime) -> MonthFacts:
    """Make the bills of a period that the caller has locked; return what they rest on.

    Raises:
        ContradictionError: metering or prices that cannot both be right.
    """
    facts = load_facts(period, now)
    _replace(period, facts)
    return facts


def _contradiction(asked: Month, error: ContradictionError) -> Rejected:
    """Leave a finding that the month cannot be billed, and return the refusal."""
    numbers = {"field": error.field, "problem": error.message}
    with transaction.atomic():
        Finding.objects.update_or_create(
            period=_ensure_period(asked),
            code="facts_refused",
            defaults={"severity": "critical", "subject": error.field, "numbers": numbers},
        )
    return Rejected([Problem(error.field, "facts_refused", error.message)])


def _month(name: str, now: datetime) -> Month:
    try:
        found = month(name, settings.BILLING_TIME_ZONE)
    except ValueError as error:
        sentence = _("{name} is not a month like 2026-06.").format(name=name[:20])
        raise Rejected([Problem("period", "BAD_VALUE", sentence)]) from error
    if found.starts_at >= now:
        sentence = _("{name} has not begun.").format(name=name)
        raise Rejected([Problem("period", "OUT_OF_RANGE", sentence)])
    return found


def _unsaved(found: Month) -> BillingPeriod:
    return BillingPeriod(
        name=found.name,
        starts_at=found.starts_at,
        ends_at=found.ends_at,
        time_zone=found.time_zone,
        currency=settings.CURRENCY,
    )


def period_at(now: datetime) -> BillingPeriod:
    """Return the period of the month that ``now`` falls in; it gets its row if it has none."""
    return _ensure_period(month_at(now, settings.BILLING_TIME_ZONE))


def _ensure_period(found: Month) -> BillingPeriod:
    """Return the period of a month; one that exists keeps the time zone it was made with."""
    wanted = _unsaved(found)
    fields = ("starts_at", "ends_at", "time_zone", "currency")
    period, _created = BillingPeriod.objects.get_or_create(
        name=found.name, defaults={field: getattr(wanted, field) for field in fields}
    )
    return period


def _replace(period: BillingPeriod, facts: MonthFacts) -> None:
    """Write bills, lines and findings of ``period`` in place of those that were there."""
    # The same words on both sides; a test compares them.
    made = draft(facts, cast("AllocationPolicy", period.idle_policy))
    Bill.objects.filter(period=period).delete()
    Finding.objects.filter(period=period).delete()
    _write_bills(period, made)
    Finding.objects.bulk_create(
        Finding(
            period=period,
            code=found.code,
            severity=found.level,
            subject=" ".join(f"{key}={value}" for key, value in sorted(found.subject.items())),
            numbers={name: shown_number(name, number) for name, number in found.numbers.items()},
        )
        for found in made.findings
    )
    period.capacity_cost = made.sources.capacity
    period.other_cost = made.sources.other
    period.external_cost = made.sources.external
    period.fixed_cost = made.sources.fixed
    period.adjustment_cost = made.sources.adjustments
    period.capacity_gpu_hours = made.capacity_hours
    add_adjustment_lines(period)
    period.rests_on = list(facts.rests_on)
    memo = memo_json(made.outcome.memo)
    period.memo = {part: memo[part] for part in MEMO}
    period.save(update_fields=WRITTEN)


def lines_of(period: BillingPeriod, made: Draft) -> dict[str, list[BillLine]]:
    """Return the lines of each account ("" is the central one) as rows that belong to no bill."""
    return {
        team: [_row(period, number, line) for number, line in enumerate(lines, 1)]
        for team, lines in _by_account(made).items()
    }


def _by_account(made: Draft) -> dict[str, list[DraftLine]]:
    found: dict[str, list[DraftLine]] = {CENTRAL: []}
    found |= {team: [] for team in made.teams}
    for line in made.lines:
        found[line.key.team].append(line)
    for lines in found.values():
        lines.sort(key=lambda line: READING_ORDER.index(line.key.kind))
    return found


def _write_bills(period: BillingPeriod, made: Draft) -> None:
    lines_by_team = _by_account(made)
    teams = {team.name: team for team in Team.objects.filter(name__in=lines_by_team)}
    bills = {
        name: Bill(
            period=period,
            team=teams.get(name),
            total=sum((line.amount for line in lines), Decimal("0.00")),
            by_day=_by_day(lines),
            by_queue={queue: str(cents) for queue, cents in made.by_queue.get(name, {}).items()},
        )
        for name, lines in lines_by_team.items()
    }
    Bill.objects.bulk_create(bills.values())
    rows = lines_of(period, made)
    for name, lines in rows.items():
        for line in lines:
            line.bill = bills[name]
    BillLine.objects.bulk_create(line for lines in rows.values() for line in lines)


def _row(period: BillingPeriod, number: int, line: DraftLine) -> BillLine:
    return BillLine(
        number=number,
        kind=line.key.kind,
        bucket=line.key.bucket,
        origin=line.key.origin,
        cluster=line.key.cluster,
        namespace=line.key.namespace,
        cluster_queue=line.key.queue,
        flavor=line.key.flavor,
        lender=line.key.lender,
        model_group=line.key.model_group,
        counterparty=line.key.counterparty,
        ref=line.key.ref,
        quantity=line.hours if line.unit else None,
        unit=line.unit,
        unit_price=line.unit_price,
        hidden=line.key.is_hidden,
        amount=line.amount,
        currency=period.currency,
        policy=period.idle_policy,
    )


def _by_day(lines: list[DraftLine]) -> Amounts:
    """Return day -> kind -> amount; the days add up to the lines."""
    amounts: dict[str, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    for line in lines:
        for day, amount in line.days.items():
            if amount:
                amounts[day.isoformat()][line.key.kind] += amount
    return {
        day: {kind: digits(amount) for kind, amount in sorted(kinds.items())}
        for day, kinds in sorted(amounts.items())
    }
