"""The numbers of the pages: the same ledger that decides is the one that is shown."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from scheduling.engine.atlas import Atlas
from scheduling.engine.flavors import options_of
from scheduling.engine.loans import idle_nominal, lent
from scheduling.engine.metering import admitted_ledger
from scheduling.engine.offer import places
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.snapshot import ClusterQueue, FlavorResource, PodSet, Snapshot
from scheduling.engine.standing import standing
from scheduling.engine.tree import Kind, QuotaKey
from scheduling.engine.usage import paired, quota_usage


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """One column of the quota of one queue or cohort.

    ``nominal`` is the node's own line; ``used`` what its queues hold; ``borrowed`` what lies
    above its promise; ``lent`` the part of ``nominal`` in others' hands; ``idle`` the part in
    nobody's; ``pending`` the demand of waiting work in the first flavor that it may use.
    ``ceiling`` is nominal + borrowing limit, None without a limit; a cohort's nominal there is
    that of all below it, of which ``used`` is told, too. ``reachable`` is what the whole tree
    could give it with nothing running; ``available`` what it can take now (negative: debt after
    a cut).
    """

    kind: Kind
    name: str
    parent: str | None
    flavor: str
    resource: str
    nominal: int
    used: int
    borrowed: int
    lent: int
    idle: int
    pending: int
    ceiling: int | None
    reachable: int
    available: int


def quota_rows(
    snapshot: Snapshot, waiting: Mapping[tuple[str, FlavorResource], int] | None = None
) -> tuple[QuotaRow, ...]:
    """Return one row for each node of the tree and column, sorted. Releasing work counts.

    ``waiting``: what pending work asks for where the snapshot does not hold it.
    """
    ledger = admitted_ledger(snapshot)
    waiting = pending_demand(snapshot) if waiting is None else waiting
    loans: Counter[tuple[QuotaKey, FlavorResource]] = Counter()
    rows: list[tuple[QuotaKey, FlavorResource]] = []
    for key in ledger.nodes:
        columns = {fr for node in ledger.members(key) for fr in ledger.nodes[node].quotas}
        rows.extend((key, fr) for fr in sorted(columns))
        if ledger.root(key) == key:
            for fr in columns:
                loans.update({(n, fr): part for n, part in lent(ledger, key, fr).items()})
    return tuple(_row(ledger, key, fr, loans[key, fr], waiting) for key, fr in rows)


def _row(
    ledger: QuotaLedger,
    key: QuotaKey,
    fr: FlavorResource,
    on_loan: int,
    waiting: Mapping[tuple[str, FlavorResource], int],
) -> QuotaRow:
    quota, parent = ledger.quota(key, fr), ledger.nodes[key].parent
    queues = [node for node in ledger.members(key) if node.kind is Kind.QUEUE]
    unused = idle_nominal(ledger, key, fr) if key.kind is Kind.QUEUE else quota.nominal
    limited = quota.borrowing_limit is not None or parent is None
    return QuotaRow(
        key.kind,
        key.name,
        parent.name if parent else None,
        fr.flavor,
        fr.resource,
        nominal=quota.nominal,
        used=sum(ledger.used(queue, fr) for queue in queues),
        borrowed=ledger.borrowed(key, fr),
        lent=on_loan,
        idle=unused - on_loan,
        pending=sum(waiting.get((queue.name, fr), 0) for queue in queues),
        ceiling=_promised_below(ledger, key, fr) + (quota.borrowing_limit or 0)
        if limited
        else None,
        reachable=ledger.potential(key, fr),
        available=ledger.available(key, fr),
    )


def _promised_below(ledger: QuotaLedger, key: QuotaKey, fr: FlavorResource) -> int:
    """Return all that a node and those below it were promised: what is never lent counts, too."""
    return sum(ledger.quota(node, fr).nominal for node in ledger.members(key))


def placeable(snapshot: Snapshot) -> dict[FlavorResource, int]:
    """Return what is free on nodes that take pods, by flavor: quota beyond it starts nothing.

    What is kept for gangs that wait is not free (:mod:`scheduling.engine.offer`). A node of two
    flavors counts for both. Cost: O(nodes and pods' places).
    """
    held: Counter[tuple[str, str]] = Counter()
    stands = ((workload, standing(workload)) for workload in snapshot.workloads)
    for workload, assignments in chain(stands, places(snapshot)):
        for pod_set, assignment in paired(workload, assignments):
            for name, pods in assignment.nodes.items():
                for resource, amount in pod_set.requests.items():
                    held[name, resource] += pods * amount
    atlas, free = Atlas(snapshot), Counter[FlavorResource]()
    for flavor in snapshot.flavors:
        for node in atlas.nodes_of(flavor):
            for resource, amount in node.allocatable.items():
                rest = amount - node.unmanaged.get(resource, 0) - held[node.name, resource]
                free[FlavorResource(flavor, resource)] += max(0, rest) if node.usable else 0
    return dict(free)


def pending_demand(snapshot: Snapshot) -> dict[tuple[str, FlavorResource], int]:
    """Return what pending work asks of each queue, in the first flavor it may use."""
    atlas = Atlas(snapshot)
    waiting: Counter[tuple[str, FlavorResource]] = Counter()
    for workload in snapshot.workloads:
        queue = snapshot.cluster_queues.get(workload.queue or "")
        if workload.admission is not None or queue is None:
            continue
        for pod_set in workload.pod_sets:
            for fr, amount in demand_of(atlas, queue, pod_set).items():
                waiting[queue.name, fr] += amount
    return dict(waiting)


def demand_of(atlas: Atlas, queue: ClusterQueue, pod_set: PodSet) -> Mapping[FlavorResource, int]:
    """Return what a pod set would be charged in the first flavor that it may use."""
    for option in options_of(atlas, queue, pod_set).choices[:1]:
        return quota_usage(pod_set, pod_set.count, option)
    return {}
