"""Documents of work in, what was read out: what the tests of the kinds share."""

import json
from typing import Any

from gpuplatform.common.manifests import load_documents
from scheduling.manifests import Part, read
from scheduling.specs import WorkloadSpec

GPU = "nvidia.com/gpu"
CONTAINERS = [{"name": "c", "resources": {"limits": {GPU: "4"}}}]
TEMPLATE = {"spec": {"containers": CONTAINERS}}
QUEUE = {"kueue.x-k8s.io/queue-name": "lq"}


def parts_of(*bodies: dict[str, Any]) -> list[Part]:
    return read(load_documents("\n---\n".join(json.dumps(body) for body in bodies)))


def document(kind: str, api: str, spec: dict[str, Any], **meta: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "ns", **meta}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def job(spec: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    return document("Job", "batch/v1", {"template": TEMPLATE, **(spec or {})}, **meta)


def volcano(spec: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    tasks = [{"name": "worker", "replicas": 8, "template": TEMPLATE}]
    return document("Job", "batch.volcano.sh/v1alpha1", {"tasks": tasks, **(spec or {})}, **meta)


def only(part: Part) -> WorkloadSpec:
    (spec,) = part.specs
    assert isinstance(spec, WorkloadSpec)
    return spec


def codes(part: Part) -> list[str]:
    return sorted(diagnostic.code for diagnostic in part.diagnostics)


def counts(spec: WorkloadSpec) -> dict[str, int]:
    return {pod_set.name: pod_set.count for pod_set in spec.pod_sets}
