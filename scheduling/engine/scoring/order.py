"""Nodes in the order in which a policy takes them, by how many pods they hold.

Entries are never searched for: a node that has changed gets a new one, and an old one is
dropped when it comes to the front.
"""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from heapq import heapify, heappop, heappush

from scheduling.engine.scoring.rating import Rating

_STALE = 2  # an order with more than this many entries for each node is worn out

Entry = tuple[int, int]  # demerit, number of the node


class Order:
    """The nodes of a view, which keeps the hole of each (``seen``) and how many pods it holds."""

    def __init__(
        self, rating: Rating, seen: Sequence[int], pods: Sequence[int], numbers: Sequence[int]
    ) -> None:
        self._rating, self._most = rating, _STALE * (len(numbers) + 1)
        self._seen, self._pods = seen, pods
        self._heaps: dict[int, list[Entry]] = {}
        for number in numbers:
            if fitting := pods[number]:
                entry = rating.demerits[seen[number]], number
                self._heaps.setdefault(fitting, []).append(entry)
        for heap in self._heaps.values():
            heapify(heap)
        self._entries = sum(map(len, self._heaps.values()))

    @property
    def worn_out(self) -> bool:
        """Return whether most entries are outdated, and a new order is cheaper."""
        return self._entries > self._most

    def enter(self, numbers: Iterable[int]) -> None:
        """Note that these nodes have changed."""
        seen, pods, demerits = self._seen, self._pods, self._rating.demerits
        for number in numbers:
            if fitting := pods[number]:
                heap = self._heaps.get(fitting)
                if heap is None:
                    heap = self._heaps[fitting] = []
                heappush(heap, (demerits[seen[number]], number))
                self._entries += 1

    def top(self, pods: int) -> Entry | None:
        """Return the best node of those that hold exactly so many pods."""
        heap = self._heaps.get(pods, [])
        while heap and not self._holds(heap[0], pods):
            heappop(heap)
            self._entries -= 1
        return heap[0] if heap else None

    def _holds(self, entry: Entry, pods: int) -> bool:
        demerit, number = entry
        return self._pods[number] == pods and self._rating.demerits[self._seen[number]] == demerit

    def best(self, sizes: Iterable[int]) -> int | None:
        """Return the best node of those that hold any of so many pods."""
        tops = [entry for pods in sizes if (entry := self.top(pods))]
        return min(tops)[1] if tops else None

    def pick(self, count: int, sizes: Iterable[int]) -> dict[int, int] | None:
        """Place pod after pod on the node that is best then; nothing is taken.

        None where the devices that a policy takes leave too little for the others.
        """
        front = [(*entry, pods) for pods in sizes if (entry := self.top(pods))]
        heapify(front)
        rating, placed = self._rating, Counter[int]()
        out: dict[int, tuple[int, Entry]] = {}  # by number: from which heap, and which entry
        holes: dict[int, int] = {}  # what is left on nodes that got a pod
        while count and front:
            demerit, number, pods = heappop(front)
            if pods:  # 0: it has a pod already, and comes again with what is left
                out[number] = pods, (demerit, number)
                holes[number] = self._seen[number]
                heappop(self._heaps[pods])
                if entry := self._next(pods, out):
                    heappush(front, (*entry, pods))
            placed[number] += 1
            count -= 1
            hole = holes[number] = rating.after_one(holes[number])
            if rating.fits[hole]:
                heappush(front, (rating.demerits[hole], number, 0))
        for pods, entry in out.values():
            heappush(self._heaps[pods], entry)
        return None if count else dict(placed)

    def _next(self, pods: int, out: Container[int]) -> Entry | None:
        """Return the best node of a heap that is not out; one may have been entered twice."""
        while (entry := self.top(pods)) and entry[1] in out:
            heappop(self._heaps[pods])
            self._entries -= 1
        return entry
