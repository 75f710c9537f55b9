"""Who waits, summed by the database: by queue and by what pods ask for.

Pages show how many wait and what they ask for together, not each of them. Equal pods of one door
come as one row, so that a page costs the same whether a hundred or a hundred thousand wait.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce

from queues.access import Actor, visible
from scheduling.engine.atlas import Atlas
from scheduling.engine.snapshot import FlavorResource, Snapshot
from scheduling.engine.terms import BlockerCode, PendingReason, Status
from scheduling.engine.view import demand_of
from scheduling.jsontexts import as_text
from scheduling.models import PodSet
from scheduling.routes import Doors, resolve_queue
from scheduling.shapes import SHAPE, SHAPE_TEXTS, pod_sets_of
from scheduling.waits import still_standing, waiting_work

NEVER = (PendingReason.NO_MATCHING_FLAVOR.value, PendingReason.EXCEEDS_MAX_QUOTA.value)


class Sums(NamedTuple):
    """Waiting workloads and their GPUs, and those that can never start: ``never`` GPUs in all."""

    workloads: int
    gpus: int
    never: int
    hopeless: int = 0


class Waits(NamedTuple):
    """Equal pods that wait in one queue, of one team: how many pod sets, and their workloads.

    A workload is counted with the first of its pod sets.
    """

    queue: str  # the cluster queue; one that is not there has the name that was asked for
    team: int | None
    shape: tuple[Any, ...]
    pod_sets: int
    workloads: int
    gpus: int
    never: int
    hopeless: int


@dataclass(frozen=True, slots=True)
class Line:
    """What waits in each cluster queue: how many workloads, and how much of each column."""

    workloads: Mapping[str, int]
    demand: Mapping[tuple[str, FlavorResource], int]
    waits: Sequence[Waits] = ()

    def of_others(self, queue: str, actor: Actor) -> tuple[int, int]:
        """Return how many workloads of teams that the actor does not see wait, and their GPUs."""
        theirs = [w for w in self.waits if w.queue == queue and not actor.sees_team(w.team)]
        return sum(one.workloads for one in theirs), sum(one.gpus for one in theirs)

    def sums(self, actor: Actor) -> Sums:
        """Return what waits of what the actor sees."""
        seen = [one for one in self.waits if actor.sees_team(one.team)]
        hopeless, lost = sum(one.hopeless for one in seen), sum(one.never for one in seen)
        workloads, gpus = sum(one.workloads for one in seen), sum(one.gpus for one in seen)
        return Sums(workloads - hopeless, gpus - lost, lost, hopeless)


def waiting_line(snapshot: Snapshot, doors: Doors) -> Line:
    """Return what waits, by cluster queue. 1 query."""
    atlas, demand, workloads = Atlas(snapshot), Counter[Any](), Counter[str]()
    waits = _waits(doors)
    for one in waits:
        workloads[one.queue] += one.workloads
        queue = snapshot.cluster_queues.get(one.queue)
        if queue is not None:
            rules = settings.RESOURCE_TRANSFORMATIONS
            (pod_set,) = pod_sets_of((one.shape,), None, "{}", rules)[0]
            for fr, amount in demand_of(atlas, queue, pod_set).items():
                demand[queue.name, fr] += amount * one.pod_sets
    return Line(workloads, demand, waits)


def waiting_sums(actor: Actor) -> Sums:
    """Return what waits of what the actor sees. 1 query."""
    never = _never()
    found = (
        visible(waiting_work(), actor)
        .order_by()
        .aggregate(
            workloads=Count("pk"),
            asked=Sum("gpus"),
            never=Sum("gpus", filter=never),
            hopeless=Count("pk", filter=never),
        )
    )
    lost, hopeless = found["never"] or 0, found["hopeless"]
    return Sums(found["workloads"] - hopeless, (found["asked"] or 0) - lost, lost, hopeless)


def _never(prefix: str = "") -> Q:
    """Return which workloads can never start; ``prefix`` leads to them."""
    reasons, told = {f"{prefix}pending_reason__in": NEVER}, f"{prefix}blockers__tells_of"
    return Q(**reasons) | Q(**{told: BlockerCode.IMPOSSIBLE.value})


def _waits(doors: Doors) -> list[Waits]:
    """Return each kind of pods that wait behind a door. Every workload has a first pod set."""
    of = PodSet.objects.filter(workload__status=Status.PENDING.value, workload__archived_at=None)
    of = of.exclude(workload__in=still_standing()).order_by()
    door = ("workload__namespace", "workload__queue_name", "workload__team")
    first = Q(position=0)
    lost = first & _never("workload__")
    kinds = of.values_list(*door, *SHAPE, *SHAPE_TEXTS).annotate(
        pod_sets=Count("pk"),
        works=Count("pk", filter=first),
        asked=Coalesce(Sum("workload__gpus", filter=first), 0),
        lost=Coalesce(Sum("workload__gpus", filter=lost), 0),
        hopeless=Count("pk", filter=lost),
    )
    return [_waits_of(doors, *row) for row in kinds]


def _waits_of(
    doors: Doors, namespace: str, door: str, team: int | None, *shape_and_sums: Any
) -> Waits:
    told, sums = shape_and_sums[:-5], shape_and_sums[-5:]
    # As values the database groups them faster than as texts.
    shape = (*told[: len(SHAPE)], *map(as_text, told[len(SHAPE) :]))
    return Waits(_queue(namespace, door, doors), team, shape, *sums)


def _queue(namespace: str, door: str, doors: Doors) -> str:
    """Return the cluster queue behind a door; one that is not there keeps the door's name."""
    route = resolve_queue(namespace, door, doors)
    return route.cluster_queue if route else door
