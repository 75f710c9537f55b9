"""Who is looked at first: inside a queue, and among the heads of all queues."""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from scheduling.engine.books import Books
from scheduling.engine.flavors import Assigner, Option
from scheduling.engine.quota import QuotaKey
from scheduling.engine.snapshot import FlavorResource, Workload
from scheduling.engine.tournament import Usage
from scheduling.engine.usage import quota_usage


def queue_order(workloads: Iterable[Workload], claimants: Collection[str]) -> list[Workload]:
    """Return a queue's pending work in its order: waiting preemptors, priority, age, key."""
    return sorted(
        workloads, key=lambda w: (w.key not in claimants, -w.priority, w.created_at, w.key)
    )


def urgency(workload: Workload) -> tuple[int, float, str]:
    """Return who of two comes first where nothing else decides: priority, age, key."""
    return -workload.priority, workload.created_at, workload.key


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
        self._heap: list[tuple[Rank, int, Workload]] = []
        self._offers = 0  # a head may be offered again, with the same rank

    def offer(self, workload: Workload) -> None:
        """Let ``workload`` stand as the head of its queue."""
        self._push(self._rank(workload), workload)

    def pop(self) -> Workload | None:
        """Return the best head and forget it; None when nobody is left."""
        while self._heap:
            old, _, workload = heapq.heappop(self._heap)
            rank = self._rank(workload)
            if rank <= old or not self._heap or rank < self._heap[0][0]:
                return workload
            self._push(rank, workload)
        return None

    def _push(self, rank: Rank, workload: Workload) -> None:
        self._offers += 1
        heapq.heappush(self._heap, (rank, self._offers, workload))


def least_borrowing(books: Books, assigner: Assigner, workload: Workload) -> Usage:
    """Return what the workload asks for with the flavors that make it borrow the least.

    The first in the queue's order on ties, for each pod set on top of the earlier ones. Judged
    by quota alone; nothing for work outside every queue.
    """
    queue = books.queue(workload)
    usage: Counter[FlavorResource] = Counter()
    if queue is None:
        return usage
    for pod_set in workload.pod_sets:
        choices = assigner.options(workload, pod_set).choices
        totals = [usage + quota_usage(pod_set, pod_set.count, option) for option in choices]
        if len(totals) > 1:
            totals = [min(totals, key=lambda total: borrow_level(books, queue, total))]
        usage = totals[0] if totals else usage
    return usage


def borrow_level(books: Books, queue: QuotaKey, usage: Usage) -> int:
    """Return how far up the tree ``usage`` would have to be borrowed (K35); 0: own nominal."""
    ledger = books.now.ledger
    return max((ledger.borrow_level(queue, fr, n) for fr, n in usage.items()), default=0)


def total_usage(workload: Workload, pinned: dict[str, Option]) -> Counter[FlavorResource]:
    """Return what the whole gang would be charged under one option for each pod set."""
    usage: Counter[FlavorResource] = Counter()
    for pod_set in workload.pod_sets:
        usage.update(quota_usage(pod_set, pod_set.count, pinned[pod_set.name]))
    return usage
