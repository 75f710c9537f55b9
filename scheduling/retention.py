"""What has ended is forgotten in time: workloads by their own word or the platform's, and stories.

What was metered stays, for bills rest on it: of a workload that held GPUs the row is kept, out of
sight, with its labels and what it was charged to. Source: ``admission.md`` K53, ``placement.md``
1.12 (ttlSecondsAfterFinished).
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from scheduling.engine.terms import Status
from scheduling.models import (
    Admission,
    CheckState,
    MemberEnd,
    Placement,
    UsageInterval,
    Workload,
    WorkloadEvent,
)

BATCH = 200  # workloads of one transaction
MOST = 10_000  # of one run; what is left waits for the next


def forget_finished(now: datetime) -> int:
    """Archive or delete the finished work whose time has come; return how much it was."""
    due = list(islice(_due(now), MOST))
    for start in range(0, len(due), BATCH):
        _forget(due[start : start + BATCH], now)
    return len(due)


def forget_stories(now: datetime) -> int:
    """Delete old lines of the stories of work that has ended; return how many."""
    if settings.EVENTS_KEPT_DAYS is None:
        return 0
    before = now - timedelta(days=settings.EVENTS_KEPT_DAYS)
    ended = Workload.everything.filter(status=Status.FINISHED, finished_at__lt=before)
    lines = WorkloadEvent.objects.filter(workload__in=ended, at__lt=before)
    keys = list(lines.order_by("id").values_list("pk", flat=True)[:MOST])
    for start in range(0, len(keys), BATCH):
        WorkloadEvent.objects.filter(pk__in=keys[start : start + BATCH]).delete()
    return len(keys)


def _due(now: datetime) -> Iterator[UUID]:
    """Yield finished work that is kept no longer; none of it holds anything."""
    ended = _ended().order_by("finished_at")
    for uid, at, ttl_s in ended.exclude(ttl_s=None).values_list("pk", "finished_at", "ttl_s"):
        if at is not None and at + timedelta(seconds=ttl_s or 0) <= now:
            yield uid
    if settings.FINISHED_KEPT_DAYS is not None:
        before = now - timedelta(days=settings.FINISHED_KEPT_DAYS)
        old = ended.filter(ttl_s=None, finished_at__lte=before)
        yield from old.values_list("pk", flat=True)


def _ended() -> QuerySet[Workload]:
    holding = Admission.objects.filter(workload=OuterRef("pk"), released_at=None)
    return Workload.objects.filter(~Exists(holding), status=Status.FINISHED)


@transaction.atomic
def _forget(uids: list[UUID], now: datetime) -> None:
    metered = set(
        UsageInterval.objects.filter(workload__in=uids).values_list("workload_id", flat=True)
    )
    Workload.objects.filter(pk__in=[uid for uid in uids if uid not in metered]).delete()
    WorkloadEvent.objects.filter(workload__in=metered).delete()
    CheckState.objects.filter(workload__in=metered).delete()
    MemberEnd.objects.filter(admission__workload__in=metered).delete()
    Placement.objects.filter(admission__workload__in=metered).delete()
    Workload.objects.filter(pk__in=metered).update(archived_at=now, template=None, warnings=[])
