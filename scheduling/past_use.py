"""Past use that fades, from the rows: of cluster queues once, of local queues cycle by cycle.

What the engine remembers of cluster queues travels in its memory from cycle to cycle. Where there
is no such memory yet, or nobody looked for a while and ends are noticed late, the usage intervals
say what it would hold: they are the truth.

The local queues of a cluster queue that goes by usage are brought forward here; the cycle's row
keeps them, so that each cycle reads the intervals since the last.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from django.db.models import Q, QuerySet

from queues.choices import AdmissionOrder
from queues.models import LocalQueue
from scheduling.engine import snapshot as engine
from scheduling.engine.history import brought_forward
from scheduling.engine.snapshot import HALF_LIFE_S, Decayed
from scheduling.models import UsageInterval
from scheduling.routes import Doors

HALF_LIVES = 20  # beyond which a GPU-hour counts less than a millionth
PAUSE = timedelta(minutes=1)  # between two cycles, after which the rows are asked again
NO_WEIGHT = 1e15  # GPU-hours that a door without weight is ahead of every other
Stretch = tuple[int, datetime, datetime | None]  # GPUs, from, to


@dataclass(frozen=True, slots=True)
class LocalUse:
    """Decayed GPU-hours of local queues (``namespace/name``) at ``at``; None: never counted."""

    at: datetime | None = None
    hours: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """Return what a cycle's row keeps."""
        return cls(datetime.fromisoformat(kept["at"]), kept["hours"]) if kept else cls()

    def as_json(self) -> dict[str, Any]:
        """Return what the cycle's row is to keep; nothing where nobody goes by usage."""
        return {"at": self.at.isoformat(), "hours": dict(self.hours)} if self.at else {}


def hours_of(stretches: Iterable[Stretch], since: datetime | None, now: datetime) -> float:
    """Return the GPU-hours of ``stretches`` after ``since``, as far as they count at ``now``."""
    total = 0.0
    for gpus, start, end in stretches:
        first = start if since is None else max(start, since)
        last = min(end or now, now)
        if last > first:
            held = Decayed(0.0, float(gpus), first.timestamp())
            then = brought_forward(held, last.timestamp(), HALF_LIFE_S)
            past = Decayed(then, 0.0, last.timestamp())
            total += brought_forward(past, now.timestamp(), HALF_LIFE_S)
    return total


def history_of_rows(now: datetime) -> dict[str, Decayed]:
    """Return the decayed GPU-hours of every cluster queue from its intervals. 1 query."""
    rows = _after(now - timedelta(seconds=HALF_LIVES * HALF_LIFE_S)).exclude(cluster_queue="")
    stretches: dict[str, list[Stretch]] = {}
    columns = rows.values_list("cluster_queue", "amount", "started_at", "ended_at")
    for queue, amount, start, end in columns.iterator(chunk_size=2_000):
        stretches.setdefault(queue, []).append((amount, start, end))
    at = now.timestamp()
    return {
        queue: Decayed(hours_of(found, None, now), 0.0, at)
        for queue, found in sorted(stretches.items())
    }


def local_use(doors: Doors, last: LocalUse, now: datetime) -> LocalUse:
    """Return the decayed GPU-hours of the local queues in cluster queues that go by usage.

    What is known at the last cycle fades; the intervals since are added exactly. 1 query, none
    where nobody goes by usage.
    """
    names = [
        name
        for name, row in doors.cluster_queues.items()
        if row.admission_order == AdmissionOrder.USAGE
    ]
    if not names:
        return LocalUse()
    since = last.at or now - timedelta(seconds=HALF_LIVES * HALF_LIFE_S)
    found: dict[str, list[Stretch]] = {}
    rows = _after(since).filter(cluster_queue__in=names)
    columns = rows.values_list(
        "workload__namespace", "workload__queue_name", "amount", "started_at", "ended_at"
    )
    for namespace, name, amount, start, end in columns.iterator(chunk_size=2_000):
        found.setdefault(f"{namespace}/{name}", []).append((amount, start, end))
    keys = sorted({*last.hours, *found})
    faded = {key: _faded(last, key, now) for key in keys}
    return LocalUse(
        now, {key: faded[key] + hours_of(found.get(key, ()), since, now) for key in keys}
    )


def _after(since: datetime) -> QuerySet[UsageInterval]:
    """Return the intervals that reach beyond an instant."""
    rows = UsageInterval.objects.order_by()
    return rows.filter(Q(ended_at=None) | Q(ended_at__gt=since))


def _faded(last: LocalUse, key: str, now: datetime) -> float:
    if last.at is None:
        return 0.0
    past = Decayed(last.hours.get(key, 0.0), 0.0, last.at.timestamp())
    return brought_forward(past, now.timestamp(), HALF_LIFE_S)


def local_queues(rows: Iterable[LocalQueue], use: LocalUse) -> dict[str, engine.LocalQueue]:
    """Return the doors as the engine sees them, each with what it used over its weight."""
    return {
        str(row): engine.LocalQueue(
            str(row), row.cluster_queue, _weighed(use.hours.get(str(row), 0.0), row)
        )
        for row in rows
    }


def _weighed(hours: float, row: LocalQueue) -> float:
    """Return GPU-hours over weight; without weight one comes after everybody else."""
    return hours / float(row.fair_weight) if row.fair_weight > 0 else NO_WEIGHT + hours
