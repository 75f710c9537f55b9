"""By what the queues of each cohort tree share, and how a part of a tree stands by it.

Source: ``decisions.md`` 5, *Fairness of a cohort tree*; ``admission.md`` 3.5.
"""

from collections.abc import Iterable

from scheduling.engine.history import History, Past
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.shares import Shares, borrowing, compared, reaching
from scheduling.engine.snapshot import FlavorResource, Snapshot
from scheduling.engine.terms import Fairness, FairStrategy, ReclaimTo
from scheduling.engine.tournament import Figure, Footing, Usage
from scheduling.engine.tree import Kind, QuotaKey
from scheduling.engine.usage import is_gpu

_FAIR = ReclaimTo.FAIR_SHARE
STRATEGIES = (FairStrategy.FINAL_SHARE, FairStrategy.INITIAL_SHARE)  # Kueue's, in its order


def fairness_of(snapshot: Snapshot, root: QuotaKey) -> Fairness:
    """Return by what the tree under ``root`` shares.

    Its root cohort says so; where it says nothing, fair sharing for the whole platform makes it
    ``share``. A queue without cohort shares with nobody.
    """
    if root.kind is Kind.QUEUE:
        return Fairness.NONE
    cohort = snapshot.cohorts.get(root.name)
    stated = Fairness.NONE if cohort is None else cohort.fairness
    return Fairness.SHARE if stated is Fairness.NONE and snapshot.fair_strategies else stated


def strategies_of(snapshot: Snapshot) -> tuple[FairStrategy, ...]:
    """Return when a fair share lets a preemptor take a victim; both of Kueue's by default."""
    return snapshot.fair_strategies or STRATEGIES


class Regime:
    """Fairness of every tree of one snapshot, judged on one ledger as it stands when asked."""

    def __init__(self, snapshot: Snapshot, ledger: QuotaLedger, past: Past | None = None) -> None:
        self._snapshot, self._ledger = snapshot, ledger
        self.shares = Shares(snapshot, ledger)
        self.history = History(snapshot, ledger, past)
        self.strategies = strategies_of(snapshot)
        self._modes: dict[QuotaKey, Fairness] = {}
        self._fair: dict[QuotaKey, bool] = {}

    def mode(self, key: QuotaKey) -> Fairness:
        """Return by what the tree of this node shares."""
        root = self._ledger.root(key)
        if root not in self._modes:
            self._modes[root] = fairness_of(self._snapshot, root)
        return self._modes[root]

    def is_fair(self, key: QuotaKey) -> bool:
        """Return whether the tree of this node shares by anything at all."""
        fair = self._fair.get(key)
        if fair is None:
            fair = self._fair[key] = self.mode(key) is not Fairness.NONE
        return fair

    def levels(self, key: QuotaKey) -> bool:
        """Return whether gangs in the tree of this node take surplus up to their fair share."""
        cohort = self._snapshot.cohorts.get(self._ledger.root(key).name)
        return self.is_fair(key) and cohort is not None and cohort.reclaim_to is _FAIR

    def started(self, queue: QuotaKey, usage: Iterable[tuple[FlavorResource, int]]) -> None:
        """Count work that starts in this cycle where turns go by past use."""
        if self.mode(queue) is Fairness.HISTORY:
            self.history.charge(queue, sum(n for fr, n in usage if is_gpu(fr.resource)))

    def footing(self, queue: QuotaKey, usage: Usage, at: QuotaKey) -> Footing:
        """Return how the part of the tree under ``at`` stands with ``usage`` more of ``queue``.

        By share the request counts as taken; past use is what it is, whoever asks.
        """
        if at != queue:
            usage = next(n for node, n in reaching(self._ledger, queue, usage) if node == at)
        return Footing(borrowing(self._ledger, at, usage), self._figure(at, usage))

    def _figure(self, node: QuotaKey, amounts: Usage) -> Figure:
        if self.mode(node) is Fairness.HISTORY:
            return self.history.figure(node)
        return compared(self.shares.of(node, amounts))
