"""Which flavors a workload takes where its queue asks for more than the first that serves.

Every flavor is looked at in every cycle; nothing is remembered of earlier searches. Source:
``FORMAT.md`` 5.4 and 5.5 (over all pod sets together), ``admission.md`` K33.
"""

from collections.abc import Collection, Iterable

from scheduling.engine.books import Books, Sides, within
from scheduling.engine.flavors import Assigner
from scheduling.engine.grades import Mode, Standing, goes_on
from scheduling.engine.preemption import Preemptor
from scheduling.engine.prospects import MAX_COMBINATIONS
from scheduling.engine.queue_rules import Fungibility
from scheduling.engine.snapshot import Workload
from scheduling.engine.terms import FlavorPreference, FlavorSearch
from scheduling.engine.tree import QuotaKey
from scheduling.engine.ways import Way, levels


class Chooser:
    """Compares the ways of one workload. Leaves the books as it found them."""

    def __init__(self, books: Books, assigner: Assigner, preemptor: Preemptor) -> None:
        self._books, self._assigner, self._preemptor = books, assigner, preemptor
        self._queues = books.snapshot.cluster_queues

    def choose(self, workload: Workload, protected: Collection[str]) -> Way | None:
        """Return the way to go, or None: any, the first that serves (or none serves at all).

        ``protected`` may not be evicted. Cost: none where the queue keeps the default rules or
        has one flavor; else a placement for each way, and at most ``MAX_COMBINATIONS`` searches
        for victims where the queue's rules compare evictions with fits.
        """
        queue = self._books.queue(workload)
        if queue is None:
            return None
        rules = self._queues[queue.name].fungibility
        if _first_serves(rules) or not self._has_choice(workload):
            return None
        return _Comparison(self, workload, queue, rules, protected).best()

    def _has_choice(self, workload: Workload) -> bool:
        options = self._assigner.options
        return any(len(options(workload, p).choices) > 1 for p in workload.pod_sets)

    def fits(self, workload: Workload, queue: QuotaKey, way: Way, sides: Sides) -> bool:
        """Return whether the gang can stand this way in these accounts."""
        if not within(sides, queue, way.usage):
            return False
        return self._assigner.assign(workload, sides, way.pinned) is not None

    def ways(self, workload: Workload, queue: QuotaKey) -> Iterable[Way]:
        """Return the ways to look at."""
        return self._preemptor.ways.of(workload, queue)

    def evicting(
        self, workload: Workload, way: Way, protected: Collection[str]
    ) -> Standing | None:
        """Return how the gang would stand this way after an eviction, if one makes room."""
        rescue = self._preemptor.find(workload, protected, ways=(way,))
        return rescue.standing if rescue else None

    def quota(self, queue: QuotaKey, way: Way, sides: Sides) -> tuple[int, ...]:
        """Return from how far up the tree the gang would borrow this way."""
        return levels((side.ledger for side in sides), queue, way)

    @property
    def both(self) -> Sides:
        """Return the accounts in which new work must fit."""
        return self._books.both

    @property
    def coming(self) -> Sides:
        """Return the account in which it must fit once those who are leaving have left."""
        return self._books.coming


def _first_serves(rules: Fungibility) -> bool:
    """Return whether the first flavor that fits is used, and evictions are the last resort."""
    stops = rules.when_can_borrow is FlavorSearch.MAY_STOP_SEARCH
    return stops and rules.when_can_preempt is FlavorSearch.TRY_NEXT_FLAVOR


class _Comparison:
    """One look at all ways of one workload, in order, until one need not be improved upon."""

    def __init__(
        self,
        chooser: Chooser,
        workload: Workload,
        queue: QuotaKey,
        rules: Fungibility,
        protected: Collection[str],
    ) -> None:
        self._chooser, self._workload, self._queue = chooser, workload, queue
        self._rules, self._protected = rules, protected
        self._best: tuple[Standing, Way] | None = None
        stops = rules.when_can_preempt is FlavorSearch.MAY_STOP_SEARCH
        evicts = stops or rules.preference is FlavorPreference.PREEMPTION_OVER_BORROWING
        self._searches = MAX_COMBINATIONS if evicts else 0

    def best(self) -> Way | None:
        """Return the way at which the search stops, else the best; ties: the earlier."""
        for way in self._chooser.ways(self._workload, self._queue):
            standing = self._standing(way)
            if standing is None:
                continue
            if not goes_on(standing.grade, self._rules):
                return way
            if self._improves(standing):
                self._best = standing, way
        return self._best[1] if self._best else None

    def _standing(self, way: Way) -> Standing | None:
        """Return how the gang is served this way; None: not, or no better than another way.

        Nobody is evicted for what fits anyhow, so before an eviction it is placed in any case.
        """
        chooser, work, queue = self._chooser, self._workload, self._queue
        for mode, sides in ((Mode.FIT, chooser.both), (Mode.DEFERRED, chooser.coming)):
            standing = Standing(mode, chooser.quota(queue, way, sides))
            matters = self._improves(standing) or not goes_on(standing.grade, self._rules)
            if (matters or self._searches) and chooser.fits(work, queue, way, sides):
                return standing
        if not self._searches:
            return None
        self._searches -= 1
        return chooser.evicting(work, way, self._protected)

    def _improves(self, standing: Standing) -> bool:
        preference = self._rules.preference
        return self._best is None or standing.rank(preference) > self._best[0].rank(preference)
