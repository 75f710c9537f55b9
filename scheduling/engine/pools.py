"""Healthy nodes by the flavors that they belong to, and what they have with nothing running.

A pool is named by the flavors whose nodes it holds, all of them at once: a pod that takes its
GPUs and its CPUs from different flavors stands on a node of both. ``()`` is every node.
"""

from collections.abc import Iterable

from scheduling.engine.atlas import Atlas
from scheduling.engine.capacity import FreeCapacity
from scheduling.engine.usage import is_whole_gpu

Pool = tuple[str, ...]


def pool_of(flavors: Iterable[str]) -> Pool:
    """Return the pool on which pods of these flavors stand."""
    return tuple(sorted(set(flavors)))


class Pools:
    """Remembered sums over pools; nothing in the cluster may change meanwhile."""

    def __init__(self, atlas: Atlas, room: FreeCapacity) -> None:
        self._atlas, self._room = atlas, room
        self._names: dict[Pool, frozenset[str]] = {}
        self._totals: dict[tuple[frozenset[Pool], str], int] = {}
        self._largest: dict[tuple[frozenset[Pool], str], int] = {}

    def nodes(self, pool: Pool) -> frozenset[str]:
        """Return the healthy nodes of a pool; a flavor without nodes asks for none."""
        if pool not in self._names:
            kept = {node.name for node in self._atlas.nodes.values() if node.usable}
            for flavor in pool:
                nodes = self._atlas.nodes_of(flavor)
                kept &= {node.name for node in nodes} if nodes else kept
            self._names[pool] = frozenset(kept)
        return self._names[pool]

    def total(self, pools: frozenset[Pool], resource: str) -> int:
        """Return what the nodes of all these pools have together; each node counts once."""
        key = (pools, resource)
        if key not in self._totals:
            self._totals[key] = sum(self._frees(pools, resource))
        return self._totals[key]

    def largest(self, pools: frozenset[Pool], resource: str) -> int:
        """Return what the largest node of any of these pools has."""
        key = (pools, resource)
        if key not in self._largest:
            self._largest[key] = max(self._frees(pools, resource), default=0)
        return self._largest[key]

    def largest_island(self, pools: frozenset[Pool]) -> tuple[int, int]:
        """Return the GPUs of the largest island of any of these pools, and of the largest node.

        Where devices are not told apart, a node is one island.
        """
        islands, nodes = [0], [0]
        for name in frozenset[str]().union(*(self.nodes(pool) for pool in pools)):
            node = self._atlas.nodes[name]
            gpus = sum(n for r, n in node.allocatable.items() if is_whole_gpu(r))
            count = node.devices.count if node.devices else gpus
            nodes.append(count)
            declared = node.devices.islands if node.devices else ()
            islands += map(len, declared) if declared else (count,)
        return max(islands), max(nodes)

    def _frees(self, pools: frozenset[Pool], resource: str) -> Iterable[int]:
        names = frozenset[str]().union(*(self.nodes(pool) for pool in pools))
        return (self._room.free(name, resource) for name in names)
