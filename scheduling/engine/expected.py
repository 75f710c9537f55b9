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


def expect(atlas: Atlas, recent: Iterable[Recent]) -> None:
    """Let the views of this cluster keep room for such pods, each as often as it came."""
    counts: Counter[Shape] = Counter()
    for one in recent:
        kinds = _kinds(atlas, one.pod_set)
        shape, strange = atlas.ground.shape_of(one.pod_set)
        if kinds is not None and not strange and one.pods > 0:
            counts[shape._replace(kinds=kinds)] += one.pods
    atlas.views.expect(typical(counts))


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
            expect(self._atlas, (Recent(p, 1 << n.bit_length()) for p, n in self._pods.values()))
