"""Past use that fades: decayed GPU-hours of the queues, and what they make of turns.

A GPU-hour counts in full when it is used, half after ``half_life_s`` seconds, a quarter after
twice that. Source: ``decisions.md`` 5, *Fairness of a cohort tree*.
"""

import math
from collections.abc import Iterable, Mapping

from scheduling.engine.quota import Kind, QuotaKey, QuotaLedger, queue_key
from scheduling.engine.shares import weight
from scheduling.engine.snapshot import Decayed, Snapshot
from scheduling.engine.usage import is_gpu

HOUR_S = 3600.0
ENTRY_S = 300.0  # work that starts counts at once as if it had held its GPUs for so long
FORGOTTEN = 1e-6  # GPU-hours of a queue that holds nothing, below which it has no past
_INFINITE = float("inf")


def brought_forward(past: Decayed, now: float, half_life_s: float) -> float:
    """Return the decayed GPU-hours at ``now``, with what has been held since ``past.at``.

    amount * 2^(-dt/H) + rate * (H / ln 2) * (1 - 2^(-dt/H)) / 3600. Without half-life (0 or
    less) nothing is remembered; with an infinite one nothing fades.
    """
    if half_life_s <= 0:
        return 0.0
    seconds = max(0.0, now - past.at)
    rate = math.log(2.0) / half_life_s
    held_s = -math.expm1(-rate * seconds) / rate if rate else seconds
    return past.amount * math.exp(-rate * seconds) + past.rate * held_s / HOUR_S


def gpus_held(ledger: QuotaLedger, queue: QuotaKey) -> int:
    """Return how many GPUs the queue holds in this ledger, slices counted as they are named."""
    columns = (fr for fr in ledger.nodes[queue].quotas if is_gpu(fr.resource))
    return sum(ledger.used(queue, fr) for fr in columns)


def remembered(
    platform: Snapshot, ledger: QuotaLedger, before: Mapping[str, Decayed], now: float
) -> dict[str, Decayed]:
    """Return the history for the next cycle: everything held in ``ledger`` counts from now on.

    A queue that holds what it held before keeps its old entry: the formula is exact over any
    time. So a quiet queue costs one comparison.
    """
    history: dict[str, Decayed] = {}
    for name in sorted(platform.cluster_queues):
        past, held = before.get(name), gpus_held(ledger, queue_key(name))
        if past is not None and past.rate == held and (held or past.amount):
            history[name] = past
            continue
        amount = brought_forward(past, now, platform.half_life_s) if past else 0.0
        if held or amount > FORGOTTEN:
            history[name] = Decayed(amount, float(held), now)
    return history


class History:
    """Decayed GPU-hours of every node of the tree at the time of one cycle."""

    def __init__(
        self,
        platform: Snapshot,
        ledger: QuotaLedger,
        past: Mapping[str, Decayed],
        now: float,
    ) -> None:
        self._snapshot, self._ledger = platform, ledger
        self._past, self._now = past, now
        self._hours: dict[QuotaKey, float] | None = None
        self._promised: dict[QuotaKey, int] = {}

    def hours(self, node: QuotaKey) -> float:
        """Return the GPU-hours of the node: for a cohort, the sum of its queues."""
        return self._table().get(node, 0.0)

    def charge(self, queue: QuotaKey, gpus: int) -> None:
        """Count work that starts in this cycle, so that one cycle does not serve one queue."""
        if gpus:
            self._add(self._table(), queue, gpus * ENTRY_S / HOUR_S)

    def figure(self, node: QuotaKey) -> tuple[float, float, float]:
        """Return what is compared: GPU-hours over promised GPUs and weight.

        Past use without promise or weight is infinite; between two such the hours by weight
        decide, and whoever has no weight comes after everybody else.
        """
        hours = self.hours(node)
        if not hours:
            return 0.0, 0.0, 0.0
        promised, by_weight = self.promised(node), weight(self._snapshot, node)
        if by_weight <= 0:
            return _INFINITE, _INFINITE, hours
        if promised <= 0:
            return _INFINITE, hours / by_weight, 0.0
        return hours / (promised * by_weight), 0.0, 0.0

    def promised(self, node: QuotaKey) -> int:
        """Return the GPUs promised to the node and everything below it."""
        if node not in self._promised:
            self._promised[node] = sum(self._own(member) for member in self._below(node))
        return self._promised[node]

    def _below(self, node: QuotaKey) -> Iterable[QuotaKey]:
        return self._ledger.members(node) if node.kind is Kind.COHORT else (node,)

    def _own(self, node: QuotaKey) -> int:
        quotas = self._ledger.nodes[node].quotas
        return sum(quota.nominal for fr, quota in quotas.items() if is_gpu(fr.resource))

    def _table(self) -> dict[QuotaKey, float]:
        if self._hours is None:  # only where somebody asks
            self._hours = {}
            for name, past in sorted(self._past.items()):
                if name in self._snapshot.cluster_queues:
                    amount = brought_forward(past, self._now, self._snapshot.half_life_s)
                    self._add(self._hours, queue_key(name), amount)
        return self._hours

    def _add(self, table: dict[QuotaKey, float], queue: QuotaKey, hours: float) -> None:
        for node in self._ledger.path(queue):
            table[node] = table.get(node, 0.0) + hours
