"""Workloads as lists and as one story: state, why it waits, where it stands, what happened."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import yaml
from django.db.models import Count, Exists, OuterRef, Prefetch, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils.translation import gettext, ngettext

from gpuplatform.common import reasons
from gpuplatform.common.quantities import format_quantity
from queues.access import Actor, visible
from queues.models import ClusterQueue, LocalQueue
from scheduling.engine.snapshot import GPU
from scheduling.engine.terms import BlockerCode, Status
from scheduling.models import Admission, Node, Placement, Workload, WorkloadEvent
from scheduling.selectors.nodes import read_places

WORKLOAD_COLUMNS = (
    "uid",
    "namespace",
    "name",
    "kind",
    "team",
    "queue",
    "cluster_queue",
    "gpus",
    "priority",
    "status",
    "outcome",
    "pending_reason",
    "position",
    "created_at",
    "admitted_at",
    "started_at",
    "finished_at",
)


def workload_rows(actor: Actor) -> QuerySet[Workload]:
    """Return the workloads that the actor may see, newest first, with their cluster queue."""
    door = LocalQueue.objects.filter(namespace=OuterRef("namespace"), name=OuterRef("queue_name"))
    return (
        visible(Workload.objects.all(), actor)
        .select_related("team")
        .defer("template", "warnings", "labels", "annotations")
        .annotate(cluster_queue=Subquery(door.values("cluster_queue")[:1]))
        .order_by("-created_at", "uid")
    )


def in_cluster_queue(rows: QuerySet[Workload], name: str) -> QuerySet[Workload]:
    """Return the workloads whose queue leads to a cluster queue."""
    door = LocalQueue.objects.filter(
        namespace=OuterRef("namespace"), name=OuterRef("queue_name"), cluster_queue=name
    )
    return rows.filter(Exists(door) | Q(queue_name=name))


def workload_cells(rows: Iterable[Any]) -> Iterable[dict[str, Any]]:
    """Yield workloads as rows of an export."""
    for row in rows:
        shown = {name: getattr(row, name, None) for name in WORKLOAD_COLUMNS}
        yield shown | {
            "uid": str(row.uid),
            "team": row.team.name if row.team else "",
            "queue": row.queue_name,
        }


def state_counts(actor: Actor) -> tuple[int, int]:
    """Return how many workloads of the actor wait, and how many hold quota. 1 query."""
    own = visible(Workload.objects.all(), actor)
    counts = dict(own.values_list("status").order_by().annotate(Count("pk")))
    active = counts.get(Status.ADMITTED.value, 0) + counts.get(Status.RUNNING.value, 0)
    return counts.get(Status.PENDING.value, 0), active


def spec_yaml(workload: Workload) -> str:
    """Return the submitted document as YAML, or the pod sets where none was kept."""
    spec: Any = workload.template or {
        "name": workload.name,
        "namespace": workload.namespace,
        "queue": workload.queue_name,
        "priority": workload.priority,
        "pod_sets": [
            {"name": p.name, "count": p.count, "requests": _written(p.requests)}
            for p in workload.pod_sets.all()
        ],
    }
    return yaml.safe_dump(spec, sort_keys=False, allow_unicode=True)


def _written(requests: Mapping[str, int]) -> dict[str, str]:
    return {name: format_quantity(name, amount) for name, amount in requests.items()}


# ---- one workload ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BlockerLine:
    """One thing in the way, in words. Amounts are in canonical units of ``resource``."""

    code: str
    sentence: str
    next_step: str
    severity: str
    resource: str = ""
    needed: int | None = None
    available: int | None = None
    where: str = ""

    @property
    def missing(self) -> int:
        """Return how much is lacking."""
        return max(0, (self.needed or 0) - max(0, self.available or 0))

    @property
    def free_percent(self) -> float:
        """Return what is there in percent of what is asked."""
        return (
            100.0 * max(0, min(self.available or 0, self.needed or 0)) / max(self.needed or 0, 1)
        )

    @property
    def missing_percent(self) -> float:
        """Return what is lacking in percent of what is asked."""
        return 100.0 - self.free_percent

    @property
    def has_numbers(self) -> bool:
        """Return whether a bar of asked against available says something."""
        return bool(self.needed) and self.available is not None


def blocker_lines(blockers: Iterable[Mapping[str, Any]]) -> list[BlockerLine]:
    """Return stored blockers in words, in their order."""
    return [_blocker_line(blocker) for blocker in blockers]


def _blocker_line(blocker: Mapping[str, Any]) -> BlockerLine:
    facts = blocker.get("facts") or {}
    numbers = {**facts, **{k: v for k, v in blocker.items() if k != "facts" and v is not None}}
    code = str(blocker["code"])
    worded = str(facts.get("sub_code", "")) if code == BlockerCode.IMPOSSIBLE else code
    worded = worded if worded in reasons.REGISTRY else code
    return BlockerLine(
        code=code,
        sentence=reasons.sentence(worded, numbers),
        next_step=reasons.next_step(worded, numbers),
        severity=reasons.severity(worded),
        resource=str(blocker.get("resource") or GPU),
        needed=blocker.get("needed"),
        available=blocker.get("available"),
        where=str(blocker.get("where") or ""),
    )


@dataclass(frozen=True, slots=True)
class Waiting:
    """One pending workload, and what blocks it first."""

    workload: Workload
    first: BlockerLine | None


def waiting_rows(rows: Iterable[Workload]) -> list[Waiting]:
    """Return pending workloads, each with its first blocker in words."""
    return [Waiting(row, next(iter(blocker_lines(row.blockers)), None)) for row in rows]


class Slot(NamedTuple):
    """Pods of the gang on one node."""

    node: str
    domain: str
    pods: int
    gpus: int
    pod_set: str


class Ahead(NamedTuple):
    """What stands before a pending workload in its cluster queue."""

    workloads: int
    gpus: int


EVENT_CHIPS = {
    "submitted": "is-pending",
    "requeued": "is-pending",
    "admitted": "is-admitted",
    "started": "is-running",
    "finished": "is-good",
}


class EventLine(NamedTuple):
    """One line of the story, in words. ``tone``: key, bad or ""."""

    event: WorkloadEvent
    title: str
    detail: str
    tone: str

    @property
    def chip(self) -> str:
        """Return the class of the event's chip."""
        return EVENT_CHIPS.get(self.event.kind, "is-off")


@dataclass(frozen=True, slots=True)
class Story:
    """Everything on the page of one workload."""

    workload: Workload
    cluster_queue: str
    has_queue_page: bool  # the queue exists and the reader may see it
    blockers: list[BlockerLine]
    ahead: Ahead | None
    admission: Admission | None
    slots: list[Slot]
    events: list[EventLine]

    @property
    def pending_sentence(self) -> str:
        """Return the summary of why it waits."""
        return reasons.sentence(self.workload.pending_reason or "PendingEvaluation", {})


def workload_story(actor: Actor, uid: UUID) -> Story | None:
    """Return one workload with its story; None where the actor may not see it."""
    events = WorkloadEvent.objects.select_related("other__team").defer("other__template")
    held = Admission.objects.filter(released_at=None).prefetch_related("placements")
    door = LocalQueue.objects.filter(namespace=OuterRef("namespace"), name=OuterRef("queue_name"))
    workload: Any = (
        visible(Workload.objects.all(), actor)
        .select_related("team", "submitted_by")
        .annotate(cluster_queue=Coalesce(Subquery(door.values("cluster_queue")[:1]), "queue_name"))
        .prefetch_related(
            "pod_sets",
            Prefetch("events", events.order_by("-at", "-id")),
            Prefetch("admissions", held, to_attr="held"),
        )
        .filter(uid=uid)
        .first()
    )
    if workload is None:
        return None
    admission = next(iter(workload.held), None)
    queue = admission.cluster_queue if admission else workload.cluster_queue
    return Story(
        workload=workload,
        cluster_queue=queue,
        has_queue_page=visible(ClusterQueue.objects.filter(name=queue), actor).exists(),
        blockers=blocker_lines(workload.blockers),
        ahead=_ahead(workload),
        admission=admission,
        slots=_slots(admission.placements.all()) if admission else [],
        events=[event_line(event, actor) for event in workload.events.all()],
    )


def _ahead(workload: Any) -> Ahead | None:
    """Return how many wait before it, whoever they belong to: their number, not their names."""
    if workload.status != Status.PENDING or not workload.position:
        return None
    before = in_cluster_queue(
        Workload.objects.filter(status=Status.PENDING, position__lt=workload.position),
        workload.cluster_queue,
    )
    gpus = before.aggregate(sum=Coalesce(Sum("gpus"), 0))["sum"]
    return Ahead(workload.position - 1, gpus)


def _slots(placements: Iterable[Placement]) -> list[Slot]:
    placed = sorted(placements, key=lambda p: (p.pod_set, p.node))
    places = read_places()
    nodes = Node.objects.filter(name__in=[p.node for p in placed]).values_list("name", "labels")
    domains = {name: " / ".join(places.domains_of(labels)) for name, labels in nodes}
    return [
        Slot(
            p.node,
            domains.get(p.node, ""),
            p.count,
            p.count * int(p.requests.get(GPU, 0)),
            p.pod_set,
        )
        for p in placed
    ]


# ---- events in words ---------------------------------------------------------------------------


def event_line(event: WorkloadEvent, actor: Actor) -> EventLine:
    """Return one event in words; a foreign workload in it is not named."""
    titles = {
        "submitted": gettext("Submitted"),
        "admitted": gettext("Admitted"),
        "started": gettext("Started"),
        "finished": gettext("Finished"),
        "cancelled": gettext("Cancelled"),
        "evicted": gettext("Evicted"),
        "requeued": gettext("Back in the queue"),
        "released": gettext("Released"),
        "deactivated": gettext("Deactivated"),
        "reactivated": gettext("Reactivated"),
        "loan_opened": gettext("Began to borrow"),
        "loan_changed": gettext("Borrows now"),
        "loan_closed": gettext("Returned what it borrowed"),
        "preempting": gettext("Makes room"),
    }
    tone = {"evicted": "bad", "admitted": "key", "submitted": "key", "finished": "key"}
    title = titles.get(event.kind, event.kind.replace("_", " ").capitalize())
    details = [_because(event), _numbers(event), _other(event, actor)]
    detail = " ".join(part for part in details if part)
    return EventLine(event, title, detail, tone.get(event.kind, ""))


def _because(event: WorkloadEvent) -> str:
    words = [
        reasons.sentence(code, event.facts)
        for code in (event.reason, str(event.facts.get("right") or ""))
        if code in reasons.REGISTRY
    ]
    return " ".join(words) or event.reason


def _numbers(event: WorkloadEvent) -> str:
    facts, parts = event.facts, []
    amount = facts.get("gpus") or facts.get("amount")
    if isinstance(amount, int):
        words = ngettext("%(n)d GPU", "%(n)d GPUs", amount) % {"n": amount}
        parts.append(f"{words}{_from_lenders(facts.get('lenders'))}.")
    borrows = facts.get("borrows")
    if isinstance(borrows, dict) and (borrowed := borrows.get(GPU)):
        parts.append(gettext("%(n)s of them borrowed.") % {"n": borrowed})
    nodes = facts.get("nodes")
    if isinstance(nodes, int) and nodes:
        parts.append(ngettext("On %(n)d node.", "On %(n)d nodes.", nodes) % {"n": nodes})
    return " ".join(parts)


def _from_lenders(lenders: object) -> str:
    """Return `` from cq-ia``, or ``: 23 from cq-search, 9 from company`` for several."""
    if not isinstance(lenders, dict) or not any(lenders):
        return ""
    if len(lenders) == 1:
        return " " + gettext("from %(lender)s") % {"lender": next(iter(lenders))}
    parts = (
        gettext("%(n)s from %(lender)s") % {"n": amount, "lender": lender}
        for lender, amount in lenders.items()
    )
    return ": " + ", ".join(parts)


def _other(event: WorkloadEvent, actor: Actor) -> str:
    other = event.other
    if other is None:
        return ""
    seen = actor.sees_everything or (other.team_id is not None and actor.sees_team(other.team_id))
    name = str(other) if seen else gettext("a workload of another team")
    if event.kind in {"evicted", "requeued"}:
        return gettext("For %(name)s.") % {"name": name}
    return gettext("With %(name)s.") % {"name": name}
