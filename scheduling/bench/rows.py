"""Worlds of benches as rows: what the engine knows as values, written as people would have it."""

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from queues.models import (
    ClusterQueue,
    Cohort,
    FlavorQuota,
    LocalQueue,
    ResourceFlavor,
    Team,
)
from scheduling import lifecycle
from scheduling.engine import machines, snapshot
from scheduling.engine.terms import PendingReason, Status
from scheduling.models import Admission, Node, Placement, PodSet, Workload, WorkloadEvent

BATCH = 2_000
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
    works: Iterable[snapshot.Workload], now: datetime, duration_s: Mapping[str, int]
) -> list[Workload]:
    """Write pending work of LocalQueues that have the name of its queue, as its doors do.

    ``created_at`` of the values counts seconds from ``now``; work with an admission runs.
    """
    team, works = Team.objects.get(name=NAMESPACE), list(works)
    rows = [_workload(one, team, now, duration_s.get(one.key)) for one in works]
    Workload.objects.bulk_create(rows, batch_size=BATCH)
    pairs = list(zip(rows, works, strict=True))
    PodSet.objects.bulk_create(
        (
            PodSet(workload=row, position=i, name=p.name, count=p.count, requests=p.requests)
            for row, one in pairs
            for i, p in enumerate(one.pod_sets)
        ),
        batch_size=BATCH,
    )
    WorkloadEvent.objects.bulk_create(
        (WorkloadEvent(workload=row, at=now, kind="submitted") for row in rows), batch_size=BATCH
    )
    _write_admissions([(row, one) for row, one in pairs if one.admission is not None], now)
    return rows


def _workload(
    one: snapshot.Workload, team: Team, now: datetime, duration_s: int | None
) -> Workload:
    runs = one.admission is not None
    return Workload(
        uid=uuid.uuid4(),
        namespace=NAMESPACE,
        name=one.name.replace("/", "-"),
        queue_name=one.queue or "",
        team=team,
        priority=one.priority,
        expected_duration_s=duration_s,
        status=Status.RUNNING.value if runs else Status.PENDING.value,
        admitted_at=now if runs else None,
        started_at=now if runs else None,
        pending_reason="" if runs else PendingReason.PENDING_EVALUATION.value,
        gpus=lifecycle.gpus_of((p.count, p.requests) for p in one.pod_sets),
        created_at=now + timedelta(seconds=one.created_at),
    )


def _write_admissions(pairs: list[tuple[Workload, snapshot.Workload]], now: datetime) -> None:
    admissions = [
        Admission(workload=row, cluster_queue=one.queue or "", admitted_at=now, started_at=now)
        for row, one in pairs
    ]
    Admission.objects.bulk_create(admissions, batch_size=BATCH)
    Placement.objects.bulk_create(
        (
            Placement(
                admission=row,
                pod_set=part.pod_set,
                node=node,
                count=count,
                flavors=dict(part.flavors),
                requests=dict(one.pod_sets[0].requests),
            )
            for row, (_, one) in zip(admissions, pairs, strict=True)
            for part in (one.admission.assignments if one.admission else ())
            for node, count in part.nodes.items()
        ),
        batch_size=BATCH,
    )
