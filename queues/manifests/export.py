"""Specs to Kueue's kinds, in the spelling of v1beta2: what the readers beside this file take in.

What Kueue has no field for stands in annotations under ``gpuplatform.io/`` and in the label that
names the owner. Reading a document again gives an equal spec; what equals Kueue's default is left
out where leaving it out means the same.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from gpuplatform.common.quantities import format_quantity
from queues.choices import AdmissionOrder, PriorityKind
from queues.descriptions import as_json
from queues.manifests import kueue
from queues.manifests.own import VERSION as OWN_VERSION
from queues.manifests.reading import TEAM_LABEL, VERSION_NOTE
from queues.specs import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorSpec,
    FungibilitySpec,
    LocalQueueSpec,
    NamespaceSpec,
    PreemptionSpec,
    PriorityClassSpec,
    QuotaSpec,
    ResourceGroupSpec,
    TeamSpec,
    TopologySpec,
)

VERSION = f"{kueue.GROUP}/v1beta2"
Manifest = dict[str, Any]
ORDERS = {order: mode for mode, order in kueue.ORDERS.items()}


def manifest_of(spec: object) -> Manifest:
    """Return the document that promises what ``spec`` promises."""
    return WRITERS[type(spec)](spec)


def versioned(manifest: Manifest, version: int) -> Manifest:
    """Return the document of one object with the version that it shows, for whoever edits it."""
    metadata = manifest["metadata"]
    notes = {**metadata.get("annotations", {}), VERSION_NOTE: str(version)}
    return {**manifest, "metadata": {**metadata, "annotations": notes}}


def document(
    kind: str,
    name: str,
    *,
    version: str = VERSION,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    notes: Mapping[str, str] | None = None,
    **parts: Any,
) -> Manifest:
    """Return a document; parts that are None are left out."""
    metadata = {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        **({"labels": dict(labels)} if labels else {}),
        **({"annotations": dict(notes)} if notes else {}),
    }
    said = {key: value for key, value in parts.items() if value is not None}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **said}


def _changed(spec: object, usual: object, names: Mapping[str, str]) -> Manifest:
    """Return the columns of ``spec`` that differ from ``usual``, under Kueue's names."""
    return {
        key: getattr(spec, name)
        for name, key in names.items()
        if getattr(spec, name) != getattr(usual, name)
    }


def _team(spec: TeamSpec) -> Manifest:
    shown = {
        "displayName": spec.display_name,
        "costCenter": spec.cost_center,
        "accountingMode": spec.accounting_mode,
        "description": spec.description,
    }
    said = {key: text for key, text in shown.items() if text}
    return document("Team", spec.name, version=OWN_VERSION, spec=said)


def _namespace(spec: NamespaceSpec) -> Manifest:
    """Return a Namespace; its labels are its own, so another owner stands in an annotation."""
    owner = spec.team or ""
    is_said = spec.labels.get(TEAM_LABEL) == owner
    notes = {} if is_said else {TEAM_LABEL: owner}
    return document("Namespace", spec.name, version="v1", labels=spec.labels, notes=notes)


def _priority_class(spec: PriorityClassSpec) -> Manifest:
    said = spec.description or None
    if spec.kind == PriorityKind.WORKLOAD:
        return document("WorkloadPriorityClass", spec.name, value=spec.value, description=said)
    return document(
        "PriorityClass",
        spec.name,
        version="scheduling.k8s.io/v1",
        value=spec.value,
        globalDefault=spec.global_default or None,
        description=said,
    )


def _topology(spec: TopologySpec) -> Manifest:
    levels = [{"nodeLabel": label} for label in spec.levels]
    return document("Topology", spec.name, spec={"levels": levels})


def _flavor(spec: FlavorSpec) -> Manifest:
    usual = FlavorSpec(spec.name)
    tolerations = [
        {
            **{
                key: text for key, text in as_json(toleration).items() if text and key != "seconds"
            },
            **({} if toleration.seconds is None else {"tolerationSeconds": toleration.seconds}),
        }
        for toleration in spec.tolerations
    ]
    taints = [{k: text for k, text in as_json(t).items() if text} for t in spec.node_taints]
    said = {
        "nodeLabels": dict(spec.node_labels),
        "nodeTaints": taints,
        "tolerations": tolerations,
        "topologyName": spec.topology,
    }
    return document(
        "ResourceFlavor",
        spec.name,
        notes=_changed(spec, usual, {"policy": kueue.PLACEMENT_POLICY}),
        spec={key: value for key, value in said.items() if value},
    )


# ---- quotas ----------------------------------------------------------------------------------
def _groups(groups: Iterable[ResourceGroupSpec]) -> list[Manifest]:
    return [
        {
            "coveredResources": list(group.resources),
            "flavors": [
                {"name": flavor.flavor, "resources": [_quota(cell) for cell in flavor.quotas]}
                for flavor in group.flavors
            ],
        }
        for group in groups
    ]


def _quota(cell: QuotaSpec) -> Manifest:
    amounts = {
        "nominalQuota": cell.nominal,
        "borrowingLimit": cell.borrowing_limit,
        "lendingLimit": cell.lending_limit,
    }
    said = {k: format_quantity(cell.resource, v) for k, v in amounts.items() if v is not None}
    return {"name": cell.resource, **said}


def _weight(weight: Decimal) -> Manifest:
    return {} if weight == 1 else {"fairSharing": {"weight": f"{weight.normalize():f}"}}


def _cohort(spec: CohortSpec) -> Manifest:
    names = {
        "fairness": kueue.FAIRNESS,
        "reclaim_to": kueue.RECLAIM_TO,
        "quota_source": kueue.QUOTA_SOURCE,
    }
    said = {
        **({"parentName": spec.parent} if spec.parent else {}),
        **({"resourceGroups": _groups(spec.groups)} if spec.groups else {}),
        **_weight(spec.fair_weight),
    }
    notes = _changed(spec, CohortSpec(spec.name), names)
    return document("Cohort", spec.name, notes=notes, spec=said)


def _cluster_queue(spec: ClusterQueueSpec) -> Manifest:
    return document(
        "ClusterQueue",
        spec.name,
        labels={TEAM_LABEL: spec.team or ""},
        notes=_notes(spec),
        spec=_queue_fields(spec),
    )


def _queue_fields(spec: ClusterQueueSpec) -> Manifest:
    usual = ClusterQueueSpec(spec.name)
    names = {"undeclared": "quotaCheckStrategy", "stop_policy": "stopPolicy"}
    selector = spec.namespace_selector
    fungibility = _changed(spec.fungibility, FungibilitySpec(), _FUNGIBILITY)
    by_usage = spec.admission_order == AdmissionOrder.USAGE
    return {
        **({"cohortName": spec.cohort} if spec.cohort else {}),
        **({} if selector is None else {"namespaceSelector": dict(selector)}),
        "queueingStrategy": spec.queueing_strategy,
        "preemption": _preemption(spec.preemption),
        **_changed(spec, usual, names),
        **({"flavorFungibility": fungibility} if fungibility else {}),
        **({"admissionScope": {"admissionMode": ORDERS["usage"]}} if by_usage else {}),
        **_weight(spec.fair_weight),
        **{key: spec.carried[key] for key in kueue.CARRIED if key in spec.carried},
        "resourceGroups": _groups(spec.groups),
    }


_FUNGIBILITY = {
    "when_can_borrow": "whenCanBorrow",
    "when_can_preempt": "whenCanPreempt",
    "preference": "preference",
}


def _preemption(spec: PreemptionSpec) -> Manifest:
    threshold = spec.max_priority_threshold
    borrow = {
        "policy": spec.borrow_within_cohort,
        **({} if threshold is None else {"maxPriorityThreshold": threshold}),
    }
    is_usual = borrow == {"policy": PreemptionSpec().borrow_within_cohort}
    return {
        "withinClusterQueue": spec.within_cluster_queue,
        "reclaimWithinCohort": spec.reclaim_within_cohort,
        **({} if is_usual else {"borrowWithinCohort": borrow}),
    }


def _notes(spec: ClusterQueueSpec) -> dict[str, str]:
    """Return what Kueue's ClusterQueue has no field for."""
    others = {key: value for key, value in spec.carried.items() if key not in kueue.CARRIED}
    seconds = spec.minimum_runtime_s
    return {
        **({} if spec.reclaimable else {kueue.RECLAIMABLE: "false"}),
        **({kueue.MINIMUM_RUNTIME: str(seconds)} if seconds else {}),
        **({kueue.YIELDS_TO_OWN: "true"} if spec.yields_to_own else {}),
        **({kueue.PRIORITY_FIRST: "true"} if spec.priority_first else {}),
        **({kueue.OTHER_FIELDS: json.dumps(others)} if others else {}),
    }


def _local_queue(spec: LocalQueueSpec) -> Manifest:
    usual = LocalQueueSpec(spec.namespace, spec.name, spec.cluster_queue)
    said = {
        "clusterQueue": spec.cluster_queue,
        **_changed(spec, usual, {"stop_policy": "stopPolicy"}),
        **_weight(spec.fair_weight),
    }
    return document("LocalQueue", spec.name, namespace=spec.namespace, spec=said)


WRITERS: Mapping[type, Callable[[Any], Manifest]] = {
    TeamSpec: _team,
    NamespaceSpec: _namespace,
    PriorityClassSpec: _priority_class,
    TopologySpec: _topology,
    FlavorSpec: _flavor,
    CohortSpec: _cohort,
    ClusterQueueSpec: _cluster_queue,
    LocalQueueSpec: _local_queue,
}
