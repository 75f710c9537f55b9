"""Past work as a trace, to be replayed under other promises: ``docs/concepts/replay.md``."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import QuerySet

from scheduling.models import Workload

FIELDS = (
    "id",
    "queue",
    "team",
    "submit_s",
    "duration_s",
    "gpus",
    "pods",
    "priority",
    "declared_s",
)
AT_ONCE = 2_000


def past_rows(now: datetime, days: int) -> Iterator[dict[str, object]]:
    """Yield the work of the last days that has run, in the fields of a trace, oldest first.

    Times count from the beginning of the window. What still runs has run up to ``now``; what
    was tried several times, for as long as its last run. Work outside queues and without GPUs,
    and what never ran, is left out.
    """
    since = now - timedelta(days=days)
    for row in _work(since).iterator(chunk_size=AT_ONCE):
        admissions = [one for one in row.admissions.all() if not one.is_part]
        if not admissions or row.started_at is None:
            continue
        last = max(admissions, key=lambda one: (one.admitted_at, one.pk))
        roles = list(row.pod_sets.all())
        pods = sum(role.count for role in roles)
        alike = len({tuple(sorted(role.requests.items())) for role in roles}) == 1
        gpus = row.gpus
        yield {
            "id": str(row.uid),
            "queue": last.cluster_queue,
            "team": row.team.name if row.team else "",
            "submit_s": round((row.created_at - since).total_seconds(), 6),
            "duration_s": round(((row.finished_at or now) - row.started_at).total_seconds(), 6),
            "gpus": gpus,
            "pods": pods if alike and pods and not gpus % pods else "",
            "priority": row.priority,
            "declared_s": row.expected_duration_s or "",
        }


def _work(since: datetime) -> QuerySet[Workload]:
    work = Workload.objects.filter(created_at__gte=since, started_at__isnull=False, gpus__gt=0)
    ordered = work.exclude(queue_name="").order_by("created_at", "uid")
    return ordered.select_related("team").prefetch_related("admissions", "pod_sets")
