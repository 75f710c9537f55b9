"""Rows in, snapshot out: the only way from tables to the engine, in a fixed number of queries."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID, uuid5

from django.conf import settings
from django.db.models import Max, Q, QuerySet

from gpuplatform.common import clock
from gpuplatform.common.models import Change
from queues.models import ResourceFlavor
from scheduling import models as rows
from scheduling.charging import charges_of
from scheduling.engine import codec
from scheduling.engine.parts import leaver, leaving_key
from scheduling.engine.snapshot import (
    Admission,
    Assignment,
    Memory,
    PodSet,
    Snapshot,
    Workload,
)
from scheduling.engine.terms import BlockerCode, Status
from scheduling.minima import Role, with_minima
from scheduling.past_use import (
    PAUSE,
    USAGE_DECAY,
    consumption_of_rows,
    history_of_rows,
    local_queues,
)
from scheduling.readers import (
    affinity_of,
    cluster_queue_of,
    device_request_of,
    flavor_of,
    moving_of,
    node_of,
    patience_of,
    read_cohorts,
    read_quotas,
    read_topologies,
    tolerations_of,
    topology_of,
)
from scheduling.recent import recent
from scheduling.routes import Doors, blocked, drained, load_doors, resolve_queue

GROWTH = UUID("6f1f1c0e-7a52-5d0e-9c55-2f4b8f3a9d10")  # the space of the keys of growth
REQUEUE = "requeue"  # on the loss of a node: the whole gang waits again
LIVE = (Status.PENDING.value, Status.ADMITTED.value, Status.RUNNING.value)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A snapshot, and the rows that a writer needs to notice that something has changed since.

    ``admissions`` holds the open one of each workload, by the workload's key. ``previous_at`` is
    the instant of the last cycle, ``last_change`` the number of the newest change seen,
    ``resized_at`` the last instant at which running work began to hold less.
    """

    now: datetime
    snapshot: Snapshot
    doors: Doors
    nodes: Mapping[str, rows.Node]
    admissions: Mapping[str, rows.Admission]
    previous_at: datetime | None
    last_change: int
    resized_at: datetime | None = None


def load_snapshot(now: datetime | None = None) -> Snapshot:
    """Return the world as it stands in the tables; ``now`` defaults to the clock."""
    return load(now).snapshot


def load(now: datetime | None = None) -> Loaded:
    """Read everything that a cycle may depend on, in a number of queries that never grows.

    Only live workloads, and those whose pods still stand, are read. The number of the newest
    change is read first: what is committed while the rest is being read counts as not seen.
    """
    now = now or clock.now()
    last_change = Change.objects.aggregate(last=Max("id"))["last"] or 0
    last_cycle = rows.Cycle.objects.order_by("-id").only("at", "memory").first()
    doors = load_doors()
    flavors = {row.name: flavor_of(row) for row in ResourceFlavor.objects.all()}
    topologies = read_topologies()
    node_rows = {row.name: row for row in rows.Node.objects.all()}
    nodes = tuple(node_of(row) for row in node_rows.values())
    quotas = read_quotas()
    cohorts = read_cohorts(quotas, doors, flavors, nodes)
    admissions = {
        leaving_key(str(a.workload_id)) if a.is_part else str(a.workload_id): a
        for a in rows.Admission.objects.filter(released_at=None)
    }
    # The workloads before their pod sets: one that is submitted between the two queries must be
    # seen with its pod sets or not at all, for a gang without pods fits everywhere.
    live = list(_live().defer("template", "warnings", "blockers").order_by("created_at", "uid"))
    snapshot = Snapshot(
        now=now.timestamp(),
        flavors=flavors,
        topologies=topologies,
        nodes=nodes,
        cohorts=cohorts,
        cluster_queues={
            name: cluster_queue_of(row, quotas, flavors, topologies, cohorts)
            for name, row in doors.cluster_queues.items()
        },
        workloads=_workloads(live, doors, admissions),
        memory=_memory(last_cycle, doors, now),
        local_queues=local_queues(doors.local_queues.values()),
        usage_decay=USAGE_DECAY,
        gang_grace_s=settings.GANG_GRACE_S,
        shapes=recent(now),
        keeps_for_gpus=settings.KEEP_CPU_FOR_GPUS,
        patience=patience_of(settings),
        moving=moving_of(settings),
    )
    previous_at = last_cycle.at if last_cycle else None
    return Loaded(
        now,
        snapshot,
        doors,
        node_rows,
        admissions,
        previous_at,
        last_change,
        resized_at=_resized_at(live),
    )


def _memory(last_cycle: rows.Cycle | None, doors: Doors, now: datetime) -> Memory:
    """Return what the last cycle left for this one; past use it could not note is in the rows."""
    kept = last_cycle.memory if last_cycle else {}
    memory = codec.decode_memory(kept) if kept else Memory()
    if old := consumption_of_rows(doors, memory.consumption, now):
        memory = replace(memory, consumption={**memory.consumption, **old})
    if last_cycle and "history" in kept and now - last_cycle.at <= PAUSE:
        return memory
    return replace(memory, history=history_of_rows(now))


def _live() -> QuerySet[rows.Workload]:
    standing = rows.Admission.objects.filter(released_at=None).values("workload")
    return rows.Workload.objects.filter(Q(status__in=LIVE) | Q(uid__in=standing))


def _workloads(
    live_rows: Iterable[rows.Workload], doors: Doors, admissions: Mapping[str, rows.Admission]
) -> tuple[Workload, ...]:
    pod_sets: defaultdict[str, list[rows.PodSet]] = defaultdict(list)
    for pod_set in rows.PodSet.objects.filter(workload__in=_live().values("uid")):
        pod_sets[str(pod_set.workload_id)].append(pod_set)
    placements: defaultdict[int, list[rows.Placement]] = defaultdict(list)
    for placement in rows.Placement.objects.filter(admission__released_at=None):
        placements[placement.admission_id].append(placement)
    found = []
    for row in live_rows:
        admission = admissions.get(str(row.uid))
        held = placements[admission.pk] if admission else []
        own = pod_sets[str(row.uid)]
        runs = _workload(row, own, admission, held, doors)
        found.append(runs)
        part = admissions.get(leaving_key(str(row.uid)))
        if part:
            found.append(_leaving(runs, part, placements[part.pk]))
        if admission and admission.evicted_at is None and any(p.wanted for p in own):
            found.append(_grown(runs, row, own, doors))
    return tuple(found)


def _leaving(
    gang: Workload, part: rows.Admission, placements: Sequence[rows.Placement]
) -> Workload:
    """Return the pods that were taken from a gang and have not left yet."""
    return leaver(gang, _admission(part, placements).assignments)


def growth_key(uid: object) -> str:
    """Return the engine's key of what a running workload asks to become."""
    return str(uuid5(GROWTH, str(uid)))


def _grown(
    runs: Workload, row: rows.Workload, pod_sets: Iterable[rows.PodSet], doors: Doors
) -> Workload:
    """Return a running workload as large as it asks to be, waiting (``admission.md`` K37)."""
    since = row.growth.get("since")
    wanted = {pod_set.name: pod_set.wanted or pod_set.count for pod_set in pod_sets}
    return replace(
        runs,
        key=growth_key(row.uid),
        created_at=datetime.fromisoformat(since).timestamp() if since else runs.created_at,
        pod_sets=tuple(replace(p, count=wanted[p.name]) for p in runs.pod_sets),
        admission=None,
        blocked=blocked(row.namespace, resolve_queue(row.namespace, row.queue_name, doors), doors)
        if row.queue_name
        else "",
        reclaimable={},
        replaces=runs.key,
    )


def _resized_at(live: Iterable[rows.Workload]) -> datetime | None:
    """Return when running work last began to hold less in place."""
    return max((row.resized_at for row in live if row.resized_at), default=None)


def _workload(
    row: rows.Workload,
    pod_sets: Sequence[rows.PodSet],
    admission: rows.Admission | None,
    placements: Sequence[rows.Placement],
    doors: Doors,
) -> Workload:
    route = resolve_queue(row.namespace, row.queue_name, doors)
    if admission is not None:  # what is held stays where it was admitted
        held_in = admission.cluster_queue
        queue, why = held_in if held_in in doors.cluster_queues else "", drained(route)
    elif row.queue_name:
        queue = route.cluster_queue if route else row.queue_name
        why = blocked(row.namespace, route, doors)
    else:
        queue, why = "", ""
    if admission is None and row.gates:
        why = BlockerCode.GATED.value
    workload = Workload(
        key=str(row.uid),
        name=f"{row.namespace}/{row.name}",
        queue=queue or None,
        priority=row.priority,
        created_at=(row.queued_at or row.created_at).timestamp(),
        pod_sets=tuple(_as_admitted(_pod_set(pod_set), placements) for pod_set in pod_sets),
        admission=_admission(admission, placements) if admission else None,
        releasing=admission is not None and admission.evicted_at is not None,
        preemptible=row.preemptible,
        blocked=why,
        ceiling_queue=row.ceiling_queue or None,
        version=row.version,
        local_queue=str(route.local_queue) if route and route.local_queue else "",
        last_checkpoint_at=row.last_checkpoint_at.timestamp() if row.last_checkpoint_at else None,
        duration_s=row.expected_duration_s or row.max_execution_time_s,  # a limit, for want of one
        reclaimable={p.name: p.finished for p in pod_sets if p.finished},
        stateless=row.stateless,
        checkpoint_interval_s=row.checkpoint_interval_s,
        not_before=row.requeue_at.timestamp() if row.requeue_at else None,
        mends=row.on_node_loss != REQUEUE,
    )
    return with_minima(workload, row.min_member, row.role_minima, roles_of(pod_sets))


def roles_of(pod_sets: Iterable[rows.PodSet]) -> list[Role]:
    """Return what the rows of a workload say of the size of its pod sets."""
    return [Role(p.name, p.count, p.min_count, p.subgroup_size, p.min_subgroups) for p in pod_sets]


def _pod_set(row: rows.PodSet) -> PodSet:
    layers = [(layer["level"], layer["size"]) for layer in row.slices]
    return PodSet(
        name=row.name,
        count=row.count,
        requests=row.requests,
        node_selector=row.node_selector,
        tolerations=tolerations_of(row.tolerations),
        topology=topology_of(row.topology_mode, row.topology_level, layers, row.group),
        affinity=affinity_of(row.affinity),
        charges=charges_of(row.requests),
        device=device_request_of(row.requests, row.device_locality, row.device_memory_mib),
    )


def _as_admitted(pod_set: PodSet, placements: Iterable[rows.Placement]) -> PodSet:
    """Return a pod set that is charged what it was charged when it was admitted.

    A change of the transformations counts for work that is admitted after it.
    """
    frozen = [p.charges for p in placements if p.pod_set == pod_set.name]
    return replace(pod_set, charges=frozen[0]) if frozen else pod_set


def _admission(row: rows.Admission, placements: Iterable[rows.Placement]) -> Admission:
    by_pod_set: defaultdict[str, list[rows.Placement]] = defaultdict(list)
    for placement in placements:
        by_pod_set[placement.pod_set].append(placement)
    return Admission(
        admitted_at=row.admitted_at.timestamp(),
        assignments=tuple(
            Assignment(
                pod_set=name,
                count=sum(placement.count for placement in parts),
                flavors=parts[0].flavors,
                nodes={part.node: part.count for part in parts if part.node},
                devices={p.node: tuple(map(tuple, p.devices)) for p in parts if p.devices},
            )
            for name, parts in by_pod_set.items()
        ),
    )
