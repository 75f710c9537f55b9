"""Nodes in the order in which a policy takes them, by how many pods they hold.

Nodes that look alike are equally good and stand here once, with the lowest number among them.
Entries are never searched for: where that is another number there is a new entry, and an old
one is dropped when it comes to the front.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from scheduling.engine.scoring.rating import Rating

_STALE = 4  # an order with more than this many entries for each hole is worn out
_FEW = 64  # entries that never wear it out

Entry = tuple[int, int, int]  # demerit, number of the node, its hole


class Order:
    """The nodes of a view by what is free on them: ``alike`` lists the nodes of each hole."""

    def __init__(self, rating: Rating, alike: Mapping[int, Sequence[int]]) -> None:
        self._rating, self._alike = rating, alike
        self._heaps: dict[int, list[Entry]] = {}
        self._entered: dict[int, int] = {}  # the lowest number of each hole, as last entered
        self._entries = 0
        self.enter(hole for hole in alike if rating.fits[hole])

    @property
    def worn_out(self) -> bool:
        """Return whether most entries are outdated, and a new order is cheaper."""
        return self._entries > _STALE * len(self._entered) + _FEW

    def enter(self, holes: Iterable[int]) -> None:
        """Note that other nodes than before look like these, in which a pod fits."""
        alike, entered, rating, heaps = self._alike, self._entered, self._rating, self._heaps
        for hole in holes:
            lowest = alike[hole][0]
            if entered.get(hole) != lowest:
                entered[hole] = lowest
                heap = heaps.setdefault(rating.fits[hole], [])
                heappush(heap, (rating.demerits[hole], lowest, hole))
                self._entries += 1

    def top(self, pods: int) -> Entry | None:
        """Return the best node of those that hold exactly so many pods."""
        heap, alike = self._heaps.get(pods, ()), self._alike
        while heap:
            _, number, hole = heap[0]
            if hole in alike and alike[hole][0] == number:
                return heap[0]
            if self._entered.get(hole) == number:
                del self._entered[hole]
            self._drop(pods)
        return None

    def _drop(self, pods: int) -> Entry:
        self._entries -= 1
        return heappop(self._heaps[pods])

    def best(self, sizes: Iterable[int]) -> int | None:
        """Return the best node of those that hold any of so many pods."""
        tops = [entry for pods in sizes if (entry := self.top(pods))]
        return min(tops)[1] if tops else None

    def pick(self, count: int, sizes: Iterable[int]) -> dict[int, int] | None:
        """Place pod after pod on the node that is best then; nothing is taken.

        None where the devices that a policy takes leave too little for the others.
        """
        # Behind each entry its place among its like; -1: the node has a pod already, and comes
        # again with what is left.
        front = [(*entry, 0) for pods in sizes if (entry := self.top(pods))]
        heapify(front)
        rating, alike = self._rating, self._alike
        placed: Counter[int] = Counter()
        out: dict[int, Entry] = {}  # by hole
        while count and front:
            _, number, hole, place = heappop(front)
            if place == 0:
                pods = rating.fits[hole]
                out[hole] = self._drop(pods)
                if entry := self._next(pods, out):
                    heappush(front, (*entry, 0))
            if 0 <= place < len(alike[hole]) - 1:
                further = alike[hole][place + 1]
                heappush(front, (rating.demerits[hole], further, hole, place + 1))
            placed[number] += 1
            count -= 1
            left = rating.after_one(hole)
            if rating.fits[left]:
                heappush(front, (rating.demerits[left], number, left, -1))
        for hole, entry in out.items():
            heappush(self._heaps[rating.fits[hole]], entry)
        self._entries += len(out)
        return None if count else dict(placed)

    def _next(self, pods: int, out: Container[int]) -> Entry | None:
        """Return the best node of a heap whose hole is not out; one may stand twice."""
        while (entry := self.top(pods)) and entry[2] in out:
            self._drop(pods)
        return entry
