"""The ground that all rooms of one cluster share: nodes as numbers, holes as numbers.

Nodes are numbered in the order in which they are given; the product gives them by name, and the
number is the last key of every tie. What is free on a node is one numbered *hole*, so that a
pod that comes or goes is one integer written, and what was worked out for a hole serves every
node that ever looks the same. No result depends on the numbers of holes.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import SupportsIndex

from scheduling.engine.machines import GPU, PODS, PODS_PER_NODE, WHOLE, Node
from scheduling.engine.scoring.holes import Hole, Shape, after, meet
from scheduling.engine.snapshot import PodSet
from scheduling.engine.usage import is_gpu, is_whole_gpu, pod_footprint

REMEMBERED = 200_000  # steps from hole to hole; then the memory starts anew


def left_on(node: Node) -> dict[str, int]:
    """Return what pods outside the platform leave of a node."""
    whole = {PODS: PODS_PER_NODE, **node.allocatable}
    return {r: amount - node.unmanaged.get(r, 0) for r, amount in whole.items()}


class HoleTable(list[int]):
    """The hole of each node, by number, with a log of the numbers that were written.

    Whoever keeps something by node remembers its place in the log, and looks again at what has
    been written since; undoing a trial is writing as well.
    """

    def __init__(self, holes: Iterable[int]) -> None:
        super().__init__(holes)
        self.base = 0  # how much of the log has been dropped
        self.log: list[int] = []
        self._most = 4 * len(self) + 4096

    def __setitem__(self, number: SupportsIndex, hole: int) -> None:  # type: ignore[override]
        list.__setitem__(self, number, hole)
        self.log.append(number)  # type: ignore[arg-type]
        if len(self.log) > self._most:
            self.base += len(self.log)
            self.log.clear()

    def refresh(self) -> int:
        """Bring the table up to date; return the place in the log that has been reached."""
        return self.base + len(self.log)

    def since(self, mark: int) -> Collection[int]:
        """Return the numbers written since that place, each once; all of them if it is too old."""
        return range(len(self)) if mark < self.base else set(self.log[mark - self.base :])


class Meeting(HoleTable):
    """What is free in each of several tables at once, brought up to date when asked for."""

    def __init__(self, ground: "Ground", tables: Sequence[HoleTable]) -> None:
        self._ground, self._tables = ground, tables
        self._marks = [table.refresh() for table in tables]
        super().__init__(map(self._meet, range(len(tables[0]))))

    def _meet(self, number: int) -> int:
        tables = self._tables
        hole = tables[0][number]
        for table in tables:
            other = table[number]
            if other != hole:
                hole = self._ground.meet(hole, other)
        return hole

    def refresh(self) -> int:
        """Look again at what was written in any of the tables."""
        ends = [table.refresh() for table in self._tables]
        if ends != self._marks:
            marks, self._marks = self._marks, ends
            written = [t.since(m) for t, m in zip(self._tables, marks, strict=True)]
            for number in set().union(*written):
                hole = self._meet(number)
                if hole != self[number]:
                    self[number] = hole
        return super().refresh()


class Footprint:
    """What one pod of a pod set leaves of a hole, and the resources that no node here has."""

    __slots__ = ("number", "shape", "strange")

    def __init__(self, number: int, shape: Shape, strange: tuple[tuple[str, int], ...]) -> None:
        self.number, self.shape, self.strange = number, shape, strange


class Ground:
    """Numbers for the nodes, resources, holes and shapes of one cluster.

    ``columns`` gives each resource its place in a hole's amounts; GPUs, whole or sliced, come
    behind the ``plain`` others. ``empty`` is each node's hole with no work of ours on it.
    """

    def __init__(self, nodes: Sequence[Node], kinds: Mapping[str, str]) -> None:
        self.names = tuple(node.name for node in nodes)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        known = {r for node in nodes for r in (*node.allocatable, *node.unmanaged)} | {PODS}
        known |= {GPU} if any(node.devices for node in nodes) else set()
        order = sorted(known, key=lambda resource: (is_gpu(resource), resource))
        self.columns = {resource: column for column, resource in enumerate(order)}
        self.plain = sum(not is_gpu(resource) for resource in order)
        self.looked = self.weighed = 0  # nodes looked at, domains weighed: counted work
        self.holes: list[Hole] = []
        self._ids: dict[Hole, int] = {}
        self._steps: dict[tuple[int, int, int], int] = {}
        self._meets: dict[tuple[int, int], int] = {}
        self._shapes: dict[object, Footprint] = {}
        self._footprints: dict[int, tuple[PodSet, Footprint]] = {}
        self.empty = [self.number_of(self._hole(node, kinds.get(node.name, ""))) for node in nodes]

    def _hole(self, node: Node, kind: str) -> Hole:
        left, tracked = left_on(node), node.devices is not None
        counted = {r: n for r, n in left.items() if not (tracked and is_whole_gpu(r))}
        amounts = tuple(counted.get(resource, 0) for resource in self.columns)
        if node.devices is None:
            return Hole(amounts, (), kind)
        gone = sum(n for r, n in node.unmanaged.items() if is_whole_gpu(r))
        free = max(0, node.devices.count - gone)
        return Hole(amounts, (0,) * (node.devices.count - free) + (WHOLE,) * free, kind)

    def number_of(self, hole: Hole) -> int:
        """Return the number of a hole."""
        known = self._ids.get(hole)
        if known is None:
            known = self._ids[hole] = len(self.holes)
            self.holes.append(hole)
        return known

    def footprint_of(self, pod_set: PodSet) -> Footprint:
        """Return what one pod of it takes; remembered for pod sets that are the same object."""
        known = self._footprints.get(id(pod_set))
        if known is None:
            if len(self._footprints) >= REMEMBERED:
                self._footprints.clear()
            known = self._footprints[id(pod_set)] = pod_set, self._footprint(pod_set)
        return known[1]

    def _footprint(self, pod_set: PodSet) -> Footprint:
        shape, strange = self.shape_of(pod_set)
        if (shape, strange) not in self._shapes:
            self._shapes[shape, strange] = Footprint(len(self._shapes), shape, strange)
        return self._shapes[shape, strange]

    def shape_of(self, pod_set: PodSet) -> tuple[Shape, tuple[tuple[str, int], ...]]:
        """Return the shape of one pod, and what it asks that no node here has."""
        foot, device = pod_footprint(pod_set), pod_set.device
        whole = {r: n for r, n in foot.items() if is_whole_gpu(r)}
        amounts = tuple(foot.get(r, 0) if r not in whole else 0 for r in self.columns)
        strange = tuple(sorted((r, n) for r, n in foot.items() if r not in self.columns))
        devices, share = sum(whole.values()), WHOLE
        if device is not None:
            devices, share = device.count, device.share
            name = min(whole, default=GPU)
            whole = {name: max(devices, whole.get(name, 0))}
        counted = tuple(a + whole.get(r, 0) for a, r in zip(amounts, self.columns, strict=True))
        plainly = (
            share == WHOLE and not (device and device.memory) and whole.keys() <= {*self.columns}
        )
        return Shape(amounts, devices, share, counted=counted if plainly else None), strange

    def step(self, hole: int, pod: Footprint, pods: int) -> int:
        """Return the hole that so many pods leave, devices apart; a negative number gives back."""
        key = hole, pod.number, pods
        found = self._steps.get(key)
        if found is None:
            if len(self._steps) >= REMEMBERED:
                self._steps.clear()
            found = self.number_of(after(self.holes[hole], pod.shape, (), pods))
            self._steps[key] = found
        return found

    def meet(self, one: int, other: int) -> int:
        """Return the hole of what is free in both."""
        key = (one, other) if one < other else (other, one)
        found = self._meets.get(key)
        if found is None:
            if len(self._meets) >= REMEMBERED:
                self._meets.clear()
            found = self._meets[key] = self.number_of(meet(self.holes[one], self.holes[other]))
        return found
