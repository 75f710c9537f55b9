"""Nominal quota by weight, for Volcano queues that state neither deserved nor guarantee. Pure.

The water-filling of ``placement.md`` 1.2 without its request terms: what is left is shared by
weight among the queues that can still take more, until nothing is left or all are full.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Claim:
    """One queue's claim to one resource; ``capability`` None is unlimited."""

    name: str
    weight: int
    capability: int | None = None
    guarantee: int = 0


def nominal_by_weight(queues: Sequence[Claim], capacity: int) -> dict[str, int]:
    """Return each queue's nominal quota out of ``capacity`` (canonical units).

    Whole units by largest remainder, ties to the earlier name. Nobody gets more than the
    capability or less than the guarantee, and no more than ``capacity`` is given unless the
    guarantees alone exceed it. At most one round for each queue.
    """
    ceilings = _ceilings(queues, capacity)
    shares = {queue.name: Fraction(queue.guarantee) for queue in queues}
    thirsty = list(queues)
    while thirsty and (left := capacity - sum(shares.values())) > 0:
        weights = sum(queue.weight for queue in thirsty)
        if weights == 0:
            break
        for queue in thirsty:
            share = shares[queue.name] + left * Fraction(queue.weight, weights)
            shares[queue.name] = min(share, Fraction(ceilings[queue.name]))
        still = [queue for queue in thirsty if shares[queue.name] < ceilings[queue.name]]
        if len(still) == len(thirsty):
            break
        thirsty = still
    return _whole(shares)


def _ceilings(queues: Sequence[Claim], capacity: int) -> dict[str, int]:
    free = max(0, capacity - sum(queue.guarantee for queue in queues))
    return {
        queue.name: max(
            queue.guarantee,
            free + queue.guarantee
            if queue.capability is None
            else min(queue.capability, free + queue.guarantee),
        )
        for queue in queues
    }


def _whole(shares: dict[str, Fraction]) -> dict[str, int]:
    """Return whole shares with the same whole sum: the largest fractions are rounded up."""
    whole = {name: int(share) for name, share in shares.items()}
    missing = int(sum(shares.values())) - sum(whole.values())
    by_fraction = sorted(shares, key=lambda name: (whole[name] - shares[name], name))
    for name in by_fraction[:missing]:
        whole[name] += 1
    return whole
