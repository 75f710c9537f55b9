"""Which queues can feel each other's moves: one cohort tree, or trees that share nodes.

A change concerns the queues of its ward alone; the others need not be looked at again.
"""

from collections.abc import Iterable

from scheduling.engine.atlas import Atlas
from scheduling.engine.snapshot import Snapshot
from scheduling.engine.tree import QuotaTree, queue_key


class Wards:
    """The wards of one platform, numbered."""

    def __init__(self, platform: Snapshot, tree: QuotaTree, atlas: Atlas) -> None:
        names: dict[str, set[str]] = {}
        nodes: dict[str, set[str]] = {}
        for name, queue in sorted(platform.cluster_queues.items()):
            root = repr(tree.root(queue_key(name)))
            names.setdefault(root, set()).add(name)
            flavors = {flavor.flavor for group in queue.groups for flavor in group.flavors}
            used = {node.name for flavor in flavors for node in atlas.nodes_of(flavor)}
            nodes.setdefault(root, set()).update(used)
        self._members = [
            frozenset(name for root in roots for name in names[root])
            for roots in _connected(nodes)
        ]
        self._of = {name: i for i, members in enumerate(self._members) for name in members}
        self._touched = set(range(len(self._members)))

    def touch(self, queue: str | None) -> None:
        """Note that something changed for this queue; None: on any node."""
        if queue is None:
            self._touched.update(range(len(self._members)))
        elif queue in self._of:
            self._touched.add(self._of[queue])

    def beside(self, queue: str | None) -> frozenset[str]:
        """Return the queues of the same ward, the queue itself included."""
        ward = self._of.get(queue or "")
        return frozenset() if ward is None else self._members[ward]

    def touched(self) -> Iterable[str]:
        """Return the queues that have to be looked at."""
        return (name for ward in self._touched for name in self._members[ward])

    def settle(self) -> None:
        """Note that everything touched so far has been looked at."""
        self._touched.clear()


def _connected(nodes: dict[str, set[str]]) -> list[list[str]]:
    """Return groups of roots that share nodes, directly or through others."""
    groups: list[tuple[list[str], set[str]]] = []
    for root, used in sorted(nodes.items()):
        mine, reach = [root], set(used)
        apart = []
        for group in groups:
            if group[1] & reach:
                mine, reach = group[0] + mine, reach | group[1]
            else:
                apart.append(group)
        groups = [*apart, (mine, reach)]
    return [roots for roots, _ in groups]
