"""Gang placement: on which nodes, all pods or none.

The table of free capacity is physical: a node that belongs to several flavors is counted once.
"""

from collections.abc import Iterable, Mapping

from scheduling.engine.atlas import Atlas
from scheduling.engine.journal import Journal, Trial
from scheduling.engine.machines import PODS, PODS_PER_NODE, Node
from scheduling.engine.snapshot import Assignment, PodSet, Workload
from scheduling.engine.terms import TopologyMode
from scheduling.engine.topology import Hosts
from scheduling.engine.usage import paired, pod_footprint

_ENDLESS = 2**63  # a pod always takes a slot, so this never comes out


class FreeCapacity:
    """What is free on each node; negative where a node shrank below what stands on it."""

    def __init__(self, nodes: Iterable[Node], journal: Journal | None = None) -> None:
        self._free = {node.name: left_on(node) for node in nodes}
        self._journal = journal or Journal()

    def trial(self) -> Trial:
        """Open a block whose changes to all tables of this journal are undone unless kept."""
        return self._journal.trial()

    def free(self, node: str, resource: str) -> int:
        """Return how much of ``resource`` is free on the node."""
        return self._free[node].get(resource, 0)

    def fitting(self, node: str, footprint: Mapping[str, int]) -> int:
        """Return how many pods with this footprint still fit on the node."""
        free, fitting = self._free[node], _ENDLESS
        for resource, amount in footprint.items():
            fitting = min(fitting, free.get(resource, 0) // amount)
            if fitting <= 0:
                return 0
        return fitting

    def take(self, node: str, footprint: Mapping[str, int], pods: int) -> None:
        """Put ``pods`` on the node; with a negative number, take them away.

        A node that has left the cluster holds nothing.
        """
        if node not in self._free:
            return
        for resource, amount in footprint.items():
            free = self.free(node, resource)
            self._journal.write(self._free[node], resource, free - amount * pods)

    def stand(self, workload: Workload, assignments: Iterable[Assignment], sign: int = 1) -> None:
        """Put a whole workload where ``assignments`` says; ``sign`` -1 takes it away."""
        assignments = [assignment for assignment in assignments if assignment.nodes]
        for pod_set, assignment in paired(workload, assignments) if assignments else ():
            footprint = pod_footprint(pod_set)
            for node, pods in assignment.nodes.items():
                self.take(node, footprint, sign * pods)


def left_on(node: Node) -> dict[str, int]:
    """Return what pods outside the platform leave of a node."""
    whole = {PODS: PODS_PER_NODE, **node.allocatable}
    return {r: amount - node.unmanaged.get(r, 0) for r, amount in whole.items()}


Rooms = tuple[FreeCapacity, ...]  # pods must fit in each of these tables


def capacities(
    atlas: Atlas, rooms: Rooms, pod_set: PodSet, flavors: Iterable[str]
) -> dict[str, int]:
    """Return how many pods of ``pod_set`` each suitable node can take now."""
    nodes = atlas.suitable(pod_set, flavors).nodes
    atlas.scanned += len(nodes)
    footprint = pod_footprint(pod_set)
    fitting = {name: rooms[0].fitting(name, footprint) for name in nodes}
    for room in rooms[1:]:
        for name, pods in fitting.items():
            if pods:
                fitting[name] = min(pods, room.fitting(name, footprint))
    return fitting


def place_pod_set(
    atlas: Atlas, rooms: Rooms, pod_set: PodSet, flavors: Iterable[str]
) -> dict[str, int] | None:
    """Choose nodes for all pods of one pod set; nothing is taken yet.

    Returns:
        Pods by node, naming only nodes that get one; empty where the flavors have no nodes;
        None when not all pods fit as the topology request demands.

    Cost: O(N log N) for N suitable nodes, times the levels of the topology.
    """
    names = sorted(set(flavors))
    if not pod_set.count or atlas.suitable(pod_set, names).quota_only:
        return {}
    capacity = capacities(atlas, rooms, pod_set, names)
    request = pod_set.topology
    if request is None or request.mode is TopologyMode.UNCONSTRAINED:
        return fullest_first(capacity, pod_set, rooms[0])
    depth = level_depth(atlas, pod_set, names)
    if depth is None:
        return None
    hosts = Hosts(capacity, atlas.paths(atlas.levels(names)))
    if request.mode is TopologyMode.REQUIRED:
        return hosts.together(pod_set.count, depth)
    return hosts.close(pod_set.count, depth)


def level_depth(atlas: Atlas, pod_set: PodSet, flavors: Iterable[str]) -> int | None:
    """Return how deep the requested level lies (1: outermost); None: no such level here."""
    levels = atlas.levels(flavors)
    level = pod_set.topology.level if pod_set.topology else None
    if level is None:
        return 1 if levels else None
    return levels.index(level) + 1 if level in levels else None


def fullest_first(
    capacity: Mapping[str, int], pod_set: PodSet, room: FreeCapacity
) -> dict[str, int] | None:
    """Fill the tightest nodes first, so that big holes stay whole; ties by name."""

    def tightness(node: str) -> tuple[int, tuple[int, ...], str]:
        left = tuple(room.free(node, resource) for resource in sorted(pod_set.requests))
        return capacity[node], left, node

    placed: dict[str, int] = {}
    waiting = pod_set.count
    for node in sorted((name for name, pods in capacity.items() if pods), key=tightness):
        placed[node] = min(waiting, capacity[node])
        waiting -= placed[node]
        if not waiting:
            return placed
    return None
