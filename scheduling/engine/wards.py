"""Which queues can feel each other's moves: one cohort tree, or trees that share nodes.

A change concerns the queues of its ward alone; the others need not be looked at again.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from scheduling.engine.atlas import Atlas
from scheduling.engine.snapshot import Snapshot
from scheduling.engine.tree import QuotaTree, queue_key

Thing = TypeVar("Thing")


class Wards:
    """The wards of one platform, numbered."""

    def __init__(self, platform: Snapshot, tree: QuotaTree, atlas: Atlas) -> None:
        names: dict[str, set[str]] = {}
        flavors: dict[str, set[str]] = {}
        for name, queue in platform.cluster_queues.items():
            root = repr(tree.root(queue_key(name)))
            names.setdefault(root, set()).add(name)
            offered = {flavor.flavor for group in queue.groups for flavor in group.flavors}
            flavors.setdefault(root, set()).update(offered)
        pools = _pools(flavors.values(), atlas)
        used = {
            root: {pools[flavor] for flavor in offered if flavor in pools}
            for root, offered in flavors.items()
        }
        self._members = [
            frozenset(name for root in roots for name in names[root]) for roots in _connected(used)
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


def _pools(offers: Iterable[set[str]], atlas: Atlas) -> dict[str, int]:
    """Return for each flavor with nodes that somebody offers the number of its pool.

    Flavors of one pool share nodes, directly or through others.
    """
    nodes = {
        flavor: {node.name for node in atlas.nodes_of(flavor)} for flavor in set().union(*offers)
    }
    groups = _connected({flavor: held for flavor, held in nodes.items() if held})
    return {flavor: i for i, group in enumerate(groups) for flavor in group}


def _connected(things: Mapping[str, set[Thing]]) -> list[list[str]]:
    """Return groups of those that have something in common, directly or through others."""
    groups: list[tuple[list[str], set[Thing]]] = []
    for name, its in sorted(things.items()):
        mine, reach = [name], set(its)
        apart = []
        for group in groups:
            if group[1] & reach:
                mine, reach = group[0] + mine, reach | group[1]
            else:
                apart.append(group)
        groups = [*apart, (mine, reach)]
    return [names for names, _ in groups]
