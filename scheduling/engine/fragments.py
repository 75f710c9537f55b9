"""How well free GPUs can still be used: fragments, whole gangs, and what strands the rest.

Every free GPU is counted in exactly one class: usable by a pod that usually comes, or stranded by
one cause; that it is kept for a gang that waits is one. Free GPUs of a healthy node are usable as
far as the usual pod that makes most of them can be placed on it, again and again; what is then
left is stranded by that which stopped it. Amounts are thousandths of a GPU. Source:
``placement.md`` 4.1, 4.5.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from scheduling.engine.atlas import Atlas, exclusion, untolerated
from scheduling.engine.books import Books
from scheduling.engine.capacity import FreeCapacity
from scheduling.engine.machines import CPU, GPU, MEMORY, PODS, WHOLE, Node
from scheduling.engine.offer import offered
from scheduling.engine.scoring.devices import Ask, Layout
from scheduling.engine.scoring.holes import Hole, Shape
from scheduling.engine.scoring.popularity import Popularity, typical
from scheduling.engine.snapshot import PodSet, Snapshot
from scheduling.engine.topology import HOSTNAME
from scheduling.engine.usage import is_gpu
from scheduling.engine.usual import MOST_SHAPES, Usual, usual_pods

SIZES = (1, 2, 4, 8)  # GPUs of one pod of a gang
HOST, CLUSTER = "host", "cluster"
ANYBODY = PodSet("anybody", 1, {CPU: 1, MEMORY: 1})  # the least that a pod can ask beside GPUs


class Stranded(StrEnum):
    """Why nobody can use a free GPU now."""

    NOT_READY = "not_ready"
    CORDONED = "cordoned"
    TAINT = "taint"
    KEPT = "kept"  # it waits for a gang
    CPU = "cpu"
    MEMORY = "memory"
    PODS = "pods"
    OTHER = "other"  # another resource of the node
    SHARE = "share"  # less of a device than any usual pod takes
    PIECES = "pieces"  # fewer whole devices on the node than any usual pod takes


_SHORT = {CPU: Stranded.CPU, MEMORY: Stranded.MEMORY, PODS: Stranded.PODS}
_OUT = {"not_ready": Stranded.NOT_READY, "cordoned": Stranded.CORDONED}


@dataclass(frozen=True, slots=True)
class Fragments:
    """The figures of one flavor and kind of GPU.

    ``free`` is all that is free, ``usable`` and ``stranded`` its parts. ``fragment`` is the part
    of what is free in service that is of no use to usual pods, on the average. ``gangs`` is, by
    GPUs of one pod, the most pods of such a gang that one domain of each level can take now.
    """

    flavor: str
    resource: str
    nodes: int
    empty_nodes: int
    total: int
    free: int
    usable: int
    stranded: Mapping[Stranded, int]
    fragment: int | None
    gangs: Mapping[int, Mapping[str, int]]

    @property
    def placeable(self) -> int:
        """Return what is free on nodes that are ready and not cordoned."""
        out = (Stranded.NOT_READY, Stranded.CORDONED)
        return self.free - sum(self.stranded.get(cause, 0) for cause in out)

    @property
    def in_service(self) -> int:
        """Return what is free on nodes that pods may come to, and kept for nobody."""
        gone = (Stranded.TAINT, Stranded.KEPT)
        return self.placeable - sum(self.stranded.get(cause, 0) for cause in gone)

    @property
    def ratio(self) -> float | None:
        """Return which part of the free GPUs in service is fragments; None: nothing to judge."""
        if self.fragment is None or not self.in_service:
            return None
        return round(self.fragment / self.in_service, 4)


def fragments(snapshot: Snapshot) -> tuple[Fragments, ...]:
    """Return the figures of each flavor with GPUs, by flavor and resource.

    Cost: O(nodes x shapes) for each flavor, with at most ``MOST_SHAPES`` shapes.
    """
    atlas = Atlas(snapshot)
    books, usual = offered(snapshot, atlas), usual_pods(atlas)
    found = []
    for flavor in sorted(snapshot.flavors):
        nodes = atlas.nodes_of(flavor)
        own = [pod for pod in usual if flavor in pod.flavors][:MOST_SHAPES]
        for resource in sorted({r for node in nodes for r in node.allocatable if is_gpu(r)}):
            judge = _Judge(atlas, books, flavor, resource, own)
            found.append(judge.figures(nodes))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Spot:
    """What is free on one node: devices by their free thousandths; ``out``: why it is out.

    ``kept``: thousandths that are free beside those, but wait for a gang. Turns on a device count
    as devices, as the resource counts them.
    """

    node: Node
    devices: tuple[int, ...]
    layout: Layout
    out: Stranded | None
    kept: int = 0

    def taken_by(self, ask: Ask) -> int:
        """Return the thousandths that one pod takes."""
        share = WHOLE if self.layout.turns > 1 else ask.share_on(self.layout)
        return ask.devices * share

    @property
    def free(self) -> int:
        return sum(self.devices)

    @property
    def whole(self) -> int:
        return sum(free >= WHOLE for free in self.devices)


class _Judge:
    """Judges the nodes of one flavor by the pods that usually come to it."""

    def __init__(
        self,
        atlas: Atlas,
        books: Books,
        flavor: str,
        resource: str,
        usual: list[Usual],
    ) -> None:
        self._atlas, self._room, self._standing = atlas, books.soon.room, books.now.room
        self._name, self._resource = flavor, resource
        self._flavors = atlas.flavors([flavor])
        self._usual = [pod for pod in usual if pod.ask(resource).devices]
        counts: Counter[Shape] = Counter()
        for pod in usual:
            counts[pod.shape(resource)] += pod.weight
        self._popularity = Popularity(typical(counts)) if counts else None

    def figures(self, nodes: Iterable[Node]) -> Fragments:
        spots = [self._spot(node) for node in nodes]
        usable, stranded = 0, Counter[Stranded]()
        for spot in spots:
            used, why = self._use_of(spot)
            usable += used
            stranded.update(why)
            stranded[spot.out or Stranded.KEPT] += spot.kept
        total = sum(s.node.allocatable.get(self._resource, 0) for s in spots) * WHOLE
        return Fragments(
            self._name,
            self._resource,
            nodes=len(spots),
            empty_nodes=sum(self._is_empty(spot) for spot in spots),
            total=total,
            free=sum(spot.free + spot.kept for spot in spots),
            usable=usable,
            stranded={cause: stranded[cause] for cause in Stranded if stranded[cause]},
            fragment=self._fragment(spots),
            gangs=self._gangs([spot for spot in spots if spot.out is None]),
        )

    # ---- one node ------------------------------------------------------------------------------
    def _spot(self, node: Node) -> _Spot:
        devices, all_free = self._devices(self._room, node), self._devices(self._standing, node)
        kept = max(0, sum(all_free) - sum(devices))
        return _Spot(node, devices, self._room.spare(node.name).layout, self._out(node), kept)

    def _devices(self, room: FreeCapacity, node: Node) -> tuple[int, ...]:
        spare = room.spare(node.name)
        if spare.free and spare.layout.turns == 1 and self._resource == GPU:
            return tuple(free for free in spare.free if free > 0)  # parts of them as well
        return (WHOLE,) * max(0, room.free(node.name, self._resource))

    def _out(self, node: Node) -> Stranded | None:
        why, _taint = exclusion(node, ANYBODY, self._flavors)
        if why != "taint":
            return _OUT.get(why)
        welcome = (untolerated(node.taints, p.pod_set, self._flavors) for p in self._usual)
        return None if any(taint is None for taint in welcome) else Stranded.TAINT

    def _is_empty(self, spot: _Spot) -> bool:
        whole = spot.node.allocatable.get(self._resource, 0)
        return spot.out is None and whole > 0 and spot.whole * WHOLE + spot.kept == whole * WHOLE

    def _use_of(self, spot: _Spot) -> tuple[int, Counter[Stranded]]:
        """Return what usual pods can use of a node, and what strands the rest."""
        if not spot.free:
            return 0, Counter()
        if spot.out is not None:
            return 0, Counter({spot.out: spot.free})
        pods = [pod for pod in self._usual if self._suits(spot.node, pod.pod_set)]
        asks = [(pod.pod_set, pod.ask(self._resource)) for pod in pods]
        best: tuple[int, Counter[Stranded]] | None = None
        for pod_set, ask in asks or [(self._pod(1, ANYBODY), Ask(1))]:
            used, why = self._filled(spot, pod_set, ask)
            if best is None or used > best[0]:  # equals: the more frequent pod stands first
                best = used, why
        assert best is not None
        return best

    def _suits(self, node: Node, pod_set: PodSet) -> bool:
        return not exclusion(node, pod_set, self._flavors)[0]

    def _filled(self, spot: _Spot, pod_set: PodSet, ask: Ask) -> tuple[int, Counter[Stranded]]:
        """Return what equal pods use of a node until one does not fit, and why it does not."""
        fitting = self._room.fitting(spot.node.name, pod_set)
        used = min(spot.free, fitting * spot.taken_by(ask))
        rest, (by_rest, short) = spot.free - used, self._beside(spot.node.name, pod_set)
        if by_rest <= fitting:
            return used, Counter({short: rest})
        in_parts = ask.devices == 1 and spot.taken_by(ask) < WHOLE  # then each device has a rest
        parts = rest if in_parts else min(rest, sum(free % WHOLE for free in spot.devices))
        return used, Counter({Stranded.SHARE: parts, Stranded.PIECES: rest - parts})

    def _beside(self, node: str, pod_set: PodSet) -> tuple[int, Stranded]:
        """Return how many pods fit on a node but for its GPUs, and what then is short."""
        needs = {r: n for r, n in pod_set.requests.items() if n > 0 and not is_gpu(r)}
        lefts = {r: max(0, self._room.free(node, r)) // n for r, n in {**needs, PODS: 1}.items()}
        order = (CPU, MEMORY, PODS)
        tight = min(lefts, key=lambda r: (lefts[r], r not in order, r))
        return lefts[tight], _SHORT.get(tight, Stranded.OTHER)

    # ---- all nodes -----------------------------------------------------------------------------
    def _fragment(self, spots: Iterable[_Spot]) -> int | None:
        if self._popularity is None or not self._popularity.total:
            return None
        found = sum(self._popularity.fragment(self._hole(s)) for s in spots if s.out is None)
        return found // self._popularity.total

    def _hole(self, spot: _Spot) -> Hole:
        amounts = (max(0, self._room.free(spot.node.name, r)) for r in (CPU, MEMORY, PODS))
        return Hole(tuple(amounts), spot.devices)

    def _gangs(self, spots: list[_Spot]) -> dict[int, dict[str, int]]:
        levels = self._atlas.levels([self._name])
        paths = self._atlas.paths(levels) if levels else {}
        return {size: self._gang(spots, size, levels, paths) for size in SIZES}

    def _gang(
        self,
        spots: list[_Spot],
        size: int,
        levels: tuple[str, ...],
        paths: Mapping[str, tuple[str, ...]],
    ) -> dict[str, int]:
        pod = self._pod(size, self._asked_beside(size))
        fitting = {spot.node.name: self._room.fitting(spot.node.name, pod) for spot in spots}
        largest = {HOST: max(fitting.values(), default=0)}
        for depth, level in reversed(list(enumerate(levels, start=1))):
            if level != HOSTNAME:
                domains: Counter[tuple[str, ...]] = Counter()
                for name, pods in fitting.items():
                    if name in paths:
                        domains[paths[name][:depth]] += pods
                largest[level] = max(domains.values(), default=0)
        return {**largest, CLUSTER: sum(fitting.values())}

    def _pod(self, gpus: int, beside: PodSet) -> PodSet:
        """Return a pod of whole GPUs that asks for this beside them."""
        return replace(beside, requests={**beside.requests, self._resource: gpus})

    def _asked_beside(self, size: int) -> PodSet:
        """Return what a pod of ``size`` GPUs usually asks beside them.

        That is what the most frequent pod of this size asks; else as much for each GPU as the
        most frequent one of any size; with nobody known, as good as nothing.
        """
        asks = [(pod, pod.ask(self._resource)) for pod in self._usual]
        whole = [(pod, ask.devices) for pod, ask in asks if ask.share == WHOLE]
        equal = [(pod, devices) for pod, devices in whole if devices == size]
        if not whole:
            return ANYBODY
        pod, count = (equal or whole)[0]
        asked = pod.pod_set.requests.items()
        return PodSet("gang", 1, {r: -(-n * size // count) for r, n in asked if not is_gpu(r)})
