"""Past use that fades: decayed GPU-hours of the queues, and what they make of turns.

A GPU-hour counts in full when it is used, half after ``half_life_s`` seconds, a quarter after
twice that. Source: ``decisions.md`` 5, *Fairness of a cohort tree*.
"""

import math
from collections.abc import Mapping

from scheduling.engine.decay import SAMPLING_S, Decayed
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.shares import weight
from scheduling.engine.snapshot import Snapshot
from scheduling.engine.tree import Kind, QuotaKey, queue_key
from scheduling.engine.usage import is_gpu

HOUR_S = 3600.0
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


class Past:
    """The remembered use of every queue; a cycle brings up to date what has changed.

    ``ledger`` says what everybody holds now, releasing work included.
    """

    def __init__(
        self, platform: Snapshot, ledger: QuotaLedger, entries: Mapping[str, Decayed]
    ) -> None:
        self._queues, self._half_life_s = platform.cluster_queues, platform.half_life_s
        self._ledger = ledger
        self._entries = {name: past for name, past in entries.items() if name in self._queues}
        self._touched = set(self._entries)

    def touch(self, queue: str | None) -> None:
        """Note that the queue may hold more or less than before."""
        if queue is not None and queue in self._queues:
            self._touched.add(queue)

    def settle(self, now: float) -> None:
        """Let everything that is held count from ``now`` on.

        A queue that holds what it held before keeps its old entry: the formula is exact over any
        time. So a quiet queue costs nothing.
        """
        for name in self._touched:
            past, held = self._entries.get(name), gpus_held(self._ledger, queue_key(name))
            if held == (past.rate if past else 0.0):
                continue
            amount = self.amount(name, now)
            if held or amount > FORGOTTEN:
                self._entries[name] = Decayed(amount, float(held), now)
            else:
                self._entries.pop(name, None)
        self._touched.clear()

    def amount(self, queue: str, now: float) -> float:
        """Return the decayed GPU-hours of a queue at ``now``."""
        past = self._entries.get(queue)
        return brought_forward(past, now, self._half_life_s) if past else 0.0

    def entries(self) -> dict[str, Decayed]:
        """Return what the next cycle must know, sorted by queue."""
        return dict(sorted(self._entries.items()))


class History:
    """Decayed GPU-hours of every node of the tree in one cycle after the other."""

    def __init__(self, snapshot: Snapshot, ledger: QuotaLedger, past: Past | None = None) -> None:
        self._snapshot, self._ledger, self._now = snapshot, ledger, snapshot.now
        self._past = past or Past(snapshot, ledger, snapshot.memory.history)
        self._hours: dict[QuotaKey, float] = {}
        self._known: set[QuotaKey] = set()  # roots whose hours have been worked out
        self._promised: dict[QuotaKey, int] = {}

    def open(self, now: float) -> None:
        """Begin a cycle."""
        self._now = now
        self._hours.clear()
        self._known.clear()

    def hours(self, node: QuotaKey) -> float:
        """Return the GPU-hours of the node: for a cohort, the sum of its queues."""
        self._learn(self._ledger.root(node))
        return self._hours.get(node, 0.0)

    def charge(self, queue: QuotaKey, gpus: int) -> None:
        """Count work that starts in this cycle, so that one cycle does not serve one queue."""
        if gpus:
            self._learn(self._ledger.root(queue))
            self._add(queue, gpus * SAMPLING_S / HOUR_S)

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
            members = self._ledger.members(node)
            self._promised[node] = sum(self._own(member) for member in members)
        return self._promised[node]

    def _own(self, node: QuotaKey) -> int:
        quotas = self._ledger.nodes[node].quotas
        return sum(quota.nominal for fr, quota in quotas.items() if is_gpu(fr.resource))

    def _learn(self, root: QuotaKey) -> None:
        """Work out the hours of a tree once in a cycle, when somebody asks."""
        if root in self._known:
            return
        self._known.add(root)
        for member in self._ledger.members(root):
            if member.kind is Kind.QUEUE:
                self._add(member, self._past.amount(member.name, self._now))

    def _add(self, queue: QuotaKey, hours: float) -> None:
        for node in self._ledger.path(queue):
            self._hours[node] = self._hours.get(node, 0.0) + hours
