"""Kubernetes' own kinds: Node, Pod, Deployment, batch Job."""

import json
from dataclasses import replace

from gpuplatform.common.fields import Fields
from scheduling.devices import OURS, devices_of
from scheduling.manifests import annotations as words
from scheduling.manifests.part import Part
from scheduling.manifests.pods import read_template
from scheduling.manifests.work import begin
from scheduling.specs import NodeSpec, WorkloadSpec

MOST_PODS = 100_000
MOST_REPLICAS = 1_000  # each replica of a Deployment is a workload of its own,
MOST_STORED = 16 * 2**20  # which keeps the document: bytes of all copies together


def read_node(part: Part) -> None:
    """Read a Node: labels, taints, what it has, and whether it takes pods."""
    fields = part.fields()
    fields.accept("apiVersion", "kind")
    meta = fields.child("metadata", required=True)
    if not part.document.name:
        meta.report("REQUIRED", "name")
    spec, status = fields.child("spec"), fields.child("status")
    taints = tuple(_taint(row) for row in spec.children("taints"))
    cordoned = spec.flag("unschedulable")
    spec.accept("podCIDR", "podCIDRs", "providerID")
    spec.close()
    capacity = status.quantities("capacity")
    annotations = meta.labels("annotations")
    node = NodeSpec(
        name=part.document.name,
        labels=meta.labels("labels"),
        annotations={key: text for key, text in annotations.items() if key.startswith(OURS)},
        taints=taints,
        capacity=capacity,
        allocatable=status.quantities("allocatable") if "allocatable" in status else capacity,
        ready=_ready(status),
        schedulable=not cordoned,
    )
    fields.close()
    devices = devices_of(node.labels, node.annotations, node.allocatable)
    if devices and devices.replicas > 1 and not devices.memory:
        part.report("SHARED_MEMORY_UNKNOWN", "metadata.labels", node=node.name)
    part.specs.append(node)


def _taint(row: Fields) -> dict[str, str]:
    effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
    row.accept("timeAdded")
    return {
        "key": row.text("key", required=True),
        "value": row.text("value"),
        "effect": row.choice("effect", effects, "NoSchedule"),
    }


def _ready(status: Fields) -> bool:
    """Return the Ready condition; a node that reports none is taken as ready."""
    states = {row.text("type"): row.text("status") for row in status.children("conditions")}
    return states.get("Ready", "True") == "True"


def read_pod(part: Part) -> None:
    """Read a Pod as a workload of one pod; what is known of its group is for the caller."""
    work = begin(part)
    body = {key: part.document.body.get(key) for key in ("metadata", "spec")}
    shape = read_template(Fields(body, part.document.subject, part.diagnostics))
    work.fields.accept("spec")
    work.shapes.append(shape)
    work.pod_sets.append(shape.as_pod_set("main", 1))
    work.fields.close()
    part.specs.append(work.spec())


def read_deployment(part: Part) -> None:
    """Read a Deployment: every replica is a workload of its own (``admission.md`` 4.2)."""
    work = begin(part)
    spec = work.fields.child("spec", required=True)
    most = min(MOST_REPLICAS, MOST_STORED // len(json.dumps(part.document.body)))
    replicas = spec.integer("replicas", 1, maximum=max(1, most)) or 0
    shape = read_template(spec.child("template", required=True))
    spec.accept("selector", "minReadySeconds", "progressDeadlineSeconds", "revisionHistoryLimit")
    spec.accept("strategy")
    spec.not_honoured("paused")
    spec.close()
    work.shapes.append(shape)
    work.pod_sets.append(shape.as_pod_set("main", 1))
    work.fields.close()
    made = work.spec()
    part.specs.extend(_replica(made, number) for number in range(replicas))


def _replica(spec: WorkloadSpec, number: int) -> WorkloadSpec:
    return replace(spec, name=f"{spec.name}-{number}")


def read_job(part: Part) -> None:
    """Read a batch Job: one pod set of min(parallelism, completions) pods."""
    work = begin(part)
    spec = work.fields.child("spec", required=True)
    parallelism = spec.integer("parallelism", 1, maximum=MOST_PODS)
    completions = spec.integer("completions", maximum=2**31 - 1)
    count = min(n for n in (parallelism, completions) if n is not None)
    shape = read_template(spec.child("template", required=True))
    work.max_execution_time_s = spec.integer("activeDeadlineSeconds")
    work.max_retries = spec.integer("backoffLimit")
    spec.accept("suspend", "selector", "manualSelector", "completionMode", "podReplacementPolicy")
    work.ttl_s = spec.integer("ttlSecondsAfterFinished")
    spec.not_honoured("backoffLimitPerIndex", "maxFailedIndexes", "podFailurePolicy")
    spec.not_honoured("successPolicy", "managedBy")
    spec.close()
    notes = work.fields.child("metadata").child("annotations")
    least = words.seconds(notes, words.MIN_PARALLELISM)
    work.shapes.append(shape)
    work.pod_sets.append(shape.as_pod_set("main", count, least))
    work.fields.close()
    part.specs.append(work.spec())
