"""Who held GPUs on whose quota, instant by instant: loans and what stood idle (FORMAT.md 4).

One sweep per cluster and flavor over the instants at which anything begins or ends. Between
two of them everything is constant, so integrals are exact. Only what an instant touches is
looked at; shares of a cohort that change with everyone's borrowing are integrated once per
cohort, and each queue and run takes the difference when it is settled. Amounts are in GPUs
times microseconds.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal, NamedTuple

from finops.allocation.cohorts import Cohort, CohortKey, Queue, Run, Stock
from finops.allocation.facts import Capacity, Facts, Instant, Number, Quota, Usage
from finops.allocation.timeline import Slots, inside


@dataclass(slots=True)
class Held:
    """GPUs that a group of runs held in one slot: on the queue's own quota, and by lender."""

    own: Number = 0
    borrowed: dict[str, Number] = field(default_factory=dict)

    @property
    def total(self) -> Number:
        """All of them."""
        return self.own + sum(self.borrowed.values())


@dataclass(slots=True)
class QueueTime:
    """A queue in one slot."""

    held: Number = 0
    nominal: Number = 0
    borrowed: Number = 0
    lent: Number = 0
    net_idle: Number = 0
    beyond_limit: Number = 0


@dataclass(slots=True)
class FlavorTime:
    """All of a flavor in one slot; ``capacity = used + net_idle + unquota - over``."""

    capacity: Number = 0
    used: Number = 0
    net_idle: Number = 0
    unquota: Number = 0
    over: Number = 0
    overcommitted: Number = 0


@dataclass(slots=True)
class Metered:
    """What the sweep over one cluster and flavor found.

    A group is all runs that are billed alike, named by the index of one in ``facts.usage``.
    """

    cluster: str
    flavor: str
    held: dict[tuple[int, int], Held] = field(default_factory=dict)  # (group, slot)
    queues: dict[tuple[str, int], QueueTime] = field(default_factory=dict)  # (queue, slot)
    slots: dict[int, FlavorTime] = field(default_factory=dict)
    loans: dict[tuple[str, str, int], Number] = field(default_factory=dict)
    open_loans: dict[tuple[str, str], Number] = field(default_factory=dict)  # GPUs, at the end


Kind = Literal["quota_ends", "run_ends", "capacity", "quota", "run", "slot"]


class _Event(NamedTuple):
    at: Instant
    kind: Kind
    row: int = 0
    gpus: Number = 0


def meter(facts: Facts, slots: Slots) -> list[Metered]:
    """Return what was held, lent and idle, by cluster and flavor."""
    capacity: dict[tuple[str, str], list[Capacity]] = defaultdict(list)
    usage: dict[tuple[str, str], list[int]] = defaultdict(list)
    quotas: dict[tuple[str, str], list[Quota]] = defaultdict(list)
    for row in facts.capacity:
        capacity[row.cluster, row.flavor].append(row)
    for index, use in enumerate(facts.usage):
        usage[use.cluster, use.flavor].append(index)
    for quota in facts.quotas:
        quotas[quota.cluster, quota.flavor].append(quota)
    found = []
    groups = _groups(facts)
    for cluster, flavor in sorted(capacity.keys() | usage.keys() | quotas.keys()):
        key = (cluster, flavor)
        sweep = _Sweep(facts, slots, groups, Metered(cluster, flavor), quotas.get(key, []))
        if sweep.run(capacity.get(key, []), usage.get(key, [])):
            found.append(sweep.metered)
    return found


def _groups(facts: Facts) -> list[int]:
    """Return for each run the first one that differs in nothing that a bill tells apart."""
    by_workload = facts.policy.detail == "workload"
    by_node = facts.policy.idle_scope == "node"
    firsts: dict[object, int] = {}
    return [
        firsts.setdefault(
            (
                *(use.cluster, use.flavor, use.queue, use.namespace),
                tuple(sorted(use.labels.items())) if use.labels else (),
                tuple(sorted(use.annotations.items())) if use.annotations else (),
                use.preempted,
                use.reclaimed_by,
                use.workload if by_workload else None,
                use.node if by_node else None,
            ),
            index,
        )
        for index, use in enumerate(facts.usage)
    ]


def _order(use: Usage, index: int) -> tuple[Instant, str, str, Instant, int]:
    """Who fills nominal first; an absent node goes first."""
    admitted = use.start if use.admitted is None else use.admitted
    return (admitted, use.workload, use.node or "", use.start, index)


class _Sweep:
    """The state between two instants, for one cluster and flavor."""

    def __init__(
        self,
        facts: Facts,
        slots: Slots,
        groups: list[int],
        metered: Metered,
        quotas: list[Quota],
    ) -> None:
        self._groups = groups
        self._usage = facts.usage
        self._slots = slots
        self._slot = 0
        self._now = facts.period.start
        self.metered = metered
        self._quotas = quotas
        self._queues: dict[str, Queue] = {}
        self._cohorts: dict[CohortKey, Cohort] = {}
        self._runs: dict[int, Run] = {}
        self._stock = Stock()

    def run(self, capacity: list[Capacity], usage: list[int]) -> bool:
        """Sweep over the period; return whether there was anything."""
        period = self._slots.period
        events = self._events(capacity, usage)
        has_facts = any(event.kind != "slot" for event in events)
        if not has_facts:
            return False
        for at, found in groupby(events, key=lambda event: event.at):
            self._advance(at)
            if at == period.end:
                self._close()
                break
            self._apply(list(found))
        return True

    def _events(self, capacity: list[Capacity], usage: list[int]) -> list[_Event]:
        period = self._slots.period
        events = [_Event(start, "slot") for start in [*self._slots.starts[1:], period.end]]
        for row in capacity:
            window = inside(row, period)
            if window:
                events.append(_Event(window.start, "capacity", gpus=row.gpus))
                events.append(_Event(window.end, "capacity", gpus=-row.gpus))
        for index, quota in enumerate(self._quotas):
            window = inside(quota, period)
            if window:
                events.append(_Event(window.start, "quota", index))
                events.append(_Event(window.end, "quota_ends", index))
        for index in usage:
            window = inside(self._usage[index], period)
            if window:
                events.append(_Event(window.start, "run", index))
                events.append(_Event(window.end, "run_ends", index))
        # Ends before beginnings: a quota that follows another must not be undone by its end.
        events.sort(key=lambda event: (event.at, not event.kind.endswith("_ends")))
        return events

    # ---- time passes -------------------------------------------------------------------------
    def _advance(self, to: Instant) -> None:
        length = to - self._now
        self._now = to
        if not length:
            return
        totals = self.metered.slots.setdefault(self._slot, FlavorTime())
        stock = self._stock
        room = stock.capacity - stock.used
        net_idle = stock.net_idle * stock.scale
        totals.capacity += stock.capacity * length
        totals.used += stock.used * length
        totals.net_idle += net_idle * length
        totals.unquota += max(0, room - net_idle) * length
        totals.over += max(0, -room) * length
        totals.overcommitted += max(0, stock.nominal - stock.capacity) * length
        stock.advance(length)

    def _close(self) -> None:
        """Settle everything at the period's end, after noting the loans that are open."""
        for cohort in self._cohorts.values():
            for lender, borrower, gpus in cohort.open_loans():
                self.metered.open_loans[lender, borrower] = gpus
        self._settle_all()

    def _settle_all(self) -> None:
        for queue in self._queues.values():
            self._settle(queue)
        for run in self._runs.values():
            self._settle_run(run)
        for cohort in self._cohorts.values():
            self._take_drawn(cohort)

    # ---- things happen -----------------------------------------------------------------------
    def _apply(self, events: list[_Event]) -> None:
        if any(event.kind == "slot" for event in events):
            self._settle_all()
            self._slot += 1
        touched: dict[str, Queue] = {}
        for event in events:
            match event.kind:
                case "capacity":
                    self._stock.capacity += event.gpus
                case "quota" | "quota_ends":
                    queue = self._change_quota(self._quotas[event.row], event.kind)
                    touched[queue.name] = queue
                case "run" | "run_ends":
                    changed = self._change_run(event.row, event.kind)
                    if changed:
                        touched[changed.name] = changed
                case "slot":
                    pass
        for queue in touched.values():
            self._refill(queue)
        self._stock.rescale()

    def _change_quota(self, quota: Quota, kind: Kind) -> Queue:
        queue = self._queue(quota.queue)
        self._settle(queue)
        begins = kind == "quota"
        self._stock.nominal -= queue.nominal
        queue.promise(quota if begins else None)
        self._stock.nominal += queue.nominal
        is_alone = not begins or quota.cohort is None
        key = (True, queue.name) if is_alone else (False, quota.cohort or "")
        self._move(queue, key)
        return queue

    def _change_run(self, index: int, kind: Kind) -> Queue | None:
        use = self._usage[index]
        queue = self._queue(use.queue) if use.queue else None
        if queue:
            self._settle(queue)
        if kind == "run":
            run = self._runs[index] = Run(index, self._groups[index], use.gpus, queue, self._now)
            self._stock.used += use.gpus
            if queue:
                queue.add(_order(use, index), run)
            return queue
        run = self._runs.pop(index)
        self._settle_run(run)
        self._stock.used -= use.gpus
        if queue:
            assert queue.cohort is not None
            queue.cohort.borrow(run.group, run.own - run.gpus)
            queue.remove(_order(use, index), run)
        return queue

    def _queue(self, name: str) -> Queue:
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = Queue(name, self._now)
            self._move(queue, (True, name))
        return queue

    def _move(self, queue: Queue, key: CohortKey) -> None:
        """Make ``queue`` a member of another cohort; it has been settled."""
        if queue.cohort:
            queue.cohort.leave(queue)
            if not queue.cohort.members:
                self._take_drawn(queue.cohort)
                del self._cohorts[queue.cohort.key]
        if key not in self._cohorts:
            self._cohorts[key] = Cohort(key, self._stock)
        self._cohorts[key].join(queue)

    def _refill(self, queue: Queue) -> None:
        """Share nominal out anew among the runs of a queue, in their order."""
        assert queue.cohort
        for run, own in queue.splits():
            self._settle_run(run)
            queue.cohort.borrow(run.group, run.own - own)
            run.own = own
        queue.cohort.update(queue)

    # ---- accounts ----------------------------------------------------------------------------
    def _settle(self, queue: Queue) -> None:
        """Write down what a queue did since it was last settled."""
        length = self._now - queue.since
        assert queue.cohort
        lent, net_idle = queue.take_shares()
        queue.since = self._now
        if not length:
            return
        key = (queue.name, self._slot)
        record = self.metered.queues.get(key)
        if record is None:
            record = self.metered.queues[key] = QueueTime()
        record.held += queue.held * length
        record.nominal += queue.nominal * length
        record.borrowed += queue.borrowed * length
        record.lent += lent
        record.net_idle += net_idle
        record.beyond_limit += queue.beyond_limit * length

    def _settle_run(self, run: Run) -> None:
        """Write down what a run held of its queue's own since it was last settled."""
        self._record(run.group).own += run.own * (self._now - run.since)
        run.since = self._now

    def _take_drawn(self, cohort: Cohort) -> None:
        """Write down what was borrowed in a cohort, by lender."""
        for group, lender, gpus in cohort.take_drawn():
            borrowed = self._record(group).borrowed
            borrowed[lender] = borrowed.get(lender, 0) + gpus
            loan = (lender, self._usage[group].queue or "", self._slot)
            self.metered.loans[loan] = self.metered.loans.get(loan, 0) + gpus

    def _record(self, group: int) -> Held:
        record = self.metered.held.get((group, self._slot))
        if record is None:
            record = self.metered.held[group, self._slot] = Held()
        return record
