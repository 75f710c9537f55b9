"""The counters of a kept world against those of the rows: three sums, asked now and then.

A writer that forgot to note its change shows here: every change of a workload grows its version,
and what is held is counted pod by pod. Source: ``performance.md`` 6 (feed).
"""

from collections import Counter
from collections.abc import Mapping

from django.db.models import Count, Q, Sum

from scheduling import meter
from scheduling.engine.tree import queue_key
from scheduling.engine.usage import held_usage
from scheduling.kept import Kept
from scheduling.models import Admission, Placement, UsageInterval, Workload
from scheduling.works import LIVE


def differences(kept: Kept) -> list[str]:
    """Return a sentence for each counter that is not as the rows say. 3 queries."""
    pairs = {
        "workloads": (_works(kept), _works_of_rows()),
        "pods": (_pods(kept), _pods_of_rows()),
        "metered": (_metered(kept.standing), _metered_of_rows()),
        "quota": (_booked(kept), _held(kept)),
    }
    return [
        f"{what} {key}: {mine.get(key, 0)} kept, {rows.get(key, 0)} in the rows"
        for what, (mine, rows) in pairs.items()
        for key in sorted({*mine, *rows})
        if mine.get(key, 0) != rows.get(key, 0)
    ]


def _works(kept: Kept) -> Mapping[str, object]:
    """Return how many are in each state, and the sum of their versions."""
    found: dict[str, tuple[int, int]] = {}
    for face in kept.world.faces.values():
        count, versions = found.get(face.status, (0, 0))
        found[face.status] = count + 1, versions + face.version
    return found


def _works_of_rows() -> Mapping[str, object]:
    standing = Admission.objects.filter(released_at=None).values("workload")
    live = Workload.objects.filter(Q(status__in=LIVE) | Q(uid__in=standing)).order_by()
    sums = live.values_list("status").annotate(Count("pk"), Sum("version"))
    return {status: (count, versions) for status, count, versions in sums}


def _pods(kept: Kept) -> Mapping[str, int]:
    """Return how many pods stand on each node."""
    found = Counter[str]()
    for work in kept.state.workloads.values():
        for part in work.admission.assignments if work.admission else ():
            found.update(part.nodes or {"": part.count})
    return found


def _pods_of_rows() -> Mapping[str, int]:
    rows = Placement.objects.filter(admission__released_at=None).order_by()
    return dict(rows.values_list("node").annotate(Sum("count")))


def _metered(standing: meter.Standing) -> Mapping[str, int]:
    found = Counter[str]()
    for ground, span in standing.items():
        found[f"{ground.flavor} {ground.resource}"] += span.amount
    return found


def _metered_of_rows() -> Mapping[str, int]:
    rows = UsageInterval.objects.filter(ended_at=None).order_by()
    sums = rows.values_list("flavor", "resource").annotate(Sum("amount"))
    return {f"{flavor} {resource}": amount for flavor, resource, amount in sums}


def _booked(kept: Kept) -> Mapping[str, int]:
    """Return what the books charge each queue for what still stands, by column."""
    found: dict[str, int] = {}
    books = kept.state.books
    for name, queue in kept.state.platform.cluster_queues.items():
        key = queue_key(name)
        for fr in queue.quotas:
            if amount := books.now.ledger.used(key, fr):
                found[f"{name} {fr.flavor} {fr.resource}"] = amount
    return found


def _held(kept: Kept) -> Mapping[str, int]:
    """Return what the work itself says that it holds."""
    found = Counter[str]()
    known = kept.state.platform.cluster_queues
    for work in kept.state.workloads.values():
        if (queue := known.get(work.queue or "")) is not None:
            columns = queue.quotas
            for fr, amount in held_usage(work).items():
                if fr in columns:
                    found[f"{work.queue} {fr.flavor} {fr.resource}"] += amount
    return found
