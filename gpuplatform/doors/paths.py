"""Where in a document a rule's finding belongs: a spec's fields as manifests call them. Pure.

Rules speak of a spec (``groups[0].flavors[0].quotas[0].nominal``); who sent a document wants to
hear of its own field (``spec.resourceGroups[0].flavors[0].resources[0].nominalQuota``).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_FIRST = re.compile(r"[^.\[]*")
SECTIONS = ("metadata", "spec", "status")  # a path that begins so is the document's already
# The first step of a spec's path, and where kinds keep it; what the document has counts.
PLACES: Mapping[str, Sequence[str]] = {
    "name": ("metadata.name",),
    "namespace": ("metadata.namespace",),
    "labels": ("metadata.labels",),
    "annotations": ("metadata.annotations",),
    "team": ("metadata.labels[gpuplatform.io/team]",),
    "queue": (
        "metadata.labels[kueue.x-k8s.io/queue-name]",
        "metadata.annotations[kueue.x-k8s.io/queue-name]",
        "spec.queue",
        "spec.schedulingPolicy.queue",
        "metadata.annotations[scheduling.volcano.sh/queue-name]",
    ),
    "priority_class": (
        "metadata.labels[kueue.x-k8s.io/priority-class]",
        "spec.priorityClassName",
        "spec.template.spec.priorityClassName",
    ),
    "min_member": ("spec.minMember", "spec.minAvailable"),
    "role_minima": ("spec.minTaskMember",),
    "groups": ("spec.resourceGroups",),
    "cohort": ("spec.cohortName", "spec.cohort"),
    "parent": ("spec.parentName", "spec.parent"),
    "namespace_selector": ("spec.namespaceSelector",),
    "queueing_strategy": ("spec.queueingStrategy",),
    "stop_policy": ("spec.stopPolicy",),
    "fair_weight": ("spec.fairSharing.weight", "spec.weight"),
    "preemption": ("spec.preemption",),
    "fungibility": ("spec.flavorFungibility",),
    "minimum_runtime_s": ("metadata.annotations[gpuplatform.io/minimum-runtime-seconds]",),
    "admission_order": ("spec.admissionScope.admissionMode",),
    "fairness": ("metadata.annotations[gpuplatform.io/fairness]",),
    "reclaim_to": ("metadata.annotations[gpuplatform.io/reclaim-to]",),
    "cluster_queue": ("spec.clusterQueue",),
    "node_labels": ("spec.nodeLabels",),
    "node_taints": ("spec.nodeTaints",),
    "tolerations": ("spec.tolerations",),
    "topology": ("spec.topologyName",),
    "levels": ("spec.levels",),
    "taints": ("spec.taints",),
    "capacity": ("status.capacity",),
    "allocatable": ("status.allocatable",),
    "value": ("value",),
    "description": ("description",),
}
# Further steps that manifests call differently.
INNER = {
    "groups": {
        "resources": "coveredResources",
        "flavor": "name",
        "quotas": "resources",
        "nominal": "nominalQuota",
        "borrowing_limit": "borrowingLimit",
        "lending_limit": "lendingLimit",
    },
    "preemption": {
        "within_cluster_queue": "withinClusterQueue",
        "reclaim_within_cohort": "reclaimWithinCohort",
        "borrow_within_cohort": "borrowWithinCohort.policy",
        "max_priority_threshold": "borrowWithinCohort.maxPriorityThreshold",
    },
    "fungibility": {
        "when_can_borrow": "whenCanBorrow",
        "when_can_preempt": "whenCanPreempt",
    },
}


def document_path(body: Mapping[str, Any], path: str) -> str:
    """Return the path in the document that ``path`` means; "" where that is not known."""
    first = _FIRST.match(path)
    start = first[0] if first else ""
    if start in SECTIONS:
        return path
    place = next((p for p in PLACES.get(start, ()) if _is_there(body, p)), "")
    return place + _renamed(path[len(start) :], INNER.get(start, {})) if place else ""


def _renamed(rest: str, names: Mapping[str, str]) -> str:
    """Return further steps under the manifest's names; what stands in brackets is kept."""
    return re.sub(r"\.([a-z_]+)", lambda step: f".{names.get(step[1], step[1])}", rest)


def _is_there(body: Any, path: str) -> bool:
    for step in _steps(path):
        if not isinstance(body, Mapping) or step not in body:
            return False
        body = body[step]
    return True


def _steps(path: str) -> Iterator[str]:
    return (brackets or plain for brackets, plain in _STEP.findall(path))
