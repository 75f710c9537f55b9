"""Which pods usually come: the shapes by which free room is judged, most frequent first.

They are those of the last days where the snapshot has them, else those of waiting work, else
those of the work that stands (``placement.md`` 4.1). Pods without GPUs come, too: to them free
GPUs are of no use.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from scheduling.engine.atlas import Atlas
from scheduling.engine.flavors import options_of
from scheduling.engine.machines import CPU, MEMORY
from scheduling.engine.scoring.devices import Ask
from scheduling.engine.scoring.holes import Shape
from scheduling.engine.snapshot import PodSet, Workload
from scheduling.engine.usage import device_request, is_whole_gpu
from scheduling.engine.usage import shape as form

MOST_SHAPES = 64  # of one flavor and resource; rarer ones decide nothing


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
    if atlas.snapshot.shapes:
        for one in atlas.snapshot.shapes:
            yield one.pod_set, one.pods, _suiting(atlas, one.pod_set)
        return
    work = atlas.snapshot.workloads
    waiting = [w for w in work if w.admission is None and not w.blocked]
    for workload in waiting or [w for w in work if w.admission is not None]:
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
