"""Counters of GPU-hours from rows: of one workload, or of a window by team, queue or workload."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Q, QuerySet

from queues.access import Actor, visible
from scheduling.counters import NAMES, Counters, Span, Stay, count
from scheduling.engine.machines import GPU
from scheduling.engine.terms import Status
from scheduling.measuring import gpu_use
from scheduling.models import Admission, UsageInterval, Workload

GROUPS = ("team", "queue", "workload")
COUNTER_COLUMNS = ("group", *(f"{name}_gpu_hours" for name in NAMES))
COLUMNS = (
    *("workload_id", "team__name", "cluster_queue", "workload__namespace", "workload__name"),
    *("amount", "started_at", "ended_at", "holding", "admission_id"),
    *("admission__started_at", "admission__eviction_reason", "admission__lost"),
)


class _Row(NamedTuple):
    """A row of metering with its admission's."""

    workload: UUID
    team: str | None
    queue: str
    namespace: str
    name: str
    span: Span
    admission: int
    stay: Stay


class WorkloadCounters(NamedTuple):
    """The counters of one workload; ``pending_s``: how long it waited in all, inactive aside."""

    hours: dict[str, Decimal | None]
    pending_s: int
    is_open: bool


def workload_counters(workload: Workload, now: datetime) -> WorkloadCounters:
    """Return what a workload has made of its GPUs so far. 2 queries and what measuring takes.

    One less where its story was read.
    """
    rows = _rows(UsageInterval.objects.filter(workload=workload, resource=GPU))
    total = sum((found for _, found in _counted(rows, None, now)), Counters())
    measured = gpu_use([workload.pk], None, now).get(workload.pk) if total.held else None
    total = replace(total, measured=measured)
    return WorkloadCounters(total.hours(), _pending_s(workload, now), total.open)


def counters_by(
    actor: Actor, by: str, start: datetime, end: datetime
) -> Iterator[tuple[str, Counters]]:
    """Yield the counters of what the actor sees of a window, by name of the group.

    By whom metering wrote down; what no team or queue had stands under "".
    """
    touching = UsageInterval.objects.filter(resource=GPU, started_at__lt=end)
    touching = touching.filter(Q(ended_at=None) | Q(ended_at__gt=start))
    rows = _rows(visible(touching, actor))
    found: dict[str, Counters] = defaultdict(Counters)
    group_of: dict[UUID, str] = {}
    for row, counted in _counted(rows, start, end):
        name = group_of[row.workload] = _name(row, by)
        found[name] += counted
    for workload, measured in gpu_use(None, start, end).items():
        if workload in group_of:  # of others it is not for this reader, or held nothing
            found[group_of[workload]] += Counters(measured=measured)
    yield from sorted(found.items())


def counter_cells(name: str, counters: Counters) -> dict[str, Any]:
    """Return counters as files and answers have them."""
    hours = counters.hours()
    return {"group": name} | {f"{one}_gpu_hours": hours[one] for one in NAMES}


def _name(row: _Row, by: str) -> str:
    names = {"team": row.team or "", "queue": row.queue}
    return names.get(by, f"{row.namespace}/{row.name}")


def _rows(rows: QuerySet[UsageInterval]) -> Iterator[_Row]:
    for row in rows.order_by("admission_id").values_list(*COLUMNS).iterator(chunk_size=2_000):
        workload, team, queue, namespace, name, gpus, start, end, holding, admission = row[:10]
        stay = Stay(row[10], row[11], tuple(row[12]))
        span = Span(gpus, start, end, holding)
        yield _Row(workload, team, queue, namespace, name, span, admission, stay)


def _counted(
    rows: Iterator[_Row], start: datetime | None, end: datetime
) -> Iterator[tuple[_Row, Counters]]:
    """Yield the counters of each admission, with the first of its rows."""
    stays: dict[int, list[_Row]] = {}
    for row in rows:
        stays.setdefault(row.admission, []).append(row)
    for found in stays.values():
        yield found[0], count(found[0].stay, [row.span for row in found], start, end)


def _pending_s(workload: Workload, now: datetime) -> int:
    """Return how many seconds it waited: neither admitted nor inactive, and not over."""
    end = workload.finished_at or now
    known: Iterable[Admission] | None = getattr(workload, "stays", None)  # a story has read them
    stays = workload.admissions.filter(is_part=False) if known is None else known
    away = [(stay.admitted_at, stay.evicted_at or stay.released_at or end) for stay in stays]
    since = None
    for event in sorted(workload.events.all(), key=lambda one: one.pk):  # often read already
        if event.kind == "deactivated":
            since = event.at
        elif event.kind == "reactivated" and since is not None:
            away.append((since, event.at))
            since = None
    if since is not None and workload.status != Status.PENDING:
        away.append((since, end))
    waited, reached = timedelta(), workload.created_at
    for first, last in sorted(away):
        waited += max(timedelta(), min(first, end) - reached)
        reached = max(reached, last)
    waited += max(timedelta(), end - reached)
    return round(waited.total_seconds())
