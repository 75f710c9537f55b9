"""Whose local queue has used least of its ClusterQueue (``admission.md`` 3.6).

The figure is a sum over resources of decayed usage over what the queue was promised, so that
bytes of memory do not outweigh GPUs; over the local queue's weight.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf

from scheduling.engine.consumption import fading
from scheduling.engine.decay import Consumed
from scheduling.engine.machines import PODS
from scheduling.engine.ordering import precedence
from scheduling.engine.queue_rules import LocalQueue
from scheduling.engine.shapes import Form
from scheduling.engine.snapshot import FlavorResource, Snapshot, Workload
from scheduling.engine.tree import QuotaTree, queue_key
from scheduling.engine.usage import held_usage


class Doors:
    """The consumption of the local queues behind which usage decides, cycle after cycle."""

    def __init__(
        self, platform: Snapshot, tree: QuotaTree, entries: Mapping[str, Consumed]
    ) -> None:
        self._platform, self._tree, self._decay = platform, tree, platform.usage_decay
        self._entries = {n: one for n, one in entries.items() if n in platform.local_queues}
        self._touched = set(self._entries)
        self._charged: set[str] = set()
        self._now = platform.now
        self._amounts: dict[str, dict[str, float]] = {}  # of this cycle
        self._capacities: dict[str, dict[str, int]] = {}

    # -- what is compared ---------------------------------------------------------------------

    def precedence(self, form: Form) -> tuple[float, ...]:
        """Return which forms of one queue go first: smaller, before age and key.

        In a usage-based queue the local queue that has used least comes before priority, or
        right behind it (``admission.md`` 2.5).
        """
        queue = self._platform.cluster_queues.get(form.queue)
        if queue is None or not queue.usage_based:
            return precedence(form)
        figure = self.figure(form.queue, form.local_queue)
        return (-form.priority, figure) if queue.priority_first else (figure, -form.priority)

    def consumption(self, work: Workload) -> float:
        """Return the figure of the workload's local queue."""
        return self.figure(work.queue or "", work.local_queue)

    def figure(self, queue: str, local_queue: str) -> float:
        """Return what is compared of a local queue; smaller goes first.

        0 where usage does not decide; infinite without weight.
        """
        door = self._door(queue, local_queue)
        if door is None:
            return 0.0
        if self._decay is None:
            return door.consumption
        if door.fair_weight <= 0:
            return inf
        capacity, weights = self._capacity(door.cluster_queue), self._decay.weights
        total = sum(
            weights.get(resource, 1.0) * amount / capacity[resource]
            for resource, amount in self._present(door.name).items()
            if capacity.get(resource)
        )
        return total / door.fair_weight

    # -- what happens -------------------------------------------------------------------------

    def open(self, now: float) -> None:
        """Begin a cycle."""
        self._now = now
        self._amounts.clear()

    def touch(self, work: Workload) -> None:
        """Note that the workload's local queue may hold more or less than before."""
        door = self._door(work.queue or "", work.local_queue)
        if door is not None:
            self._touched.add(door.name)

    def charge(self, work: Workload, usage: Iterable[tuple[FlavorResource, int]]) -> None:
        """Count work that starts at once, as if it had run for one sampling interval."""
        door = self._door(work.queue or "", work.local_queue)
        if door is None or self._decay is None:
            return
        amounts = self._present(door.name)
        part = fading(self._decay.sampling_s, self._decay.half_life_s)
        for fr, amount in usage:
            if fr.resource != PODS:
                amounts[fr.resource] = amounts.get(fr.resource, 0.0) + amount * part
        self._charged.add(door.name)

    def touched_queues(self) -> frozenset[str]:
        """Return the ClusterQueues behind the local queues that have been touched."""
        doors = self._platform.local_queues
        return frozenset(doors[name].cluster_queue for name in self._touched)

    def settle(self, works: Iterable[Workload]) -> None:
        """Let what is held count from now on.

        Args:
            works: all work of the touched queues that holds quota, releasing work included.
        """
        if self._decay is not None and self._touched:
            held: dict[str, Counter[str]] = {name: Counter() for name in self._touched}
            for work in works:
                if work.admission is not None and work.local_queue in held:
                    for fr, amount in held_usage(work).items():
                        held[work.local_queue][fr.resource] += amount
            for name, amounts in held.items():
                self._enter(name, dict(sorted(amounts.items())))
        self._touched.clear()
        self._charged.clear()

    def entries(self) -> dict[str, Consumed]:
        """Return what the next cycle must know, sorted by local queue."""
        return dict(sorted(self._entries.items()))

    def _enter(self, name: str, held: dict[str, int]) -> None:
        """Remember a local queue; one that holds what it held keeps its exact old entry."""
        past = self._entries.get(name)
        if (past.held if past else {}) == held and name not in self._charged:
            return
        amounts = dict(sorted(self._present(name).items()))
        self._entries[name] = Consumed(amounts, held, self._now)

    def _door(self, queue: str, local_queue: str) -> LocalQueue | None:
        spec = self._platform.cluster_queues.get(queue)
        based = spec is not None and spec.usage_based
        return self._platform.local_queues.get(local_queue) if based else None

    def _present(self, name: str) -> dict[str, float]:
        """Return the amounts brought forward to this cycle; they may be added to."""
        if name not in self._amounts:
            past = self._entries.get(name)
            self._amounts[name] = self._forward(past) if past else {}
        return self._amounts[name]

    def _forward(self, past: Consumed) -> dict[str, float]:
        assert self._decay is not None
        part = fading(max(0.0, self._now - past.at), self._decay.half_life_s)
        return {
            r: past.amounts.get(r, 0.0) * (1.0 - part) + past.held.get(r, 0) * part
            for r in sorted({*past.amounts, *past.held})
        }

    def _capacity(self, queue: str) -> dict[str, int]:
        """Return what the queue is promised by resource; without promise what it could reach."""
        if queue not in self._capacities:
            key, nominal, reach = queue_key(queue), Counter[str](), Counter[str]()
            for fr, quota in self._platform.cluster_queues[queue].quotas.items():
                nominal[fr.resource] += quota.nominal
                reach[fr.resource] += self._tree.potential(key, fr)
            self._capacities[queue] = {r: nominal[r] or reach[r] for r in nominal}
        return self._capacities[queue]
