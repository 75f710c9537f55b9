"""Work, machines and admission checks to documents: what the readers beside this file take in.

Work of every kind is written as Kueue's Workload; the document that was submitted, whatever its
kind, travels whole in an annotation. Reading it again gives an equal spec.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from gpuplatform.common.quantities import format_quantity
from queues.manifests.export import VERSION, Manifest, document
from scheduling.engine.affinity import NODE_NAME
from scheduling.manifests import annotations as words
from scheduling.manifests.checks import CONTROLLER, DESCRIPTION, PARAMETERS, QUEUES
from scheduling.manifests.kueue import NOTES, SLICES, TEXTS, noted
from scheduling.specs import (
    ON_FAILURE,
    ON_NODE_LOSS,
    CheckSpec,
    NodeSpec,
    PodSetSpec,
    SliceSpec,
    TopologySpec,
    WorkloadSpec,
)

WORKLOAD_CLASS = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass"}
POD_CLASS = {"group": "scheduling.k8s.io", "kind": "PriorityClass"}
AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"
# Fields that Kueue's Workload lacks, with the value that needs no saying.
CARRIED: Mapping[str, Any] = {
    "ceiling_queue": "",
    "min_member": None,
    "role_minima": {},
    "elastic": False,
    "preemptible": True,
    "stateless": False,
    "expected_duration_s": None,
    "checkpoint_interval_s": None,
    "on_failure": ON_FAILURE[0],
    "max_retries": None,
    "policies": (),
    "min_success": None,
    "on_node_loss": ON_NODE_LOSS[0],
    "ttl_s": None,
    "gates": (),
    "template": None,
}
RENAMED = {"ttl_s": "ttl_after_finished_s", "gates": "admission_gates"}  # as REST calls them


def manifest_of(spec: object, pod_classes: Collection[str] = ()) -> Manifest:
    """Return the document that asks for what ``spec`` asks for.

    ``pod_classes``: priority classes that are Kubernetes' own and not Kueue's.
    """
    if isinstance(spec, WorkloadSpec):
        return _workload(spec, pod_classes)
    return WRITERS[type(spec)](spec)


# ---- work ------------------------------------------------------------------------------------
def _workload(spec: WorkloadSpec, pod_classes: Collection[str]) -> Manifest:
    carried = {
        name: getattr(spec, name)
        for name, usual in CARRIED.items()
        if getattr(spec, name) != usual
    }
    notes = {noted("kind"): spec.kind}
    for name, value in carried.items():
        called = RENAMED.get(name, name)
        notes[noted(called)] = value if called in TEXTS else json.dumps(value, ensure_ascii=False)
    named = POD_CLASS if spec.priority_class in pod_classes else WORKLOAD_CLASS
    said = {
        "queueName": spec.queue,
        **({"active": False} if not spec.active else {}),
        **(
            {"priorityClassRef": {**named, "name": spec.priority_class}}
            if spec.priority_class
            else {}
        ),
        "priority": spec.priority,
        "maximumExecutionTimeSeconds": spec.max_execution_time_s,
    }
    pod_sets = [_pod_set(pod_set, spec.grace_s) for pod_set in spec.pod_sets]
    body = {key: value for key, value in said.items() if value is not None}
    return document(
        "Workload",
        spec.name,
        namespace=spec.namespace,
        labels=spec.labels,
        notes={**_own(spec.annotations), **notes},
        spec={**body, "podSets": pod_sets},
    )


def _own(notes: Mapping[str, str]) -> dict[str, str]:
    """Return annotations without those that an export of old left behind."""
    return {key: text for key, text in notes.items() if not key.startswith(NOTES)}


def _pod_set(spec: PodSetSpec, grace_s: int | None) -> Manifest:
    near = _topology_request(spec)
    return {
        "name": spec.name,
        "count": spec.count,
        **({} if spec.min_count is None else {"minCount": spec.min_count}),
        **({"topologyRequest": near} if near else {}),
        "template": _template(spec, grace_s),
    }


def _template(spec: PodSetSpec, grace_s: int | None) -> Manifest:
    notes = _pod_notes(spec)
    amounts = {r: format_quantity(r, amount) for r, amount in spec.requests.items()}
    affinity = {"nodeAffinity": {AFFINITY: {"nodeSelectorTerms": _terms(spec.affinity)}}}
    said = {
        "nodeSelector": dict(spec.node_selector),
        "tolerations": [dict(toleration) for toleration in spec.tolerations],
        "affinity": affinity if spec.affinity else {},
    }
    body = {
        **{key: value for key, value in said.items() if value},
        **({} if grace_s is None else {"terminationGracePeriodSeconds": grace_s}),
        "containers": [{"name": "main", "resources": {"requests": amounts}}],
    }
    return {**({"metadata": {"annotations": notes}} if notes else {}), "spec": body}


def _pod_notes(spec: PodSetSpec) -> dict[str, str]:
    asked, parts = spec.topology, spec.subgroup
    notes = {}
    if spec.device_locality != "any":
        notes[words.LOCALITY] = spec.device_locality
    if spec.device_memory_mib:
        notes[words.DEVICE_MEMORY] = f"{spec.device_memory_mib}Mi"
    if parts is not None:
        size = {"size": parts.size, "min_subgroups": parts.min_subgroups}
        notes[noted("subgroup")] = json.dumps(size)
    if not _is_kueues(spec.slices):
        layers = [asdict(layer) for layer in spec.slices]
        notes[noted("slices")] = json.dumps(layers, ensure_ascii=False)
    if asked is not None and asked.mode == "unconstrained" and asked.level:
        notes[noted("topology_level")] = asked.level
    return notes


def _is_kueues(slices: Iterable[SliceSpec]) -> bool:
    """Return whether Kueue has a field for them: it knows none that are only preferred."""
    return all(layer.is_required for layer in slices)


def _topology_request(spec: PodSetSpec) -> Manifest:
    layers = spec.slices if _is_kueues(spec.slices) else ()
    one = (
        {"podSetSliceRequiredTopology": layers[0].level, "podSetSliceSize": layers[0].size}
        if (len(layers) == 1)
        else {}
    )
    several = [{"topology": layer.level, "size": layer.size} for layer in layers]
    return {
        **(_asked(spec.topology) if spec.topology else {}),
        **({"podSetGroupName": spec.group} if spec.group else {}),
        **one,
        **({SLICES: several} if len(layers) > 1 else {}),
    }


def _asked(topology: TopologySpec) -> Manifest:
    if topology.mode == "unconstrained":
        return {"unconstrained": True}
    return {topology.mode: topology.level or ""}


def _terms(terms: Iterable[Iterable[Mapping[str, Any]]]) -> list[Manifest]:
    found = []
    for term in terms:
        rows = [dict(row) for row in term]
        parts = {
            "matchExpressions": [row for row in rows if row["key"] != NODE_NAME],
            "matchFields": [row for row in rows if row["key"] == NODE_NAME],
        }
        found.append({key: value for key, value in parts.items() if value})
    return found


# ---- machines and checks -----------------------------------------------------------------------
def _node(spec: NodeSpec) -> Manifest:
    body = {
        **({} if spec.schedulable else {"unschedulable": True}),
        **({"taints": [dict(taint) for taint in spec.taints]} if spec.taints else {}),
    }
    status = {
        "capacity": _amounts(spec.capacity),
        "allocatable": _amounts(spec.allocatable),
        "conditions": [{"type": "Ready", "status": "True" if spec.ready else "False"}],
    }
    return document(
        "Node",
        spec.name,
        version="v1",
        labels=spec.labels,
        notes=spec.annotations,
        spec=body or None,
        status=status,
    )


def _amounts(amounts: Mapping[str, int]) -> dict[str, str]:
    return {resource: format_quantity(resource, amount) for resource, amount in amounts.items()}


def _check(spec: CheckSpec) -> Manifest:
    notes = {
        QUEUES: ",".join(spec.queues),
        PARAMETERS: json.dumps(spec.parameters) if spec.parameters else "",
        DESCRIPTION: spec.description,
    }
    return document(
        "AdmissionCheck",
        spec.name,
        version=VERSION,
        notes={key: text for key, text in notes.items() if text},
        spec={"controllerName": f"{CONTROLLER}{spec.kind}"},
    )


WRITERS: Mapping[type, Callable[[Any], Manifest]] = {NodeSpec: _node, CheckSpec: _check}
