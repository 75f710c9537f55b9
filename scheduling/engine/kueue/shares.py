"""Dominant shares: how much more than its due a part of the tree holds (``FORMAT.md`` 8.1)."""

from collections import Counter
from typing import NamedTuple

from scheduling.engine.quota import Kind, QuotaKey, QuotaLedger
from scheduling.engine.snapshot import Snapshot


class Share(NamedTuple):
    """A share; smaller is better served first. Without weight it is infinite."""

    value: float
    ratio: float  # decides between two infinite shares

    @property
    def borrows(self) -> bool:
        """Return whether anything is held above the own quota."""
        return self.ratio > 0


def weight(snapshot: Snapshot, key: QuotaKey) -> float:
    """Return the fair weight of a queue or cohort; 1 for a cohort that is only named."""
    if key.kind is Kind.QUEUE:
        return snapshot.cluster_queues[key.name].fair_weight
    cohort = snapshot.cohorts.get(key.name)
    return 1.0 if cohort is None else cohort.fair_weight


class Shares:
    """The shares of one ledger, as it stands when asked."""

    def __init__(self, snapshot: Snapshot, ledger: QuotaLedger) -> None:
        self._snapshot, self._ledger = snapshot, ledger
        self._offers: dict[QuotaKey, Counter[str]] = {}
        self._columns = sorted(ledger.columns())

    def of(self, key: QuotaKey) -> Share:
        """Return the node's share; zero for a root. Cost: O(columns)."""
        parent = self._ledger.nodes[key].parent
        if parent is None:
            return Share(0.0, 0.0)
        borrowed: Counter[str] = Counter()
        for fr in self._columns:
            borrowed[fr.resource] += self._ledger.borrowed(key, fr)
        offer = self._offer(parent)
        ratios = (n * 1000.0 / offer[r] for r, n in borrowed.items() if n and offer[r] > 0)
        ratio = max(ratios, default=0.0)
        by_weight = weight(self._snapshot, key)
        if ratio and by_weight <= 0:
            return Share(float("inf"), ratio)
        return Share(ratio / by_weight if ratio else 0.0, ratio)

    def _offer(self, parent: QuotaKey) -> Counter[str]:
        if parent not in self._offers:
            offer: Counter[str] = Counter()
            for fr in self._columns:
                offer[fr.resource] += self._ledger.potential(parent, fr)
            self._offers[parent] = offer
        return self._offers[parent]


def compared(share: Share) -> tuple[float, float]:
    """Return a sort key: the share, and between infinite ones the ratio."""
    return share.value, share.ratio if share.value == float("inf") else 0.0
