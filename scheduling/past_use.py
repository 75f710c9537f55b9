"""Past use that fades, from the rows, where no cycle has carried it.

What the engine remembers of queues travels in its memory from cycle to cycle. Where there is no
such memory yet, or nobody looked for a while and ends are noticed late, the usage intervals say
what it would hold: they are the truth, of GPUs.
"""

import math
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from queues.choices import AdmissionOrder
from queues.models import LocalQueue
from scheduling.engine import queue_rules as engine
from scheduling.engine.decay import LOCAL_HALF_LIFE_S, Consumed, Decayed, UsageDecay
from scheduling.engine.history import HOUR_S, brought_forward
from scheduling.engine.snapshot import HALF_LIFE_S
from scheduling.models import UsageInterval
from scheduling.routes import Doors

HALF_LIVES = 20  # beyond which a GPU-hour counts less than a millionth
PAUSE = timedelta(minutes=1)  # between two cycles, after which the rows are asked again
USAGE_DECAY = UsageDecay()
Stretch = tuple[int, datetime, datetime | None]  # GPUs, from, to


def hours_of(
    stretches: Iterable[Stretch], now: datetime, half_life_s: float = HALF_LIFE_S
) -> float:
    """Return the GPU-hours of ``stretches``, as far as they still count at ``now``."""
    total = 0.0
    for gpus, start, end in stretches:
        last = min(end or now, now)
        if last > start:
            held = Decayed(0.0, float(gpus), start.timestamp())
            then = brought_forward(held, last.timestamp(), half_life_s)
            past = Decayed(then, 0.0, last.timestamp())
            total += brought_forward(past, now.timestamp(), half_life_s)
    return total


def history_of_rows(now: datetime) -> dict[str, Decayed]:
    """Return the decayed GPU-hours of every cluster queue from its intervals. 1 query."""
    rows = _within(HALF_LIVES * HALF_LIFE_S, now).exclude(cluster_queue="")
    stretches: dict[str, list[Stretch]] = {}
    columns = rows.values_list("cluster_queue", "amount", "started_at", "ended_at")
    for queue, amount, start, end in columns.iterator(chunk_size=2_000):
        stretches.setdefault(queue, []).append((amount, start, end))
    at = now.timestamp()
    return {
        queue: Decayed(hours_of(found, now), 0.0, at) for queue, found in sorted(stretches.items())
    }


def consumption_of_rows(
    doors: Doors, known: Collection[str], now: datetime
) -> dict[str, Consumed]:
    """Return what local queues consumed of cluster queues that go by usage, as GPUs held.

    A moving average of what was held. Asked are the queues of which nothing is ``known`` (names
    of local queues) yet. 1 query; none where there are no such queues.
    """
    old = {row.cluster_queue for row in doors.local_queues.values() if str(row) in known}
    names = [
        name
        for name, row in doors.cluster_queues.items()
        if row.admission_order == AdmissionOrder.USAGE and name not in old
    ]
    if not names:
        return {}
    rows = _within(HALF_LIVES * LOCAL_HALF_LIFE_S, now).filter(cluster_queue__in=names)
    columns = rows.values_list(
        "workload__namespace",
        "workload__queue_name",
        "resource",
        "amount",
        "started_at",
        "ended_at",
    )
    found: dict[str, dict[str, list[Stretch]]] = {}
    for namespace, name, resource, amount, start, end in columns.iterator(chunk_size=2_000):
        parts = found.setdefault(f"{namespace}/{name}", {})
        parts.setdefault(resource, []).append((amount, start, end))
    return {
        key: Consumed(
            {resource: _average(parts, now) for resource, parts in sorted(resources.items())},
            {},
            now.timestamp(),
        )
        for key, resources in sorted(found.items())
    }


def _average(stretches: Iterable[Stretch], now: datetime) -> float:
    """Return how many GPUs were held on average, what is long ago counting less."""
    hours = hours_of(stretches, now, LOCAL_HALF_LIFE_S)
    return hours * HOUR_S * math.log(2.0) / LOCAL_HALF_LIFE_S


def _within(seconds: float, now: datetime) -> QuerySet[UsageInterval]:
    """Return the intervals that reach into the last ``seconds``."""
    since = now - timedelta(seconds=seconds)
    rows = UsageInterval.objects.order_by()
    return rows.filter(Q(ended_at=None) | Q(ended_at__gt=since))


def local_queues(rows: Iterable[LocalQueue]) -> dict[str, engine.LocalQueue]:
    """Return the doors as the engine sees them."""
    return {
        str(row): engine.LocalQueue(
            str(row), row.cluster_queue, fair_weight=float(row.fair_weight)
        )
        for row in rows
    }
