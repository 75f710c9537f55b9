"""Workloads as lists and as one story: state, why it waits, where it stands, what happened."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import yaml
from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils.translation import gettext, ngettext

from gpuplatform.common import reasons
from gpuplatform.common.quantities import format_quantity
from queues.access import Actor, visible
from queues.models import ClusterQueue, LocalQueue
from scheduling.engine.machines import GPU
from scheduling.engine.partial import smallest
from scheduling.engine.snapshot import PodSet
from scheduling.engine.snapshot import Workload as Known
from scheduling.engine.terms import PreemptionReason, Status
from scheduling.loader import roles_of
from scheduling.minima import has_minima, with_minima
from scheduling.models import Admission, Workload, WorkloadEvent
from scheduling.selectors.devices import numbers_of
from scheduling.selectors.discretion import Discretion
from scheduling.selectors.events import EventLine, event_line
from scheduling.selectors.foreseen import foresee
from scheduling.selectors.life import Life, life_of
from scheduling.selectors.reservations import ReservationRow, reservation_of
from scheduling.selectors.story_facts import StoryFacts, made_room, read_facts
from scheduling.selectors.waiting import (
    PASSED_BY,
    BlockerLine,
    blocker_lines,
    deciding,
    is_impossible,
)

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
    doors = LocalQueue.objects.order_by().filter(cluster_queue=name)
    here = doors.filter(namespace=OuterRef("namespace"), name=OuterRef("queue_name"))
    # Its own name and those of its doors first: of them there is an index.
    own = ClusterQueue.objects.order_by().filter(name=name).values("name")
    named = rows.filter(queue_name__in=doors.values("name").union(own))
    return named.filter(Exists(here) | Q(queue_name=name))


def workload_cells(rows: Iterable[Any]) -> Iterable[dict[str, Any]]:
    """Yield workloads as rows of an export."""
    for row in rows:
        shown = {name: getattr(row, name, None) for name in WORKLOAD_COLUMNS}
        yield shown | {
            "uid": str(row.uid),
            "team": row.team.name if row.team else "",
            "queue": row.queue_name,
        }


def active_count(actor: Actor) -> int:
    """Return how many workloads of the actor hold quota. 1 query."""
    holding = (Status.ADMITTED.value, Status.RUNNING.value)
    return visible(Workload.objects.filter(status__in=holding), actor).count()


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


class Slot(NamedTuple):
    """Pods of the gang on one node."""

    node: str
    domain: str
    pods: int
    gpus: int
    pod_set: str
    devices: str = ""  # the numbers of each pod's GPUs, where the node tells them apart


class Ahead(NamedTuple):
    """What stands before a pending workload in its cluster queue."""

    workloads: int
    gpus: int


class Growth(NamedTuple):
    """How many pods of a running workload stand, how many it asks for, and why some wait."""

    pods: int
    wanted: int
    least: int | None  # with how many it runs
    blockers: list[BlockerLine]


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
    evicted_for_it: str = ""
    growth: Growth | None = None
    reservation: ReservationRow | None = None
    life: Life | None = None

    @property
    def deciding(self) -> BlockerLine | None:
        """Return the blocker that decides."""
        return deciding(self.workload, self.blockers)

    @property
    def waits_for_its_turn(self) -> bool:
        """Return whether cycles pass it by until others have started, or somebody has answered."""
        return any(line.code in PASSED_BY for line in self.blockers)

    @property
    def is_impossible(self) -> bool:
        """Return whether it waits for nothing that could come."""
        return is_impossible(self.workload)

    @property
    def names_devices(self) -> bool:
        """Return whether any of its nodes tells GPUs apart."""
        return any(slot.devices for slot in self.slots)

    @property
    def is_over(self) -> bool:
        """Return whether it has ended: where it stood is past."""
        return self.workload.status == Status.FINISHED

    @property
    def pending_sentence(self) -> str:
        """Return the summary of why it waits."""
        return reasons.sentence(self.workload.pending_reason or "PendingEvaluation", {})


def workload_story(actor: Actor, uid: UUID) -> Story | None:
    """Return one workload with its story; None where the actor may not see it."""
    events = WorkloadEvent.objects.select_related("other__team").defer("other__template")
    held = Admission.objects.filter(is_part=False).order_by("-admitted_at")
    door = LocalQueue.objects.filter(namespace=OuterRef("namespace"), name=OuterRef("queue_name"))
    workload: Any = (
        visible(Workload.objects.all(), actor)
        .select_related("team", "submitted_by")
        .annotate(cluster_queue=Coalesce(Subquery(door.values("cluster_queue")[:1]), "queue_name"))
        .prefetch_related(
            "pod_sets",
            Prefetch("events", events.order_by("-at", "-id")),
            Prefetch("admissions", held, to_attr="stays"),
        )
        .filter(uid=uid)
        .first()
    )
    if workload is None:
        return None
    foresee(workload)
    admission = next((a for a in workload.stays if _matters(workload, a)), None)
    facts = read_facts(workload, admission, actor)
    discretion = Discretion(actor, facts.pages)
    queue = admission.cluster_queue if admission else workload.cluster_queue
    return Story(
        workload=workload,
        cluster_queue=queue,
        has_queue_page=queue in facts.pages.queues,
        blockers=blocker_lines(workload, discretion),
        ahead=_ahead(workload),
        admission=admission,
        slots=_slots(facts) if admission else [],
        events=_story_lines(workload, actor, facts.cancelled_by),
        evicted_for_it=_evicted_for(workload, facts),
        growth=_growth(workload, admission, facts, discretion),
        reservation=reservation_of(workload, actor),
        life=life_of(workload, admission, actor, facts),
    )


def _growth(
    workload: Any, admission: Admission | None, facts: StoryFacts, discretion: Discretion
) -> Growth | None:
    """Return how many pods stand of how many; None where all do, or nothing is held."""
    if admission is None or workload.status not in (Status.ADMITTED, Status.RUNNING):
        return None
    pods = sum(placement.count for placement in facts.placements)
    wanted = sum(pod_set.wanted or pod_set.count for pod_set in workload.pod_sets.all())
    if pods >= wanted or not (workload.growth or _starts_with_fewer(workload)):
        return None
    asks = Workload(blockers=workload.growth.get("blockers") or [])
    least = least_pods(workload) if _starts_with_fewer(workload) else None
    return Growth(pods, wanted, least, blocker_lines(asks, discretion))


def _starts_with_fewer(workload: Any) -> bool:
    roles = roles_of(workload.pod_sets.all())
    return has_minima(workload.min_member, workload.role_minima, roles)


def least_pods(workload: Any) -> int:
    """Return with how few pods the gang runs, or starts where it is content with fewer."""
    roles = roles_of(workload.pod_sets.all())
    pod_sets = tuple(PodSet(role.name, role.count, {}) for role in roles)
    gang = Known(str(workload.uid), workload.name, None, 0, 0.0, pod_sets)
    known = with_minima(gang, workload.min_member, workload.role_minima, roles)
    return sum(pod_set.count for pod_set in smallest(known).pod_sets)


def _matters(workload: Workload, admission: Admission) -> bool:
    """Return whether the story shows this stay: what is held, or the last one of an ended work."""
    return workload.status == Status.FINISHED or admission.released_at is None


def _story_lines(workload: Any, actor: Actor, cancelled_by: Sequence[str]) -> list[EventLine]:
    """Return what happened in words; a cancellation names who asked for it."""
    lines = [event_line(event, actor) for event in workload.events.all()]
    if not cancelled_by:
        return lines
    by = gettext("By %(name)s.") % {"name": cancelled_by[0]}
    return [
        line._replace(detail=f"{by} {line.detail}".strip())
        if line.event.kind == "cancelled"
        else line
        for line in lines
    ]


def _evicted_for(workload: Any, facts: StoryFacts) -> str:
    """Say how much was evicted for this workload, and from which queues that the reader sees."""
    events = workload.events.all()
    if moving := {event.other_id for event in events if event.kind == "consolidating"}:
        words = ngettext(
            "%(n)d workload was moved to other nodes for it",
            "%(n)d workloads were moved to other nodes for it",
            len(moving),
        )
        return words % {"n": len(moving)}
    making = [event for event in events if event.kind == "preempting"]
    whole = made_room(workload)
    taken = sum(event.facts.get("taken", 0) for event in making)
    if taken and not whole:
        words = ngettext(
            "%(n)d pod was taken from a running gang for it",
            "%(n)d pods were taken from running gangs for it",
            taken,
        )
        return words % {"n": taken}
    if not whole:
        return ""
    victims, names = {event.other_id for event in whole}, sorted(set(facts.emptied))
    own = any(event.reason == PreemptionReason.IN_CLUSTER_QUEUE for event in whole)
    count, n = len(victims), {"n": len(victims)}
    what = (
        ngettext("%(n)d workload was evicted for it", "%(n)d workloads were evicted for it", count)
        if own
        else ngettext(
            "%(n)d borrower was evicted for it", "%(n)d borrowers were evicted for it", count
        )
    ) % n
    seen = [name for name in names if facts.pages.of_queue(name)]
    told = [*seen, *([gettext("other teams")] if len(seen) < len(names) else [])]
    return f"{what}: {', '.join(told)}" if told else what


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


def _slots(facts: StoryFacts) -> list[Slot]:
    placed = sorted(facts.placements, key=lambda p: (p.pod_set, p.node))
    known = facts.labels.items()
    domains = {name: " / ".join(facts.places.domains_of(labels)) for name, labels in known}
    return [
        Slot(
            p.node,
            domains.get(p.node, ""),
            p.count,
            p.count * int(p.requests.get(GPU, 0)),
            p.pod_set,
            numbers_of(p.devices),
        )
        for p in placed
    ]
