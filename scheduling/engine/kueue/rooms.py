"""The room on nodes as Kueue counts it: by the lowest domain of a flavor's topology."""

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
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
    wanted = {request.level, *(layer.level for layer in request.layers)} - {None}
    return wanted <= set(topology.levels)


@dataclass(frozen=True, slots=True)
class Lowest:
    """A lowest domain: its path and name, its key in the table, what it has to give in all."""

    path: Path
    name: str
    key: str
    whole: Mapping[str, int]


class Rooms:
    """Who stands in which lowest domain. One table, undone by the picture's trials."""

    def __init__(self, atlas: Atlas, journal: Journal) -> None:
        self._atlas, self._journal = atlas, journal
        self._taken: dict[tuple[str, str], int] = {}  # (domain, resource)
        self._known: dict[tuple[object, ...], dict[str, Lowest]] = {}

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
            pods * amount <= leaf.free[resource]
            for demand in demands
            for pod_set in demand.pod_sets
            for leaf in self._placed(demand.flavor, placement[pod_set.name], pod_set)
            if (pods := placement[pod_set.name][leaf.name])
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

    def _placed(self, flavor: str, names: Iterable[str], pod_set: PodSet) -> list[Leaf]:
        """Return the domains of these names that are still there."""
        lowest = self._lowest(flavor, None)
        known = (lowest[name] for name in names if name in lowest)
        return self._leaves(known, pod_set.requests.keys())

    def _place(self, demand: Demand) -> Placement | None:
        workers, leader = demand.pod_sets[0], None
        if len(demand.pod_sets) > 1:
            leader = demand.pod_sets[1]
        footprint, led = pod_footprint(workers), pod_footprint(leader) if leader else None
        lowest = self._lowest(demand.flavor, workers).values()
        leaves = self._leaves(lowest, footprint.keys() | (led or {}).keys())
        ask = Ask(demand.request, workers.count, footprint, led)
        placed = place(self.levels(demand.flavor), leaves, ask)
        if placed is None:
            return None
        names = (workers.name,) if leader is None else (workers.name, leader.name)
        return dict(zip(names, placed, strict=False))

    def _leaves(self, lowest: Iterable[Lowest], resources: AbstractSet[str]) -> list[Leaf]:
        """Return lowest domains with what is free in them of these resources."""
        taken = self._taken
        return [
            Leaf(
                one.path,
                one.name,
                {r: one.whole.get(r, 0) - taken.get((one.key, r), 0) for r in resources},
            )
            for one in lowest
        ]

    def _lowest(self, flavor: str, pod_set: PodSet | None) -> dict[str, Lowest]:
        """Return the lowest domains by name; hosts only those that take pods of ``pod_set``.

        Worked out once for each kind of pods: nodes do not change under these rooms.
        """
        by_host = self._ends_at_hosts(flavor)
        kind: tuple[object, ...] = (flavor,)
        if by_host and pod_set is not None:
            selector = tuple(sorted(pod_set.node_selector.items()))
            kind = (flavor, selector, pod_set.tolerations, pod_set.affinity)
        if kind not in self._known:
            self._known[kind] = self._survey(flavor, pod_set if by_host else None)
        return self._known[kind]

    def _survey(self, flavor: str, pod_set: PodSet | None) -> dict[str, Lowest]:
        flavors = self._atlas.flavors([flavor])
        wholes: dict[Path, Counter[str]] = {}
        for path, node in self._nodes(flavor):
            if pod_set is None or not exclusion(node, pod_set, flavors)[0]:
                whole = wholes.setdefault(path, Counter())
                for resource, amount in left_on(node).items():
                    whole[resource] += amount
        by_host, found = self._ends_at_hosts(flavor), dict[str, Lowest]()
        for path, whole in wholes.items():
            name = path[-1] if by_host else "/".join(path)
            found[name] = Lowest(path, name, self._key(flavor, name), whole)
        return found

    def _nodes(self, flavor: str) -> Iterable[tuple[Path, Node]]:
        levels = self.levels(flavor)
        for node in self._atlas.nodes_of(flavor):
            path = path_of(node, levels) if node.usable else None
            if path:
                yield path[:-1], node
