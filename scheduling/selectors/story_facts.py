"""What the story of one workload needs from many tables, read by one statement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuplatform.common.models import AuditEntry
from gpuplatform.common.together import instances, read_together, whole
from queues.access import Actor
from scheduling.models import (
    Admission,
    AdmissionCheck,
    CheckState,
    MemberEnd,
    Node,
    Placement,
    WorkloadEvent,
)
from scheduling.selectors.nodes import Places, asked_of_places, places_of
from scheduling.selectors.pages import Pages, asked_of_pages


@dataclass(frozen=True, slots=True)
class StoryFacts:
    """What is beside a workload's own rows.

    ``placements``: of the stay that is shown. ``labels``: of the nodes on which it stands. What
    checks said of it are ``states``, what they are ``checks``. ``cancelled_by``: names, the
    newest first. ``emptied``: the cluster queues of those that made room for it. ``ends``: of its
    members, the newest first.
    """

    placements: Sequence[Placement]
    pages: Pages
    places: Places
    labels: Mapping[str, Mapping[str, str]]
    states: Sequence[CheckState]
    checks: Mapping[str, AdmissionCheck]
    cancelled_by: Sequence[str]
    emptied: Sequence[str]
    ends: Sequence[MemberEnd]


def read_facts(workload: Any, admission: Admission | None, actor: Actor) -> StoryFacts:
    """Return what the story of a workload rests on; its events are read. 1 query."""
    placements = Placement.objects.filter(admission=admission)
    states = CheckState.objects.filter(workload=workload)
    victims = made_room(workload)
    cancelled = AuditEntry.objects.filter(
        action="workload.cancelled",
        subject_kind="Workload",
        subject=f"{workload.namespace}/{workload.name}",
        at__gte=workload.created_at,
    )
    emptied = Admission.objects.filter(
        workload__in={event.other_id for event in victims},
        evicted_at__in={event.at for event in victims},
    )
    nodes = Node.objects.filter(name__in=placements.order_by().values("node"))
    known = AdmissionCheck.objects.filter(name__in=states.order_by().values("check_name"))
    placed, said, labels, checks, by, rooms, ends, *paths = read_together(
        whole(placements.order_by("id")),
        whole(states.order_by("check_name")),
        nodes.order_by().values_list("name", "labels"),
        whole(known),
        cancelled.order_by("id").values_list("actor_name"),
        emptied.order_by("id").values_list("cluster_queue"),
        whole(MemberEnd.objects.filter(admission=admission).order_by("at", "id")),
        *asked_of_pages(actor),
        *asked_of_places(),
    )
    queues, parents, levels, flavors = paths
    return StoryFacts(
        placements=instances(Placement, placed),
        states=instances(CheckState, said),
        pages=Pages(actor, dict(queues), dict(parents)),
        places=places_of(levels, flavors),
        labels=dict(labels),
        checks={row.name: row for row in instances(AdmissionCheck, checks)},
        cancelled_by=[name for (name,) in reversed(by)],
        emptied=[name for (name,) in rooms],
        ends=instances(MemberEnd, ends)[::-1],
    )


def made_room(workload: Any) -> list[WorkloadEvent]:
    """Return the events that tell who was evicted as a whole for it."""
    making = [event for event in workload.events.all() if event.kind == "preempting"]
    return [event for event in making if not event.facts.get("taken")]
