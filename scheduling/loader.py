"""Rows in, snapshot out: the only way from tables to the engine, in a fixed number of queries."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple

from django.conf import settings
from django.db.models import Max, Subquery

from gpuplatform.common import clock, leases
from gpuplatform.common.models import Change
from gpuplatform.common.together import instances, read_together, whole
from queues.models import (
    ClusterQueue,
    Cohort,
    FlavorQuota,
    LocalQueue,
    Namespace,
    ResourceFlavor,
    Team,
    TopologyLevel,
)
from scheduling import checks
from scheduling import models as rows
from scheduling.engine import codec
from scheduling.engine.snapshot import Memory, Snapshot, Workload
from scheduling.engine.terms import Fairness
from scheduling.faces import Face, Held
from scheduling.marks import Mark, mark_column, mark_of, promised_mark
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
    cohorts_of,
    flavor_of,
    moving_of,
    node_of,
    patience_of,
    quotas_of,
    topologies_of,
)
from scheduling.recent import recent
from scheduling.routes import Doors, doors_of
from scheduling.works import Works, read_standing, read_works

PastUse = Literal["exact", "noted", "none"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A snapshot, and the rows that a writer needs to notice that something has changed since.

    ``admissions`` holds the open one of each workload, by the workload's key, and ``faces`` what
    else its row says. ``previous_at`` is the instant of the last cycle, ``last_cycle`` its number,
    ``last_change`` the number of the newest change seen, ``resized_at`` the last instant at which
    running work began to hold less. ``cycle`` is the last one, without what it kept, and ``beat``
    when somebody last looked whether there is anything to decide.
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
    cycle: rows.Cycle | None = None
    beat: datetime | None = None
    heads: list[Workload] = field(default_factory=list)


def load_snapshot(now: datetime | None = None) -> Snapshot:
    """Return the world as it stands in the tables; ``now`` defaults to the clock."""
    return load(now).snapshot


def load_platform(now: datetime | None = None, doors: Doors | None = None) -> Snapshot:
    """Return hardware and promises as they stand in the tables, without work and memory.

    ``doors``: where they were read already.
    """
    return _platform(now or clock.now(), _read_tables(), doors)


def load(
    now: datetime | None = None,
    *,
    waiting: bool = True,
    past: PastUse = "exact",
    promised: bool = False,
    first: int = 0,
) -> Loaded:
    """Read everything that a cycle may depend on, in a number of queries that never grows.

    Only live workloads, and those whose pods still stand, are read; without ``waiting`` only
    what holds something; with ``promised`` also the gangs for which room is kept. Of those who
    wait then, the ``first`` of each line are the ``heads``, where some tree goes by turns.
    ``past`` use of queues is what a cycle would decide on; ``noted``: what the last cycle knew
    of it, fading since, however long nobody has decided; ``none``: nothing may rest on it. The
    number of the newest change is read first: what is committed while the rest is being read
    counts as not seen.
    """
    now = now or clock.now()
    last_change, last_cycle, beat, mark = _last_ones(marked=promised and settings.WORLD_KEPT)
    tables, platform = _read(now) if mark is None else _kept(now, mark)
    doors, node_rows = tables.doors, tables.nodes
    if waiting:
        doors = replace(doors, refusals=checks.refusals(doors.cluster_queues, now))
        platform = replace(platform, shapes=recent(now))
    memory = _memory(last_cycle, beat, doors, now, past=past)
    kept_for = [one.workload for one in memory.reservations] if promised else []
    heads: list[Workload] = []
    if waiting:
        works = read_works(doors)
    else:
        by_turns = any(one.fairness is not Fairness.NONE for one in platform.cohorts.values())
        works, heads = read_standing(doors, kept_for, first if by_turns else 0)
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
        cycle=last_cycle,
        beat=beat,
        heads=heads,
    )


def load_standing(now: datetime) -> Snapshot:
    """Return the world without work that holds nothing, and which pods came lately.

    Gangs for which room is kept are there: what pages show of nodes and of who holds them rests
    on no more, however many wait.
    """
    standing = load(now, waiting=False, past="none", promised=True).snapshot
    return replace(standing, shapes=recent(now))


@dataclass(frozen=True, slots=True)
class Tables:
    """Hardware and promises as their tables held them at one instant."""

    doors: Doors
    nodes: Mapping[str, rows.Node]
    flavors: tuple[ResourceFlavor, ...]
    levels: list[tuple[Any, ...]]
    quotas: tuple[FlavorQuota, ...]
    cohorts: tuple[Cohort, ...]


def _read_tables() -> Tables:
    """Read hardware and promises. 1 query, so that no edit stands half in what was read."""
    kinds: tuple[Any, ...] = (
        LocalQueue,
        ClusterQueue,
        Namespace,
        Team,
        Cohort,
        FlavorQuota,
        ResourceFlavor,
    )
    levels = TopologyLevel.objects.order_by("position")
    *lines, found, places = read_together(
        *(whole(kind.objects.all()) for kind in kinds),
        whole(rows.Node.objects.all()),
        levels.values_list("position", "topology__name", "node_label"),
    )
    read: Iterator[list[Any]] = map(instances, kinds, lines)
    local, queues, spaces, teams, cohorts, quotas, flavors = read
    by_team, by_cohort = {row.pk: row for row in teams}, {row.pk: row for row in cohorts}
    for queue in queues:
        queue.team, queue.cohort = by_team.get(queue.team_id), by_cohort.get(queue.cohort_id)
    return Tables(
        doors_of(local, queues, spaces),
        {row.name: row for row in instances(rows.Node, found)},
        tuple(flavors),
        places,
        tuple(quotas),
        tuple(cohorts),
    )


class _Shelf:
    """What this process keeps for pages; replaced as a whole, so that threads need no lock."""

    kept: tuple[Mark, Tables, Snapshot] | None = None


def _read(now: datetime) -> tuple[Tables, Snapshot]:
    tables = _read_tables()
    return tables, _platform(now, tables)


def _kept(now: datetime, mark: Mark) -> tuple[Tables, Snapshot]:
    """Return hardware and promises, read only where they have changed. 1 query where they have.

    ``mark`` was asked before anything is read: what is kept is never older than its mark.
    """
    kept = _Shelf.kept
    if kept is None or kept[0] != mark:
        kept = _Shelf.kept = (mark, *_read(now))
    return kept[1], replace(kept[2], now=now.timestamp())


class _Last(NamedTuple):
    change: int
    cycle: rows.Cycle | None
    beat: datetime | None
    mark: Mark | None


def _last_ones(*, marked: bool) -> _Last:
    """Return the number of the newest change, the last cycle, and when somebody last looked.

    ``marked``: also the mark of all that is promised. 1 query, 2 or 3 without a cycle.
    """
    newest = Change.objects.order_by("-id").values("id")[:1]
    cycles = rows.Cycle.objects.order_by("-id").defer("snapshot", "plan", "work")
    looked = leases.beats(leases.CYCLE).values("until")[:1]
    cycles = cycles.annotate(newest_change=Subquery(newest), looked_at=Subquery(looked))
    last: Any = (cycles.annotate(mark=mark_column()) if marked else cycles).first()
    if last is None:
        newest_change = Change.objects.aggregate(last=Max("id"))["last"] or 0
        return _Last(newest_change, None, None, promised_mark() if marked else None)
    return _Last(
        last.newest_change or 0, last, last.looked_at, mark_of(last.mark) if marked else None
    )


def _platform(now: datetime, tables: Tables, doors: Doors | None = None) -> Snapshot:
    """Return hardware and promises, without work and memory."""
    doors = doors or tables.doors
    flavors = {row.name: flavor_of(row) for row in tables.flavors}
    topologies = topologies_of(tables.levels)
    nodes = tuple(node_of(row) for row in tables.nodes.values())
    quotas = quotas_of(tables.quotas)
    cohorts = cohorts_of(tables.cohorts, quotas, doors, flavors, nodes)
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


def _memory(
    last_cycle: rows.Cycle | None,
    beat: datetime | None,
    doors: Doors,
    now: datetime,
    *,
    past: PastUse,
) -> Memory:
    """Return what the last cycle left for this one; past use it could not note is in the rows."""
    kept = last_cycle.memory if last_cycle else {}
    memory = codec.decode_memory(kept) if kept else Memory()
    if past == "none":
        return memory
    if old := consumption_of_rows(doors, memory.consumption, now):
        memory = replace(memory, consumption={**memory.consumption, **old})
    if past == "noted" and "history" in kept:
        return memory
    if last_cycle and "history" in kept:
        seen = beat or last_cycle.at
        if now - max(seen, last_cycle.at) <= PAUSE:
            return memory
    return replace(memory, history=history_of_rows(now))


def roles_of(pod_sets: Iterable[rows.PodSet]) -> list[Role]:
    """Return what the rows of a workload say of the size of its pod sets."""
    return [Role(p.name, p.count, p.min_count, p.subgroup_size, p.min_subgroups) for p in pod_sets]
