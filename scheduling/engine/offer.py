"""What newcomers are offered: what is free, but for what is kept for gangs that wait.

One rule for every page and answer that says what could start now. Who is not bound by what is
kept (short work, higher priority) may get more; what is offered here, anybody may.
"""

from collections.abc import Iterator
from dataclasses import replace

from scheduling.engine.atlas import Atlas
from scheduling.engine.books import Books
from scheduling.engine.flavors import Assigner
from scheduling.engine.reservations import Reservations
from scheduling.engine.snapshot import Assignment, Snapshot, Workload
from scheduling.engine.usage import paired
from scheduling.engine.ways import Ways


def places(snapshot: Snapshot) -> Iterator[tuple[Workload, tuple[Assignment, ...]]]:
    """Yield each gang that room is kept for with the places that are kept."""
    gangs = {w.key: w for w in snapshot.workloads if w.admission is None and not w.blocked}
    for one in snapshot.memory.reservations:
        if one.workload in gangs:
            yield gangs[one.workload], one.assignments


def offered(snapshot: Snapshot, atlas: Atlas) -> Books:
    """Return books whose ``now`` is what stands and whose ``soon`` is what is left to offer.

    Work on its way out stands in both. What is kept for gangs that are not in the snapshot, or
    may not start any more, is offered to all.
    """
    works = tuple(replace(w, releasing=False) if w.releasing else w for w in snapshot.workloads)
    books = Books(replace(snapshot, workloads=works), atlas)
    kept = {one.workload: one.assignments for one in snapshot.memory.reservations}

    def asking(gang: Workload) -> Workload:
        """Return the gang with the pods for which room is kept: these the last cycle judged."""
        pairs = paired(gang, kept[gang.key])
        return replace(gang, pod_sets=tuple(replace(p, count=a.count) for p, a in pairs))

    ways = Ways(Assigner(books))
    reservations = Reservations(ways, {work.key: work for work in works}, asking)
    reservations.restore(snapshot.memory)
    return books
