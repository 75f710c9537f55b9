"""Whether the promises of all queues and cohorts agree with the healthy cluster.

Pools are judged by their GPUs; a pool without GPUs by everything it is promised of. Beside
eight GPUs nobody minds idle CPUs (samples README: "GPU is the binding one everywhere here").
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from scheduling.engine.atlas import Atlas
from scheduling.engine.feasibility import Finding
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.snapshot import FlavorResource, Snapshot
from scheduling.engine.terms import DiagnosticCode, ReclaimWithinCohort
from scheduling.engine.tree import Kind, QuotaKey, quota_tree
from scheduling.engine.usage import is_gpu


def check_promises(snapshot: Snapshot) -> tuple[Finding, ...]:
    """Return what is promised twice, what nobody can use, and who cannot get a loan back."""
    ledger, atlas = QuotaLedger(quota_tree(snapshot)), Atlas(snapshot)
    found: list[Finding] = []
    if snapshot.nodes:
        pools = _pools(snapshot, atlas)
        found.extend(_overpromised(snapshot, ledger, atlas))
        found.extend(_stranded(ledger, atlas, pools, snapshot))
    found.extend(_helpless_lenders(snapshot, ledger))
    return tuple(found)


def healthy_capacity(atlas: Atlas, flavors: Iterable[str], resource: str) -> int:
    """Return what the usable nodes of these flavors have together; each node counts once."""
    nodes = {node.name: node for flavor in flavors for node in atlas.nodes_of(flavor)}
    return sum(node.allocatable.get(resource, 0) for node in nodes.values() if node.usable)


def _columns(snapshot: Snapshot, ledger: QuotaLedger, atlas: Atlas) -> list[FlavorResource]:
    """Return the promised columns that are worth judging."""
    promised = {fr for node in ledger.nodes.values() for fr in node.quotas}
    return sorted(fr for fr in promised if fr.flavor in snapshot.flavors and _judged(fr, atlas))


def _judged(fr: FlavorResource, atlas: Atlas) -> bool:
    nodes = atlas.nodes_of(fr.flavor)
    has_gpus = any(is_gpu(resource) for node in nodes for resource in node.allocatable)
    return bool(nodes) and (is_gpu(fr.resource) or not has_gpus)


def _overpromised(snapshot: Snapshot, ledger: QuotaLedger, atlas: Atlas) -> Iterable[Finding]:
    for fr in _columns(snapshot, ledger, atlas):
        promised = sum(ledger.quota(key, fr).nominal for key in ledger.nodes)
        capacity = healthy_capacity(atlas, [fr.flavor], fr.resource)
        if promised > capacity:
            numbers: dict[str, str | int] = {
                "sum": promised,
                "capacity": capacity,
                "resource": fr.resource,
            }
            out = [n for n in atlas.nodes_of(fr.flavor) if not n.usable]
            lacking = sum(node.allocatable.get(fr.resource, 0) for node in out)
            if promised <= capacity + lacking:  # it is the nodes' fault, and not the promises'
                names = [node.name for node in out if node.allocatable.get(fr.resource)]
                numbers |= {"cause": "OutOfService", "nodes": ", ".join(sorted(names))}
                numbers["out"] = lacking
            yield Finding(DiagnosticCode.GUARANTEES_EXCEED_CAPACITY, fr.flavor, numbers)


def _pools(snapshot: Snapshot, atlas: Atlas) -> list[frozenset[str]]:
    """Return groups of flavors that share nodes: their promises rest on the same iron."""
    pools: list[tuple[set[str], set[str]]] = []
    for flavor in sorted(snapshot.flavors):
        names, nodes = {flavor}, {node.name for node in atlas.nodes_of(flavor)}
        for pool in [pool for pool in pools if pool[1] & nodes]:
            names |= pool[0]
            nodes |= pool[1]
            pools.remove(pool)
        pools.append((names, nodes))
    return [frozenset(names) for names, _ in pools]


def _stranded(
    ledger: QuotaLedger, atlas: Atlas, pools: list[frozenset[str]], snapshot: Snapshot
) -> Iterable[Finding]:
    columns = [fr for fr in _columns(snapshot, ledger, atlas) if is_gpu(fr.resource)]
    for pool in sorted(pools, key=sorted):
        for resource in sorted({fr.resource for fr in columns if fr.flavor in pool}):
            capacity = healthy_capacity(atlas, pool, resource)
            reach = sum(
                reachable(ledger, fr)
                for fr in columns
                if fr.flavor in pool and fr.resource == resource
            )
            if reach < capacity:
                subject = ",".join(sorted({fr.flavor for fr in columns if fr.flavor in pool}))
                numbers: dict[str, str | int] = {"amount": capacity - reach, "resource": resource}
                yield Finding(DiagnosticCode.STRANDED_CAPACITY, subject, numbers)


def reachable(ledger: QuotaLedger, fr: FlavorResource) -> int:
    """Return how much of a column all queues together could ever use.

    In each tree: no more than its members were promised, no more than their ceilings.
    """
    promised: Counter[QuotaKey] = Counter()
    ceiling: Counter[QuotaKey] = Counter()
    for key in ledger.nodes:
        root = ledger.root(key)
        promised[root] += ledger.quota(key, fr).nominal
        if key.kind is Kind.QUEUE and fr in ledger.nodes[key].quotas:
            ceiling[root] += ledger.potential(key, fr)
    return sum(min(promised[root], ceiling[root]) for root in promised)


def _helpless_lenders(snapshot: Snapshot, ledger: QuotaLedger) -> Iterable[Finding]:
    by_root: dict[QuotaKey, list[str]] = {}
    for name, queue in sorted(snapshot.cluster_queues.items()):
        key = QuotaKey(Kind.QUEUE, name)
        never = queue.preemption.reclaim_within_cohort is ReclaimWithinCohort.NEVER
        if never and any(_lends(ledger, key, fr) for fr in queue.quotas):
            by_root.setdefault(ledger.root(key), []).append(name)
    for root, queues in sorted(by_root.items()):
        numbers: Mapping[str, str | int] = {"queues": ", ".join(queues)}
        yield Finding(DiagnosticCode.LENDER_CANNOT_RECLAIM, root.name, numbers)


def _lends(ledger: QuotaLedger, key: QuotaKey, fr: FlavorResource) -> bool:
    quota = ledger.quota(key, fr)
    others = [
        other
        for other in ledger.members(ledger.root(key))
        if other.kind is Kind.QUEUE and other != key and fr in ledger.nodes[other].quotas
    ]
    return quota.nominal > 0 and quota.lending_limit != 0 and bool(others)
