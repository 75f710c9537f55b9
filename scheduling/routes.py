"""Where a workload's queue name leads, and whether it may go there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gpuplatform.common.likeness import nearest_name
from queues.access import Actor, visible
from queues.labels import matches
from queues.models import ClusterQueue, LocalQueue, Namespace
from queues.selectors import visible_local_queues
from scheduling.engine.terms import BlockerCode, StopPolicy

METADATA_NAME = "kubernetes.io/metadata.name"


class Refusal(NamedTuple):
    """What a check is known to say before any quota is reserved: the blocker, and until when."""

    code: str
    until: float


@dataclass(frozen=True, slots=True)
class Doors:
    """Every queue by name, and the labels of every declared namespace.

    ``refusals``: which teams' new work a check keeps out of which queue.
    """

    local_queues: Mapping[tuple[str, str], LocalQueue]
    cluster_queues: Mapping[str, ClusterQueue]
    namespace_labels: Mapping[str, Mapping[str, str]]
    refusals: Mapping[tuple[str, int], Refusal] = field(default_factory=dict)
    _ways: dict[tuple[str, str], "Way"] = field(default_factory=dict, repr=False, compare=False)

    def way(self, namespace: str, queue_name: str) -> "Way":
        """Return where a queue name leads, looked up once for all work that names it."""
        known = self._ways.get((namespace, queue_name))
        if known is None:
            route = resolve_queue(namespace, queue_name, self)
            door = str(route.local_queue) if route and route.local_queue else ""
            known = Way(route, door, blocked(namespace, route, self))
            self._ways[namespace, queue_name] = known
        return known

    def rests(
        self, queue: str | None, team_id: int | None, requeue_at: float | None
    ) -> tuple[str, float | None]:
        """Return by which blocker new work is kept out, "" for none of its own, and until when.

        ``requeue_at``: until when it rests anyway; what ends later is what is said.
        """
        refusal = self.refusals.get((queue or "", team_id or 0))
        if refusal is None or refusal.until <= (requeue_at or 0):
            return "", requeue_at
        return refusal

    def ceiling(self, name: str, queue: str | None) -> str | None:
        """Return the queue ``name`` if it may bound work of ``queue``, else None.

        It may if it is nobody's, or of the same team: to others a foreign queue is not there, and
        what it could never give must not show.
        """
        bound, own = self.cluster_queues.get(name), self.cluster_queues.get(queue or "")
        if bound is None:
            return None
        is_shared = bound.team_id is None or (own is not None and own.team_id == bound.team_id)
        return name if is_shared else None

    def labels_of(self, namespace: str) -> Mapping[str, str]:
        """Return what a selector sees; an undeclared namespace has only its name."""
        return self.namespace_labels.get(namespace, {METADATA_NAME: namespace})


@dataclass(frozen=True, slots=True)
class Route:
    """Where a workload's queue name leads: a ClusterQueue, through a LocalQueue or directly."""

    cluster_queue: str
    local_queue: LocalQueue | None = None


class Way(NamedTuple):
    """Where a queue name leads; ``door``: the LocalQueue; why the rows keep waiting work out."""

    route: Route | None
    door: str
    blocked: str


HELD = "LocalQueueHeld"  # work that runs there stays as it is


def load_doors() -> Doors:
    """Read the queues and namespaces, in three queries."""
    queues = ClusterQueue.objects.select_related("team", "cohort")
    return doors_of(LocalQueue.objects.all(), queues, Namespace.objects.all())


def doors_of(
    local: Iterable[LocalQueue], queues: Iterable[ClusterQueue], spaces: Iterable[Namespace]
) -> Doors:
    """Return rows of queues and namespaces by what they are looked up by."""
    return Doors(
        local_queues={(row.namespace, row.name): row for row in local},
        cluster_queues={row.name: row for row in queues},
        namespace_labels={row.name: row.selectable_labels for row in spaces},
    )


def resolve_queue(namespace: str, queue_name: str, doors: Doors) -> Route | None:
    """Return where ``queue_name`` leads from ``namespace``; None where no such queue is known.

    A LocalQueue of the namespace comes first. Without one, a ClusterQueue may be named directly
    if it is open to every namespace, as Volcano Queues are: they have no LocalQueues.
    The ClusterQueue behind a LocalQueue may be missing: the caller looks it up.
    """
    local = doors.local_queues.get((namespace, queue_name))
    if local is not None:
        return Route(local.cluster_queue, local)
    queue = doors.cluster_queues.get(queue_name)
    is_open = queue is not None and queue.namespace_selector == {}
    return Route(queue_name) if is_open else None


def hints(namespace: str, queue_name: str, actor: Actor) -> dict[str, str]:
    """Return what helps somebody whose queue is not there: what it is, which name is nearest.

    ``cause`` "closed": a ClusterQueue that work cannot name directly. Only what the actor sees is
    told, so that a foreign name answers like one that nobody gave to anything.
    """
    doors = visible_local_queues(actor).filter(namespace=namespace)
    behind = dict(doors.values_list("name", "cluster_queue"))
    queues = visible(ClusterQueue.objects.all(), actor)
    selectors = dict(queues.values_list("name", "namespace_selector"))
    found = {"cause": "closed"} if queue_name in selectors else {}
    leading = sorted(name for name, target in behind.items() if target == queue_name)
    known = {*behind, *(name for name, selector in selectors.items() if selector == {})}
    nearest = leading[0] if leading else nearest_name(queue_name, known)
    return {**found, **({"nearest": nearest} if nearest else {})}


def blocked(namespace: str, route: Route | None, doors: Doors) -> str:
    """Return why the rows alone keep a pending workload out, or ""."""
    queue = doors.cluster_queues.get(route.cluster_queue) if route else None
    if route is None or queue is None:
        return BlockerCode.QUEUE_MISSING
    if route.local_queue and route.local_queue.stop_policy != StopPolicy.NONE:
        return BlockerCode.QUEUE_STOPPED
    if not matches(queue.namespace_selector, doors.labels_of(namespace)):
        return BlockerCode.NAMESPACE_NOT_ALLOWED
    return ""


def drained(route: Route | None) -> str:
    """Return why an admitted workload must leave through its LocalQueue, or gets no more pods.

    "" where it does neither.
    """
    local = route.local_queue if route else None
    if local is None or local.stop_policy == StopPolicy.NONE:
        return ""
    drains = local.stop_policy == StopPolicy.HOLD_AND_DRAIN
    return BlockerCode.QUEUE_STOPPED if drains else HELD
