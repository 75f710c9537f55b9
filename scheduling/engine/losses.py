"""Running work that stands on nodes which are gone or not ready: what is lost, and since when.

A node that has left the cluster has lost its pods. One that is only not ready has lost them when
it has not come back within the grace. Source: ``placement.md`` 6 (3), KAI's stale gang eviction.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf

from scheduling.engine.machines import Node
from scheduling.engine.parts import on_nodes
from scheduling.engine.snapshot import Assignment, Workload
from scheduling.engine.standing import standing


class Losses:
    """The work on absent nodes; ``since`` says from which cycle on each has been absent.

    Only nodes on which work stands are remembered.
    """

    def __init__(
        self, nodes: Mapping[str, Node], grace_s: float, since: Mapping[str, float]
    ) -> None:
        self._nodes = nodes
        self._present = frozenset(name for name, node in nodes.items() if node.ready)
        self.grace_s = inf if grace_s < 0 else grace_s
        self.since = dict(since)
        self._absent: dict[str, frozenset[str]] = {}  # nodes, by workload

    def __contains__(self, key: str) -> bool:
        return key in self._absent

    def works(self) -> list[str]:
        """Return the work of which some pods are on absent nodes, sorted."""
        return sorted(self._absent)

    def add(self, workload: Workload) -> None:
        """Note a workload that runs, if it stands on an absent node."""
        held = workload.admission.assignments if workload.admission else ()
        if all(one.nodes.keys() <= self._present for one in held):
            return
        away = frozenset[str]().union(*(one.nodes.keys() - self._present for one in held))
        self._absent[workload.key] = away

    def remove(self, key: str) -> None:
        """Forget a workload that runs no more, or is about to be noted again."""
        self._absent.pop(key, None)

    def open(self, now: float) -> None:
        """Begin a cycle: whatever is absent now and was not before is so since now."""
        away = sorted({name for names in self._absent.values() for name in names})
        self.since = {name: self.since.get(name, now) for name in away}

    def lost(self, workload: Workload, now: float) -> tuple[Assignment, ...]:
        """Return the pods of a running workload that count as lost."""
        names = {name for name in self._absent.get(workload.key, ()) if self._lost_at(name) <= now}
        held = standing(replace(workload, reclaimable={})) if names else ()
        return tuple(part for one in held if (part := on_nodes(one, names)) is not None)

    def leaves_at(self, workload: Workload) -> float:
        """Return when the gang is given up, if none of what it has lost is replaced."""
        lost = (self._lost_at(name) for name in self._absent.get(workload.key, ()))
        return min(lost, default=inf) + self.grace_s

    def _lost_at(self, name: str) -> float:
        """Return from when on the pods on an absent node count as lost."""
        known = name in self._nodes
        return self.since.get(name, inf) + (self.grace_s if known else 0.0)

    def instants(self, now: float) -> Iterator[float]:
        """Yield when time alone changes what is lost, or gives a gang up."""
        for names in self._absent.values():
            for name in names:
                lost = self._lost_at(name)
                yield from (at for at in (lost, lost + self.grace_s) if now < at < inf)
