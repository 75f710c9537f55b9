"""Who waits, summed by the database: by queue and by what pods ask for.

Pages show how many wait and what they ask for together, not each of them. Equal pods of one door
come as one row, so that a page costs the same whether a hundred or a hundred thousand wait.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Count, Q, QuerySet, Sum

from queues.access import Actor, visible
from scheduling.engine.atlas import Atlas
from scheduling.engine.snapshot import FlavorResource, Snapshot
from scheduling.engine.snapshot import Workload as Work
from scheduling.engine.terms import BlockerCode, PendingReason, Status
from scheduling.engine.view import demand_of
from scheduling.models import Admission, PodSet, Workload
from scheduling.routes import Doors, resolve_queue
from scheduling.works import SHAPE, SHAPE_TEXTS, pod_sets_of, read_works, texts_of

FIRST = 3  # of a line: the first may never fit
MOST = 20_000
NEVER = (PendingReason.NO_MATCHING_FLAVOR.value, PendingReason.EXCEEDS_MAX_QUOTA.value)


@dataclass(frozen=True, slots=True)
class Line:
    """What waits in each cluster queue: how many workloads, and how much of each column."""

    workloads: Mapping[str, int]
    demand: Mapping[tuple[str, FlavorResource], int]


class Sums(NamedTuple):
    """Waiting workloads and their GPUs, and those that can never start: ``never`` GPUs in all."""

    workloads: int
    gpus: int
    never: int
    hopeless: int = 0


def waiting_line(snapshot: Snapshot, doors: Doors) -> Line:
    """Return what waits, by cluster queue. 2 queries."""
    atlas, demand, workloads = Atlas(snapshot), Counter[Any](), Counter[str]()
    waiting = waiting_work().order_by()
    for namespace, door, count in waiting.values_list("namespace", "queue_name").annotate(
        Count("pk")
    ):
        workloads[_queue(namespace, door, doors)] += count
    for namespace, door, shape, count in _shapes():
        queue = snapshot.cluster_queues.get(_queue(namespace, door, doors))
        if queue is not None:
            (pod_set,) = pod_sets_of((shape,), None, "{}", settings.RESOURCE_TRANSFORMATIONS)[0]
            for fr, amount in demand_of(atlas, queue, pod_set).items():
                demand[queue.name, fr] += amount * count
    return Line(workloads, demand)


def heads_of(doors: Doors) -> list[Work]:
    """Return who may be next in each queue: the first of every line, and who came since.

    Places are those that the last cycle gave; whoever came after it has none yet. 5 queries.
    """
    first = waiting_work().filter(Q(position=None) | Q(position__lte=FIRST))
    uids = list(first.order_by("position", "created_at").values_list("uid", flat=True)[:MOST])
    works = read_works(doors, uids).workloads if uids else []
    return [work for work in works if work.admission is None]


def waiting_sums(actor: Actor) -> Sums:
    """Return what waits of what the actor sees. 1 query."""
    never = Q(pending_reason__in=NEVER) | Q(blockers__tells_of=BlockerCode.IMPOSSIBLE.value)
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


def waiting_work() -> QuerySet[Workload]:
    """Return pending work whose pods do not stand any more."""
    return Workload.objects.filter(status=Status.PENDING.value).exclude(pk__in=_standing())


def _standing() -> Any:
    """Return the pending work whose pods still stand, few at any time: the open rows are short."""
    still = Admission.objects.filter(released_at=None, evicted_at__isnull=False, is_part=False)
    return still.order_by().values("workload")


def _shapes() -> list[tuple[str, str, tuple[Any, ...], int]]:
    """Return each kind of pods that wait behind a door, and of how many pod sets it is."""
    texts = texts_of(SHAPE_TEXTS)
    of = PodSet.objects.filter(workload__status=Status.PENDING.value, workload__archived_at=None)
    of = of.exclude(workload__in=_standing()).order_by().annotate(**texts)
    kinds = of.values_list("workload__namespace", "workload__queue_name", *SHAPE, *texts)
    return [
        (namespace, door, tuple(shape), count)
        for namespace, door, *shape, count in kinds.annotate(Count("pk"))
    ]


def _queue(namespace: str, door: str, doors: Doors) -> str:
    """Return the cluster queue behind a door; one that is not there keeps the door's name."""
    route = resolve_queue(namespace, door, doors)
    return route.cluster_queue if route else door
