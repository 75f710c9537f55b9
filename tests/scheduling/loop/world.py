"""Small worlds as rows: nodes, queues and work, in the words of the articles."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from queues.models import ClusterQueue, Cohort, FlavorQuota, LocalQueue, ResourceFlavor, Team
from scheduling.engine.machines import GPU
from scheduling.engine.terms import Status
from scheduling.models import Node, PodSet, UsageInterval, Workload

FLAVOR = "h100-sxm"
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
RECLAIMS = {"reclaim_within_cohort": "LowerPriority", "within_cluster_queue": "LowerPriority"}


def nodes(count: int = 8, gpus: int = 4) -> list[Node]:
    ResourceFlavor.objects.get_or_create(
        name=FLAVOR, defaults={"node_labels": {"accelerator": FLAVOR}}
    )
    return [
        Node.objects.create(
            name=f"h100-node-{number:02}",
            labels={"accelerator": FLAVOR},
            allocatable={"cpu": 120_000, "memory": 960 * 2**30, GPU: gpus, "pods": 110},
        )
        for number in range(1, count + 1)
    ]


def queue(name: str, nominal: int, *, cohort: str = "", **columns: Any) -> ClusterQueue:
    """Create team, ClusterQueue ``cq-name`` and LocalQueue ``ns-name/lq``."""
    limits = {k: columns.pop(k, None) for k in ("borrowing_limit", "lending_limit")}
    team, _ = Team.objects.get_or_create(name=name, defaults={"display_name": name})
    group = Cohort.objects.get_or_create(name=cohort)[0] if cohort else None
    columns.setdefault("namespace_selector", {})
    row = ClusterQueue.objects.create(name=f"cq-{name}", team=team, cohort=group, **columns)
    FlavorQuota.objects.create(
        cluster_queue=row, flavor=FLAVOR, resource=GPU, nominal=nominal, **limits
    )
    LocalQueue.objects.create(namespace=f"ns-{name}", name="lq", cluster_queue=row.name)
    return row


def work(team: str, name: str, /, *, pods: int = 1, gpus: int = 1, **columns: Any) -> Workload:
    """Submit a gang of ``pods`` x ``gpus`` to the team's queue."""
    topology: Mapping[str, Any] = columns.pop("topology", {})
    requests = columns.pop("requests", {GPU: gpus})
    columns.setdefault("queue_name", "lq")
    order = timedelta(microseconds=Workload.objects.count())  # a standing clock still has one
    columns.setdefault("created_at", timezone.now() + order)
    columns.setdefault("namespace", f"ns-{team}")
    columns.setdefault("team", Team.objects.filter(name=team).first())
    row = Workload.objects.create(name=name, gpus=pods * gpus, **columns)
    PodSet.objects.create(
        workload=row, position=0, name="worker", count=pods, requests=requests, **topology
    )
    return row


def story(workload: Workload) -> list[str]:
    return list(workload.events.order_by("id").values_list("kind", flat=True))


def status(workload: Workload) -> Status:
    workload.refresh_from_db()
    return Status(workload.status)


def usage(workload: Workload) -> list[tuple[str, str, int, datetime, datetime | None]]:
    """Return ground, lender, amount and window of what was metered, in order."""
    rows = UsageInterval.objects.filter(workload=workload).order_by("started_at", "holding")
    return [(r.holding, r.lender, r.amount, r.started_at, r.ended_at) for r in rows]
