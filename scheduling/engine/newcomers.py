"""Those admitted in this cycle: none of them has started, so where they stand is still open.

Who starts is decided in the order of the queues. But nodes are taken one gang at a time, and an
early gang may stand where a later one alone could have stood. So before a gang is refused for
want of nodes, the newcomers of the cycle are seated anew, together with it: the most demanding
first, and whoever finds no place in one round is seated before all others in the next. Nobody
loses the start, the flavors or the quota that it was given; only nodes change. Source: the
public technique of squeaky wheel optimization (Joslin and Clements, 1999).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from scheduling.engine.books import Books
from scheduling.engine.flavors import Assigner, Option
from scheduling.engine.gangs import counted, wanted, with_counts
from scheduling.engine.snapshot import Assignment, Workload
from scheduling.engine.usage import paired

MAX_ROUNDS = 16  # for one gang, from each of two orders
MAX_SEATINGS = 2048  # gangs lifted or seated in one cycle
MAX_LOOKS = 400_000  # the same, times the nodes of the cluster


class Ease(NamedTuple):
    """How easily the pods of one pod set find places; smaller is harder."""

    pod: float  # the share that one pod takes of the largest node, negative
    depth: int  # how close they must stand, negative
    nodes: int  # that may take them at all
    size: float  # of them all, in largest nodes, negative


Seats = dict[str, tuple[Assignment, ...]]  # by workload


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
        self._largest: Counter[str] = Counter()  # what the largest node has of each resource
        for node in books.atlas.nodes.values():
            self._largest |= Counter(node.allocatable)
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
            self._guests[workload.key] = _as_granted(workload, assignments)
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
            hardest = sorted(guests, key=lambda guest: self._ease(guest, flavors[guest.key]))
            seats = self._try_rounds(hardest, flavors) or self._try_rounds(guests, flavors)
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

    def _ease(self, guest: Workload, assignments: tuple[Assignment, ...]) -> list[Ease]:
        """Return how easily each pod set of a gang finds places, the least easy one first."""
        atlas, eases = self._books.atlas, []
        for pod_set, assignment in paired(guest, assignments):
            flavors = assignment.flavors.values()
            nodes = len(atlas.suitable(pod_set, flavors).nodes)
            asked, depth = pod_set.requests.items(), atlas.site(pod_set, flavors).level or 0
            share = max((n / self._largest.get(r, 1) for r, n in asked if n), default=0.0)
            eases.append(Ease(-share, -depth, nodes, -share * assignment.count))
        return sorted(eases)

    def _try_rounds(
        self, order: list[Workload], flavors: Mapping[str, tuple[Assignment, ...]]
    ) -> Seats | None:
        """Seat all, the latest losers first, until nobody loses or an order comes again."""
        tried: set[tuple[str, ...]] = set()
        for _ in range(MAX_ROUNDS):
            keys = tuple(guest.key for guest in order)
            if keys in tried or not self._afford(len(order)):
                return None
            tried.add(keys)
            seats = self._seat(order, flavors)
            if len(seats) == len(order):
                return seats
            order = sorted(order, key=lambda guest: guest.key in seats)  # stable
        return None

    def _seat(
        self, order: Iterable[Workload], flavors: Mapping[str, tuple[Assignment, ...]]
    ) -> Seats:
        """Return where they find places, one after the other; who finds none is left out."""
        books, seats = self._books, Seats()
        with books.trial():
            for guest in order:
                pinned = {one.pod_set: one.flavors for one in flavors[guest.key]}
                found = self._assigner.assign(guest, books.both, pinned)
                if found is not None:
                    books.hold(guest, found, books.both)
                    seats[guest.key] = found
        return seats


def _as_granted(workload: Workload, assignments: tuple[Assignment, ...]) -> Workload:
    """Return the workload asking for the pods that it got, and no fewer."""
    granted = counted(assignments)
    if granted == wanted(workload):
        return workload
    return with_counts(workload, granted)
