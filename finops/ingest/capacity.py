"""What the inventory says was there, to compare a source with."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Q

from finops.metered_facts import gpu_rows
from finops.sources.rows import ZERO
from finops.sources.windows import Window
from scheduling.models import CapacityInterval

HOUR = timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)


def capacity_by_node(window: Window) -> dict[str, Decimal]:
    """Return the GPU-hours of each node in a window, healthy or not: all are paid for."""
    found: dict[str, Decimal] = defaultdict(Decimal)
    for row in _rows(window):
        start = max(row.started_at, window.start)
        end = window.end if row.ended_at is None else min(row.ended_at, window.end)
        found[row.node] += row.amount * hours_between(start, end)
    return dict(found)


def capacity_hours(by_node: Mapping[str, Decimal]) -> Decimal:
    """Return the GPU-hours of all nodes."""
    return sum(by_node.values(), ZERO)


def flavor_by_node(window: Window) -> dict[str, str]:
    """Return the flavor that each node is billed to; the last one of the window."""
    return {row.node: row.flavor for row in _rows(window)}


def hours_between(start: datetime, end: datetime) -> Decimal:
    """Return hours, exact to the microsecond."""
    return Decimal((end - start) // MICROSECOND) / (HOUR // MICROSECOND)


def _rows(window: Window) -> Iterator[CapacityInterval]:
    rows = gpu_rows(CapacityInterval.objects.all()).filter(
        Q(ended_at=None) | Q(ended_at__gt=window.start), started_at__lt=window.end
    )
    return rows.order_by("node", "started_at").iterator()
