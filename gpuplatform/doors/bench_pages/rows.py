"""A large platform as rows: queues in trees of cohorts, work that runs, waits and has ended."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import connection

from finops.models import Price
from queues.models import (
    ClusterQueue,
    Cohort,
    FlavorQuota,
    LocalQueue,
    Namespace,
    ResourceFlavor,
    Team,
)
from scheduling.engine import codec
from scheduling.engine.decay import Decayed
from scheduling.engine.snapshot import Memory
from scheduling.models import (
    Admission,
    CapacityInterval,
    Cycle,
    Node,
    Placement,
    PodSet,
    QuotaInterval,
    UsageInterval,
    Workload,
    WorkloadEvent,
)

GPU, FLAVOR = "nvidia.com/gpu", "h100"
NODE_GPUS, RACK = 8, 16
TREES, INSIDE, TEAMS = 10, 10, 100  # trees, cohorts in each of them, teams
BATCH = 2_000
HOUR = timedelta(hours=1)
HISTORY_DAYS = 365


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything there is. ``workloads`` are alive, ``history`` has ended."""

    queues: int
    workloads: int
    history: int
    nodes: int


def write(size: Size, now: datetime) -> None:
    """Write the platform; every second GPU is held, and one queue in four borrows."""
    nodes = _nodes(size, now)
    queues = _promises(size, now)
    alive = list(_alive(size, queues, now))
    _save_work(alive)
    _hold(alive, nodes, now)
    _history(size, queues, now)
    _last_cycle(queues, now)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")  # as autovacuum would have


def _nodes(size: Size, now: datetime) -> list[Node]:
    ResourceFlavor.objects.create(name=FLAVOR, node_labels={"pool": FLAVOR})
    whole = {GPU: NODE_GPUS, "cpu": 128_000, "memory": 2**40, "pods": 110}
    rows = [
        Node(
            name=f"node-{number:04}",
            labels={"pool": FLAVOR, "topology.kubernetes.io/rack": f"rack-{number // RACK:03}"},
            capacity=whole,
            allocatable=whole,
        )
        for number in range(size.nodes)
    ]
    Node.objects.bulk_create(rows, batch_size=BATCH)
    since = now - timedelta(days=HISTORY_DAYS)
    CapacityInterval.objects.bulk_create(
        CapacityInterval(
            node=row.name, flavor=FLAVOR, resource=GPU, amount=NODE_GPUS, started_at=since
        )
        for row in rows
    )
    price = {"unit": "gpu_hour", "subject": FLAVOR, "amount": Decimal("1.40")}
    Price.objects.create(valid_from=since, created_at=since, **price)
    return rows


def _promises(size: Size, now: datetime) -> list[ClusterQueue]:
    trees = [Cohort(name=f"pool-{number}", fairness="history") for number in range(TREES)]
    Cohort.objects.bulk_create(trees)
    inside = [
        Cohort(name=f"pool-{number % TREES}-{number // TREES}", parent=trees[number % TREES])
        for number in range(TREES * INSIDE)
    ]
    Cohort.objects.bulk_create(inside)
    teams = [Team(name=f"team-{n:03}", display_name=f"Team {n}") for n in range(TEAMS)]
    Team.objects.bulk_create(teams)
    Namespace.objects.bulk_create(Namespace(name=f"ns-{t.name}", team=t) for t in teams)
    rows = [
        ClusterQueue(
            name=f"cq-{number:04}",
            team=teams[number % TEAMS],
            cohort=inside[number % len(inside)],
            namespace_selector={},
            reclaim_within_cohort="Any",
        )
        for number in range(size.queues)
    ]
    ClusterQueue.objects.bulk_create(rows, batch_size=BATCH)
    nominal = max(1, size.nodes * NODE_GPUS // size.queues)
    cells = [
        FlavorQuota(cluster_queue=row, flavor=FLAVOR, resource=GPU, nominal=nominal)
        for row in rows
    ]
    FlavorQuota.objects.bulk_create(cells, batch_size=BATCH)
    LocalQueue.objects.bulk_create(
        (LocalQueue(namespace=_space(r), name=r.name, cluster_queue=r.name) for r in rows),
        batch_size=BATCH,
    )
    QuotaInterval.objects.bulk_create(
        (
            QuotaInterval(
                cluster_queue=row.name,
                cohort=row.cohort.name if row.cohort else "",
                flavor=FLAVOR,
                resource=GPU,
                nominal=nominal,
                started_at=now - timedelta(days=HISTORY_DAYS),
            )
            for row in rows
        ),
        batch_size=BATCH,
    )
    return rows


def _space(queue: ClusterQueue) -> str:
    return f"ns-{queue.team.name if queue.team else ''}"


def _alive(size: Size, queues: list[ClusterQueue], now: datetime) -> Iterator[Workload]:
    """Yield live work: as much runs as fills half of the GPUs, the rest waits."""
    runs = min(size.workloads // 2, size.nodes * NODE_GPUS // 4)
    blocker = {"code": "QUOTA_NOMINAL", "needed": 2, "available": 0, "resource": GPU}
    for number in range(size.workloads):
        queue, is_on = queues[number % len(queues)], number < runs
        at = now - timedelta(seconds=number)
        yield Workload(
            uid=uuid.UUID(int=number + 1),
            namespace=_space(queue),
            name=f"job-{number:06}",
            queue_name=queue.name,
            team=queue.team,
            gpus=2,
            priority=number % 3,
            status="running" if is_on else "pending",
            pending_reason="" if is_on else "QuotaExceeded",
            blockers=[] if is_on else [blocker | {"where": queue.name}],
            position=None if is_on else number // len(queues) + 1,
            created_at=at,
            admitted_at=at if is_on else None,
            started_at=at if is_on else None,
        )


def _save_work(rows: list[Workload]) -> None:
    Workload.objects.bulk_create(rows, batch_size=BATCH)
    PodSet.objects.bulk_create(
        (PodSet(workload=r, position=0, name="main", count=1, requests={GPU: 2}) for r in rows),
        batch_size=BATCH,
    )
    WorkloadEvent.objects.bulk_create(
        (WorkloadEvent(workload=r, at=r.created_at, kind="submitted") for r in rows),
        batch_size=BATCH,
    )


def _hold(rows: list[Workload], nodes: list[Node], now: datetime) -> None:
    """Let what runs hold two GPUs each, four workloads to a node at most."""
    running = [row for row in rows if row.status == "running"]
    held = [
        Admission(
            workload=row,
            cluster_queue=row.queue_name,
            admitted_at=row.created_at,
            started_at=row.created_at,
        )
        for row in running
    ]
    Admission.objects.bulk_create(held, batch_size=BATCH)
    Placement.objects.bulk_create(
        (
            Placement(
                admission=one,
                pod_set="main",
                node=nodes[number % len(nodes)].name,
                count=1,
                flavors={GPU: FLAVOR},
                requests={GPU: 2},
            )
            for number, one in enumerate(held)
        ),
        batch_size=BATCH,
    )
    UsageInterval.objects.bulk_create(
        (
            UsageInterval(
                admission=one,
                workload=row,
                team=row.team,
                cluster_queue=row.queue_name,
                namespace=row.namespace,
                flavor=FLAVOR,
                resource=GPU,
                amount=2,
                holding="borrowed" if number % 4 == 0 else "nominal",
                lender="cq-0001" if number % 4 == 0 else "",
                started_at=now - HOUR,
            )
            for number, (one, row) in enumerate(zip(held, running, strict=True))
        ),
        batch_size=BATCH,
    )


def _last_cycle(queues: list[ClusterQueue], now: datetime) -> None:
    """Let the worker have decided a moment ago: it notes what queues used of late."""
    at = now.timestamp()
    history = {row.name: Decayed(float(number), 0.0, at) for number, row in enumerate(queues)}
    memory = codec.encode_memory(Memory(history=history))
    Cycle.objects.create(at=now, fence=1, holder="bench", memory=memory)


def _history(size: Size, queues: list[ClusterQueue], now: datetime) -> None:
    """Write work that has ended, spread over a year; each ran for an hour."""
    step = timedelta(days=HISTORY_DAYS) / max(size.history, 1)
    for first in range(0, size.history, 10 * BATCH):
        rows, held = [], []
        for number in range(first, min(first + 10 * BATCH, size.history)):
            queue, end = queues[number % len(queues)], now - HOUR - number * step
            row = Workload(
                uid=uuid.UUID(int=2**64 + number),
                namespace=_space(queue),
                name=f"old-{number:07}",
                queue_name=queue.name,
                team=queue.team,
                gpus=2,
                status="finished",
                outcome="succeeded",
                created_at=end - 2 * HOUR,
                started_at=end - HOUR,
                finished_at=end,
            )
            rows.append(row)
            held.append(
                Admission(
                    workload=row,
                    cluster_queue=queue.name,
                    admitted_at=end - HOUR,
                    started_at=end - HOUR,
                    released_at=end,
                )
            )
        Workload.objects.bulk_create(rows, batch_size=BATCH)
        Admission.objects.bulk_create(held, batch_size=BATCH)
        _metered(held)


def _metered(held: list[Admission]) -> None:
    UsageInterval.objects.bulk_create(
        (
            UsageInterval(
                admission=one,
                workload=one.workload,
                team=one.workload.team,
                cluster_queue=one.cluster_queue,
                namespace=one.workload.namespace,
                flavor=FLAVOR,
                resource=GPU,
                amount=2,
                holding="nominal",
                started_at=one.admitted_at,
                ended_at=one.released_at,
            )
            for one in held
        ),
        batch_size=BATCH,
    )
