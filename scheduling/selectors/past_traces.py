"""Past work of a window as the engine knows work: what is replayed under other quotas.

Unlike a trace in a file it has every pod set with its requests, places and minima.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet

from scheduling.engine.snapshot import Snapshot
from scheduling.engine.snapshot import Workload as Work
from scheduling.models import Admission, Workload
from scheduling.readers import lasts
from scheduling.replay.tape import Span, Stay
from scheduling.replay.trace import Arrival, Trace, trace
from scheduling.shapes import pod_sets_of
from scheduling.works import RoleRow, roles_in, texts_of

COLUMNS = (
    *("uid", "namespace", "name", "queue_name", "ceiling_queue", "team__name", "priority"),
    *("min_member", "preemptible", "stateless", "expected_duration_s", "max_execution_time_s"),
    *("checkpoint_interval_s", "created_at", "started_at", "finished_at"),
    *("labels", "annotations"),
)
NEVER_RAN, NO_QUEUE = "never_ran", "no_queue"


class Run(NamedTuple):
    """The last run of a workload; ``queued_at``: it had been evicted before, and waited since."""

    queue: str
    started_at: datetime
    evicted_at: datetime | None
    queued_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Marks:
    """By what a bill finds whose a workload is; ``team`` "" is nobody's."""

    namespace: str
    team: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Past:
    """What is played of a window, and what really became of it.

    ``was``: the stays of what was submitted in the window; ``marks`` by key. ``left_out``: how
    many there were that cannot be played: ``never_ran``, or in ``no_queue`` that is still there.
    """

    trace: Trace
    was: tuple[Stay, ...]
    marks: Mapping[str, Marks]
    left_out: Mapping[str, int]


def span_between(since: datetime, until: datetime) -> Span:
    """Return a window as a replay counts it."""
    return Span(since.timestamp(), until.timestamp())


def count_past(since: datetime, until: datetime) -> int:
    """Return how many workloads with GPUs waited or ran in a window. 1 query."""
    return _inside(since, until).count()


def past_trace(site: Snapshot, since: datetime, until: datetime, now: datetime) -> Past:
    """Return the work that waited or ran in a window, each with the length of its last run.

    What still runs has run up to ``now``. What came before the window is played as well, from
    when it last waited, so that the window begins with a cluster that is as full as it was.
    3 queries.
    """
    inside = _inside(since, until)
    scope = inside.order_by().values("uid")
    runs, roles = _runs(scope), roles_in(scope)
    found, left_out = _Found(site, span_between(since, until), now), Counter[str]()
    texts = texts_of(("role_minima",))
    rows = inside.order_by("created_at", "uid").annotate(**texts)
    for row in rows.values_list(*COLUMNS, *texts, named=True).iterator(chunk_size=2_000):
        run = runs.get(row.uid)
        if run is None or not roles[row.uid]:
            left_out[NEVER_RAN] += 1
        elif run.queue not in site.cluster_queues:
            left_out[NO_QUEUE] += 1
        else:
            found.add(row, run, roles[row.uid])
    played = trace("past work", found.arrivals)
    return Past(played, tuple(found.stays), found.marks, dict(left_out))


def _inside(since: datetime, until: datetime) -> QuerySet[Workload]:
    ended_inside = Q(finished_at=None) | Q(finished_at__gt=since)
    return Workload.everything.filter(ended_inside, gpus__gt=0, created_at__lt=until)


def _runs(scope: Any) -> dict[UUID, Run]:
    """Return the last run of each workload."""
    ran = Admission.objects.filter(workload__in=scope, is_part=False, started_at__isnull=False)
    columns = ("workload_id", "cluster_queue", "started_at", "evicted_at")
    lines = ran.order_by("admitted_at", "id").values_list(*columns)
    found: dict[UUID, Run] = {}
    for uid, queue, started_at, evicted_at in lines.iterator(chunk_size=2_000):
        before = found.get(uid)
        since = before.evicted_at if before else None
        found[uid] = Run(queue, started_at, evicted_at, since)
    return found


class _Found:
    """Collects arrivals, stays and marks."""

    def __init__(self, site: Snapshot, counted: Span, now: datetime) -> None:
        self._site, self._counted, self._now = site, counted, now
        self.arrivals: list[Arrival] = []
        self.stays: list[Stay] = []
        self.marks: dict[str, Marks] = {}

    def add(self, row: Any, run: Run, roles: list[RoleRow]) -> None:
        """Add one workload that has run."""
        started = max(run.started_at, row.started_at or run.started_at)
        ended = row.finished_at or run.evicted_at or self._now
        runs_s = max(0.0, (ended - started).total_seconds())
        team = row.team__name or ""
        # Played from its submission, a late run of old work would be over before the window.
        is_old = not self._counted.holds(row.created_at.timestamp())
        since = run.queued_at if is_old and run.queued_at else row.created_at
        arrival = Arrival(self._work(row, run, roles, since), runs_s, team)
        self.arrivals.append(arrival)
        key, submitted_s = arrival.workload.key, arrival.workload.created_at
        self.marks[key] = Marks(row.namespace, team, row.labels, row.annotations)
        if self._counted.holds(submitted_s):
            waited_s = max(0.0, ended.timestamp() - submitted_s - runs_s)
            ended_s = ended.timestamp()
            stay = Stay(key, run.queue, team, arrival.gpus, submitted_s, ended_s, waited_s)
            self.stays.append(stay)

    def _work(self, row: Any, run: Run, roles: list[RoleRow], since: datetime) -> Work:
        door = f"{row.namespace}/{row.queue_name}"
        shapes = tuple(role.shape for role in roles)
        rules = settings.RESOURCE_TRANSFORMATIONS
        pod_sets, least = pod_sets_of(shapes, row.min_member, row.role_minima_text, rules)
        known = self._site.cluster_queues
        return Work(
            key=str(row.uid),
            name=f"{row.namespace}/{row.name}",
            queue=run.queue,
            priority=row.priority,
            created_at=since.timestamp(),
            pod_sets=pod_sets,
            preemptible=row.preemptible,
            ceiling_queue=row.ceiling_queue if row.ceiling_queue in known else None,
            local_queue=door if door in self._site.local_queues else "",
            duration_s=lasts(row.expected_duration_s, row.max_execution_time_s),
            stateless=row.stateless,
            checkpoint_interval_s=row.checkpoint_interval_s,
            min_member=least,
        )
