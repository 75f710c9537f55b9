"""The ground that all rooms of one cluster share: nodes as numbers, holes as numbers.

Nodes are numbered in the order in which they are given; the product gives them by name, and the
number is the last key of every tie. What is free on a node is one numbered *hole*, so that a
pod that comes or goes is one integer written, and what was worked out for a hole serves every
node that ever looks the same. No result depends on the numbers of holes.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from scheduling.engine.machines import CPU, GPU, MEMORY, PODS, PODS_PER_NODE, WHOLE, Node
from scheduling.engine.memo import Memo
from scheduling.engine.scoring.devices import Ask, Spare, spare_of
from scheduling.engine.scoring.holes import Hole, Keep, Shape, after, meet
from scheduling.engine.snapshot import PodSet
from scheduling.engine.usage import (
    device_request,
    is_gpu,
    is_whole_gpu,
    pod_footprint,
    requested_devices,
)

REMEMBERED = 200_000  # pod sets; then the memory starts anew


def left_on(node: Node) -> dict[str, int]:
    """Return what pods outside the platform leave of a node."""
    whole = {PODS: PODS_PER_NODE, **node.allocatable}
    return {r: amount - node.unmanaged.get(r, 0) for r, amount in whole.items()}


def unmanaged_on(spare: Spare, node: Node) -> Spare:
    """Return what pods outside the platform leave of the devices.

    Nobody says on which they stand: they are taken to stand on all islands in turn, from the
    last device on, so that no island is promised that may not be whole.
    """
    pods = sum(amount for resource, amount in node.unmanaged.items() if is_whole_gpu(resource))
    named = {r: amount // pods for r, amount in node.unmanaged.items()} if pods else {}
    asked = requested_devices(named)
    if asked is None:
        return spare
    each = Ask(1, asked.share, asked.memory, alone=asked.alone)
    islands = spare.layout.islands or (tuple(range(len(spare.free))),)
    order = [d for row in zip_longest(*map(reversed, islands)) for d in row if d is not None]
    return spare.less(each, (order[pod % len(order)] for pod in range(pods)))


class Footprint:
    """What one pod of a pod set leaves of a hole, and the resources that no node here has."""

    __slots__ = ("number", "shape", "strange")

    def __init__(self, number: int, shape: Shape, strange: tuple[tuple[str, int], ...]) -> None:
        self.number, self.shape, self.strange = number, shape, strange


class Ground:
    """Numbers for the nodes, resources, holes and shapes of one cluster.

    ``columns`` gives each resource its place in a hole's amounts; GPUs come behind the ``plain``
    others, slices of them first. ``empty`` is each node's hole with no work of ours on it.
    ``tells_apart``: some node tells its devices apart, instead of counting them alone.
    ``keeps``: what goes with a free GPU is kept from pods that ask for none.
    """

    def __init__(
        self, nodes: Sequence[Node], kinds: Mapping[str, str], *, keeps: bool = False
    ) -> None:
        self._hard = keeps
        self.names = tuple(node.name for node in nodes)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        known = {r for node in nodes for r in (*node.allocatable, *node.unmanaged)} | {PODS}
        known |= {GPU} if any(node.devices for node in nodes) else set()
        order = sorted(known, key=lambda r: (is_gpu(r), is_whole_gpu(r), r))
        self.columns = {resource: column for column, resource in enumerate(order)}
        self.plain = sum(not is_gpu(resource) for resource in order)
        self._slices = sum(not is_whole_gpu(resource) for resource in order)
        self.looked = self.weighed = 0  # nodes looked at, domains weighed: counted work
        self.holes: list[Hole] = []
        self._ids: dict[Hole, int] = {}
        self.steps = Memo(self._step)  # by hole, number of the footprint and pods: see step
        self._meets = Memo(self._meet)
        self._shapes: dict[object, Footprint] = {}
        self._pods: list[Footprint] = []  # by number
        self._footprints: dict[int, tuple[PodSet, Footprint]] = {}
        self.empty = [self.number_of(self._hole(node, kinds.get(node.name, ""))) for node in nodes]
        self.tells_apart = any(hole.devices for hole in self.holes)

    def _hole(self, node: Node, kind: str) -> Hole:
        left = left_on(node)
        keep = self._keep(node)
        if node.devices is None:
            return Hole(self._amounts(left), (), kind, keep=keep)
        if not any(map(is_whole_gpu, node.allocatable)):  # nobody says how many are healthy
            gone = sum(n for r, n in node.unmanaged.items() if is_whole_gpu(r))
            left[GPU] = node.devices.count * node.devices.replicas - gone
        spare, columns = (
            unmanaged_on(spare_of(node.devices), node),
            len(self.columns) - self._slices,
        )
        return Hole(self._amounts(left), spare.free, kind, *spare[1:], keep, columns)

    def _keep(self, node: Node) -> Keep | None:
        """Return what of CPU and memory goes with each GPU of the node; None: it has none."""
        offered = node.allocatable
        gpus = sum(amount for resource, amount in offered.items() if is_gpu(resource))
        gpus = node.devices.count if node.devices is not None else gpus
        if not gpus:
            return None
        each = {resource: offered.get(resource, 0) // gpus for resource in (CPU, MEMORY)}
        return Keep(self._amounts(each), self.plain, self._hard)

    def _amounts(self, of: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(of.get(resource, 0) for resource in self.columns)

    def number_of(self, hole: Hole) -> int:
        """Return the number of a hole, which it keeps for as long as the ground lives."""
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
            made = Footprint(len(self._pods), shape, strange)
            self._shapes[shape, strange] = made
            self._pods.append(made)
        return self._shapes[shape, strange]

    def shape_of(self, pod_set: PodSet) -> tuple[Shape, tuple[tuple[str, int], ...]]:
        """Return the shape of one pod, and what it asks that no node here has.

        Parts of devices that no resource names are of devices alone, and counted nowhere.
        """
        foot, asked = pod_footprint(pod_set), device_request(pod_set)
        counted = asked is not None and any(map(is_whole_gpu, foot))
        if asked is not None and not counted and asked.share == WHOLE:  # as if it had named them
            foot[GPU], counted = asked.count, True
        amounts = self._amounts(foot)
        strange = tuple(sorted((r, n) for r, n in foot.items() if r not in self.columns))
        if asked is None:
            return Shape(amounts), strange
        of_each = asked.memory, asked.locality, asked.alone
        return Shape(amounts, asked.count, asked.share, frozenset(), counted, *of_each), strange

    def step(self, hole: int, pod: Footprint, pods: int) -> int:
        """Return the hole that so many pods leave, devices apart; a negative number gives back."""
        return self.steps[hole, pod.number, pods]

    def _step(self, step: tuple[int, int, int]) -> int:
        hole, pod, pods = step
        return self.number_of(after(self.holes[hole], self._pods[pod].shape, (), pods))

    def meet(self, one: int, other: int) -> int:
        """Return the hole of what is free in both."""
        return self._meets[(one, other) if one < other else (other, one)]

    def _meet(self, both: tuple[int, int]) -> int:
        one, other = both
        return self.number_of(meet(self.holes[one], self.holes[other]))
