"""The waiting work of each queue, sorted by form and age.

Within one form only age decides, so a line of ten thousand equal gangs is one entry to look
at. Nothing here changes while a cycle walks along the lines.
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet

from scheduling.engine.shapes import Form, form_of
from scheduling.engine.snapshot import Workload

Place = tuple[float, str]  # created_at, key
Precedence = Callable[[Form], tuple[float, ...]]  # smaller goes first


class Lines:
    """Who waits where. Cost of a change: O(log n), and a move in memory."""

    def __init__(self) -> None:
        self._queues: dict[str, dict[Form, list[Place]]] = {}

    def add(self, workload: Workload) -> None:
        """Let a workload stand in its queue's line."""
        forms = self._queues.setdefault(workload.queue or "", {})
        insort(forms.setdefault(form_of(workload), []), (workload.created_at, workload.key))

    def remove(self, workload: Workload) -> None:
        """Take a workload out of the line; it must stand there as it was added."""
        forms, form = self._queues[workload.queue or ""], form_of(workload)
        places = forms[form]
        del places[bisect_left(places, (workload.created_at, workload.key))]
        if not places:
            del forms[form]
            if not forms:
                del self._queues[workload.queue or ""]

    def queues(self) -> AbstractSet[str]:
        """Return the queues in which somebody waits."""
        return self._queues.keys()

    def forms(self, queue: str) -> dict[Form, list[Place]]:
        """Return who waits in a queue: for each form the places, oldest first."""
        return self._queues.get(queue, {})


class Walk:
    """One cycle's walk along one line: claimants first, then by precedence, age and key.

    A precedence can only grow while the walk lasts; an outdated one is corrected at the front.
    """

    def __init__(
        self,
        forms: dict[Form, list[Place]],
        precedence: Precedence,
        claimants: Iterable[Workload] = (),
    ) -> None:
        self._forms, self._parked, self._precedence = forms, set[Form](), precedence
        self._heap: list[tuple[bool, tuple[float, ...], Place, Form, int]] = [
            (True, precedence(form), places[0], form, 0) for form, places in forms.items()
        ]
        self.form: Form  # that of who came last
        self._claimants = {workload.key for workload in claimants}
        for workload in claimants:
            form, place = form_of(workload), (workload.created_at, workload.key)
            self._heap.append((False, precedence(form), place, form, 0))
        heapq.heapify(self._heap)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """Return the key of the next workload; raises StopIteration at the end."""
        while self._heap:
            newcomer, order, place, form, index = heapq.heappop(self._heap)
            if not newcomer:
                self.form = form
                return place[1]
            if form in self._parked:
                continue
            current = self._precedence(form)
            if current > order:  # its local queue has used more by now
                heapq.heappush(self._heap, (True, current, place, form, index))
                continue
            places = self._forms[form]
            if index + 1 < len(places):
                following = (True, order, places[index + 1], form, index + 1)
                heapq.heappush(self._heap, following)
            if place[1] not in self._claimants:
                self.form = form
                return place[1]
        raise StopIteration

    def park(self, form: Form) -> None:
        """Pass over whoever else has this form."""
        self._parked.add(form)
