"""What may be compared in a replay: names for changes of a site, and for what work declares.

Several are joined by ``+``: ``isolated+strict``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from scheduling.engine.snapshot import ClusterQueue, Preemption, Snapshot
from scheduling.engine.terms import (
    Fairness,
    PlacementPolicy,
    QueueingStrategy,
    ReclaimWithinCohort,
)
from scheduling.replay.trace import Arrival, Trace

Change = Callable[[Snapshot], Snapshot]


@dataclass(frozen=True, slots=True)
class Policy:
    """One thing to compare. ``declared``: whether the scheduler is told how long work runs."""

    name: str
    changes: tuple[Change, ...] = ()
    declared: bool = False

    def site(self, site: Snapshot) -> Snapshot:
        """Return the site under this policy."""
        for change in self.changes:
            site = change(site)
        return site

    def trace(self, trace: Trace) -> Trace:
        """Return the trace as the scheduler gets to know it."""
        if not self.declared:
            return trace
        return replace(trace, arrivals=tuple(map(_declared, trace.arrivals)))


def _declared(one: Arrival) -> Arrival:
    return replace(one, workload=replace(one.workload, duration_s=one.runs_s))


def _queues(site: Snapshot, change: Callable[[ClusterQueue], ClusterQueue]) -> Snapshot:
    queues = {name: change(queue) for name, queue in site.cluster_queues.items()}
    return replace(site, cluster_queues=queues)


def _isolated(site: Snapshot) -> Snapshot:
    return _queues(replace(site, cohorts={}), lambda queue: replace(queue, cohort=None))


def _strict(site: Snapshot) -> Snapshot:
    strategy = QueueingStrategy.STRICT_FIFO
    return _queues(site, lambda queue: replace(queue, queueing_strategy=strategy))


def _best_effort(site: Snapshot) -> Snapshot:
    strategy = QueueingStrategy.BEST_EFFORT_FIFO
    return _queues(site, lambda queue: replace(queue, queueing_strategy=strategy))


def _reclaim(site: Snapshot) -> Snapshot:
    rights = ReclaimWithinCohort.ANY

    def change(queue: ClusterQueue) -> ClusterQueue:
        return replace(queue, preemption=replace(queue.preemption, reclaim_within_cohort=rights))

    return _queues(site, change)


def _no_preemption(site: Snapshot) -> Snapshot:
    return _queues(site, lambda queue: replace(queue, preemption=Preemption()))


def _no_nodes(site: Snapshot) -> Snapshot:
    return replace(site, nodes=())


def _no_reservation(site: Snapshot) -> Snapshot:
    return replace(site, patience=replace(site.patience, after_s=None, minimum=2**62))


def _shared(fairness: Fairness) -> Change:
    def change(site: Snapshot) -> Snapshot:
        cohorts = {n: replace(one, fairness=fairness) for n, one in site.cohorts.items()}
        return replace(site, cohorts=cohorts)

    return change


def _packed(policy: PlacementPolicy) -> Change:
    def change(site: Snapshot) -> Snapshot:
        flavors = {n: replace(one, policy=policy) for n, one in site.flavors.items()}
        return replace(site, flavors=flavors)

    return change


AS_GIVEN = "as-given"
DECLARED = "durations-declared"
CHANGES: Mapping[str, Change | None] = {
    AS_GIVEN: None,  # the cluster file as it is
    DECLARED: None,
    "isolated": _isolated,
    "strict": _strict,
    "best-effort": _best_effort,
    "reclaim": _reclaim,
    "no-preemption": _no_preemption,
    "quota-only": _no_nodes,
    "no-reservation": _no_reservation,
    "fair-none": _shared(Fairness.NONE),
    "fair-share": _shared(Fairness.SHARE),
    "fair-history": _shared(Fairness.HISTORY),
    **{policy.value: _packed(policy) for policy in PlacementPolicy},
}


def policy(name: str) -> Policy:
    """Return the policy of a name. Raises KeyError with the part that is unknown."""
    parts = name.split("+")
    changes = [CHANGES[part] for part in parts]
    return Policy(name, tuple(filter(None, changes)), declared=DECLARED in parts)


def missing_queues(site: Snapshot, trace: Trace) -> list[str]:
    """Return the queues of a trace that a site does not have, sorted."""
    asked = {one.workload.queue or "" for one in trace.arrivals}
    return sorted(asked - site.cluster_queues.keys())
