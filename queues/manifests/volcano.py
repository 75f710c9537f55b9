"""Volcano's Queue to a ClusterQueue (``decisions.md`` 5).

nominal <- deserved, else the guarantee; never-lent part <- guarantee; ceiling <- capability;
fair_weight <- weight; parent -> cohort. Queues without parent live in one cohort whose own quota
is what capacity is left, so that a queue can grow from its nominal to its capability.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from gpuplatform.common.fields import Fields
from gpuplatform.common.manifests import Document, Reading
from queues.choices import QuotaSource, ReclaimWithinCohort, Undeclared, WithinClusterQueue
from queues.manifests.reading import carry, open_document, owner
from queues.manifests.weights import Claim, nominal_by_weight
from queues.specs import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorQuotasSpec,
    FlavorSpec,
    PreemptionSpec,
    QuotaSpec,
    ResourceGroupSpec,
)

GROUP = "scheduling.volcano.sh"
ROOT = "root"  # Volcano's own name for "no parent"
MOST_WEIGHT = 65_535
FLAVOR = FlavorSpec("default")
COHORT = CohortSpec("volcano", quota_source=QuotaSource.RESIDUAL.value)
# What a Queue takes for granted; an importer makes these only where they are missing.
IMPLIED = (FLAVOR, COHORT)


@dataclass(frozen=True, slots=True)
class Amounts:
    """The three resource lists of a Queue, in canonical units."""

    capability: Mapping[str, int]
    deserved: Mapping[str, int]
    guarantee: Mapping[str, int]

    @property
    def states_any(self) -> bool:
        """Return whether the Queue says what it gets; only without that its weight counts."""
        return any([*self.deserved.values(), *self.guarantee.values()])

    @property
    def resources(self) -> tuple[str, ...]:
        """Return every resource that the Queue mentions, in the order of mention."""
        return tuple(dict.fromkeys([*self.capability, *self.deserved, *self.guarantee]))


def parents_of(documents: Iterable[Document]) -> frozenset[str]:
    """Return the Queues that other Queues name as their parent: they become cohorts."""
    specs = [document.body.get("spec") for document in documents if document.kind == "Queue"]
    names = [spec.get("parent") for spec in specs if isinstance(spec, dict)]
    return frozenset(name for name in names if isinstance(name, str) and name != ROOT)


def read_queue(document: Document, parents: frozenset[str] = frozenset()) -> Reading:
    """Read a Queue; one of ``parents`` is a cohort, every other a ClusterQueue."""
    reading = Reading()
    fields = open_document(document, reading)
    spec = fields.child("spec")
    weight = spec.integer("weight", 1, minimum=1, maximum=MOST_WEIGHT) or 1
    parent = spec.text("parent")
    reclaimable = spec.flag("reclaimable", True)
    amounts = _amounts(spec)
    carried = _carried(spec)
    if weight != 1 and (document.name in parents or amounts.states_any):
        spec.report("FAIR_WEIGHT_KEPT", "weight", weight=weight)
    cohort = parent if parent not in {"", ROOT} else None
    if document.name in parents:
        spec.not_honoured("capability", "deserved", "guarantee")
        if not reclaimable:
            spec.report("FIELD_NOT_HONOURED", "reclaimable", field="reclaimable")
        reading.specs.append(CohortSpec(document.name, cohort, fair_weight=Decimal(weight)))
    else:
        _check(spec, amounts)
        reading.specs += [FLAVOR] if cohort else IMPLIED
        queue = _queue(document.name, cohort or COHORT.name, weight, amounts)
        reading.specs.append(
            replace(queue, team=owner(fields), reclaimable=reclaimable, carried=carried)
        )
    spec.close()
    fields.close()
    return reading


def _amounts(spec: Fields) -> Amounts:
    guarantee = spec.child("guarantee")
    amounts = Amounts(
        spec.quantities("capability"),
        spec.quantities("deserved"),
        guarantee.quantities("resource"),
    )
    guarantee.close()
    return amounts


def _carried(spec: Fields) -> dict[str, object]:
    carried: dict[str, object] = {}
    for key, default in (
        ("priority", 0),
        ("dequeueStrategy", "traverse"),
        ("affinity", None),
        ("type", None),
        ("extendClusters", None),
    ):
        carried |= carry(spec, key, default)
    return carried


def _check(spec: Fields, amounts: Amounts) -> None:
    """Report what contradicts itself (``placement.md`` 2.3, G3, G5), and what was filled in."""
    for resource in amounts.resources:
        capability = amounts.capability.get(resource)
        deserved = amounts.deserved.get(resource)
        guarantee = amounts.guarantee.get(resource, 0)
        if capability is not None and guarantee > capability:
            spec.child("guarantee").child("resource").report(
                "GUARANTEE_ABOVE_CAPABILITY",
                resource,
                resource=resource,
                guarantee=guarantee,
                capability=capability,
            )
        if deserved is None and guarantee:
            spec.report("DESERVED_DEFAULTED", "deserved", resource=resource, amount=guarantee)
        elif deserved is not None and deserved < guarantee:
            spec.child("deserved").report(
                "DESERVED_BELOW_GUARANTEE",
                resource,
                resource=resource,
                deserved=deserved,
                guarantee=guarantee,
            )
        elif deserved is not None and capability is not None and deserved > capability:
            spec.child("deserved").report(
                "OUT_OF_RANGE", resource, value=str(deserved), low=guarantee, high=capability
            )


def _queue(name: str, cohort: str, weight: int, amounts: Amounts) -> ClusterQueueSpec:
    quotas = tuple(_quota(resource, amounts) for resource in amounts.resources)
    group = ResourceGroupSpec(amounts.resources, (FlavorQuotasSpec(FLAVOR.name, quotas),))
    return ClusterQueueSpec(
        name=name,
        groups=(group,) if quotas else (),
        cohort=cohort,
        fair_weight=Decimal(weight),
        namespace_selector={},
        preemption=PreemptionSpec(
            within_cluster_queue=WithinClusterQueue.LOWER_PRIORITY.value,
            reclaim_within_cohort=ReclaimWithinCohort.ANY.value,
        ),
        undeclared=Undeclared.IGNORE.value,
    )


def _quota(resource: str, amounts: Amounts) -> QuotaSpec:
    guarantee = amounts.guarantee.get(resource, 0)
    nominal = amounts.deserved.get(resource, guarantee)
    capability = amounts.capability.get(resource)
    return QuotaSpec(
        resource=resource,
        nominal=nominal,
        borrowing_limit=None if capability is None else max(0, capability - nominal),
        lending_limit=max(0, nominal - guarantee),
    )


def share_by_weight(
    specs: Sequence[ClusterQueueSpec], capacity: Mapping[str, int]
) -> list[ClusterQueueSpec]:
    """Return Queues that state no amount of their own with a nominal quota by weight.

    ``specs`` are the queues that share ``capacity`` (canonical units of each resource). One that
    has any nominal quota keeps it; the others get theirs of each resource, up to their ceiling.
    """
    unstated = [spec for spec in specs if not any(_nominals(spec).values())]
    shares = {
        resource: nominal_by_weight(
            [_claim(spec, resource, spec not in unstated) for spec in specs], amount
        )
        for resource, amount in sorted(capacity.items())
    }
    return [_with_shares(spec, shares) if spec in unstated else spec for spec in specs]


def _nominals(spec: ClusterQueueSpec) -> dict[str, int]:
    return {
        quota.resource: quota.nominal
        for group in spec.groups
        for flavor in group.flavors
        for quota in flavor.quotas
    }


def _ceilings(spec: ClusterQueueSpec) -> dict[str, int]:
    return {
        quota.resource: quota.nominal + quota.borrowing_limit
        for group in spec.groups
        for flavor in group.flavors
        for quota in flavor.quotas
        if quota.borrowing_limit is not None
    }


def _claim(spec: ClusterQueueSpec, resource: str, stated: bool) -> Claim:
    """Return the claim of a queue; a stated nominal is all it gets, and it does get it."""
    nominal = _nominals(spec).get(resource, 0)
    ceiling = nominal if stated else _ceilings(spec).get(resource)
    return Claim(spec.name, int(spec.fair_weight), ceiling, nominal)


def _with_shares(
    spec: ClusterQueueSpec, shares: Mapping[str, Mapping[str, int]]
) -> ClusterQueueSpec:
    ceilings = _ceilings(spec)
    resources = tuple(dict.fromkeys([*_nominals(spec), *shares]))
    nominals = {resource: shares.get(resource, {}).get(spec.name, 0) for resource in resources}
    quotas = tuple(
        QuotaSpec(
            resource,
            nominal,
            max(0, ceilings[resource] - nominal) if resource in ceilings else None,
            nominal,
        )
        for resource, nominal in nominals.items()
    )
    group = ResourceGroupSpec(resources, (FlavorQuotasSpec(FLAVOR.name, quotas),))
    return replace(spec, groups=(group,) if quotas else ())


READERS = {"Queue": read_queue}
