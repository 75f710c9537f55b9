"""Dominant shares: how much more than its due a part of the tree holds (``FORMAT.md`` 8.1)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from scheduling.engine.quota import QuotaLedger
from scheduling.engine.snapshot import FlavorResource, Snapshot
from scheduling.engine.tree import Kind, QuotaKey

_INFINITE = float("inf")


class Share(NamedTuple):
    """A share; smaller is better served first. Without weight it is infinite."""

    value: float
    ratio: float  # decides between two infinite shares

    @property
    def borrows(self) -> bool:
        """Return whether anything is held above the own quota."""
        return self.ratio > 0


NO_SHARE = Share(0.0, 0.0)


class Compared(NamedTuple):
    """Three shares that let one take from another; None: infinite.

    ``mine``: of the preemptor's side with its request. ``before``, ``after``: of the victim's
    side with the victim, and without it.
    """

    mine: float | None
    before: float | None
    after: float | None


def weight(snapshot: Snapshot, key: QuotaKey) -> float:
    """Return the fair weight of a queue or cohort; 1 for a cohort that is only named."""
    if key.kind is Kind.QUEUE:
        return snapshot.cluster_queues[key.name].fair_weight
    cohort = snapshot.cohorts.get(key.name)
    return 1.0 if cohort is None else cohort.fair_weight


def reaching(
    ledger: QuotaLedger, queue: QuotaKey, usage: Mapping[FlavorResource, int]
) -> Iterator[tuple[QuotaKey, Mapping[FlavorResource, int]]]:
    """Yield each node from the queue to just below the root, with what of ``usage`` gets there.

    A node takes what fits into its unused guaranteed part; only the rest reaches its parent.
    """
    for node, parent in pairwise(ledger.path(queue)):
        yield node, usage
        if ledger.nodes[parent].parent is not None:
            usage = {fr: max(0, n - ledger.spare(node, fr)) for fr, n in usage.items()}


def borrowing(ledger: QuotaLedger, node: QuotaKey, usage: Mapping[FlavorResource, int]) -> bool:
    """Return whether the node, with ``usage`` more, borrows in any of these columns."""
    return not all(ledger.fits_in(node, fr, amount) for fr, amount in usage.items())


class Shares:
    """The shares of one ledger, as it stands when asked."""

    def __init__(self, snapshot: Snapshot, ledger: QuotaLedger) -> None:
        self._snapshot, self._ledger = snapshot, ledger
        self._offers: dict[QuotaKey, Counter[str]] = {}
        self._columns: dict[QuotaKey, tuple[FlavorResource, ...]] = {}
        self._known: dict[QuotaKey, Share] = {}
        self._changes = ledger.changes

    def of(self, key: QuotaKey, more: Mapping[FlavorResource, int] | None = None) -> Share:
        """Return the node's share, with ``more`` in its usage; zero for a root.

        Cost: O(columns of its tree); without ``more`` it is remembered until the ledger changes.
        """
        if more:
            return self._worked_out(key, more)
        if self._changes != self._ledger.changes:
            self._known, self._changes = {}, self._ledger.changes
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._worked_out(key, {})
        return known

    def _worked_out(self, key: QuotaKey, more: Mapping[FlavorResource, int]) -> Share:
        parent = self._ledger.nodes[key].parent
        if parent is None:
            return NO_SHARE
        borrowed: dict[str, int] = {}
        for fr in self._columns_of(self._ledger.root(key)):
            over = self._ledger.above(key, fr, more.get(fr, 0))
            if over:
                borrowed[fr.resource] = borrowed.get(fr.resource, 0) + over
        if not borrowed:
            return NO_SHARE
        offer = self._offer(parent)
        ratio = max(
            (n * 1000.0 / offer[r] for r, n in borrowed.items() if offer[r] > 0), default=0
        )
        return self._weighed(key, ratio)

    def _weighed(self, key: QuotaKey, ratio: float) -> Share:
        by_weight = weight(self._snapshot, key)
        if ratio and by_weight <= 0:
            return Share(_INFINITE, ratio)
        return Share(ratio / by_weight, ratio) if ratio else NO_SHARE

    def _offer(self, parent: QuotaKey) -> Counter[str]:
        if parent not in self._offers:
            offer: Counter[str] = Counter()
            for fr in self._columns_of(self._ledger.root(parent)):
                offer[fr.resource] += self._ledger.potential(parent, fr)
            self._offers[parent] = offer
        return self._offers[parent]

    def _columns_of(self, root: QuotaKey) -> tuple[FlavorResource, ...]:
        """Return the columns of which anybody in the tree was promised anything."""
        if root not in self._columns:
            nodes, members = self._ledger.nodes, self._ledger.members(root)
            self._columns[root] = tuple(sorted({fr for m in members for fr in nodes[m].quotas}))
        return self._columns[root]


def compared(share: Share) -> tuple[float, float]:
    """Return a sort key: the share, and between infinite ones the ratio."""
    return share.value, share.ratio if share.value == _INFINITE else 0.0
