"""What a workload is checked against: everything there is, by name. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from scheduling.engine.diagnostics import Checker
from scheduling.engine.snapshot import Snapshot
from scheduling.routes import Doors, resolve_queue
from scheduling.specs import WorkloadSpec

Value = TypeVar("Value")
TIER = "tier:"  # a level by its distance from the host, as Volcano counts
_TIER = re.compile(r"tier:([0-9]{1,3})", re.ASCII)  # int() reads signs, spaces and more


@dataclass(frozen=True, slots=True)
class World:
    """What a workload is checked against: promises, hardware, queues by name, priorities.

    ``priorities`` maps (kind, name) to the value; ``default_priority`` is the global default.
    """

    snapshot: Snapshot
    doors: Doors
    priorities: Mapping[tuple[str, str], int]
    default_priority: int = 0
    hints: Mapping[str, str] = field(default_factory=dict)  # where the queue is not there
    _known: dict[str, Any] = field(default_factory=dict, compare=False)  # of this snapshot

    def remembered(self, name: str, make: Callable[[], Value]) -> Value:
        """Return what is worked out once for all that is checked against this world."""
        if name not in self._known:
            self._known[name] = make()
        found: Value = self._known[name]
        return found

    @property
    def checker(self) -> Checker:
        """Return what judges on the empty cluster; it remembers what all workloads share."""
        return self.remembered("checker", lambda: Checker(self.snapshot))

    @property
    def resources(self) -> frozenset[str]:
        """Return every resource that a node offers or a queue has quota of."""
        return self.remembered("resources", self._resources)

    def _resources(self) -> frozenset[str]:
        queues = self.snapshot.cluster_queues.values()
        asked = {fr.resource for queue in queues for fr in queue.quotas}
        return frozenset(asked.union(*(node.allocatable for node in self.snapshot.nodes)))

    def priority_of(self, name: str) -> int | None:
        """Return the value of a priority class: Kueue's kind first, then Kubernetes'."""
        found = self.priorities.get(("workload", name))
        return self.priorities.get(("pod", name)) if found is None else found

    def priority_for(self, spec: WorkloadSpec) -> int:
        """Return the priority that counts (``admission.md`` K11); a named class is there."""
        named = self.priority_of(spec.priority_class) if spec.priority_class else None
        if named is not None:
            return named
        return self.default_priority if spec.priority is None else spec.priority

    def cluster_queue_of(self, spec: WorkloadSpec) -> str | None:
        """Return the ClusterQueue behind the workload's queue name, if both are there."""
        if not spec.queue:
            return None
        route = resolve_queue(spec.namespace, spec.queue, self.doors)
        there = route is not None and route.cluster_queue in self.snapshot.cluster_queues
        return route.cluster_queue if route is not None and there else None

    def level_of(self, level: str, queue: str | None) -> str | None:
        """Return the node label that ``level`` names: a label, its last part, or ``tier:n``.

        Levels of the topologies that the queue's flavors use come first; a last part counts
        only where it means one label.
        """
        for topologies in (self._topologies(queue), self.snapshot.topologies.keys()):
            found = {label for name in topologies for label in self._named(level, name)}
            if len(found) == 1:
                return found.pop()
        return None

    def is_within(self, inner: str, outer: str, queue: str | None) -> bool:
        """Return whether a label is a level at or below another in each topology that has both.

        Both are node labels; where no topology has both, neither is wider.
        """
        names = self._topologies(queue) or sorted(self.snapshot.topologies)
        levels = (self.snapshot.topologies[name].levels for name in names)
        both = [found for found in levels if inner in found and outer in found]
        return all(found.index(inner) >= found.index(outer) for found in both)

    def _named(self, level: str, topology: str) -> list[str]:
        levels = self.snapshot.topologies[topology].levels
        if level in levels:
            return [level]
        if level.startswith(TIER):
            tier = _TIER.fullmatch(level)
            distance = int(tier[1]) if tier else len(levels)
            return [levels[-1 - distance]] if distance < len(levels) else []
        return [label for label in levels if label.rpartition("/")[2] == level]

    def _topologies(self, queue: str | None) -> list[str]:
        if queue is None:
            return []
        flavors = {fr.flavor for fr in self.snapshot.cluster_queues[queue].quotas}
        named = {f.topology for f in self.snapshot.flavors.values() if f.name in flavors}
        return sorted(name for name in named if name and name in self.snapshot.topologies)
