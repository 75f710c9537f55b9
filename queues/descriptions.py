"""Rows to specs: what is promised now, in the words in which it could be asked for.

Forms start from it, the audit trail keeps it, exports write it, and saving an equal spec changes
nothing. ``as_json`` is the one JSON shape of a spec.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from itertools import groupby
from typing import Any

from queues.models import (
    ClusterQueue,
    Cohort,
    FlavorQuota,
    LocalQueue,
    Namespace,
    PriorityClass,
    ResourceFlavor,
    Team,
    Topology,
    User,
)
from queues.specs import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorQuotasSpec,
    FlavorSpec,
    FungibilitySpec,
    LocalQueueSpec,
    NamespaceSpec,
    PersonSpec,
    PreemptionSpec,
    PriorityClassSpec,
    QuotaSpec,
    ResourceGroupSpec,
    TaintSpec,
    TeamSpec,
    TolerationSpec,
    TopologySpec,
)


def as_json(value: Any) -> Any:
    """Return a spec as JSON: dataclasses as objects, tuples as lists, decimals as text."""
    if is_dataclass(value):
        return {f.name: as_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return value


def describe_team(row: Team) -> TeamSpec:
    """Return what ``row`` promises."""
    return TeamSpec(
        name=row.name,
        display_name=row.display_name,
        cost_center=row.cost_center,
        accounting_mode=row.accounting_mode,
        description=row.description,
    )


def describe_person(row: User) -> PersonSpec:
    """Return who ``row`` is and which roles they have on the platform. One query."""
    return PersonSpec(
        username=row.username,
        first_name=row.first_name,
        last_name=row.last_name,
        email=row.email,
        is_active=row.is_active,
        roles=tuple(sorted(held.role for held in row.platform_roles.all())),
    )


def describe_namespace(row: Namespace) -> NamespaceSpec:
    """Return the labels and the owner of ``row``."""
    team = row.team.name if row.team else None
    return NamespaceSpec(name=row.name, labels=row.labels, team=team)


def describe_flavor(row: ResourceFlavor) -> FlavorSpec:
    """Return the kind of node that ``row`` names."""
    return FlavorSpec(
        name=row.name,
        node_labels=row.node_labels,
        node_taints=tuple(TaintSpec(**taint) for taint in row.node_taints),
        tolerations=tuple(TolerationSpec(**toleration) for toleration in row.tolerations),
        topology=row.topology,
        policy=row.policy,
    )


def describe_topology(row: Topology) -> TopologySpec:
    """Return the levels of ``row``, outermost first. One query unless prefetched."""
    levels = sorted(row.levels.all(), key=lambda level: level.position)
    return TopologySpec(name=row.name, levels=tuple(level.node_label for level in levels))


def describe_groups(quotas: Iterable[FlavorQuota]) -> tuple[ResourceGroupSpec, ...]:
    """Return a quota table in the order in which it was declared."""
    cells = sorted(quotas, key=lambda q: (q.group, q.flavor_position, q.resource_position))
    return tuple(
        _describe_group(list(group)) for _, group in groupby(cells, key=lambda q: q.group)
    )


def _describe_group(cells: list[FlavorQuota]) -> ResourceGroupSpec:
    flavors = tuple(
        FlavorQuotasSpec(flavor, tuple(_describe_quota(cell) for cell in row))
        for (_, flavor), row in groupby(cells, key=lambda q: (q.flavor_position, q.flavor))
    )
    return ResourceGroupSpec(
        resources=tuple(quota.resource for quota in flavors[0].quotas), flavors=flavors
    )


def _describe_quota(cell: FlavorQuota) -> QuotaSpec:
    return QuotaSpec(cell.resource, cell.nominal, cell.borrowing_limit, cell.lending_limit)


def describe_cohort(row: Cohort) -> CohortSpec:
    """Return what ``row`` promises of its own. Two queries unless prefetched."""
    return CohortSpec(
        name=row.name,
        parent=row.parent.name if row.parent else None,
        groups=describe_groups(row.quotas.all()),
        fair_weight=row.fair_weight,
        fairness=row.fairness,
        reclaim_to=row.reclaim_to,
        quota_source=row.quota_source,
    )


def describe_cluster_queue(row: ClusterQueue) -> ClusterQueueSpec:
    """Return what ``row`` promises. Three queries unless prefetched."""
    return ClusterQueueSpec(
        name=row.name,
        groups=describe_groups(row.quotas.all()),
        team=row.team.name if row.team else None,
        cohort=row.cohort.name if row.cohort else None,
        queueing_strategy=row.queueing_strategy,
        stop_policy=row.stop_policy,
        fair_weight=row.fair_weight,
        namespace_selector=row.namespace_selector,
        preemption=PreemptionSpec(
            within_cluster_queue=row.within_cluster_queue,
            reclaim_within_cohort=row.reclaim_within_cohort,
            borrow_within_cohort=row.borrow_within_cohort,
            max_priority_threshold=row.max_priority_threshold,
        ),
        reclaimable=row.reclaimable,
        undeclared=row.undeclared,
        fungibility=FungibilitySpec(
            when_can_borrow=row.when_can_borrow,
            when_can_preempt=row.when_can_preempt,
            preference=row.flavor_preference,
        ),
        minimum_runtime_s=row.minimum_runtime_s,
        yields_to_own=row.yields_to_own,
        admission_order=row.admission_order,
        priority_first=row.priority_first,
        carried=row.carried,
    )


def describe_local_queue(row: LocalQueue) -> LocalQueueSpec:
    """Return the door that ``row`` is."""
    return LocalQueueSpec(
        namespace=row.namespace,
        name=row.name,
        cluster_queue=row.cluster_queue,
        stop_policy=row.stop_policy,
        fair_weight=row.fair_weight,
    )


def describe_priority_class(row: PriorityClass) -> PriorityClassSpec:
    """Return the priority that ``row`` names."""
    return PriorityClassSpec(
        kind=row.kind,
        name=row.name,
        value=row.value,
        global_default=row.global_default,
        description=row.description,
    )
