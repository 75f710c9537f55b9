"""On which ground each workload holds its GPUs: nominal, on loan (from whom), or unmanaged.

Source: ``finops.md`` 5: the earliest admitted fill the nominal quota, later ones are the loan.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from scheduling.engine.atlas import Atlas, carries
from scheduling.engine.loans import lent
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.snapshot import FlavorResource, Snapshot, Workload
from scheduling.engine.standing import standing
from scheduling.engine.terms import Holding
from scheduling.engine.tree import QuotaKey, queue_key, quota_tree
from scheduling.engine.usage import charged_alike, held_usage, is_gpu, paired


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
    known = snapshot.cluster_queues
    held = (work for work in snapshot.workloads if work.admission and work.queue in known)
    paid = list(charged_alike((work, standing(work)) for work in held))
    ledger = _charged(snapshot, paid)
    shares = list(_physical(snapshot))
    columns = {fr for _, usage in paid for fr in usage if is_gpu(fr.resource)}
    otherwise = {work.key for work, _ in paid if charged_otherwise(work)}
    paid.sort(key=lambda one: _admission_order(one[0]))
    for fr in sorted(columns):
        shares.extend(s for s in _column(ledger, fr, paid) if s.workload not in otherwise)
    return tuple(sorted(shares, key=lambda s: (s.workload, s.flavor, s.resource, s.holding)))


def present(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without the pods whose nodes have left: they use nothing any more.

    Their quota may still be held for a while, so that they come back; nobody pays for that.
    """
    known = {node.name for node in snapshot.nodes}
    works = tuple(_present(work, known) for work in snapshot.workloads)
    return snapshot if works == snapshot.workloads else replace(snapshot, workloads=works)


def _present(work: Workload, known: AbstractSet[str]) -> Workload:
    held = work.admission.assignments if work.admission else ()
    if work.admission is None or all(one.nodes.keys() <= known for one in held):
        return work
    left = []
    for one in held:
        nodes = {name: pods for name, pods in one.nodes.items() if name in known}
        lost = sum(one.nodes.values()) - sum(nodes.values())
        devices = {name: one.devices[name] for name in one.devices if name in nodes}
        left.append(replace(one, count=one.count - lost, nodes=nodes, devices=devices))
    staying = tuple(one for one in left if one.count)
    return replace(work, admission=replace(work.admission, assignments=staying))


def admitted_ledger(snapshot: Snapshot) -> QuotaLedger:
    """Return the ledger with all admitted work charged, releasing work included."""
    known = snapshot.cluster_queues
    held = ((work, held_usage(work)) for work in snapshot.workloads if work.queue in known)
    return _charged(snapshot, held)


Paid = tuple[Workload, Mapping[FlavorResource, int]]  # what it is charged


def _charged(snapshot: Snapshot, paid: Iterable[Paid]) -> QuotaLedger:
    """Return the ledger with all of these charged, the sum of a queue at once."""
    sums: dict[str, dict[FlavorResource, int]] = {}
    for work, usage in paid:
        mine = sums.setdefault(work.queue or "", {})
        for fr, amount in usage.items():
            mine[fr] = mine.get(fr, 0) + amount
    ledger = QuotaLedger(quota_tree(snapshot))
    for queue, mine in sums.items():
        for fr, amount in mine.items():
            ledger.reserve(queue_key(queue), fr, amount)
    return ledger


def _column(ledger: QuotaLedger, fr: FlavorResource, paid: Iterable[Paid]) -> Iterable[Share]:
    """Yield the shares of one column; ``paid``: in the order in which it fills nominal quota."""
    unfilled: dict[str, int] = {}
    lenders: dict[QuotaKey, list[tuple[str, int]]] = {}
    for work, usage in paid:
        amount, queue = usage.get(fr, 0), work.queue or ""
        if not amount:
            continue
        key = queue_key(queue)
        if queue not in unfilled:
            unfilled[queue] = ledger.promised(key, fr)
        own = min(amount, unfilled[queue])
        unfilled[queue] -= own
        if own:
            yield Share(work.key, fr.flavor, fr.resource, own, Holding.NOMINAL)
        if amount == own:
            continue
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


def charged_otherwise(workload: Workload) -> bool:
    """Return whether quota counts other GPUs than the pods take (``transformations.py``)."""
    return any(
        pod_set.charges is not None and _gpus(pod_set.charges) != _gpus(pod_set.requests)
        for pod_set in workload.pod_sets
    )


def _gpus(amounts: Mapping[str, int]) -> dict[str, int]:
    return {resource: amount for resource, amount in amounts.items() if is_gpu(resource)}


def _physical(snapshot: Snapshot) -> Iterable[Share]:
    """Yield the GPUs of admitted work that no column of quota counts, by flavor of the nodes.

    No queue pays for it, or its queue counts something else; then it counts as nominal.
    """
    atlas: Atlas | None = None
    for work in snapshot.workloads:
        paid = work.queue in snapshot.cluster_queues
        if work.admission is None or (paid and not charged_otherwise(work)):
            continue
        atlas = atlas or Atlas(snapshot)  # only where somebody needs it
        holding = Holding.NOMINAL if paid else Holding.UNMANAGED
        for fr, amount in sorted(_gpus_on_nodes(atlas, work).items()):
            yield Share(work.key, fr.flavor, fr.resource, amount, holding)


def _gpus_on_nodes(atlas: Atlas, work: Workload) -> Counter[FlavorResource]:
    """Return the GPUs that pods take; where nothing is placed, of the flavor that is charged."""
    held: Counter[FlavorResource] = Counter()
    for pod_set, assignment in paired(work, standing(work)):
        charged = min(assignment.flavors.values(), default="")
        for node, pods in _where(assignment.nodes, assignment.count):
            flavor = flavor_of(atlas, node) or charged
            for resource, amount in _gpus(pod_set.requests).items():
                held[FlavorResource(flavor, resource)] += amount * pods
    return held


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
