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

Held = Mapping[str, Mapping[str, int]]  # pods by pod set, by workload


def held_less(workloads: Iterable[Workload]) -> dict[str, dict[str, int]]:
    """Return how many pods each workload holds that holds fewer than it was admitted with."""
    found: dict[str, dict[str, int]] = {}
    for workload in workloads:
        if workload.admission is not None and not workload.releasing:
            held = {a.pod_set: a.count for a in standing(workload)}
            if held != {a.pod_set: a.count for a in workload.admission.assignments}:
                found[workload.key] = held
    return found


def regrown(workloads: Iterable[Workload], before: Held) -> list[Workload]:
    """Return the running work that holds more than ``before``, who leaves first in front.

    Lower priority, then latest admission, then key.
    """
    found = [
        workload
        for workload in workloads
        if workload.key in before
        and workload.admission is not None
        and not workload.releasing
        and _more(workload, before[workload.key])
    ]
    return sorted(found, key=victim_order)


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
