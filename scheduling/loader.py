"""Rows in, snapshot out: the only way from tables to the engine, in a fixed number of queries."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.conf import settings
from django.db.models import Max

from gpuplatform.common import clock, leases
from gpuplatform.common.models import Change
from queues.models import ResourceFlavor
from scheduling import models as rows
from scheduling.engine import codec
from scheduling.engine.snapshot import Memory, Snapshot
from scheduling.faces import Face, Held
from scheduling.minima import Role
from scheduling.past_use import (
    PAUSE,
    USAGE_DECAY,
    consumption_of_rows,
    history_of_rows,
    local_queues,
)
from scheduling.readers import (
    cluster_queue_of,
    flavor_of,
    moving_of,
    node_of,
    patience_of,
    read_cohorts,
    read_quotas,
    read_topologies,
)
from scheduling.recent import recent
from scheduling.routes import Doors, load_doors
from scheduling.works import Works, read_works


@dataclass(frozen=True, slots=True)
class Loaded:
    """A snapshot, and the rows that a writer needs to notice that something has changed since.

    ``admissions`` holds the open one of each workload, by the workload's key, and ``faces`` what
    else its row says. ``previous_at`` is the instant of the last cycle, ``last_cycle`` its number,
    ``last_change`` the number of the newest change seen, ``resized_at`` the last instant at which
    running work began to hold less.
    """

    now: datetime
    snapshot: Snapshot
    doors: Doors
    nodes: Mapping[str, rows.Node]
    admissions: dict[str, Held]
    previous_at: datetime | None
    last_change: int
    resized_at: datetime | None = None
    faces: dict[str, Face] = field(default_factory=dict)
    last_cycle: int = 0


def load_snapshot(now: datetime | None = None) -> Snapshot:
    """Return the world as it stands in the tables; ``now`` defaults to the clock."""
    return load(now).snapshot


def load_platform(now: datetime | None = None, doors: Doors | None = None) -> Snapshot:
    """Return hardware and promises as they stand in the tables, without work and memory.

    ``doors``: where they were read already.
    """
    nodes = {row.name: row for row in rows.Node.objects.all()}
    return _platform(now or clock.now(), doors or load_doors(), nodes)


def load(now: datetime | None = None, *, waiting: bool = True, promised: bool = False) -> Loaded:
    """Read everything that a cycle may depend on, in a number of queries that never grows.

    Only live workloads, and those whose pods still stand, are read; without ``waiting`` only
    what holds something; with ``promised`` also the gangs for which room is kept. The number of
    the newest change is read first: what is committed while the rest is being read counts as not
    seen.
    """
    now = now or clock.now()
    last_change = Change.objects.aggregate(last=Max("id"))["last"] or 0
    last_cycle = rows.Cycle.objects.order_by("-id").only("at", "memory").first()
    doors = load_doors()
    node_rows = {row.name: row for row in rows.Node.objects.all()}
    platform = _platform(now, doors, node_rows)
    if waiting:
        platform = replace(platform, shapes=recent(now))
    memory = _memory(last_cycle, doors, now)
    kept_for = [one.workload for one in memory.reservations] if promised else []
    works = read_works(doors, waiting=waiting, also=kept_for)
    snapshot = replace(platform, workloads=tuple(works.workloads), memory=memory)
    return Loaded(
        now,
        snapshot,
        doors,
        node_rows,
        works.held,
        last_cycle.at if last_cycle else None,
        last_change,
        resized_at=resized_at(works),
        faces=works.faces,
        last_cycle=last_cycle.pk if last_cycle else 0,
    )


def load_standing(now: datetime) -> Snapshot:
    """Return the world without work that holds nothing, and which pods came lately.

    Gangs for which room is kept are there: what pages show of nodes and of who holds them rests
    on no more, however many wait.
    """
    return replace(load(now, waiting=False, promised=True).snapshot, shapes=recent(now))


def _platform(now: datetime, doors: Doors, node_rows: Mapping[str, rows.Node]) -> Snapshot:
    """Return hardware and promises, without work and memory."""
    flavors = {row.name: flavor_of(row) for row in ResourceFlavor.objects.all()}
    topologies = read_topologies()
    nodes = tuple(node_of(row) for row in node_rows.values())
    quotas = read_quotas()
    cohorts = read_cohorts(quotas, doors, flavors, nodes)
    return Snapshot(
        now=now.timestamp(),
        flavors=flavors,
        topologies=topologies,
        nodes=nodes,
        cohorts=cohorts,
        cluster_queues={
            name: cluster_queue_of(row, quotas, flavors, topologies, cohorts)
            for name, row in doors.cluster_queues.items()
        },
        workloads=(),
        local_queues=local_queues(doors.local_queues.values()),
        usage_decay=USAGE_DECAY,
        gang_grace_s=settings.GANG_GRACE_S,
        keeps_for_gpus=settings.KEEP_CPU_FOR_GPUS,
        patience=patience_of(settings),
        moving=moving_of(settings),
    )


def resized_at(works: Works) -> datetime | None:
    """Return when running work last began to hold less in place."""
    faces = works.faces.values()
    return max((face.resized_at for face in faces if face.resized_at), default=None)


def _memory(last_cycle: rows.Cycle | None, doors: Doors, now: datetime) -> Memory:
    """Return what the last cycle left for this one; past use it could not note is in the rows."""
    kept = last_cycle.memory if last_cycle else {}
    memory = codec.decode_memory(kept) if kept else Memory()
    if old := consumption_of_rows(doors, memory.consumption, now):
        memory = replace(memory, consumption={**memory.consumption, **old})
    if last_cycle and "history" in kept:
        seen = leases.last_beat(leases.CYCLE) or last_cycle.at
        if now - max(seen, last_cycle.at) <= PAUSE:
            return memory
    return replace(memory, history=history_of_rows(now))


def roles_of(pod_sets: Iterable[rows.PodSet]) -> list[Role]:
    """Return what the rows of a workload say of the size of its pod sets."""
    return [Role(p.name, p.count, p.min_count, p.subgroup_size, p.min_subgroups) for p in pod_sets]
