"""On which ground each workload holds its GPUs: nominal, on loan (from whom), or unmanaged.

Source: ``finops.md`` 5: the earliest admitted fill the nominal quota, later ones are the loan.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from scheduling.engine.atlas import Atlas, carries
from scheduling.engine.loans import lent
from scheduling.engine.quota import QuotaKey, QuotaLedger, queue_key, quota_tree
from scheduling.engine.snapshot import FlavorResource, Snapshot, Workload
from scheduling.engine.terms import Holding
from scheduling.engine.usage import held_usage, is_gpu, paired, pod_footprint


@dataclass(frozen=True, slots=True)
class Share:
    """``amount`` GPUs of a workload with one ground; ``lender`` names the node that lends.

    A loan without a lender is debt: quota was cut below what runs.
    """

    workload: str
    flavor: str
    resource: str
    amount: int
    holding: Holding
    lender: str = ""


def split(snapshot: Snapshot) -> tuple[Share, ...]:
    """Return the shares of all admitted work, releasing included, sorted by workload."""
    ledger = admitted_ledger(snapshot)
    paid = [w for w in snapshot.workloads if w.admission and w.queue in snapshot.cluster_queues]
    shares = list(_unmanaged(snapshot))
    columns = {fr for work in paid for fr in held_usage(work) if is_gpu(fr.resource)}
    for fr in sorted(columns):
        shares.extend(_column(ledger, fr, paid))
    return tuple(sorted(shares, key=lambda s: (s.workload, s.flavor, s.resource, s.holding)))


def admitted_ledger(snapshot: Snapshot) -> QuotaLedger:
    """Return the ledger with all admitted work charged, releasing work included."""
    ledger = QuotaLedger(quota_tree(snapshot))
    for workload in snapshot.workloads:
        if workload.queue in snapshot.cluster_queues:
            for fr, amount in held_usage(workload).items():
                ledger.reserve(queue_key(workload.queue or ""), fr, amount)
    return ledger


def _column(ledger: QuotaLedger, fr: FlavorResource, paid: Iterable[Workload]) -> Iterable[Share]:
    unfilled: dict[str, int] = {}
    lenders: dict[QuotaKey, list[tuple[str, int]]] = {}
    for work in sorted(paid, key=_admission_order):
        amount, queue = held_usage(work)[fr], work.queue or ""
        key = queue_key(queue)
        own = min(amount, unfilled.setdefault(queue, ledger.promised(key, fr)))
        unfilled[queue] -= own
        if own:
            yield Share(work.key, fr.flavor, fr.resource, own, Holding.NOMINAL)
        root = ledger.root(key)
        if root not in lenders:
            lenders[root] = [(k.name, n) for k, n in lent(ledger, root, fr).items()]
        for lender, part in _borrow(lenders[root], amount - own):
            yield Share(work.key, fr.flavor, fr.resource, part, Holding.BORROWED, lender)


def _admission_order(workload: Workload) -> tuple[float, int, float, str]:
    """Return who fills nominal first; work of one cycle in the order of its queue."""
    assert workload.admission is not None
    admitted_at = workload.admission.admitted_at
    return admitted_at, -workload.priority, workload.created_at, workload.key


def _borrow(lenders: list[tuple[str, int]], amount: int) -> Iterable[tuple[str, int]]:
    """Take ``amount`` from the front of the list, which shrinks; the rest has no lender."""
    while amount and lenders:
        name, left = lenders.pop(0)
        part = min(left, amount)
        if left > part:
            lenders.insert(0, (name, left - part))
        amount -= part
        yield name, part
    if amount:
        yield "", amount


def _unmanaged(snapshot: Snapshot) -> Iterable[Share]:
    """Yield the GPUs of admitted work that no queue pays for, by the flavor of its nodes."""
    atlas = Atlas(snapshot)
    for work in snapshot.workloads:
        if work.admission is None or work.queue in snapshot.cluster_queues:
            continue
        held: Counter[FlavorResource] = Counter()
        for pod_set, assignment in paired(work, work.admission.assignments):
            for resource, amount in pod_footprint(pod_set).items():
                if is_gpu(resource):
                    for node, pods in _where(assignment.nodes, assignment.count):
                        held[FlavorResource(flavor_of(atlas, node), resource)] += amount * pods
        for fr, amount in sorted(held.items()):
            yield Share(work.key, fr.flavor, fr.resource, amount, Holding.UNMANAGED)


def _where(nodes: dict[str, int] | object, count: int) -> Iterable[tuple[str, int]]:
    return sorted(nodes.items()) if isinstance(nodes, dict) and nodes else [("", count)]


def flavor_of(atlas: Atlas, node: str) -> str:
    """Return the most exactly labelled flavor of a node, ties by name; "" for none."""
    if node not in atlas.nodes:
        return ""
    flavors = atlas.snapshot.flavors.values()
    fitting = [flavor for flavor in flavors if carries(atlas.nodes[node], flavor)]
    best = min(fitting, key=lambda f: (-len(f.node_labels), f.name), default=None)
    return best.name if best else ""
