"""Whom a workload may evict, in which order, and by which right.

Source: ``FORMAT.md`` 7.1 and 7.2; where the profile says so, with the no-borrowing rule on
contested columns only (``decisions.md`` 4.3), the cheapest eviction first (4.8), and nobody
before its minimum runtime (4.9).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from scheduling.engine.books import Charge
from scheduling.engine.outlook import Outlook
from scheduling.engine.profile import RECOMMENDED, Profile
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.shares import Compared
from scheduling.engine.snapshot import ClusterQueue, FlavorResource, Workload
from scheduling.engine.tenure import is_safe, lost_gpu_seconds
from scheduling.engine.terms import (
    BorrowWithinCohort,
    PreemptionReason,
    ReclaimWithinCohort,
    StopPolicy,
    WithinClusterQueue,
)
from scheduling.engine.tree import Kind, QuotaKey
from scheduling.engine.usage import held_usage


@dataclass(frozen=True, slots=True)
class Candidate:
    """A workload that may be evicted. ``while_borrowing``: even if the preemptor borrows.

    ``shares``: what was compared where fair sharing lets it be taken.
    """

    workload: Workload
    queue: QuotaKey
    right: PreemptionReason
    while_borrowing: bool = True
    shares: Compared | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """Lists in the order in which they are tried: hierarchy, priority, own queue."""

    hierarchy: tuple[Candidate, ...]
    priority: tuple[Candidate, ...]
    own: tuple[Candidate, ...]

    @property
    def foreign(self) -> tuple[Candidate, ...]:
        """Return the candidates in other queues."""
        return self.hierarchy + self.priority

    @property
    def all(self) -> tuple[Candidate, ...]:
        """Return everybody, in order."""
        return self.hierarchy + self.priority + self.own


class Running:
    """The admitted work that stays: by queue, with what it uses."""

    def __init__(self, workloads: Iterable[Workload]) -> None:
        self._by_queue: dict[str, dict[str, Workload]] = {}
        self._levels: dict[str, dict[int, Counter[FlavorResource]]] = {}
        self._surplus: Counter[str] = Counter()  # pieces of it, by queue
        self.usage = dict[str, Counter[FlavorResource]]()
        self._counters: dict[int, tuple[Charge, Counter[FlavorResource]]] = {}
        self.timed = 0  # how many have a known duration
        self.outlooks: dict[str, Outlook] = {}  # what is expected of running work, by gang
        for workload in workloads:
            if workload.admission is not None and not workload.releasing and workload.queue:
                self.add(workload)

    def of(self, queue: str) -> list[Workload]:
        """Return the queue's running work by key."""
        return [work for _, work in sorted(self._by_queue.get(queue, {}).items())]

    def any_order(self, queue: str) -> Iterable[Workload]:
        """Return the queue's running work for whoever sorts it anyhow."""
        return self._by_queue.get(queue, {}).values()

    def up_to(self, queue: str, priority: int) -> Counter[FlavorResource]:
        """Return what the queue's running work of no more than this priority uses."""
        total: Counter[FlavorResource] = Counter()
        for level, usage in self._levels.get(queue, {}).items():
            if level <= priority:
                total.update(usage)
        return total

    def has_surplus(self, queue: str) -> bool:
        """Return whether some gang of the queue has pods above its minimum."""
        return self._surplus.get(queue, 0) > 0

    def total(self, queue: str) -> Counter[FlavorResource]:
        """Return what all of the queue's running work uses."""
        total: Counter[FlavorResource] = Counter()
        for usage in self._levels.get(queue, {}).values():
            total.update(usage)
        return total

    def add(self, workload: Workload, charge: Charge | None = None) -> None:
        """Note a workload that has been admitted; one outside every queue is nobody's victim.

        ``charge``: what it uses, where that is known already.
        """
        for outlook in self.outlooks.values():
            outlook.came(workload)
        if workload.queue:
            self._by_queue.setdefault(workload.queue, {})[workload.key] = workload
            usage = held_usage(workload) if charge is None else self._counted(charge)
            self.usage[workload.key] = usage
            levels = self._levels.setdefault(workload.queue, {})
            level = levels.setdefault(workload.priority, Counter())
            for fr, amount in usage.items():
                level[fr] += amount
            if workload.part_of:
                self._surplus[workload.queue] += 1
            self.timed += workload.duration_s is not None

    def remove(self, workload: Workload) -> None:
        """Forget a workload that has been evicted or has ended, if it was noted at all."""
        for outlook in self.outlooks.values():
            outlook.went(workload)
        if workload.queue and self._by_queue.get(workload.queue, {}).pop(workload.key, None):
            level = self._levels[workload.queue][workload.priority]
            for fr, amount in self.usage.pop(workload.key).items():
                level[fr] -= amount
            if workload.part_of:
                self._surplus[workload.queue] -= 1
            self.timed -= workload.duration_s is not None

    def _counted(self, charge: Charge) -> Counter[FlavorResource]:
        """Return a charge as a counter; one for equal work, which nobody changes."""
        known = self._counters.get(id(charge))
        if known is None:
            known = self._counters[id(charge)] = charge, Counter(dict(charge))
        return known[1]


VictimOrder = tuple[bool, int, float, float, str]


def victim_order(workload: Workload, now: float | None = None) -> VictimOrder:
    """Return the sort key of victims: surplus, lower priority, cheaper, latest admission, key.

    ``now`` None: the cost does not count. Work without GPUs is the cheapest, newest first.
    """
    assert workload.admission is not None
    cost = 0.0 if now is None else lost_gpu_seconds(workload, now)
    whole = not workload.part_of  # a gang runs on without its surplus (``placement.md`` 1.8)
    return whole, workload.priority, cost, -workload.admission.admitted_at, workload.key


@dataclass(frozen=True, slots=True)
class Attempt:
    """A preemptor, what it would be charged, and the columns in which room must be made."""

    preemptor: Workload
    queue: QuotaKey
    usage: Mapping[FlavorResource, int]
    contested: frozenset[FlavorResource]


@dataclass(frozen=True, slots=True)
class Grounds:
    """On what candidates are judged.

    ``ledger`` says what the preemptor may take, ``staying`` who borrows, ``now`` how long work
    has run. ``consumption`` is that of a workload's local queue, where usage decides. ``spared``
    collects who was passed over because the preemptor may not evict this one.
    """

    ledger: QuotaLedger
    staying: QuotaLedger
    queues: Mapping[str, ClusterQueue]
    running: Running
    now: float
    profile: Profile = RECOMMENDED
    consumption: Callable[[Workload], float] = lambda _: 0.0
    spared: set[str] = field(default_factory=set)

    def order(self, work: Workload) -> VictimOrder:
        """Return the profile's sort key of victims."""
        return victim_order(work, self.now if self.profile.cheapest_eviction else None)

    def own_order(self, work: Workload) -> tuple[bool, float, VictimOrder]:
        """Return the sort key of victims of one's own queue: who consumed more first (7.2)."""
        return not work.part_of, -self.consumption(work), self.order(work)

    def safe(self, work: Workload, preemptor: Workload) -> bool:
        """Return whether ``work`` has not yet run for as long as its queue grants."""
        queue = self.queues[work.queue or ""]
        return self.profile.minimum_runtime and is_safe(queue, work, preemptor, self.now)

    def passes(self, attempt: Attempt, candidates: Candidates) -> tuple[bool, ...]:
        """Return which passes are run, in order; True: with borrowing (``FORMAT`` 7.3)."""
        rights = self.queues[attempt.queue.name].preemption
        never = rights.borrow_within_cohort is BorrowWithinCohort.NEVER
        unused = all(self.ledger.fits_in(attempt.queue, fr, 1) for fr in attempt.contested)
        if not candidates.foreign or (never and not unused):
            return (True,)
        return (False, True) if never and not candidates.hierarchy else (True, False)


class Selection:
    """Collects the candidates of one attempt. ``protected`` are no candidates."""

    def __init__(self, attempt: Attempt, grounds: Grounds, protected: Collection[str]) -> None:
        self._attempt, self._grounds, self._protected = attempt, grounds, protected
        self._ledger, self._staying = grounds.ledger, grounds.staying
        self._rights = grounds.queues[attempt.queue.name].preemption

    def collect(self) -> Candidates:
        """Return all candidates. Cost: O(running work in the tree)."""
        hierarchy: list[Candidate] = []
        priority: list[Candidate] = []
        if self._rights.reclaim_within_cohort is not ReclaimWithinCohort.NEVER:
            self._climb(hierarchy, priority)
        return Candidates(self._sorted(hierarchy), self._sorted(priority), self.own())

    def own(self) -> tuple[Candidate, ...]:
        """Return the candidates of the preemptor's own queue, in order."""
        queue, policy = self._attempt.queue, self._rights.within_cluster_queue
        only_lower = policy is WithinClusterQueue.LOWER_PRIORITY
        only_lower = only_lower and not self._grounds.running.has_surplus(queue.name)
        if policy is WithinClusterQueue.NEVER or not self._may_hold_any(queue, only_lower):
            return ()
        works = [
            work
            for work in self._usable(queue)
            if may_evict_own(policy, self._attempt.preemptor, work)
        ]
        right = PreemptionReason.IN_CLUSTER_QUEUE
        order = self._grounds.own_order
        return tuple(Candidate(work, queue, right) for work in sorted(works, key=order))

    def of_borrower(self, queue: QuotaKey) -> tuple[Candidate, ...]:
        """Return what may be reclaimed from another queue, in order; nothing if it lends."""
        only_lower = self._rights.reclaim_within_cohort is not ReclaimWithinCohort.ANY
        hopeless = only_lower and not self._may_hold_any(queue, only_lower)
        if hopeless or not self._borrows(queue):
            return ()
        right = PreemptionReason.IN_COHORT_RECLAMATION
        works = (work for work in self._usable(queue) if self._may_reclaim(work))
        return self._sorted([Candidate(work, queue, right) for work in works])

    def _may_hold_any(self, queue: QuotaKey, only_lower: bool) -> bool:
        """Return whether work that is as little urgent as a victim must be uses what is short."""
        priority = self._attempt.preemptor.priority - (1 if only_lower else 0)
        used = self._grounds.running.up_to(queue.name, priority)
        return any(used[fr] > 0 for fr in self._attempt.contested)

    def _climb(self, hierarchy: list[Candidate], priority: list[Candidate]) -> None:
        """Walk up from the queue; what lies beyond a quota that suffices is hierarchy.

        What a node keeps for itself covers its part of the request and no more: a surplus there
        makes no room in the quota above, so the remainder never falls below zero.
        """
        ledger, path = self._ledger, self._ledger.path(self._attempt.queue)
        remaining = dict(self._attempt.usage)
        if self._grounds.profile.contested_only:
            remaining = {fr: remaining[fr] for fr in self._attempt.contested}
        entitled = self._fits(path[0], remaining)
        for below, cohort in pairwise(path):
            remaining = {fr: max(0, n - ledger.spare(below, fr)) for fr, n in remaining.items()}
            for queue in self._borrowers(cohort, below):
                for work in self._usable(queue):
                    if not self._may_reclaim(work):
                        continue
                    found = self._foreign(work, queue, entitled=entitled)
                    (hierarchy if entitled else priority).append(found)
            entitled = entitled or self._fits(cohort, remaining)

    def _fits(self, key: QuotaKey, amounts: Mapping[FlavorResource, int]) -> bool:
        return all(self._ledger.fits_in(key, fr, n) for fr, n in amounts.items())

    def _borrowers(self, cohort: QuotaKey, but: QuotaKey) -> Iterable[QuotaKey]:
        """Return the borrowing queues under ``cohort``, none through one within its quota."""
        for child in self._ledger.children.get(cohort, ()):
            if child == but or not self._borrows(child):
                continue
            if child.kind is Kind.QUEUE:
                yield child
            else:
                yield from self._borrowers(child, but)

    def _borrows(self, key: QuotaKey) -> bool:
        return any(self._staying.borrowed(key, fr) > 0 for fr in self._attempt.contested)

    def _usable(self, queue: QuotaKey) -> Iterable[Workload]:
        """Return the queue's evictable work that uses a contested column.

        In another queue it must be one that this queue borrows, where the profile says so: what
        stands on nominal quota is safe, whatever else its queue borrows (``admission.md`` T2).
        What the preemptor is a grown copy of is never its victim.
        """
        spec, running = self._grounds.queues[queue.name], self._grounds.running
        columns, safe = set(self._attempt.contested), self._attempt.preemptor.replaces
        if queue != self._attempt.queue:
            if not spec.reclaimable or spec.stop_policy is not StopPolicy.NONE:
                return
            if self._grounds.profile.borrowed_columns:
                columns = {fr for fr in columns if self._staying.borrowed(queue, fr)}
        for work in running.any_order(queue.name):
            used = running.usage[work.key]
            fitting = any(used[fr] > 0 for fr in columns)
            mine = {work.key, work.part_of}  # surplus is as safe as its gang
            if not fitting or not work.preemptible or (safe and safe in mine):
                continue
            if not mine.isdisjoint(self._protected):
                self._grounds.spared.add(work.key)
                continue
            if not self._grounds.safe(work, self._attempt.preemptor):
                yield work

    def _may_reclaim(self, work: Workload) -> bool:
        return may_reclaim(self._rights.reclaim_within_cohort, self._attempt.preemptor, work)

    def _foreign(self, work: Workload, queue: QuotaKey, *, entitled: bool) -> Candidate:
        if entitled:
            return Candidate(work, queue, PreemptionReason.IN_COHORT_RECLAMATION)
        if self._may_take_while_borrowing(work):
            right = PreemptionReason.IN_COHORT_RECLAIM_WHILE_BORROWING
            return Candidate(work, queue, right)
        right = PreemptionReason.IN_COHORT_RECLAMATION
        return Candidate(work, queue, right, while_borrowing=False)

    def _sorted(self, found: list[Candidate]) -> tuple[Candidate, ...]:
        order = self._grounds.order
        return tuple(sorted(found, key=lambda candidate: order(candidate.workload)))

    def _may_take_while_borrowing(self, work: Workload) -> bool:
        if self._rights.borrow_within_cohort is BorrowWithinCohort.NEVER:
            return False
        threshold = self._rights.max_priority_threshold
        lower = work.priority < self._attempt.preemptor.priority
        return lower and (threshold is None or work.priority <= threshold)


def may_evict_own(policy: WithinClusterQueue, preemptor: Workload, work: Workload) -> bool:
    """Return whether the queue's own policy lets ``preemptor`` take ``work`` (K41).

    Who starts comes before the surplus of its equals (``placement.md`` 6.1 T12); a grown copy
    runs already.
    """
    if policy is WithinClusterQueue.NEVER:
        return False
    if work.priority < preemptor.priority:
        return True
    if work.part_of and work.priority == preemptor.priority and not preemptor.replaces:
        return True
    newer = work.priority == preemptor.priority and work.created_at > preemptor.created_at
    return policy is WithinClusterQueue.LOWER_OR_NEWER_EQUAL_PRIORITY and newer


def may_reclaim(policy: ReclaimWithinCohort, preemptor: Workload, work: Workload) -> bool:
    """Return whether the reclaim policy lets ``preemptor`` take ``work`` (K42)."""
    if policy is ReclaimWithinCohort.ANY:
        return True
    return policy is ReclaimWithinCohort.LOWER_PRIORITY and work.priority < preemptor.priority
