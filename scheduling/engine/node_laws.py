"""What a node may never carry, in other words than those that decide.

Part of :mod:`scheduling.engine.invariants`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from scheduling.engine.machines import PODS, PODS_PER_NODE, Node
from scheduling.engine.snapshot import Assignment


def pods_by_node(assignments: Iterable[Assignment]) -> Counter[str]:
    """Return how many pods of these stand on each node."""
    pods: Counter[str] = Counter()
    for assignment in assignments:
        pods.update(assignment.nodes)
    return pods


def oversold(node: Node, load: Counter[tuple[str, str]]) -> Iterator[str]:
    """Yield what a node carries beyond what it has; ``load``: by node and resource."""
    whole = {PODS: PODS_PER_NODE, **node.allocatable}
    for name, resource in sorted(load):
        if name == node.name:
            taken = load[name, resource] + node.unmanaged.get(resource, 0)
            if taken > whole.get(resource, 0):
                yield f"{name} carries {taken} of {whole.get(resource, 0)} {resource}"
