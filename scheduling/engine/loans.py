"""Who lends to whom: borrowed quota matched to idle quota, whole units, always the same way.

Source: ``finops.md`` 5 (lent pro rata of ``min(idle, lending limit)``).
"""

from collections.abc import Mapping
from typing import TypeVar

from scheduling.engine.quota import QuotaLedger
from scheduling.engine.snapshot import FlavorResource
from scheduling.engine.tree import Kind, QuotaKey

K = TypeVar("K", bound=tuple[str, ...] | str)


def apportion(amount: int, weights: Mapping[K, int]) -> dict[K, int]:
    """Split ``amount`` pro rata into whole units by largest remainder; ties by key.

    Requires ``0 <= amount <= sum(weights)``; then no share exceeds its weight.
    """
    total = sum(weights.values())
    assert 0 <= amount <= total, f"cannot split {amount} over {total}"
    if not total:
        return dict.fromkeys(weights, 0)
    shares = {key: amount * weight // total for key, weight in weights.items()}
    rest = amount - sum(shares.values())
    by_remainder = sorted(weights, key=lambda key: (-(amount * weights[key] % total), key))
    for key in by_remainder[:rest]:
        shares[key] += 1
    return shares


def idle_nominal(ledger: QuotaLedger, queue: QuotaKey, fr: FlavorResource) -> int:
    """Return the part of the queue's own quota that it does not use itself."""
    return max(0, ledger.promised(queue, fr) - ledger.used(queue, fr))


def lent(ledger: QuotaLedger, root: QuotaKey, fr: FlavorResource) -> dict[QuotaKey, int]:
    """Return how much each node of the tree lends of one column, in the order of lending.

    Idle queues lend first, pro rata; then the cohorts' own quota, by name. What is borrowed
    beyond all of that is debt after a cut and has no lender.
    """
    members = ledger.members(root)
    queues = [node for node in members if node.kind is Kind.QUEUE]
    borrowed = sum(ledger.borrowed(queue, fr) for queue in queues)
    weights = {queue: _lendable(ledger, queue, fr) for queue in queues}
    from_queues = min(borrowed, sum(weights.values()))
    shares = apportion(from_queues, weights)
    rest = borrowed - from_queues
    for cohort in (node for node in members if node.kind is Kind.COHORT):
        shares[cohort] = min(rest, ledger.quota(cohort, fr).nominal)
        rest -= shares[cohort]
    return {node: amount for node, amount in shares.items() if amount}


def _lendable(ledger: QuotaLedger, queue: QuotaKey, fr: FlavorResource) -> int:
    if ledger.nodes[queue].parent is None:
        return 0
    idle, limit = idle_nominal(ledger, queue, fr), ledger.quota(queue, fr).lending_limit
    return idle if limit is None else min(idle, limit)
