"""Equal work is one object: what is worked out for one pod set serves all that equal it.

Ten thousand gangs of one shape are placed, explained and refused once. A shape is kept for as
long as its book of shapes lives.
"""

from dataclasses import replace
from typing import NamedTuple

from scheduling.engine.snapshot import PodSet, Workload
from scheduling.engine.usage import shape


class Form(NamedTuple):
    """All that decides on a pending workload beside its age: equal forms meet equal fates.

    ``pod_sets`` is the identity of the interned pod sets. ``local_queue`` counts only for the
    order inside the queue.
    """

    queue: str
    local_queue: str
    ceiling_queue: str | None
    priority: int
    pod_sets: int
    replaces: str
    min_member: int | None
    duration_s: float | None


class Shapes:
    """The pod sets that have been seen, each once; ``len()`` counts them and their tuples."""

    def __init__(self) -> None:
        self._pod_sets: dict[object, PodSet] = {}
        self._tuples: dict[tuple[int, ...], tuple[PodSet, ...]] = {}
        self._known: set[int] = set()  # identities of interned tuples

    def __len__(self) -> int:
        return len(self._pod_sets) + len(self._tuples)

    def intern(self, workload: Workload) -> Workload:
        """Return the workload with its pod sets replaced by the equal ones seen first."""
        pod_sets = workload.pod_sets
        if id(pod_sets) in self._known:
            return workload
        own = tuple(self._pod_sets.setdefault(shape(pod_set), pod_set) for pod_set in pod_sets)
        same = all(mine is given for mine, given in zip(own, pod_sets, strict=True))
        own = self._tuples.setdefault(tuple(map(id, own)), pod_sets if same else own)
        self._known.add(id(own))
        return workload if own is pod_sets else replace(workload, pod_sets=own)


def form_of(workload: Workload) -> Form:
    """Return the form of an interned workload that waits in a queue."""
    return Form(
        workload.queue or "",
        workload.local_queue,
        workload.ceiling_queue,
        workload.priority,
        id(workload.pod_sets),
        workload.replaces,
        workload.min_member,
        workload.duration_s,
    )
