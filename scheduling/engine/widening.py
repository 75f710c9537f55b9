"""Which running work an edit makes a possible victim that it was not, and what it would lose.

A *right* is: this queue may take that workload, on this ground. It reaches further the less
priority it needs, the sooner the victim's minimum runtime ends, and the more the preemptor's
weight counts beside the victim's. An edit widens preemption where a right is new, or reaches
further than before. Rights are those of ``candidates.py`` for a preemptor of any priority.
Source: ``decisions.md`` 4; ``placement.md`` 3, row 13.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from scheduling.engine.metering import admitted_ledger
from scheduling.engine.snapshot import ClusterQueue, FlavorResource, Snapshot, Workload
from scheduling.engine.tenure import lost_gpu_hours, safe_until
from scheduling.engine.terms import (
    BorrowWithinCohort,
    Fairness,
    ReclaimWithinCohort,
    StopPolicy,
    WithinClusterQueue,
)
from scheduling.engine.tree import Kind, queue_key
from scheduling.engine.usage import held_usage

OWN, RECLAIM, BORROWING, SHARE = "own", "reclaim", "while_borrowing", "share"
_NEEDS = {  # how little priority a right needs: more is wider
    WithinClusterQueue.LOWER_PRIORITY: 1,
    WithinClusterQueue.LOWER_OR_NEWER_EQUAL_PRIORITY: 2,
    ReclaimWithinCohort.LOWER_PRIORITY: 1,
    ReclaimWithinCohort.ANY: 3,
}
_SAFETY = ("minimum_runtime_s", "yields_to_own")
_TAKING = ("reclaim_within_cohort", "reclaimable", "stop_policy", "cohort", "groups")
_FIELDS: Mapping[str, tuple[str, ...]] = {  # what may have widened a right, by its ground
    OWN: ("within_cluster_queue", *_SAFETY),
    RECLAIM: (*_TAKING, *_SAFETY),
    BORROWING: ("borrow_within_cohort", "max_priority_threshold", *_TAKING, *_SAFETY),
    SHARE: ("fairness", "fair_weight", *_TAKING, *_SAFETY),
}


class Right(NamedTuple):
    """A queue may take a workload, on one ground."""

    victim: str
    queue: str
    ground: str


class Reach(NamedTuple):
    """How far a right goes; it widens where any part of it grows."""

    need: int
    sooner: float  # minus the instant from which it may be used
    weight: float


@dataclass(frozen=True, slots=True)
class Exposed:
    """What an edit puts at risk: workloads without checkpoint, dearest first.

    ``fields``: those of queues and cohorts that changed and may have widened the rights.
    """

    workloads: tuple[str, ...] = ()
    gpu_hours: float = 0.0
    fields: tuple[str, ...] = ()


def exposed_by(before: Snapshot, after: Snapshot) -> Exposed:
    """Return the work that becomes a possible victim and has no checkpoint to go on from.

    Cost: O(running work x queues of its tree), twice.
    """
    wider = list(widened(before, after))
    known = {work.key: work for work in after.workloads}
    keys = {right.victim for right in wider}
    losses = {
        key: lost_gpu_hours(known[key], after.now)
        for key in keys
        if not has_checkpoint(known[key], after.now)
    }
    if not losses:
        return Exposed()
    risky = [right for right in wider if right.victim in losses]
    order = sorted(losses, key=lambda key: (-losses[key], key))
    return Exposed(tuple(order), sum(losses[key] for key in order), _named(before, after, risky))


def has_checkpoint(work: Workload, now: float) -> bool:
    """Return whether an eviction loses little: nothing to lose, or progress saved of late.

    Of late is within the declared interval of checkpoints; where none is declared, ever.
    """
    if work.stateless:
        return True
    if work.last_checkpoint_at is None:
        return False
    interval = work.checkpoint_interval_s
    return interval is None or now - work.last_checkpoint_at <= interval


def widened(before: Snapshot, after: Snapshot) -> Iterator[Right]:
    """Yield the rights that are new, or reach further, of work that runs before and after."""
    ran = {work.key for work in before.workloads if work.admission is not None}
    had = dict(_Rights(before).all())
    for right, reach in _Rights(after).all():
        if right.victim in ran and _is_wider(reach, had.get(right)):
            yield right


def _is_wider(reach: Reach, former: Reach | None) -> bool:
    return former is None or any(now > was for now, was in zip(reach, former, strict=True))


class _Rights:
    """All rights of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._queues = snapshot, snapshot.cluster_queues
        self._ledger = admitted_ledger(snapshot)
        self._fair = {
            name: takes_by_share(snapshot, queue.cohort) for name, queue in self._queues.items()
        }

    def all(self) -> Iterator[tuple[Right, Reach]]:
        """Yield each right with its reach."""
        for work in self._snapshot.workloads:
            host = self._queues.get(work.queue or "")
            if work.admission is None or work.releasing or not work.preemptible or host is None:
                continue
            yield from self._own(work, host)
            taken = self._borrowed(work, host)
            if not taken or not host.reclaimable or host.stop_policy is not StopPolicy.NONE:
                continue
            for key in self._ledger.members(self._ledger.root(queue_key(host.name))):
                if key.kind is Kind.QUEUE and key.name != host.name:
                    yield from self._foreign(work, host, self._queues[key.name], taken)

    def _own(self, work: Workload, host: ClusterQueue) -> Iterator[tuple[Right, Reach]]:
        policy = host.preemption.within_cluster_queue
        if policy is not WithinClusterQueue.NEVER:
            yields = host.minimum_runtime.yields_to_own
            sooner = -self._snapshot.now if yields else self._sooner(host, work)
            yield Right(work.key, host.name, OWN), Reach(_NEEDS[policy], sooner, 1.0)

    def _foreign(
        self,
        work: Workload,
        host: ClusterQueue,
        taker: ClusterQueue,
        taken: frozenset[FlavorResource],
    ) -> Iterator[tuple[Right, Reach]]:
        """Yield on which grounds a queue may take work of another queue of its tree."""
        rights, wanted = taker.preemption, taken & set(taker.quotas)
        if rights.reclaim_within_cohort is ReclaimWithinCohort.NEVER or not wanted:
            return
        need, sooner = _NEEDS[rights.reclaim_within_cohort], self._sooner(host, work)
        if self._entitled(taker, host, wanted):
            yield Right(work.key, taker.name, RECLAIM), Reach(need, sooner, 1.0)
        if self._fair[taker.name]:
            weight = taker.fair_weight / host.fair_weight if host.fair_weight else float("inf")
            yield Right(work.key, taker.name, SHARE), Reach(need, sooner, weight)
        elif rights.borrow_within_cohort is not BorrowWithinCohort.NEVER:
            threshold = rights.max_priority_threshold
            if threshold is None or work.priority <= threshold:
                yield Right(work.key, taker.name, BORROWING), Reach(1, sooner, 1.0)

    def _sooner(self, host: ClusterQueue, work: Workload) -> float:
        return -max(self._snapshot.now, safe_until(host, work))

    def _borrowed(self, work: Workload, host: ClusterQueue) -> frozenset[FlavorResource]:
        """Return the columns that the work uses and its queue borrows."""
        key = queue_key(host.name)
        if self._ledger.nodes[key].parent is None:
            return frozenset()
        used = held_usage(work)
        return frozenset(fr for fr in used if used[fr] and self._ledger.borrowed(key, fr) > 0)

    def _entitled(
        self, taker: ClusterQueue, host: ClusterQueue, columns: Iterable[FlavorResource]
    ) -> bool:
        """Return whether the taker, or a cohort around it but not the host, is promised any."""
        outside = set(self._ledger.path(queue_key(host.name)))
        path = self._ledger.path(queue_key(taker.name))
        inside = [key for key in path if key not in outside]
        return any(self._ledger.promised(key, fr) > 0 for key in inside for fr in columns)


def takes_by_share(snapshot: Snapshot, cohort: str | None) -> bool:
    """Return whether evictions go by share in the tree of a cohort."""
    said = _root_fairness(snapshot, cohort)
    return cohort is not None and (said is not Fairness.NONE or bool(snapshot.fair_strategies))


# ---- the names of what changed -----------------------------------------------------------------
def _named(before: Snapshot, after: Snapshot, rights: Iterable[Right]) -> tuple[str, ...]:
    """Return which fields of the two queues, or of the root, changed, of those that matter."""
    known = {work.key: work.queue or "" for work in after.workloads}
    changed = {name: _changed(before, after, name) for name in after.cluster_queues}
    found: set[str] = set()
    for right in rights:
        both = changed[right.queue] | changed[known[right.victim]]
        found |= both & set(_FIELDS[right.ground])
    return tuple(sorted(found)) or ("groups",)  # quota of a cohort, or what others hold


def _changed(before: Snapshot, after: Snapshot, name: str) -> set[str]:
    old, new = _values(before, name), _values(after, name)
    return {field for field, value in new.items() if old.get(field) != value}


def _values(snapshot: Snapshot, name: str) -> dict[str, object]:
    queue = snapshot.cluster_queues.get(name)
    if queue is None:
        return {}
    rights = queue.preemption
    return {
        "within_cluster_queue": rights.within_cluster_queue,
        "reclaim_within_cohort": rights.reclaim_within_cohort,
        "borrow_within_cohort": rights.borrow_within_cohort,
        "max_priority_threshold": rights.max_priority_threshold,
        "reclaimable": queue.reclaimable,
        "stop_policy": queue.stop_policy,
        "cohort": queue.cohort,
        "groups": queue.groups,
        "fair_weight": queue.fair_weight,
        "minimum_runtime_s": queue.minimum_runtime.seconds,
        "yields_to_own": queue.minimum_runtime.yields_to_own,
        "fairness": _root_fairness(snapshot, queue.cohort),
    }


def _root_fairness(snapshot: Snapshot, cohort: str | None) -> Fairness:
    said, seen, name = Fairness.NONE, set[str](), cohort or ""
    while name in snapshot.cohorts and name not in seen:
        seen.add(name)
        said, name = snapshot.cohorts[name].fairness, snapshot.cohorts[name].parent or ""
    return said
