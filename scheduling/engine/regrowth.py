"""Given back is given back: work that holds less than it was admitted with has no right to more.

Pods that finished, and pods that an elastic workload shed, gave their quota to others. If they
come back (a job set restarts whole, the workload is edited to its old size), they are new
demand: what fits beside everybody else is taken again, and if it does not fit, the workload
leaves and asks for the whole in its queue. So no queue runs beyond its quota in silence.
Source: ``admission.md`` T5.
"""

from collections.abc import Iterable, Mapping

from scheduling.engine.books import Books, available
from scheduling.engine.candidates import victim_order
from scheduling.engine.snapshot import Assignment, Workload
from scheduling.engine.standing import standing
from scheduling.engine.usage import charged, paired, pod_footprint

Held = dict[str, int]  # pods by pod set


class Yields:
    """Which running work holds fewer pods than it was admitted with, now and a cycle ago."""

    def __init__(self, before: Mapping[str, Mapping[str, int]]) -> None:
        self.before: dict[str, Held] = {key: dict(held) for key, held in before.items()}
        self._now: dict[str, Held] = {}
        self._running: dict[str, Workload] = {}  # those of both

    def add(self, workload: Workload) -> None:
        """Note a workload that runs, and what it holds."""
        assert workload.admission is not None
        held, granted = standing(workload), workload.admission.assignments
        if held is not granted and _counts(held) != _counts(granted):
            self._now[workload.key] = _counts(held)
        if workload.key in self._now or workload.key in self.before:
            self._running[workload.key] = workload

    def remove(self, key: str) -> None:
        """Forget a workload that runs no more, or is about to be noted again."""
        self._now.pop(key, None)
        self._running.pop(key, None)

    def regrown(self) -> list[Workload]:
        """Return the running work that holds more than a cycle ago, who leaves first in front.

        Lower priority, then latest admission, then key.
        """
        found = (work for key, work in self._running.items() if key in self.before)
        return sorted((w for w in found if came_back(w, self.before)), key=victim_order)

    def settle(self) -> None:
        """Let a cycle have passed."""
        self.before = dict(self._now)
        self._running = {key: self._running[key] for key in self._now}


def _counts(assignments: Iterable[Assignment]) -> Held:
    return {assignment.pod_set: assignment.count for assignment in assignments}


def came_back(workload: Workload, before: Mapping[str, Mapping[str, int]]) -> bool:
    """Return whether a workload holds more pods than ``before`` says; unknown ones never do."""
    return bool(_more(workload, before.get(workload.key, {})))


def has_room(books: Books, workload: Workload, before: Mapping[str, int]) -> bool:
    """Return whether what has come back fits beside everybody else who is going to stay.

    All of it is charged already: it fits if no column and no node of it is overdrawn, and every
    pod has a node where the others have.
    """
    more, queue = _more(workload, before), books.queue(workload)
    if any(a.nodes and sum(a.nodes.values()) < a.count for a in more):
        return False
    columns = [fr for fr, amount in charged(workload, more).items() if amount]
    if queue is not None and any(available(books.coming, queue, fr) < 0 for fr in columns):
        return False
    room = books.soon.room
    return all(
        room.free(node, resource) >= 0
        for pod_set, assignment in paired(workload, more)
        for node in assignment.nodes
        if node in books.atlas.nodes
        for resource in pod_footprint(pod_set)
    )


def _more(workload: Workload, before: Mapping[str, int]) -> list[Assignment]:
    return [a for a in standing(workload) if a.count > before.get(a.pod_set, a.count)]
