"""Worlds of benches as rows: what the engine knows as values, written as people would have it."""

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from gpuplatform.common.wakeup import note_changes
from queues.models import (
    ClusterQueue,
    Cohort,
    FlavorQuota,
    LocalQueue,
    ResourceFlavor,
    Team,
)
from scheduling import lifecycle, persist
from scheduling.engine import machines, snapshot
from scheduling.engine.terms import PendingReason, Status
from scheduling.models import Admission, Node, Placement, PodSet, Workload, WorkloadEvent

BATCH = 2_000
WORKLOAD = (
    *("uid", "namespace", "name", "queue_name", "team_id", "priority", "expected_duration_s"),
    *("status", "admitted_at", "started_at", "pending_reason", "gpus", "created_at"),
)
NAMESPACE = "bench"


def write_platform(platform: snapshot.Snapshot) -> None:
    """Write flavors, nodes, cohorts and queues, with a LocalQueue of the same name for each."""
    ResourceFlavor.objects.bulk_create(
        ResourceFlavor(name=one.name, node_labels=dict(one.node_labels), policy=one.policy.value)
        for one in platform.flavors.values()
    )
    write_nodes(platform.nodes)
    cohorts = [
        Cohort(name=one.name, fairness=one.fairness.value) for one in platform.cohorts.values()
    ]
    Cohort.objects.bulk_create(cohorts)
    team = Team.objects.create(name=NAMESPACE, display_name=NAMESPACE)
    owners = {row.name: row for row in cohorts}
    queues = [_queue(one, owners, team) for one in platform.cluster_queues.values()]
    ClusterQueue.objects.bulk_create(queues)
    FlavorQuota.objects.bulk_create(
        _cell(row, fr, quota)
        for row, one in zip(queues, platform.cluster_queues.values(), strict=True)
        for fr, quota in one.quotas.items()
    )
    LocalQueue.objects.bulk_create(
        LocalQueue(namespace=NAMESPACE, name=row.name, cluster_queue=row.name) for row in queues
    )


def write_nodes(nodes: Iterable[machines.Node]) -> None:
    """Write machines."""
    rows = (
        Node(name=one.name, labels=dict(one.labels), allocatable=dict(one.allocatable))
        for one in nodes
    )
    Node.objects.bulk_create(rows, batch_size=BATCH)


def _queue(one: snapshot.ClusterQueue, cohorts: Mapping[str, Cohort], team: Team) -> ClusterQueue:
    rights = one.preemption
    return ClusterQueue(
        name=one.name,
        team=team,
        cohort=cohorts.get(one.cohort or ""),
        namespace_selector={},
        within_cluster_queue=rights.within_cluster_queue.value,
        reclaim_within_cohort=rights.reclaim_within_cohort.value,
    )


def _cell(row: ClusterQueue, fr: snapshot.FlavorResource, quota: snapshot.Quota) -> FlavorQuota:
    return FlavorQuota(
        cluster_queue=row,
        flavor=fr.flavor,
        resource=fr.resource,
        nominal=quota.nominal,
        borrowing_limit=quota.borrowing_limit,
        lending_limit=quota.lending_limit,
    )


def write_workloads(
    works: Iterable[snapshot.Workload],
    now: datetime,
    duration_s: Mapping[str, int],
    *,
    told: bool = False,
) -> None:
    """Write work of LocalQueues that have the name of its queue, as its doors do.

    ``created_at`` of the values counts seconds from ``now``; work with an admission runs.
    ``told``: a worker that runs already hears of it.
    """
    team, works = Team.objects.get(name=NAMESPACE), list(works)
    uids = [uuid.uuid4() for _ in works]
    pairs = list(zip(uids, works, strict=True))
    rows = [_workload(uid, one, team, now, duration_s.get(one.key)) for uid, one in pairs]
    persist.insert(Workload, WORKLOAD, rows)
    pods = [
        (uid, i, p.name, p.count, p.requests)
        for uid, one in pairs
        for i, p in enumerate(one.pod_sets)
    ]
    persist.insert(PodSet, ("workload_id", "position", "name", "count", "requests"), pods)
    lines = [(uid, now, "submitted") for uid in uids]
    persist.insert(WorkloadEvent, ("workload_id", "at", "kind"), lines)
    if told:
        note_changes(lifecycle.CHANGED, uids)
    _write_admissions([(uid, one) for uid, one in pairs if one.admission is not None], now)


def _workload(
    uid: uuid.UUID, one: snapshot.Workload, team: Team, now: datetime, duration_s: int | None
) -> tuple[Any, ...]:
    runs, began = one.admission is not None, now if one.admission is not None else None
    name, gpus = one.name.replace("/", "-"), ((p.count, p.requests) for p in one.pod_sets)
    why = "" if runs else PendingReason.PENDING_EVALUATION.value
    status = Status.RUNNING.value if runs else Status.PENDING.value
    whose = uid, NAMESPACE, name, one.queue or "", team.pk, one.priority, duration_s
    since = now + timedelta(seconds=one.created_at)
    return (*whose, status, began, began, why, lifecycle.gpus_of(gpus), since)


def _write_admissions(pairs: list[tuple[uuid.UUID, snapshot.Workload]], now: datetime) -> None:
    ids = persist.new_ids(Admission, len(pairs))
    held = [
        (pk, uid, one.queue or "", now, now) for pk, (uid, one) in zip(ids, pairs, strict=True)
    ]
    columns = ("id", "workload_id", "cluster_queue", "admitted_at", "started_at")
    persist.insert(Admission, columns, held)
    placed = [
        (pk, part.pod_set, node, count, part.flavors, one.pod_sets[0].requests)
        for pk, (_, one) in zip(ids, pairs, strict=True)
        for part in (one.admission.assignments if one.admission else ())
        for node, count in part.nodes.items()
    ]
    named = ("admission_id", "pod_set", "node", "count", "flavors", "requests")
    persist.insert(Placement, named, placed)
