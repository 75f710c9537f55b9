"""Rows of metering and prices to the facts of a bill, in a fixed number of queries."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TypeVar, cast

from django.db.models import BooleanField, Exists, ExpressionWrapper, F, Min, OuterRef, Q, QuerySet

from finops.allocation.draft.facts import (
    CapacityFact,
    Facts,
    Holding,
    Period,
    PriceFact,
    QuotaFact,
    UsageFact,
    Window,
)
from finops.allocation.draft.metering import clip
from finops.allocation.draft.pricing import PriceList
from finops.allocation.money import HOURS_PLACES, ZERO, round_half_up
from finops.models import BillingPeriod, Price
from finops.models.prices import PriceUnit
from finops.specs import EVERY_FLAVOR, NodeShape
from queues.models import ClusterQueue, Namespace, ResourceFlavor, Team
from scheduling.models import CapacityInterval, Node, QuotaInterval, UsageInterval

GPU = "nvidia.com/gpu"
OPEN = "open"
MILLICORES = 1000
GIB = 1024**3
Row = TypeVar("Row", CapacityInterval, QuotaInterval, UsageInterval)


def load_facts(period: BillingPeriod, until: datetime) -> Facts:
    """Return everything the bill of ``period`` rests on, up to ``until`` where that is earlier.

    A draft of a month that is still going on bills what has passed of it and no more.
    ``until`` must lie after the period's beginning.
    """
    window = Period(
        period.starts_at, min(period.ends_at, until), period.time_zone, period.currency
    )
    capacity = _capacity_facts(window.window)
    usage = _usage_facts(window.window)
    flavors = {fact.flavor for fact in capacity} | {fact.flavor for fact in usage}
    return Facts(
        period=window,
        prices=tuple(_price_facts(window, flavors)),
        capacity=capacity,
        usage=usage,
        quotas=_quota_facts(window.window),
    )


def has_facts(period: BillingPeriod) -> bool:
    """Return whether anything was there or was held in the period."""
    window = Window(period.starts_at, period.ends_at)
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
    return ExpressionWrapper(Q(**{f"{period}status": OPEN}) & is_old, output_field=BooleanField())


def stale_periods() -> QuerySet[BillingPeriod]:
    """Return the open months whose draft is out of date, oldest first."""
    return BillingPeriod.objects.filter(staleness()).order_by("name")


def open_periods_touched(start: datetime, end: datetime | None) -> QuerySet[BillingPeriod]:
    """Return the open months that have a part in ``[start, end)``, oldest first."""
    touched = BillingPeriod.objects.filter(status=OPEN, ends_at__gt=start)
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


def _inside(rows: QuerySet[Row], window: Window) -> QuerySet[Row]:
    """Return the GPU rows with a part in ``window``."""
    return gpu_rows(rows).filter(
        Q(ended_at=None) | Q(ended_at__gt=window.start), started_at__lt=window.end
    )


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
    window = Period(period.starts_at, period.ends_at, period.time_zone, period.currency)
    queues = team.cluster_queues.values_list("name", flat=True)
    rows = list(_inside(QuotaInterval.objects.filter(cluster_queue__in=queues), window.window))
    prices = PriceList(_price_facts(window, {row.flavor for row in rows}))
    hours, guaranteed, ceiling = ZERO, ZERO, ZERO
    for row in rows:
        part = clip(row.started_at, row.ended_at, window.window)
        for piece in prices.pieces(row.flavor, part) if part else ():
            hours += row.nominal * piece.hours
            guaranteed += piece.cost(row.nominal * piece.hours)
            ceiling += piece.cost((row.nominal + (row.borrowing_limit or 0)) * piece.hours)
    unlimited = any(row.borrowing_limit is None for row in rows)
    return Promised(
        gpu_hours=round_half_up(hours, HOURS_PLACES),
        guaranteed=round_half_up(guaranteed),
        ceiling=None if unlimited else round_half_up(ceiling),
    )


def _capacity_facts(window: Window) -> tuple[CapacityFact, ...]:
    # A broken or cordoned node is paid for as well: capacity cost is inventory x price.
    rows = _inside(CapacityInterval.objects.all(), window)
    return tuple(
        CapacityFact(row.node, row.flavor, row.amount, row.started_at, row.ended_at)
        for row in rows
    )


def _usage_facts(window: Window) -> tuple[UsageFact, ...]:
    rows = _inside(UsageInterval.objects.select_related("team"), window)
    owners = dict(Namespace.objects.exclude(team=None).values_list("name", "team__name"))
    return tuple(
        UsageFact(
            workload=str(row.workload_id),
            team=row.team.name if row.team else owners.get(row.namespace),
            queue=row.cluster_queue,
            flavor=row.flavor,
            gpus=row.amount,
            holding=cast("Holding", row.holding),
            lender=row.lender or None,
            start=row.started_at,
            end=row.ended_at,
        )
        for row in rows
    )


def _quota_facts(window: Window) -> tuple[QuotaFact, ...]:
    rows = _inside(QuotaInterval.objects.all(), window)
    owners = dict(ClusterQueue.objects.exclude(team=None).values_list("name", "team__name"))
    return tuple(
        QuotaFact(
            queue=row.cluster_queue,
            team=owners.get(row.cluster_queue),
            flavor=row.flavor,
            nominal=row.nominal,
            start=row.started_at,
            end=row.ended_at,
        )
        for row in rows
    )


def _price_facts(period: Period, flavors: Iterable[str]) -> Iterator[PriceFact]:
    """Yield the prices of each flavor; where it has none of its own, the price for all."""
    rows = Price.objects.filter(unit=PriceUnit.GPU_HOUR, currency=period.currency)
    own = [_price_fact(row) for row in rows if row.subject != EVERY_FLAVOR]
    shared = [_price_fact(row) for row in rows if row.subject == EVERY_FLAVOR]
    prices = PriceList(own)
    for flavor in sorted(set(flavors)):
        for piece in prices.pieces(flavor, period.window):
            if piece.unit_price is not None:
                yield PriceFact(flavor, piece.unit_price, piece.window.start, piece.window.end)
                continue
            for price in shared:
                part = clip(price.start, price.end, piece.window)
                if part is not None:
                    yield PriceFact(flavor, price.gpu_hour, part.start, part.end)


def _price_fact(row: Price) -> PriceFact:
    return PriceFact(row.subject, row.amount, row.valid_from, row.valid_to)


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
