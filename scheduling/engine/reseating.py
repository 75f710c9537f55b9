"""Seating several gangs at once, on the flavors that they have: who finds no place goes first.

The most demanding first, and whoever finds no place in one round is seated before all others in
the next. Source: the public technique of squeaky wheel optimization (Joslin and Clements, 1999).
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from scheduling.engine.books import Books, Sides
from scheduling.engine.flavors import Assigner
from scheduling.engine.snapshot import Assignment, Workload
from scheduling.engine.usage import paired

MAX_ROUNDS = 16  # for one group of gangs, from each order

Seats = dict[str, tuple[Assignment, ...]]  # by workload


class Ease(NamedTuple):
    """How easily the pods of one pod set find places; smaller is harder."""

    pod: float  # the share that one pod takes of the largest node, negative
    depth: int  # how close they must stand, negative
    nodes: int  # that may take them at all
    size: float  # of them all, in largest nodes, negative


class Reseating:
    """Looks for places for all of a group at once. Leaves the books as it found them."""

    def __init__(self, books: Books, assigner: Assigner) -> None:
        self._books, self._assigner = books, assigner
        self._largest: Counter[str] = Counter()  # what the largest node has of each resource
        for node in books.atlas.nodes.values():
            self._largest |= Counter(node.allocatable)

    def seat_all(
        self,
        guests: list[Workload],
        flavors: Seats,
        sides: Sides,
        afford: Callable[[int], bool],
    ) -> Seats | None:
        """Return where everybody can stand, or None.

        Args:
            guests: who must stand; nobody of them stands in these accounts as they are.
            flavors: somewhere where each could stand alone: it keeps the flavors of that.
            sides: the accounts in which they must fit together.
            afford: whether so many more placements may be tried.

        Two orders are tried: the hardest first, and that of ``guests``. Cost: at most
        ``MAX_ROUNDS`` times as many placements as there are guests, for each order.
        """
        hardest = sorted(guests, key=lambda guest: self._ease(guest, flavors[guest.key]))
        for order in (hardest, guests):
            seats = self._rounds(order, flavors, sides, afford)
            if seats is not None:
                return seats
        return None

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

    def _rounds(
        self,
        order: list[Workload],
        flavors: Seats,
        sides: Sides,
        afford: Callable[[int], bool],
    ) -> Seats | None:
        """Seat all, the latest losers first, until nobody loses or an order comes again."""
        tried: set[tuple[str, ...]] = set()
        for _ in range(MAX_ROUNDS):
            keys = tuple(guest.key for guest in order)
            if keys in tried or not afford(len(order)):
                return None
            tried.add(keys)
            seats = self._seat(order, flavors, sides)
            if len(seats) == len(order):
                return seats
            order = sorted(order, key=lambda guest: guest.key in seats)  # stable
        return None

    def _seat(self, order: Iterable[Workload], flavors: Seats, sides: Sides) -> Seats:
        """Return where they find places, one after the other; who finds none is left out."""
        books, seats = self._books, Seats()
        with books.trial():
            for guest in order:
                pinned = {one.pod_set: one.flavors for one in flavors[guest.key]}
                found = self._assigner.assign(guest, sides, pinned)
                if found is not None:
                    books.hold(guest, found, sides)
                    seats[guest.key] = found
        return seats
