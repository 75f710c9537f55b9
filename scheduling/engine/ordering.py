"""Who is looked at first: inside a queue, and among the heads of all queues."""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from scheduling.engine.books import Books
from scheduling.engine.flavors import Assigner
from scheduling.engine.quota import QuotaKey
from scheduling.engine.shapes import Form
from scheduling.engine.snapshot import FlavorResource, Workload
from scheduling.engine.usage import quota_usage


def queue_order(workloads: Iterable[Workload]) -> list[Workload]:
    """Return waiting work by priority, age, key."""
    return sorted(workloads, key=lambda w: (-w.priority, w.created_at, w.key))


def precedence(form: Form) -> tuple[float, ...]:
    """Return which forms of one queue go first: smaller, before age and key."""
    return (-form.priority,)


class Rank(NamedTuple):
    """Place of a head among the heads of all queues. Smaller goes first."""

    newcomer: bool  # waiting preemptors come first: their capacity is kept anyway
    level: int  # who borrows from further away waits (``admission.md`` 3.4)
    urgency: int
    created_at: float
    key: str


class Heads:
    """The heads of the queues, best first.

    A head's borrow level can only rise while others are admitted, so a stale rank is found and
    corrected when it reaches the top. Cost: O(log queues) for each step without corrections.
    """

    def __init__(self, rank: Callable[[Workload], Rank]) -> None:
        self._rank = rank
        self._heap: list[tuple[Rank, Workload]] = []

    def offer(self, workload: Workload) -> None:
        """Let ``workload`` stand as the head of its queue."""
        heapq.heappush(self._heap, (self._rank(workload), workload))

    def pop(self) -> Workload | None:
        """Return the best head and forget it; None when nobody is left."""
        while self._heap:
            old, workload = heapq.heappop(self._heap)
            rank = self._rank(workload)
            if rank <= old or not self._heap or rank < self._heap[0][0]:
                return workload
            heapq.heappush(self._heap, (rank, workload))
        return None


def borrow_level(books: Books, assigner: Assigner, workload: Workload) -> int:
    """Return how far up the tree the workload would have to borrow (K35); 0: own nominal.

    Each pod set counts with the flavor that asks for the least. Judged by quota alone.
    """
    queue = books.queue(workload)
    if queue is None:
        return 0
    usage: Counter[FlavorResource] = Counter()
    for pod_set in workload.pod_sets:
        choices = assigner.options(workload, pod_set).choices
        totals = [usage + quota_usage(pod_set, pod_set.count, option) for option in choices]
        if totals:
            usage = min(totals, key=lambda total: _level(books, queue, total))
    return _level(books, queue, usage)


def _level(books: Books, queue: QuotaKey, usage: Counter[FlavorResource]) -> int:
    ledger = books.now.ledger
    return max((ledger.borrow_level(queue, fr, n) for fr, n in usage.items()), default=0)
