"""Kueue's Workload: written by its job controllers, and by our export of any work.

What Kueue has no field for stands in annotations under ``workload.gpuplatform.io/``, each called
as REST calls the field. With ``workload.gpuplatform.io/kind`` among them the document says all
that there is to say; without it, it is one of Kueue's own, and its pod templates count.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpuplatform.common.fields import KEPT, Fields
from gpuplatform.common.manifests import parse_json
from gpuplatform.common.problems import Rejected
from queues.rules.words import INT32_MIN
from scheduling.manifests.core import MOST_PODS
from scheduling.manifests.part import Part
from scheduling.manifests.pods import PodShape, merged, read_template
from scheduling.manifests.policies import read_stored
from scheduling.manifests.work import begin
from scheduling.specs import (
    ON_FAILURE,
    ON_NODE_LOSS,
    SLICE_MODES,
    PodSetSpec,
    SliceSpec,
    SubgroupSpec,
    TopologySpec,
    WorkloadSpec,
)

GROUP = "kueue.x-k8s.io"
KIND = "Workload"
NOTES = "workload.gpuplatform.io/"
TEXTS = frozenset(("kind", "ceiling_queue", "on_failure", "on_node_loss", "topology_level"))
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}", re.ASCII)
SLICES = "podsetSliceRequiredTopologyConstraints"


def noted(field: str) -> str:
    """Return the annotation that carries a field."""
    return f"{NOTES}{field.replace('_', '-')}"


def read_workload(part: Part) -> None:
    """Read a Workload."""
    work = begin(part)
    spec = work.fields.child("spec", required=True)
    metadata = work.fields.child("metadata")
    carried = _carried(metadata.child("annotations"))
    is_ours = "kind" in carried
    shapes: list[PodShape] = []
    pod_sets = tuple(_pod_set(row, shapes) for row in spec.children("podSets", required=True))
    labels, notes = metadata.labels("labels"), _others(metadata.labels("annotations"))
    made = WorkloadSpec(
        namespace=part.document.namespace,
        name=part.document.name,
        pod_sets=pod_sets,
        queue=spec.text("queueName"),
        priority_class=_priority_class(spec),
        priority=spec.integer("priority", minimum=INT32_MIN),
        labels=labels if is_ours else merged([labels, *(s.labels for s in shapes)]),
        annotations=notes if is_ours else merged([notes, *(s.annotations for s in shapes)]),
        max_execution_time_s=spec.integer("maximumExecutionTimeSeconds", minimum=1),
        grace_s=max((s.grace_s for s in shapes if s.grace_s is not None), default=None),
        active=spec.flag("active", True),
        template=carried.raw("template") if is_ours else part.document.body,
    )
    if not made.queue:
        part.report("OUTSIDE_QUOTA")
    part.specs.append(_with_carried(made, carried))
    spec.not_honoured("preemptionGates")
    spec.close()
    carried.close()
    work.fields.close()


def _priority_class(spec: Fields) -> str:
    """Return the class that v1beta2 names in ``priorityClassRef``, v1beta1 in a text."""
    row = spec.child("priorityClassRef")
    row.accept("group", "kind")
    name = row.text("name") or spec.text("priorityClassName")
    spec.accept("priorityClassSource")
    row.close()
    return name


def _others(notes: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in notes.items() if not key.startswith(NOTES)}


def _carried(notes: Fields) -> Fields:
    """Return what annotations of ours carry, as checked fields called as in REST."""
    found: dict[str, Any] = {}
    for key in notes.body:
        if key.startswith(NOTES):
            name = key.removeprefix(NOTES).replace("-", "_")
            text = notes.text(key)
            found[name] = text if name in TEXTS else _parsed(notes, key, text)
    return Fields(found, notes.subject, notes.diagnostics, notes.at())


def _parsed(notes: Fields, key: str, text: str) -> Any:
    try:
        return parse_json(text)
    except (ValueError, Rejected):
        notes.report("BAD_VALUE", key, value=text[:KEPT], allowed="JSON")
        return None


def _with_carried(spec: WorkloadSpec, carried: Fields) -> WorkloadSpec:
    minima = carried.child("role_minima")
    found = {role: minima.integer(role) for role in minima.body}
    return replace(
        spec,
        kind=_kind(carried),
        ceiling_queue=carried.text("ceiling_queue"),
        min_member=carried.integer("min_member", minimum=1),
        role_minima={role: least for role, least in found.items() if least is not None},
        elastic=carried.flag("elastic"),
        preemptible=carried.flag("preemptible", True),
        stateless=carried.flag("stateless"),
        expected_duration_s=carried.integer("expected_duration_s", minimum=1),
        checkpoint_interval_s=carried.integer("checkpoint_interval_s", minimum=1),
        on_failure=carried.choice("on_failure", ON_FAILURE, ON_FAILURE[0]),
        max_retries=carried.integer("max_retries"),
        policies=tuple(read_stored(carried)),
        min_success=carried.integer("min_success", minimum=1),
        on_node_loss=carried.choice("on_node_loss", ON_NODE_LOSS, ON_NODE_LOSS[0]),
        ttl_s=carried.integer("ttl_after_finished_s"),
        gates=tuple(dict.fromkeys(carried.texts("admission_gates"))),
    )


def _kind(carried: Fields) -> str:
    """Return the kind of the document that was submitted."""
    kind = carried.text("kind", KIND)
    if not _KIND.fullmatch(kind):
        carried.report("BAD_VALUE", "kind", value=kind[:KEPT], allowed="PyTorchJob")
    return kind


# ---- pod sets ----------------------------------------------------------------------------------
def _pod_set(row: Fields, shapes: list[PodShape]) -> PodSetSpec:
    name, count = row.text("name", "main"), row.integer("count", 1, maximum=MOST_PODS)
    template = row.child("template", required=True)
    shape = read_template(template)
    shapes.append(shape)
    made = shape.as_pod_set(name, count or 0, row.integer("minCount", minimum=1))
    if "topologyRequest" in row:
        made = _near(made, row.child("topologyRequest"))
    carried = _carried(template.child("metadata").child("annotations"))
    if "subgroup" in carried:
        made = replace(made, subgroup=_subgroup(carried.child("subgroup")))
    if "topology_level" in carried and made.topology is not None:
        made = replace(made, topology=replace(made.topology, level=carried.text("topology_level")))
    if "slices" in carried:
        layers = carried.children("slices")
        made = replace(made, slices=tuple(_slice(layer, "level") for layer in layers))
    carried.accept("subgroup")
    carried.close()
    row.close()
    return made


def _subgroup(row: Fields) -> SubgroupSpec:
    size = row.integer("size", 1, minimum=1, required=True) or 1
    made = SubgroupSpec(size, row.integer("min_subgroups", 0) or 0)
    row.close()
    return made


def _near(pod_set: PodSetSpec, row: Fields) -> PodSetSpec:
    """Return the pod set with what its topology request asks for (K61, K62)."""
    topology = None
    for mode in ("required", "preferred"):
        if level := row.text(mode):
            topology = TopologySpec(mode, level)
    if topology is None and row.flag("unconstrained"):
        topology = TopologySpec("unconstrained")
    slices = tuple(_slice(layer) for layer in row.children(SLICES))
    level = row.text("podSetSliceRequiredTopology")
    size = row.integer("podSetSliceSize", minimum=1)
    if level and size:
        slices = (SliceSpec(level, size),)
    elif level or size:
        row.report("REQUIRED", "podSetSliceSize" if level else "podSetSliceRequiredTopology")
    group = row.text("podSetGroupName")
    row.accept("podIndexLabel", "subGroupIndexLabel", "subGroupCount")
    row.close()
    return replace(pod_set, topology=topology, slices=slices, group=group)


def _slice(row: Fields, level: str = "topology") -> SliceSpec:
    """Return a layer as Kueue writes it, or as we carry it: there it may be only preferred."""
    size = row.integer("size", 1, minimum=1, required=True) or 1
    mode = row.choice("mode", SLICE_MODES, SLICE_MODES[0]) if level == "level" else SLICE_MODES[0]
    made = SliceSpec(row.text(level, required=True), size, mode)
    row.close()
    return made
