"""What one pod set asks of the topology, and what it finds: hosts by path, and their room."""

from collections.abc import Iterable, Mapping

from scheduling.engine.atlas import Atlas
from scheduling.engine.nearness import Wish
from scheduling.engine.placement import Rooms, capacities
from scheduling.engine.slices import layers_of
from scheduling.engine.snapshot import PodSet
from scheduling.engine.terms import TopologyMode
from scheduling.engine.topology import Path
from scheduling.engine.usage import pod_footprint


def wish_of(levels: tuple[str, ...], pod_set: PodSet) -> Wish | None:
    """Return what the pod set asks of a topology with these levels; None: it has no such level.

    A request that names no level means the outermost one.
    """
    request = pod_set.topology
    if request is None or (request.mode is TopologyMode.UNCONSTRAINED and not request.layers):
        return Wish(pod_set.count)
    layers = layers_of(levels, request)
    if layers is None or (request.level is not None and request.level not in levels):
        return None
    if request.mode is TopologyMode.UNCONSTRAINED:
        return Wish(pod_set.count, layers)
    if request.level is None and not levels:
        return None
    depth = levels.index(request.level) + 1 if request.level else 1
    return Wish(pod_set.count, layers, depth, must=request.mode is TopologyMode.REQUIRED)


class StandingRoom:
    """The suitable hosts of one pod set. ``capacity`` is what they can take of it, by path."""

    def __init__(
        self,
        atlas: Atlas,
        rooms: Rooms,
        pod_set: PodSet,
        flavors: Iterable[str],
        levels: tuple[str, ...],
    ) -> None:
        self.pod_set, self._rooms = pod_set, rooms
        self._footprint = pod_footprint(pod_set)
        self.paths = atlas.paths(levels)
        found = capacities(atlas, rooms, pod_set, flavors)
        self.capacity = {
            self.paths[name]: pods for name, pods in found.items() if pods and name in self.paths
        }

    def again(self, capacity: Mapping[Path, int], touched: Iterable[Path]) -> dict[Path, int]:
        """Return the capacity once others have taken room on the hosts that they ``touched``."""
        return {
            **capacity,
            **{path: self._now(path) for path in touched if path in capacity},
        }

    def take(self, placed: Mapping[Path, int]) -> None:
        """Put pods where they are placed; inside a trial."""
        for room in self._rooms:
            for path, pods in placed.items():
                room.take(path[-1], self._footprint, pods)

    def _now(self, path: Path) -> int:
        return max(0, min(room.fitting(path[-1], self._footprint) for room in self._rooms))
