"""Who is looked at first: inside a queue, and among the heads of all queues."""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from scheduling.engine.books import Books
from scheduling.engine.flavors import Assigner
from scheduling.engine.shapes import Form
from scheduling.engine.snapshot import FlavorResource, Workload
from scheduling.engine.tournament import Usage
from scheduling.engine.tree import QuotaKey


def queue_order(workloads: Iterable[Workload]) -> list[Workload]:
    """Return waiting work by priority, age, key."""
    return sorted(workloads, key=lambda w: (-w.priority, w.created_at, w.key))


def precedence(form: Form) -> tuple[float, ...]:
    """Return which forms of one queue go first: smaller, before age and key."""
    return (-form.priority,)


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
        self.put(self._rank(workload), workload)

    def pop(self) -> Workload | None:
        """Return the best head and forget it; None when nobody is left."""
        while self._heap:
            old, _, workload = heapq.heappop(self._heap)
            rank = self._rank(workload)
            if rank <= old or not self._heap or rank < self._heap[0][0]:
                return workload
            self.put(rank, workload)
        return None

    def put(self, rank: Rank, workload: Workload) -> None:
        """Let ``workload`` stand in line with a rank that is known to be right."""
        self._offers += 1
        heapq.heappush(self._heap, (rank, self._offers, workload))


class Ask(NamedTuple):
    """What a head asks for. ``settled``: it has no choice of flavors, so it never changes."""

    usage: Usage
    settled: bool


def least_borrowing(books: Books, assigner: Assigner, workload: Workload) -> Ask:
    """Return what the workload asks for with the flavors that make it borrow the least.

    The first in the queue's order on ties, for each pod set on top of the earlier ones. Judged
    by quota alone; nothing for work outside every queue.
    """
    queue = books.queue(workload)
    usage: Counter[FlavorResource] = Counter()
    if queue is None:
        return Ask(usage, settled=True)
    settled = True
    for pod_set in workload.pod_sets:
        choices = assigner.options(workload, pod_set).choices
        if len(choices) == 1:
            one = assigner.offer(pod_set, choices[0]).usage
            usage = usage + one if usage else one
        elif choices:
            settled = False
            totals = [usage + assigner.offer(pod_set, option).usage for option in choices]
            usage = min(totals, key=lambda total: borrow_level(books, queue, total))
    return Ask(usage, settled)


def borrow_level(books: Books, queue: QuotaKey, usage: Usage) -> int:
    """Return how far up the tree ``usage`` would have to be borrowed (K35); 0: own nominal."""
    ledger, level = books.now.ledger, 0
    for fr, amount in usage.items():
        level = max(level, ledger.borrow_level(queue, fr, amount))
    return level
