"""The room on nodes as Kueue counts it: by the lowest domain of a flavor's topology."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scheduling.engine.atlas import Atlas, exclusion
from scheduling.engine.ground import left_on
from scheduling.engine.journal import Journal
from scheduling.engine.kueue.domains import Ask, Leaf, place
from scheduling.engine.machines import Flavor, Node
from scheduling.engine.snapshot import Assignment, ClusterQueue, PodSet, TopologyRequest, Workload
from scheduling.engine.terms import TopologyMode
from scheduling.engine.topology import HOSTNAME, Path, path_of
from scheduling.engine.usage import paired, pod_footprint

HOSTS = ("host", HOSTNAME)  # levels at which a domain is one node
UNCONSTRAINED = TopologyRequest(TopologyMode.UNCONSTRAINED)
Placement = dict[str, dict[str, int]]  # by pod set: pods by domain


@dataclass(frozen=True, slots=True)
class Demand:
    """Pod sets that are placed together on one flavor; the last one leads, if there are two."""

    flavor: str
    pod_sets: tuple[PodSet, ...]
    request: TopologyRequest


def all_have_topology(atlas: Atlas, queue: ClusterQueue) -> bool:
    """Return whether every flavor of the queue has a topology: then all its pods are placed."""
    names = {flavor.flavor for group in queue.groups for flavor in group.flavors}
    return bool(names) and all(flavor.topology for flavor in atlas.flavors(names))


def request_of(atlas: Atlas, queue: ClusterQueue, pod_set: PodSet) -> TopologyRequest | None:
    """Return how the pod set is placed; None: it needs no place."""
    if pod_set.topology is not None:
        return pod_set.topology
    return UNCONSTRAINED if all_have_topology(atlas, queue) else None


def levels_suit(atlas: Atlas, flavor: Flavor, request: TopologyRequest | None) -> bool:
    """Return whether the flavor's topology is what the request asks for (``FORMAT`` 10.1)."""
    topology = atlas.snapshot.topologies.get(flavor.topology or "")
    if request is None or topology is None:
        return request is None and flavor.topology is None
    wanted = {request.level, request.slice_level} - {None}
    return wanted <= set(topology.levels)


class Rooms:
    """Who stands in which lowest domain. One table, undone by the picture's trials."""

    def __init__(self, atlas: Atlas, journal: Journal) -> None:
        self._atlas, self._journal = atlas, journal
        self._taken: dict[tuple[str, str], int] = {}  # (domain, resource)
        self._hosts: dict[str, tuple[tuple[Path, Node], ...]] = {}

    def stand(self, workload: Workload, assignments: Iterable[Assignment], sign: int = 1) -> None:
        """Put a workload where ``assignments`` says; ``sign`` -1 takes it away."""
        for pod_set, assignment in paired(workload, assignments):
            if assignment.nodes:
                self._put(self._placing(assignment), pod_set, assignment.nodes, sign)

    def find(self, demands: Iterable[Demand], *, empty: bool = False) -> Placement | None:
        """Return a place for every pod, or None; each demand sees the earlier ones.

        ``empty``: as if no work of the platform were running.
        """
        found: Placement = {}
        with self._journal.trial():
            if empty:
                for key in list(self._taken):
                    self._journal.write(self._taken, key, 0)
            for demand in demands:
                placed = self._place(demand)
                if placed is None:
                    return None
                for pod_set in demand.pod_sets:
                    self._put(demand.flavor, pod_set, placed[pod_set.name], 1)
                found |= placed
        return found

    def have(self, demands: Iterable[Demand], placement: Placement) -> bool:
        """Return whether this placement has room still.

        As Kueue looks at it: each pod set for itself, and without the pods' own slots.
        """
        return all(
            pods * amount <= leaf.free.get(resource, 0)
            for demand in demands
            for leaf in self._leaves(demand.flavor, None)
            for pod_set in demand.pod_sets
            if (pods := placement[pod_set.name].get(leaf.name, 0))
            for resource, amount in pod_set.requests.items()
        )

    def take(self, demands: Iterable[Demand], placement: Placement) -> None:
        """Keep this placement for the rest of the cycle."""
        for demand in demands:
            for pod_set in demand.pod_sets:
                self._put(demand.flavor, pod_set, placement[pod_set.name], 1)

    def levels(self, flavor: str) -> tuple[str, ...]:
        """Return the flavor's topology levels, outermost first."""
        return self._atlas.levels([flavor])

    def _placing(self, assignment: Assignment) -> str | None:
        """Return the flavor whose domains are named; None: they are nodes of any flavor."""
        flavors = self._atlas.flavors(assignment.flavors.values())
        return next((flavor.name for flavor in flavors if flavor.topology), None)

    def _put(
        self, flavor: str | None, pod_set: PodSet, nodes: Mapping[str, int], sign: int
    ) -> None:
        for domain, pods in nodes.items():
            for resource, amount in pod_footprint(pod_set).items():
                key = self._key(flavor, domain), resource
                taken = self._taken.get(key, 0) + sign * pods * amount
                self._journal.write(self._taken, key, taken)

    def _key(self, flavor: str | None, domain: str) -> str:
        """Return the domain's name in the table: a host is one host whatever the flavor."""
        is_host = flavor is None or self._ends_at_hosts(flavor)
        return domain if is_host else f"{flavor}:{domain}"

    def _ends_at_hosts(self, flavor: str) -> bool:
        return self.levels(flavor)[-1] in HOSTS

    def _place(self, demand: Demand) -> Placement | None:
        workers, leader = demand.pod_sets[0], None
        if len(demand.pod_sets) > 1:
            leader = demand.pod_sets[1]
        leaves = self._leaves(demand.flavor, workers)
        ask = Ask(
            demand.request,
            workers.count,
            pod_footprint(workers),
            pod_footprint(leader) if leader else None,
        )
        placed = place(self.levels(demand.flavor), leaves, ask)
        if placed is None:
            return None
        names = (workers.name,) if leader is None else (workers.name, leader.name)
        return dict(zip(names, placed, strict=False))

    def _leaves(self, flavor: str, pod_set: PodSet | None) -> list[Leaf]:
        """Return the lowest domains; hosts only those that take pods of ``pod_set``."""
        by_host = self._ends_at_hosts(flavor)
        flavors = self._atlas.flavors([flavor])
        found: dict[Path, dict[str, int]] = {}
        for path, node in self._nodes(flavor):
            if by_host and pod_set is not None and exclusion(node, pod_set, flavors)[0]:
                continue
            free = found.setdefault(path, {})
            for resource, amount in left_on(node).items():
                free[resource] = free.get(resource, 0) + amount
        return [self._leaf(flavor, path, free) for path, free in found.items()]

    def _leaf(self, flavor: str, path: Path, free: dict[str, int]) -> Leaf:
        name = path[-1] if self._ends_at_hosts(flavor) else "/".join(path)
        key = self._key(flavor, name)
        return Leaf(path, name, {r: n - self._taken.get((key, r), 0) for r, n in free.items()})

    def _nodes(self, flavor: str) -> tuple[tuple[Path, Node], ...]:
        if flavor not in self._hosts:
            levels = self.levels(flavor)
            paths = ((path_of(n, levels), n) for n in self._atlas.nodes_of(flavor) if n.usable)
            self._hosts[flavor] = tuple((path[:-1], node) for path, node in paths if path)
        return self._hosts[flavor]
