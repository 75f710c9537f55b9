"""Rows of metering and prices to the facts of a bill, in a fixed number of queries."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from django.db.models import BooleanField, Exists, ExpressionWrapper, F, Min, OuterRef, Q, QuerySet

from finops.allocation.facts import (
    Capacity,
    Facts,
    IdlePolicy,
    Instant,
    Mapping,
    Period,
    Policy,
    Quota,
    Usage,
    instant,
    moment,
)
from finops.allocation.facts import (
    Team as TeamFact,
)
from finops.allocation.money import HOURS_PLACES, ZERO, round_half_up
from finops.allocation.timeline import InForce, Slots, edges, hours
from finops.models import BillingPeriod, Price
from finops.models.bills import DRAFTED
from finops.models.prices import PriceUnit
from finops.price_facts import end_of, free_fillers, price_facts, unpriced
from finops.specs import NodeShape
from queues.models import ClusterQueue, Cohort, Namespace, ResourceFlavor, Team
from scheduling.models import CapacityInterval, Node, QuotaInterval, UsageInterval

GPU = "nvidia.com/gpu"
WHOLE_CLUSTER = ""  # the pool of what is shared over all flavors
SHARED_OVER_ALL = frozenset({"proportional", "even"})
TEAM_MARK = "team"  # of a run: the team that metering wrote down
MILLICORES = 1000
GIB = 1024**3
Row = TypeVar("Row", CapacityInterval, QuotaInterval, UsageInterval)


@dataclass(frozen=True, slots=True)
class MonthFacts:
    """The facts of a month, and what of it no price covers: GPU-hours by source and flavor.

    Hours without a price are billed at 0, which is never what was meant: a finding says so.
    """

    facts: Facts
    unpriced: dict[tuple[str, str], Fraction]

    def under(self, idle: IdlePolicy) -> Facts:
        """Return the facts as the product bills them with a policy.

        What is shared is shared over the whole cluster (decisions.md 6); idle that stays a row
        of its own is shown flavor by flavor: then each flavor is a cluster of its own.
        """
        facts = replace(self.facts, policy=Policy(idle=idle))
        if idle in SHARED_OVER_ALL:
            return facts
        return replace(
            facts,
            capacity=tuple(replace(row, cluster=row.flavor) for row in facts.capacity),
            usage=tuple(replace(row, cluster=row.flavor) for row in facts.usage),
            quotas=tuple(replace(row, cluster=row.flavor) for row in facts.quotas),
        )


def load_facts(period: BillingPeriod, until: datetime) -> MonthFacts:
    """Return everything the bill of ``period`` rests on, up to ``until`` where that is earlier.

    A draft of a month that is still going on bills what has passed of it and no more.
    ``until`` must lie after the period's beginning.
    """
    window = _period(period, until)
    capacity = _capacity_facts(window)
    usage = _usage_facts(window)
    flavors = {row.flavor for row in capacity} | {row.flavor for row in usage}
    prices = list(price_facts(window, flavors))
    fillers = list(free_fillers(window, prices, flavors))
    quotas = _quota_facts(window)
    owners = _owners()
    return MonthFacts(
        Facts(
            period=window,
            teams=_billed_teams(usage, quotas, owners),
            mappings=owners,
            prices=(*prices, *fillers),
            capacity=capacity,
            usage=usage,
            quotas=quotas,
        ),
        unpriced(window, fillers, {"capacity": capacity, "usage": usage}),
    )


def _period(period: BillingPeriod, until: datetime | None = None) -> Period:
    end = period.ends_at if until is None else min(period.ends_at, until)
    return Period(instant(period.starts_at), instant(end), period.time_zone, period.currency)


def has_facts(period: BillingPeriod) -> bool:
    """Return whether anything was there or was held in the period."""
    window = _period(period)
    return (
        _inside(UsageInterval.objects.all(), window).exists()
        or _inside(CapacityInterval.objects.all(), window).exists()
    )


def staleness(period: str = "") -> "ExpressionWrapper[Q]":
    """Return whether an open month's draft is older than a price that touches it.

    A price that is set or ended takes ``rebuilt_at`` away in its own transaction; the time a
    price was written is the net for drafts that a price passed by all the same. ``period`` is
    the way to the period from the row that is asked about, like ``period__``.
    """
    newer = Price.objects.filter(
        Q(valid_to=None) | Q(valid_to__gt=OuterRef(f"{period}starts_at")),
        unit=PriceUnit.GPU_HOUR,
        valid_from__lt=OuterRef(f"{period}ends_at"),
        created_at__gt=OuterRef(f"{period}rebuilt_at"),
    )
    is_old = Q(**{f"{period}rebuilt_at": None}) | Q(Exists(newer))
    return ExpressionWrapper(
        Q(**{f"{period}status__in": DRAFTED}) & is_old, output_field=BooleanField()
    )


def stale_periods() -> QuerySet[BillingPeriod]:
    """Return the open months whose draft is out of date, oldest first."""
    return BillingPeriod.objects.filter(staleness()).order_by("name")


def open_periods_touched(start: datetime, end: datetime | None) -> QuerySet[BillingPeriod]:
    """Return the open months that have a part in ``[start, end)``, oldest first."""
    touched = BillingPeriod.objects.filter(status__in=DRAFTED, ends_at__gt=start)
    if end is not None:
        touched = touched.filter(starts_at__lt=end)
    return touched.order_by("name")


def known_flavors() -> list[str]:
    """Return the flavors that exist, and those that GPUs were metered under, by name."""
    names = set(ResourceFlavor.objects.values_list("name", flat=True))
    # Without an order: the model's own would make every row distinct.
    for rows in (CapacityInterval.objects.all(), UsageInterval.objects.all()):
        names |= set(rows.order_by().values_list("flavor", flat=True).distinct())
    return sorted(names - {""})


def first_metered_at() -> datetime | None:
    """Return the beginning of the oldest fact about GPUs, or None where nothing was metered."""
    found = [
        gpu_rows(UsageInterval.objects.all()).aggregate(first=Min("started_at")),
        gpu_rows(CapacityInterval.objects.all()).aggregate(first=Min("started_at")),
    ]
    return min((row["first"] for row in found if row["first"] is not None), default=None)


def gpu_rows(rows: QuerySet[Row]) -> QuerySet[Row]:
    """Return the rows about GPUs; an empty window is no fact."""
    return rows.filter(resource=GPU).exclude(ended_at=F("started_at"))


def _inside(rows: QuerySet[Row], window: Period) -> QuerySet[Row]:
    """Return the GPU rows with a part in ``window``."""
    start, end = moment(window.start), moment(window.end)
    return gpu_rows(rows).filter(Q(ended_at=None) | Q(ended_at__gt=start), started_at__lt=end)


@dataclass(frozen=True, slots=True)
class Promised:
    """What a team's quotas are worth over a month; ``ceiling`` None has no borrowing limit."""

    gpu_hours: Decimal
    guaranteed: Decimal
    ceiling: Decimal | None


def promised(period: BillingPeriod, team: Team) -> Promised:
    """Return nominal x hours x price of the team's queues, and the same up to their ceilings.

    Where a queue may borrow without limit there is no ceiling.
    """
    window = _period(period)
    queues = team.cluster_queues.values_list("name", flat=True)
    rows = list(_inside(QuotaInterval.objects.filter(cluster_queue__in=queues), window))
    facts = list(price_facts(window, {row.flavor for row in rows}))
    prices = InForce((price.flavor, price) for price in facts)
    slots = Slots(window, edges(facts))
    gpu_hours, guaranteed, ceiling = ZERO, ZERO, ZERO
    for row in rows:
        for slot, length in slots.of(_quota_fact(row)):
            price = prices.at(row.flavor, slots.starts[slot])
            held = hours(row.nominal * length)
            at_most = held + hours((row.borrowing_limit or 0) * length)
            gpu_hours += held
            guaranteed += held * price.gpu_hour if price else 0
            ceiling += at_most * price.gpu_hour if price else 0
    unlimited = any(row.borrowing_limit is None for row in rows)
    return Promised(
        gpu_hours=round_half_up(gpu_hours, HOURS_PLACES),
        guaranteed=round_half_up(guaranteed),
        ceiling=None if unlimited else round_half_up(ceiling),
    )


# ---- rows to facts -----------------------------------------------------------------------------
def _capacity_facts(window: Period) -> tuple[Capacity, ...]:
    # A broken or cordoned node is paid for as well: capacity cost is inventory x price.
    rows = _inside(CapacityInterval.objects.all(), window)
    return tuple(
        Capacity(
            cluster=WHOLE_CLUSTER,
            node=row.node,
            flavor=row.flavor,
            gpus=row.amount,
            start=instant(row.started_at),
            end=end_of(row.ended_at),
        )
        for row in rows
    )


def _usage_facts(window: Period) -> tuple[Usage, ...]:
    """Return what each admission held. Whose quota it was on is found anew, in exact parts.

    Metering writes a row for each ground on which GPUs are held; here they are one run again.
    """
    rows = _inside(UsageInterval.objects.select_related("team", "admission"), window)
    grounds: dict[tuple[int, str, str, str, str], list[UsageInterval]] = defaultdict(list)
    for row in rows:
        team = row.team.name if row.team else ""
        key = (row.admission_id, row.flavor, row.cluster_queue, row.namespace, team)
        grounds[key].append(row)
    return tuple(use for found in grounds.values() for use in _runs(found))


def _runs(rows: list[UsageInterval]) -> Iterator[Usage]:
    """Yield the stretches in which an admission held the same number of GPUs."""
    changes: dict[Instant, int] = defaultdict(int)
    for row in rows:
        changes[instant(row.started_at)] += row.amount
        if row.ended_at is not None:
            changes[instant(row.ended_at)] -= row.amount
    held, since = 0, 0
    for at in sorted(changes):
        if not changes[at]:
            continue
        if held:
            yield _run(rows[0], held, since, at)
        held, since = held + changes[at], at
    if held:
        yield _run(rows[0], held, since, None)


def _run(row: UsageInterval, gpus: int, start: Instant, end: Instant | None) -> Usage:
    return Usage(
        workload=str(row.workload_id),
        cluster=WHOLE_CLUSTER,
        flavor=row.flavor,
        gpus=gpus,
        start=start,
        end=end,
        admitted=instant(row.admission.admitted_at),
        queue=row.cluster_queue or None,
        namespace=row.namespace or None,
        labels={TEAM_MARK: row.team.name} if row.team else {},
    )


def _quota_facts(window: Period) -> tuple[Quota, ...]:
    """Return what queues were promised; cohorts lend to each other up to their common root."""
    parents = dict(Cohort.objects.values_list("name", "parent__name"))
    return tuple(
        replace(_quota_fact(row), cohort=_root(row.cohort, parents) or None)
        for row in _inside(QuotaInterval.objects.all(), window)
    )


def _root(cohort: str, parents: dict[str, str]) -> str:
    """Return the topmost cohort above one; a tree that runs in a circle has none beyond it."""
    passed = {cohort}
    while (parent := parents.get(cohort)) and parent not in passed:
        passed.add(parent)
        cohort = parent
    return cohort


def _quota_fact(row: QuotaInterval) -> Quota:
    return Quota(
        cluster=WHOLE_CLUSTER,
        queue=row.cluster_queue,
        flavor=row.flavor,
        nominal=row.nominal,
        borrowing_limit=row.borrowing_limit,
        lending_limit=row.lending_limit,
        start=instant(row.started_at),
        end=end_of(row.ended_at),
    )


def _owners() -> tuple[Mapping, ...]:
    """Return whose things are (decisions.md 6).

    The queue's team comes first, then the one a run was metered for, then the namespace's.
    """
    queues = ClusterQueue.objects.exclude(team=None).values_list("name", "team__name")
    namespaces = Namespace.objects.exclude(team=None).values_list("name", "team__name")
    teams = Team.objects.values_list("name", flat=True)
    return (
        *(Mapping("queue", name, team) for name, team in queues),
        *(Mapping("label", name, name, key=TEAM_MARK) for name in teams),
        *(Mapping("namespace", name, team) for name, team in namespaces),
    )


def _billed_teams(
    usage: Iterable[Usage], quotas: Iterable[Quota], owners: Iterable[Mapping]
) -> tuple[TeamFact, ...]:
    """Return the teams that used a GPU or had a quota, by name."""
    named: dict[tuple[str, str], str] = {(one.kind, one.value): one.team for one in owners}
    seen = {named.get(("queue", quota.queue)) for quota in quotas}
    for use in usage:
        marks = (
            ("queue", use.queue),
            ("label", use.labels.get(TEAM_MARK)),
            ("namespace", use.namespace),
        )
        found = (named[kind, name] for kind, name in marks if name and (kind, name) in named)
        seen.add(next(found, None))
    return tuple(TeamFact(name) for name in sorted(name for name in seen if name))


def node_shape() -> NodeShape | None:
    """Return the size of the commonest kind of known GPU node, or None where none is known."""
    shapes = Counter(
        NodeShape(
            cpus=capacity.get("cpu", 0) // MILLICORES,
            memory_gib=capacity.get("memory", 0) // GIB,
            gpus=capacity[GPU],
        )
        for capacity in Node.objects.values_list("capacity", flat=True)
        if capacity.get(GPU)
    )
    if not shapes:
        return None
    return max(shapes, key=lambda shape: (shapes[shape], shape.gpus, shape.cpus))
