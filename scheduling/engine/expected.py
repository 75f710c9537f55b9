"""Which shapes usually come: what the policy ``fragmentation`` keeps room for.

The shapes of the last days where the snapshot has them, else those of pending work, else none:
then it packs. Source: ``placement.md`` 4.1.
"""

from collections import Counter
from collections.abc import Iterable

from scheduling.engine.atlas import Atlas
from scheduling.engine.scoring.holes import Shape
from scheduling.engine.scoring.popularity import typical
from scheduling.engine.snapshot import PodSet, Recent, Workload
from scheduling.engine.terms import PlacementPolicy

REMEMBERED = 10_000  # shapes; then the memory starts anew


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
