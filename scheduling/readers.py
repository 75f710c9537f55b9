"""Rows to the engine's values: hardware and promises, one kind at a time."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from queues import models as promises
from queues.choices import AdmissionOrder, QuotaSource
from scheduling import models as rows
from scheduling.devices import devices_of
from scheduling.engine.affinity import Term
from scheduling.engine.atlas import carries
from scheduling.engine.machines import Flavor, Node, Taint, Toleration, Topology
from scheduling.engine.moving import Moving
from scheduling.engine.patience import ELDERS, STARVATION_S, Patience
from scheduling.engine.queue_rules import Fungibility, MinimumRuntime
from scheduling.engine.snapshot import (
    ClusterQueue,
    Cohort,
    DeviceRequest,
    Expression,
    FlavorQuotas,
    FlavorResource,
    Preemption,
    Quota,
    ResourceGroup,
    SliceLayer,
    TopologyRequest,
)
from scheduling.engine.terms import (
    BorrowWithinCohort,
    DeviceLocality,
    Fairness,
    FlavorPreference,
    FlavorSearch,
    Operator,
    PlacementPolicy,
    QueueingStrategy,
    ReclaimTo,
    ReclaimWithinCohort,
    StopPolicy,
    TopologyMode,
    Undeclared,
    WithinClusterQueue,
)
from scheduling.engine.usage import requested_devices
from scheduling.routes import Doors
from scheduling.specs import SliceSpec

FLAVOR_NOT_FOUND, TOPOLOGY_NOT_FOUND = "FlavorNotFound", "TopologyNotFound"
COHORT_CYCLE = "CohortCycle"
_RESIDUAL = QuotaSource.RESIDUAL


# ---- hardware --------------------------------------------------------------------------------
def taints_of(documents: Iterable[Mapping[str, str]]) -> tuple[Taint, ...]:
    """Return taints as stored, a list of documents, as values."""
    return tuple(
        Taint(taint["key"], taint.get("value") or "", taint.get("effect") or "NoSchedule")
        for taint in documents
    )


def lasts(expected_s: float | None, limit_s: float | None) -> float | None:
    """Return how long a run counts as, in s: as declared; for want of that, as long as it may."""
    return expected_s or limit_s


def tolerations_of(documents: Iterable[Mapping[str, str]]) -> tuple[Toleration, ...]:
    """Return tolerations as stored, a list of documents, as values."""
    return tuple(
        Toleration(
            key=toleration.get("key") or "",
            operator=toleration.get("operator") or "Equal",
            value=toleration.get("value") or "",
            effect=toleration.get("effect") or "",
        )
        for toleration in documents
    )


def topology_of(
    mode: str, level: str | None, slices: Iterable[SliceSpec], group: str
) -> TopologyRequest | None:
    """Return a topology request from what specs and rows hold of it; None: none is made."""
    slices = tuple(slices)
    if not (mode or slices or group):
        return None
    asked = TopologyMode(mode) if mode else TopologyMode.UNCONSTRAINED
    required = tuple(SliceLayer(one.level, one.size) for one in slices if one.is_required)
    preferred = (SliceLayer(one.level, one.size) for one in slices if not one.is_required)
    return TopologyRequest(
        asked, level or None, group=group, slices=required, preferred_slice=next(preferred, None)
    )


def affinity_of(terms: Iterable[Iterable[Mapping[str, Any]]]) -> tuple[Term, ...]:
    """Return node affinity as stored, lists of documents, as values."""
    return tuple(
        tuple(Expression(e["key"], Operator(e["operator"]), tuple(e["values"])) for e in term)
        for term in terms
    )


def flavor_of(row: promises.ResourceFlavor) -> Flavor:
    """Return a flavor's row as a value."""
    return Flavor(
        name=row.name,
        node_labels=row.node_labels,
        node_taints=taints_of(row.node_taints),
        tolerations=tolerations_of(row.tolerations),
        topology=row.topology or None,
        policy=PlacementPolicy(row.policy),
    )


def topologies_of(lines: Iterable[tuple[int, str, str]]) -> dict[str, Topology]:
    """Return all topologies by name; one without levels is none.

    ``lines``: of each level its position, topology and label, from the outermost inwards.
    """
    levels: defaultdict[str, list[str]] = defaultdict(list)
    for _position, name, label in lines:
        levels[name].append(label)
    return {name: Topology(name, tuple(labels)) for name, labels in sorted(levels.items())}


def node_of(row: rows.Node) -> Node:
    """Return a node's row as a value."""
    return Node(
        name=row.name,
        labels=row.labels,
        allocatable=row.allocatable,
        taints=taints_of(row.taints),
        ready=row.ready and not row.draining,
        schedulable=row.schedulable,
        unmanaged=row.unmanaged,
        devices=devices_of(row.labels, row.annotations, row.allocatable),
    )


def device_request_of(
    requests: Mapping[str, int], locality: str, memory_mib: int
) -> DeviceRequest | None:
    """Return what a pod asks of single devices; None where its requests say it all."""
    asked = requested_devices(requests, DeviceLocality(locality), memory_mib)
    return None if asked == requested_devices(requests) else asked


# ---- promises --------------------------------------------------------------------------------
QuotaRows = Mapping[tuple[str, int], list[promises.FlavorQuota]]


def quotas_of(cells: Iterable[promises.FlavorQuota]) -> QuotaRows:
    """Return the cells of the quota table by owner: ``("cohort" | "queue", id)``."""
    found: defaultdict[tuple[str, int], list[promises.FlavorQuota]] = defaultdict(list)
    for row in cells:
        if row.cohort_id is not None:
            found["cohort", row.cohort_id].append(row)
        elif row.cluster_queue_id is not None:
            found["queue", row.cluster_queue_id].append(row)
    return found


def _quota(row: promises.FlavorQuota) -> Quota:
    return Quota(row.nominal, row.borrowing_limit, row.lending_limit)


def cohorts_of(
    kept: Iterable[promises.Cohort],
    quotas: QuotaRows,
    doors: Doors,
    flavors: Mapping[str, Flavor],
    nodes: tuple[Node, ...],
) -> dict[str, Cohort]:
    """Return all cohorts by name, with residual quotas worked out.

    Where several are residual, the first by name owns the rest.
    """
    cohort_rows = {row.pk: row for row in kept}
    cohorts = {}
    for row in cohort_rows.values():
        parent = cohort_rows.get(row.parent_id) if row.parent_id else None
        cohorts[row.name] = Cohort(
            name=row.name,
            parent=parent.name if parent else None,
            quotas={
                FlavorResource(cell.flavor, cell.resource): _quota(cell)
                for cell in quotas.get(("cohort", row.pk), ())
            },
            fair_weight=float(row.fair_weight),
            fairness=Fairness(row.fairness),
            reclaim_to=ReclaimTo(row.reclaim_to),
        )
    residual = sorted(r.name for r in cohort_rows.values() if r.quota_source == _RESIDUAL)
    own = [cohort.quotas for name, cohort in cohorts.items() if name not in residual]
    promised = _promised_everywhere(quotas, doors, own)
    for name in residual:
        columns = _columns_inside(name, cohorts, quotas, doors)
        left = residual_quotas(columns, promised, flavors, nodes)
        promised.update({column: quota.nominal for column, quota in left.items()})
        cohorts[name] = replace(cohorts[name], quotas=left)
    return cohorts


def residual_quotas(
    columns: Iterable[FlavorResource],
    promised: Mapping[FlavorResource, int],
    flavors: Mapping[str, Flavor],
    nodes: tuple[Node, ...],
) -> dict[FlavorResource, Quota]:
    """Return a cohort's own quota as what healthy capacity leaves (``decisions.md`` 5).

    Per column: max(0, usable nodes of the flavor - everything ``promised``, to whomever).
    """
    return {
        column: Quota(max(0, _healthy(column, flavors, nodes) - promised.get(column, 0)))
        for column in sorted(columns)
    }


def _promised_everywhere(
    quotas: QuotaRows, doors: Doors, own: Iterable[Mapping[FlavorResource, Quota]]
) -> Counter[FlavorResource]:
    """Return the nominals of all queues, and of all cohorts that declare quota of their ``own``.

    Cohorts share their nodes: what one promises is not left for another.
    """
    promised: Counter[FlavorResource] = Counter()
    for queue in doors.cluster_queues.values():
        for cell in quotas.get(("queue", queue.pk), ()):
            promised[FlavorResource(cell.flavor, cell.resource)] += cell.nominal
    for declared in own:
        promised.update({column: quota.nominal for column, quota in declared.items()})
    return promised


def _columns_inside(
    name: str, cohorts: Mapping[str, Cohort], quotas: QuotaRows, doors: Doors
) -> set[FlavorResource]:
    return {
        FlavorResource(cell.flavor, cell.resource)
        for queue in doors.cluster_queues.values()
        if queue.cohort is not None and name in _ancestors(queue.cohort.name, cohorts)
        for cell in quotas.get(("queue", queue.pk), ())
    }


def _healthy(
    column: FlavorResource, flavors: Mapping[str, Flavor], nodes: tuple[Node, ...]
) -> int:
    flavor = flavors.get(column.flavor)
    if flavor is None:
        return 0
    usable = (node for node in nodes if node.usable and carries(node, flavor))
    return sum(node.allocatable.get(column.resource, 0) for node in usable)


def _ancestors(name: str, cohorts: Mapping[str, Cohort]) -> list[str]:
    """Return the cohort and those above it; stops where a circle closes."""
    path: list[str] = []
    current: str | None = name
    while current is not None and current in cohorts and current not in path:
        path.append(current)
        current = cohorts[current].parent
    return path


def cluster_queue_of(
    row: promises.ClusterQueue,
    quotas: QuotaRows,
    flavors: Mapping[str, Flavor],
    topologies: Mapping[str, Topology],
    cohorts: Mapping[str, Cohort],
) -> ClusterQueue:
    """Return a queue's row as a value."""
    cells = quotas.get(("queue", row.pk), [])
    cohort = row.cohort.name if row.cohort else None
    return ClusterQueue(
        name=row.name,
        cohort=cohort,
        groups=_groups(cells),
        preemption=Preemption(
            within_cluster_queue=WithinClusterQueue(row.within_cluster_queue),
            reclaim_within_cohort=ReclaimWithinCohort(row.reclaim_within_cohort),
            borrow_within_cohort=BorrowWithinCohort(row.borrow_within_cohort),
            max_priority_threshold=row.max_priority_threshold,
        ),
        queueing_strategy=QueueingStrategy(row.queueing_strategy),
        stop_policy=StopPolicy(row.stop_policy),
        undeclared=Undeclared(row.undeclared),
        reclaimable=row.reclaimable,
        inactive=_inactive(cells, cohort, flavors, topologies, cohorts),
        fair_weight=float(row.fair_weight),
        fungibility=Fungibility(
            FlavorSearch(row.when_can_borrow),
            FlavorSearch(row.when_can_preempt),
            FlavorPreference(row.flavor_preference),
        ),
        usage_based=row.admission_order == AdmissionOrder.USAGE,
        priority_first=row.priority_first,
        minimum_runtime=MinimumRuntime(float(row.minimum_runtime_s), row.yields_to_own),
    )


def _inactive(
    cells: Iterable[promises.FlavorQuota],
    cohort: str | None,
    flavors: Mapping[str, Flavor],
    topologies: Mapping[str, Topology],
    cohorts: Mapping[str, Cohort],
) -> str:
    """Return why a queue cannot admit anything (``admission.md`` K6), or ""."""
    names = {cell.flavor for cell in cells}
    if not names <= flavors.keys():
        return FLAVOR_NOT_FOUND
    if not {flavors[name].topology for name in names} - {None} <= topologies.keys():
        return TOPOLOGY_NOT_FOUND
    path = _ancestors(cohort, cohorts) if cohort else []
    return COHORT_CYCLE if path and cohorts[path[-1]].parent is not None else ""


def _groups(cells: Iterable[promises.FlavorQuota]) -> tuple[ResourceGroup, ...]:
    """Return the resource groups in the order in which they were declared."""
    groups: defaultdict[int, dict[str, dict[str, Quota]]] = defaultdict(dict)
    for cell in cells:  # ordered by group, flavor and resource
        groups[cell.group].setdefault(cell.flavor, {})[cell.resource] = _quota(cell)
    return tuple(
        ResourceGroup(
            resources=tuple(dict.fromkeys(r for cells in group.values() for r in cells)),
            flavors=tuple(FlavorQuotas(name, cells) for name, cells in group.items()),
        )
        for _, group in sorted(groups.items())
    )


def patience_of(settings: Any) -> Patience:
    """Return for whom room is reserved, as the platform's settings say.

    Older work of no higher priority gives way for four times as long as a gang must wait.
    Raises ImproperlyConfigured for what is no number.
    """
    try:
        least = int(settings.RESERVATION_MIN_GPUS)
        waits_s = float(settings.STARVATION_TIMEOUT_S)
    except ValueError as problem:
        raise ImproperlyConfigured(f"reservations: {problem}") from problem
    after_s = None if waits_s < 0 else waits_s
    elders_after_s = ELDERS * (STARVATION_S if after_s is None else after_s)
    return Patience(after_s, least, elders_after_s)


def moving_of(settings: Any) -> Moving | None:
    """Return how much running work may be moved for a blocked gang, as the settings say.

    Raises ImproperlyConfigured for what is no number.
    """
    if not settings.CONSOLIDATION_GPU_HOURS:
        return None
    try:
        hours = float(settings.CONSOLIDATION_GPU_HOURS)
    except ValueError as problem:
        raise ImproperlyConfigured(f"CONSOLIDATION_GPU_HOURS: {problem}") from problem
    return Moving(None if hours < 0 else hours)
