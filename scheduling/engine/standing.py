"""What an admitted workload still holds of its admission: the one place that says so.

An admission is written once. Later the host may ask for fewer pods (an elastic workload that
shrank in place), and pods may finish for good (reclaimable ones). Quota follows both at once.
Nodes follow the first by a rule, because the platform says which pods go; and the second not
before the host names fewer pods on the nodes, because nobody knows which ones have finished.
Source: ``admission.md`` K37, K38, section 5 C.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

from scheduling.engine.snapshot import Assignment, PodSet, Workload


def standing(workload: Workload) -> tuple[Assignment, ...]:
    """Return the assignments as far as they are still held; nothing for a pending workload.

    ``count`` is what quota is charged: never more than was granted, never less than none.
    """
    if workload.admission is None:
        return ()
    granted, pod_sets = workload.admission.assignments, workload.pod_sets
    if not workload.reclaimable and all(map(_is_whole, granted, pod_sets)):
        return granted
    wanted = {pod_set.name: pod_set.count for pod_set in pod_sets}
    if not workload.reclaimable and all(
        a.count <= wanted.get(a.pod_set, a.count) for a in granted
    ):
        return granted
    return tuple(_held(a, wanted.get(a.pod_set, a.count), workload.reclaimable) for a in granted)


def _is_whole(granted: Assignment, asked: PodSet) -> bool:
    return granted.pod_set == asked.name and granted.count <= asked.count


def _held(assignment: Assignment, wanted: int, finished: Mapping[str, int]) -> Assignment:
    pods = min(assignment.count, wanted)
    done = max(0, finished.get(assignment.pod_set, 0))
    if pods == assignment.count and not done:
        return assignment
    return replace(resized(assignment, pods), count=max(0, pods - done))


def resized(assignment: Assignment, pods: int) -> Assignment:
    """Return the assignment with ``pods`` of its pods left, on their nodes and devices."""
    nodes = shrunk(assignment.nodes, pods)
    left = {n: d[: nodes[n]] for n, d in assignment.devices.items() if n in nodes}
    return replace(assignment, count=pods, nodes=nodes, devices=left)


def in_turn(nodes: Mapping[str, int]) -> Iterator[str]:
    """Yield the node of each pod, who leaves first in front.

    The nodes with the fewest are left first, of equal ones the last by name: whole nodes come
    free. On a node, the pods that came last leave first, and their devices with them.
    """
    for node in sorted(sorted(nodes, reverse=True), key=lambda name: nodes[name]):
        yield from [node] * nodes[node]


def shrunk(nodes: Mapping[str, int], pods: int) -> dict[str, int]:
    """Return where ``pods`` of the pods stay when the others leave :func:`in_turn`."""
    left = dict(nodes)
    for node in islice(in_turn(nodes), max(0, sum(left.values()) - pods)):
        left[node] -= 1
    return {node: count for node, count in left.items() if count}
