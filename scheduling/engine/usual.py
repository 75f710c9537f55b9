"""Which pods usually come: by them free room is judged, and for them it is kept.

One rule for the figures of ``fragments.py`` and for the policy ``fragmentation``: the pods of the
last days where the snapshot has them, else those of the work that waits, else nobody; then all
room is as good as any, and placement packs. Pods without GPUs come, too: to them free GPUs are of
no use. Source: ``placement.md`` 4.1.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scheduling.engine.atlas import Atlas
from scheduling.engine.flavors import options_of
from scheduling.engine.machines import CPU, MEMORY
from scheduling.engine.scoring.devices import Ask
from scheduling.engine.scoring.holes import Shape
from scheduling.engine.scoring.popularity import typical
from scheduling.engine.snapshot import PodSet, Recent, Workload
from scheduling.engine.terms import PlacementPolicy
from scheduling.engine.usage import device_request, is_whole_gpu
from scheduling.engine.usage import shape as form

MOST_SHAPES = 64  # of one flavor and resource; rarer ones decide nothing
REMEMBERED = 10_000  # shapes; then the memory starts anew


@dataclass(frozen=True, slots=True)
class Usual:
    """One kind of pod that comes ``weight`` times, and the flavors on which it may stand.

    ``pod_set`` stands for all that equal it, however many pods they have.
    """

    pod_set: PodSet
    weight: int
    flavors: frozenset[str]

    def ask(self, resource: str) -> Ask:
        """Return what one pod asks of the devices that a resource counts."""
        request = device_request(self.pod_set) if is_whole_gpu(resource) else None
        if request is None:
            return Ask(self.pod_set.requests.get(resource, 0))
        return Ask(request.count, request.share, request.memory, request.locality, request.alone)

    def shape(self, resource: str) -> Shape:
        """Return what one pod asks of its node: CPU, memory, a slot, and devices."""
        ask, requests = self.ask(resource), self.pod_set.requests
        amounts = (requests.get(CPU, 0), requests.get(MEMORY, 0), 1)
        return Shape(
            amounts,
            ask.devices,
            ask.share,
            memory=ask.memory,
            locality=ask.locality,
            alone=ask.alone,
        )


def usual_pods(atlas: Atlas) -> tuple[Usual, ...]:
    """Return the pods that usually come, most frequent first; equally frequent ones by shape."""
    counts: Counter[tuple[object, frozenset[str]]] = Counter()
    known: dict[tuple[object, frozenset[str]], PodSet] = {}
    for pod_set, pods, flavors in _came(atlas):
        key = form(pod_set)[2:], flavors
        counts[key] += pods
        known.setdefault(key, pod_set)
    found = [Usual(known[key], weight, key[1]) for key, weight in counts.items()]
    return tuple(sorted(found, key=_order))


def _came(atlas: Atlas) -> Iterator[tuple[PodSet, int, frozenset[str]]]:
    """Yield pods that came, how many, and the flavors on which they may stand."""
    for one in atlas.snapshot.shapes:
        yield one.pod_set, one.pods, _suiting(atlas, one.pod_set)
    for workload in atlas.snapshot.workloads if not atlas.snapshot.shapes else ():
        if workload.admission is None:
            for pod_set in workload.pod_sets:
                yield pod_set, pod_set.count, _flavors(atlas, workload, pod_set)


def _suiting(atlas: Atlas, pod_set: PodSet) -> frozenset[str]:
    """Return the flavors of which a node takes such pods: nobody knows their queue any more."""
    names = atlas.snapshot.flavors
    return frozenset(n for n in names if atlas.suitable(pod_set, [n]).nodes)


def _flavors(atlas: Atlas, workload: Workload, pod_set: PodSet) -> frozenset[str]:
    """Return every flavor that the pod set holds, or might get in its queue."""
    queue = atlas.snapshot.cluster_queues.get(workload.queue or "")
    choices = options_of(atlas, queue, pod_set).choices if queue else ()
    if not choices and workload.queue is None:
        return frozenset(atlas.snapshot.flavors)
    return frozenset(name for option in choices for name in option.values())


def _order(usual: Usual) -> tuple[object, ...]:
    pod_set = usual.pod_set
    amounts = sorted(pod_set.requests.items(), key=lambda item: item[0])
    return -usual.weight, [(name, -amount) for name, amount in amounts], str(form(pod_set)[3:])


def expect(atlas: Atlas, recent: Iterable[Recent]) -> None:
    """Let the views of this cluster keep room for such pods, each as often as it came."""
    _expect(atlas, ((shape_on(atlas, one.pod_set), one.pods) for one in recent))


def _expect(atlas: Atlas, coming: Iterable[tuple[Shape | None, int]]) -> None:
    counts: Counter[Shape] = Counter()
    for shape, pods in coming:
        if shape is not None and pods > 0:
            counts[shape] += pods
    atlas.views.expect(typical(counts))


def shape_on(atlas: Atlas, pod_set: PodSet) -> Shape | None:
    """Return what one pod asks, and of which kinds of nodes; None: no node here will do.

    Cost: O(nodes).
    """
    kinds = _kinds(atlas, pod_set)
    shape, strange = atlas.ground.shape_of(pod_set)
    return None if kinds is None or strange else shape._replace(kinds=kinds)


def _kinds(atlas: Atlas, pod_set: PodSet) -> frozenset[str] | None:
    """Return the kinds of nodes that will do; all: the empty set; None: no kind will."""
    ground, flavors = atlas.ground, atlas.snapshot.flavors
    looks = [atlas.suitable(pod_set, [flavor]) for flavor in flavors if atlas.nodes_of(flavor)]
    looks = looks or [atlas.suitable(pod_set, ())]
    names = {name for look in looks for name in look.nodes}
    kinds = {ground.holes[ground.empty[ground.numbers[name]]].kind for name in names}
    if not kinds:
        return None
    every = {ground.holes[hole].kind for hole in ground.empty}
    return frozenset() if kinds == every else frozenset(kinds)


class Waiting:
    """The pods of pending work, by what they ask.

    How many wait is cut to a power of two: so one more or less seldom changes what is expected,
    and a kept state and a fresh one expect the same.
    """

    def __init__(self, atlas: Atlas) -> None:
        flavors = atlas.snapshot.flavors.values()
        policies = {flavor.policy for flavor in flavors} or {PlacementPolicy.FRAGMENTATION}
        self._atlas = atlas
        self._counts = bool(atlas.nodes) and PlacementPolicy.FRAGMENTATION in policies
        self._pods: dict[int, tuple[PodSet, int]] = {}
        self._shapes: dict[int, tuple[PodSet, Shape | None]] = {}
        self._changed = False
        if self._counts and atlas.snapshot.shapes:
            expect(atlas, atlas.snapshot.shapes)
            self._counts = False

    def add(self, workload: Workload, sign: int = 1) -> None:
        """Note that an interned workload waits; ``sign`` -1: that it does no more."""
        for pod_set in workload.pod_sets if self._counts else ():
            known = self._pods.get(id(pod_set), (pod_set, 0))[1]
            pods = known + sign * pod_set.count
            self._changed |= pods.bit_length() != known.bit_length()
            if pods:
                self._pods[id(pod_set)] = pod_set, pods
            else:
                self._pods.pop(id(pod_set), None)

    def settle(self) -> None:
        """Let those who wait now be what is expected. Cost: O(their shapes), if that changes."""
        if self._changed:
            self._changed = False
            waiting = self._pods.values()
            coming = ((self._shape(p), 1 << pods.bit_length()) for p, pods in waiting)
            _expect(self._atlas, coming)

    def _shape(self, pod_set: PodSet) -> Shape | None:
        """Return its shape; remembered for pod sets that are the same object."""
        if id(pod_set) not in self._shapes:
            if len(self._shapes) >= REMEMBERED:
                self._shapes.clear()
            self._shapes[id(pod_set)] = pod_set, shape_on(self._atlas, pod_set)
        return self._shapes[id(pod_set)][1]
