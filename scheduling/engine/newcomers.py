"""Those admitted in this cycle: none of them has started, so where they stand is still open.

Who starts is decided in the order of the queues. But nodes are taken one gang at a time, and an
early gang may stand where a later one alone could have stood. So before a gang is refused for
want of nodes, the newcomers of the cycle are seated anew, together with it (``reseating.py``).
Nobody loses the start, the flavors or the quota that it was given; only nodes change.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from scheduling.engine.books import Books
from scheduling.engine.flavors import Assigner, Option
from scheduling.engine.gangs import counted, wanted, with_counts
from scheduling.engine.reseating import Reseating, Seats
from scheduling.engine.snapshot import Assignment, Workload

MAX_SEATINGS = 2048  # gangs lifted or seated in one cycle
MAX_LOOKS = 400_000  # the same, times the nodes of the cluster


@dataclass(frozen=True, slots=True)
class Seating:
    """Where one more gang can stand, and where newcomers must stand instead for it."""

    assignments: tuple[Assignment, ...]
    moved: Seats


class Newcomers:
    """The gangs that one cycle has seated so far. Leaves the books as it found them."""

    def __init__(self, books: Books, assigner: Assigner) -> None:
        self._books, self._assigner = books, assigner
        self._guests: dict[str, Workload] = {}
        self._seats: Seats = {}
        self.reseating = Reseating(books, assigner)
        self._most = min(MAX_SEATINGS, MAX_LOOKS // max(1, len(books.atlas.nodes)))
        self.seatings = 0

    def open(self) -> None:
        """Begin a cycle: nobody has come yet."""
        self._guests.clear()
        self._seats.clear()
        self.seatings = 0

    def add(self, workload: Workload, assignments: tuple[Assignment, ...]) -> None:
        """Note who was admitted, with as many pods as it was given, and where it stands.

        Whoever stands on no node has nothing to move.
        """
        if any(assignment.nodes for assignment in assignments):
            self._guests[workload.key] = as_granted(workload, assignments)
            self._seats[workload.key] = assignments

    def make_room(self, workload: Workload, pinned: Mapping[str, Option] | None) -> Seating | None:
        """Return where everybody can stand if ``workload`` starts as well, or None.

        It must fit in quota as things are; ``pinned`` holds the flavors that it must take, by
        pod set. Cost: at most 2 x ``MAX_ROUNDS`` times as many placements as there are newcomers,
        and ``MAX_SEATINGS`` in one cycle, fewer where there are many nodes.
        """
        if not self._afford(len(self._guests) + 1):
            return None
        alone = self._without_others(workload, pinned)
        if alone is None or not any(assignment.nodes for assignment in alone):
            return None
        flavors = {**self._seats, workload.key: alone}
        with self._books.trial():
            for key, guest in self._guests.items():
                self._books.drop(guest, self._seats[key], self._books.both)
            guests = [workload, *self._guests.values()]
            sides = self._books.both
            seats = self.reseating.seat_all(guests, flavors, sides, self._afford)
        if seats is None:
            return None
        own = seats.pop(workload.key)
        moved = {key: seat for key, seat in seats.items() if seat != self._seats[key]}
        return Seating(own, moved)

    def _afford(self, seatings: int) -> bool:
        if not self._guests or self.seatings + seatings > self._most:
            return False
        self.seatings += seatings
        return True

    def _without_others(
        self, workload: Workload, pinned: Mapping[str, Option] | None
    ) -> tuple[Assignment, ...] | None:
        """Return where it would stand if no newcomer stood anywhere, all of them being charged."""
        books = self._books
        with books.trial():
            for key, guest in self._guests.items():
                for side in books.both:
                    side.room.stand(guest, self._seats[key], sign=-1)
            return self._assigner.assign(workload, books.both, pinned)


def as_granted(workload: Workload, assignments: tuple[Assignment, ...]) -> Workload:
    """Return the workload asking for the pods that it got, and no fewer."""
    granted = counted(assignments)
    if granted == wanted(workload):
        return workload
    return with_counts(workload, granted)
