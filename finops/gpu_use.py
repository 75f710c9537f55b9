"""How busy the GPUs of our own work were, from the days that sources of utilisation were read.

DCGM's exporter knows namespace and pod; a pod belongs to the work whose name it begins with, as
hosts name pods (``train-worker-0-x7k2p`` of ``train``), or to the admission that its member's name
begins with, as our agents name members (``12.1.worker.0.1@node-3``).
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Coalesce

from finops.models import GpuUseRow
from gpuplatform.common import clock
from scheduling.counters import Measured
from scheduling.models import Admission

MEMBER = re.compile(r"([1-9]\d{0,18})\.\d+\.", re.ASCII)
DAY = timedelta(days=1)
MEMBERS_OF = 50  # admissions of which members are looked for by name: the newest


class Stay(NamedTuple):
    """Work that was admitted from ``start`` to ``end``."""

    workload: UUID
    start: datetime
    end: datetime

    def overlap(self, day: date) -> timedelta:
        """Return how much of a day it covers; days of all time zones count, so up to 50 hours."""
        midnight = datetime.combine(day, datetime.min.time(), UTC)
        first, last = max(self.start, midnight - DAY), min(self.end, midnight + 2 * DAY)
        return max(timedelta(), last - first)


class Names:
    """Who was called what, and when."""

    def __init__(self, workloads: Collection[UUID] | None, start: datetime | None) -> None:
        rows = Admission.objects.order_by("pk")
        if workloads is not None:
            rows = rows.filter(workload__in=workloads)
        if start is not None:
            rows = rows.filter(Q(released_at=None) | Q(released_at__gt=start - DAY))
        self._by_admission: dict[int, UUID] = {}
        self._by_name: dict[tuple[str, str], list[Stay]] = defaultdict(list)
        columns = ("pk", "workload_id", "workload__namespace", "workload__name", "admitted_at")
        ended = Coalesce("released_at", clock.now() + DAY)
        for pk, uid, namespace, name, begun, end in rows.values_list(*columns, ended):
            self._by_admission[pk] = uid
            self._by_name[namespace, name].append(Stay(uid, begun, end))

    def asked(self) -> Q:
        """Return the condition on rows that can be of this work: its namespace or its members."""
        stays = [stay for found in self._by_name.values() for stay in found]
        since = min((stay.start for stay in stays), default=clock.now())
        whose = Q(namespace__in={namespace for namespace, _ in self._by_name})
        for pk in list(self._by_admission)[-MEMBERS_OF:]:
            whose |= Q(pod__startswith=f"{pk}.")
        return whose & Q(day__gte=since.date() - DAY)

    def owner(self, namespace: str, pod: str, day: date) -> UUID | None:
        """Return whose a pod was: of several by the same name, of who stood longest that day."""
        member = MEMBER.match(pod)
        if member and (found := self._by_admission.get(int(member[1]))):
            return found
        for name in _prefixes(pod):
            stays = [s for s in self._by_name.get((namespace, name), ()) if s.overlap(day)]
            if stays:
                return max(stays, key=lambda stay: (stay.overlap(day), stay.start)).workload
        return None


def _prefixes(pod: str) -> Iterable[str]:
    """Yield a pod's name and what stands before each of its hyphens, the longest first."""
    yield pod
    while "-" in pod:
        pod = pod.rpartition("-")[0]
        yield pod


def measured_use(
    workloads: Collection[UUID] | None, start: datetime | None, end: datetime
) -> Mapping[UUID, Measured]:
    """Return what was measured of workloads (None: of all) on the days from ``start`` to ``end``.

    Days are those of the source, whole: the first is that of ``start``. What no work of ours is
    known for is nobody's and left out. 2 queries.
    """
    names = Names(workloads, start)
    rows = GpuUseRow.objects.filter(day__lt=end.date() + DAY).order_by()
    if start is not None:
        rows = rows.filter(day__gte=start.date())
    if end == end.replace(hour=0, minute=0, second=0, microsecond=0):
        rows = rows.filter(day__lt=end.date())
    if workloads is not None:
        rows = rows.filter(names.asked())
    found: dict[UUID, Measured] = defaultdict(Measured)
    columns = ("namespace", "pod", "day", "sampled_gpu_hours", "busy_gpu_hours", "idle_gpu_hours")
    for namespace, pod, day, sampled, busy, idle in rows.values_list(*columns).iterator():
        if pod and (owner := names.owner(namespace, pod, day)):
            found[owner] += Measured(sampled, busy, idle)
    return found
