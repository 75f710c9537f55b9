"""What one pod set asks of the topology, and what it finds: hosts by path, and their room."""

from collections.abc import Iterable, Mapping

from scheduling.engine.atlas import NO_LEVEL, Atlas, level_of
from scheduling.engine.capacity import Rooms
from scheduling.engine.slices import layers_of, preferred_of
from scheduling.engine.snapshot import Assignment, PodSet
from scheduling.engine.survivors import Wish
from scheduling.engine.topology import Path
from scheduling.engine.views import View


def wish_of(levels: tuple[str, ...], pod_set: PodSet) -> Wish | None:
    """Return what the pod set asks of a topology with these levels; None: it has no such level."""
    level = level_of(pod_set, levels)
    if level == NO_LEVEL:
        return None
    asked, preferred = pod_set.topology, preferred_of(levels, pod_set.topology)
    layers = layers_of(levels, asked.layers if asked else ()) or ()
    return Wish(pod_set.count, layers, level or 0, preferred)


class StandingRoom:
    """The suitable hosts of one pod set. ``capacity`` is what they can take of it, by path."""

    def __init__(
        self,
        atlas: Atlas,
        rooms: Rooms,
        pod_set: PodSet,
        option: Mapping[str, str],
        levels: tuple[str, ...],
    ) -> None:
        self.pod_set, self.paths = pod_set, atlas.paths(levels)
        self._atlas, self._rooms, self._option = atlas, rooms, option
        self._site = atlas.site(pod_set, option.values())
        names, view = atlas.ground.names, self._view()
        found = ((names[number], view.pods(number)) for number in self._site.field.numbers)
        self.capacity = {self.paths[n]: pods for n, pods in found if pods and n in self.paths}

    def _view(self) -> View:
        site, tables = self._site, [room.holes for room in self._rooms]
        return self._atlas.views.view(site.field, site.pod, site.policy, tables)

    def again(self, capacity: Mapping[Path, int], touched: Iterable[Path]) -> dict[Path, int]:
        """Return the capacity once others have taken room on the hosts that they ``touched``."""
        view, numbers = self._view(), self._atlas.ground.numbers
        now = {path: view.pods(numbers[path[-1]]) for path in touched if path in capacity}
        return {**capacity, **now}

    def assignment(self, placed: Mapping[Path, int]) -> Assignment:
        """Return what the pods get where they are placed, devices where they are told apart."""
        view, numbers = self._view(), self._atlas.ground.numbers
        nodes = {path[-1]: pods for path, pods in placed.items()}
        nodes = {name: nodes[name] for name in sorted(nodes, key=numbers.__getitem__)}
        seats = {name: view.seats(numbers[name], pods) for name, pods in nodes.items()}
        devices = {name: each for name, each in seats.items() if each}
        count = sum(nodes.values())
        return Assignment(self.pod_set.name, count, self._option, nodes, devices)

    def take(self, assignment: Assignment) -> None:
        """Put pods where they are assigned; inside a trial."""
        for room in self._rooms:
            for name, pods in assignment.nodes.items():
                room.take(name, self.pod_set, pods, assignment.devices.get(name, ()))
