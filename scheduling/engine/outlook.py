"""What was forecast for a gang, kept for as long as nothing that it rests on has changed.

A forecast lets running work leave in the order of its ends, and rests on the work that stays: the
last one that had to leave, and all behind it. Whoever starts or ends in front of that one changes
neither where the gang is going to stand, nor on whose end it waits. So most changes of a cluster
cost no new search, and the answer is the one that a search would give.
"""

from typing import NamedTuple

from scheduling.engine.ground import Ground
from scheduling.engine.scoring.holes import fitting
from scheduling.engine.snapshot import Assignment, PodSet, Workload
from scheduling.engine.standing import standing
from scheduling.engine.usage import paired


class Start(NamedTuple):
    """When and where a gang can start, and who is the last that must have left by then.

    ``holes``: what is free on every node then; empty where quota is short until then.
    """

    at: float
    assignments: tuple[Assignment, ...]
    after: Workload | None = None
    holes: tuple[int, ...] = ()


class Outlook:
    """One forecast. ``around``: all else that it depended on: claims, reservations, taste."""

    def __init__(
        self,
        gang: Workload,
        around: tuple[object, ...],
        start: Start,
        ground: Ground,
        *,
        promised: bool,
    ) -> None:
        self.pod_sets, self.around, self.start, self.promised = (
            gang.pod_sets,
            around,
            start,
            promised,
        )
        self.holds = True
        self._ground, self._holes = ground, [*start.holes]

    def came(self, work: Workload) -> None:
        """Note that work runs now."""
        self.holds = self.holds and self._in_front(work)

    def went(self, work: Workload) -> None:
        """Note that work runs no more."""
        if not self.holds or self._in_front(work):
            return
        last = self.start.after
        apart = last is not None and work.key != last.key and bool(work.queue)
        self.holds = apart and bool(self._holes) and self._in_vain(work)

    def _in_front(self, work: Workload) -> bool:
        """Return whether the work leaves before the last one that must, whatever happens."""
        last = self.start.after
        if last is None or last.admission is None or work.admission is None or not work.queue:
            return False
        end = known_end(work)
        if self.promised:
            return end is not None and end < self.start.at
        return end is None and work.admission.admitted_at > last.admission.admitted_at

    def _in_vain(self, work: Workload) -> bool:
        """Note what the work leaves; return whether no pod of the gang can use any of it."""
        ground, holes = self._ground, self._holes
        for pod_set, assignment in paired(work, standing(work)):
            pod = ground.footprint_of(pod_set)
            for node, count in assignment.nodes.items():
                number = ground.numbers.get(node)
                if number is None or ground.holes[holes[number]].devices:
                    return False
                holes[number] = ground.step(holes[number], pod, -count)
                if any(self._fits(holes[number], wanted) for wanted in self.pod_sets):
                    return False
        return True

    def _fits(self, hole: int, wanted: PodSet) -> bool:
        return fitting(self._ground.holes[hole], self._ground.footprint_of(wanted).shape) > 0


def known_end(work: Workload) -> float | None:
    """Return when running work ends as declared or estimated; None: nobody knows."""
    assert work.admission is not None
    return None if work.duration_s is None else work.admission.admitted_at + work.duration_s
