"""The law of standing together, in other words than those that place.

An admitted pod set keeps its required domain and cuts no slice; a group keeps its domain.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from scheduling.engine.snapshot import Assignment, Snapshot, Workload
from scheduling.engine.terms import TopologyMode
from scheduling.engine.topology import path_of, topology_of
from scheduling.engine.usage import paired

Standing = tuple[str, tuple[str, ...]]  # a level, and where pods stand down to it


def scattered(
    snapshot: Snapshot, workload: Workload, assignments: Iterable[Assignment]
) -> Iterator[str]:
    """Yield a sentence for each pod set, slice or group that does not stand together."""
    domains: dict[str, set[Standing]] = {}
    for pod_set, assignment in paired(workload, assignments):
        request = pod_set.topology
        if request is None or not assignment.nodes:
            continue
        if request.mode is TopologyMode.REQUIRED and request.level:
            stands = set(_pods(snapshot, assignment, request.level))
            domains.setdefault(request.group or f"pod set {pod_set.name}", set()).update(stands)
        for level, size in request.layers:
            pods = _pods(snapshot, assignment, level)
            if any(number % size for number in pods.values()):
                yield f"{workload.key} cuts slices of {size} pods in {level}"
    for name, stands in sorted(domains.items()):
        if len(stands) > 1:
            yield f"{workload.key} has {name} in {len(stands)} domains"


def _pods(snapshot: Snapshot, assignment: Assignment, level: str) -> Counter[Standing]:
    """Return the pods by domain of a level; nodes that are gone are left out."""
    names = set(assignment.flavors.values())
    flavors = [snapshot.flavors[name] for name in sorted(names) if name in snapshot.flavors]
    topology = topology_of(snapshot, flavors)
    pods: Counter[Standing] = Counter()
    if topology is None or level not in topology.levels:
        return pods
    depth, nodes = topology.levels.index(level) + 1, {node.name: node for node in snapshot.nodes}
    for name, number in assignment.nodes.items():
        path = path_of(nodes[name], topology.levels) if name in nodes else None
        if path is not None:
            pods[level, path[:depth]] += number
    return pods
