"""Whether victims can make room at all, judged from sums before anybody is looked at."""

from collections.abc import Iterable, Iterator, Mapping

from scheduling.engine.books import Books, available
from scheduling.engine.candidates import Attempt, Running
from scheduling.engine.fair_preemption import FairPreemption
from scheduling.engine.fairness import Regime
from scheduling.engine.snapshot import FlavorResource, Workload
from scheduling.engine.terms import BorrowWithinCohort, ReclaimWithinCohort, WithinClusterQueue
from scheduling.engine.tree import QuotaKey
from scheduling.engine.ways import Way

MAX_COMBINATIONS = 16  # flavor combinations for which victims are looked for


class Prospects:
    """Tells which ways are worth a search for victims. Changes nothing."""

    def __init__(
        self, books: Books, running: Running, regime: Regime, fair: FairPreemption
    ) -> None:
        self._books, self._running, self._regime, self._fair = books, running, regime, fair
        self._ledger, self._queues = books.soon.ledger, books.snapshot.cluster_queues

    def attempts(
        self, workload: Workload, queue: QuotaKey, ways: Iterable[Way]
    ) -> Iterator[tuple[Attempt, Way]]:
        """Yield the ways under which eviction may be tried at all, the first few of them."""
        tried = 0
        for way in ways:
            contested = self._contested(queue, way.usage)
            if self._hopeful(workload, queue, way.usage, contested):
                tried += 1
                yield Attempt(workload, queue, way.usage, contested), way
            if tried >= MAX_COMBINATIONS:
                return

    def may_help(self, workload: Workload, queue: QuotaKey, way: Way) -> bool:
        """Return whether evictions might let the workload stand this way. Cost: O(columns)."""
        return self._hopeful(workload, queue, way.usage, self._contested(queue, way.usage))

    def _hopeful(
        self,
        workload: Workload,
        queue: QuotaKey,
        usage: Mapping[FlavorResource, int],
        contested: frozenset[FlavorResource],
    ) -> bool:
        """Return whether victims can make room at all, before anybody is looked at.

        The queue's own work may give enough. Others' work is out of reach unless the queue may
        take it while borrowing, or has a better right to it, or gets within its own quota by
        evicting its own work first. Eligibility is that of ``FORMAT`` 5.3.
        """
        rights, ledger = self._queues[queue.name].preemption, self._ledger
        own = self._own(queue, rights.within_cluster_queue, workload.priority)
        reclaims = rights.reclaim_within_cohort is not ReclaimWithinCohort.NEVER
        if reclaims and self._regime.is_fair(queue):
            least = {fr: amount - own.get(fr, 0) for fr, amount in usage.items()}
            enough = own and all(least[fr] <= ledger.available(queue, fr) for fr in contested)
            return bool(enough) or self._fair.may_help(queue, least, contested)
        if rights.borrow_within_cohort is not BorrowWithinCohort.NEVER:
            return True
        top = ledger.height(ledger.root(queue))
        enough, near = bool(own), reclaims and top > 0
        for fr in contested:
            amount, given = usage[fr], own.get(fr, 0)
            if not self._entitled(queue, fr, amount):
                return False
            enough = enough and amount - given <= ledger.available(queue, fr)
            near = near and ledger.borrow_level(queue, fr, max(0, amount - given)) < top
        return enough or near

    def _own(
        self, queue: QuotaKey, policy: WithinClusterQueue, priority: int
    ) -> Mapping[FlavorResource, int]:
        """Return what the queue's own work that may have to go uses, at most."""
        if policy is WithinClusterQueue.NEVER:
            return {}
        equals = policy is WithinClusterQueue.LOWER_OR_NEWER_EQUAL_PRIORITY
        equals = equals or self._running.has_surplus(queue.name)
        return self._running.up_to(queue.name, priority if equals else priority - 1)

    def _contested(
        self, queue: QuotaKey, usage: Mapping[FlavorResource, int]
    ) -> frozenset[FlavorResource]:
        """Return the columns without enough quota; all of them if only nodes are missing."""
        sides = self._books.coming
        short = [fr for fr, amount in usage.items() if amount > available(sides, queue, fr)]
        return frozenset(short) or frozenset(fr for fr, amount in usage.items() if amount)

    def _entitled(self, queue: QuotaKey, fr: FlavorResource, amount: int) -> bool:
        """Return whether nothing has to be borrowed from the root: own quota or a subtree's."""
        ledger = self._ledger
        if amount <= ledger.promised(queue, fr) or amount <= ledger.available(queue, fr):
            return True
        top = self._ledger.height(self._ledger.root(queue))
        return self._ledger.borrow_level(queue, fr, amount) < top
