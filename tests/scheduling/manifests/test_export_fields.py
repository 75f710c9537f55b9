"""No field of a spec is lost or changed on its way out and in again, alone or with the others."""

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.specs import (
    ON_FAILURE,
    ON_NODE_LOSS,
    SLICE_MODES,
    CheckSpec,
    NodeSpec,
    PodSetSpec,
    SliceSpec,
    SubgroupSpec,
    TopologySpec,
    WorkloadSpec,
)
from tests.scheduling.manifests.test_export import GPU, POLICY, TERM, again

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
NAMES = st.sampled_from(["a", "yes", "1e5", "0x1f", "null"])
KEYS = st.sampled_from(["team", "example.org/note", "1", "kueue.x-k8s.io/job-uid"])
MAPPINGS = st.dictionaries(KEYS, TEXTS, max_size=2)
AMOUNTS = st.dictionaries(
    st.sampled_from([GPU, "cpu", "memory", "nvidia.com/mig-1g.5gb", "ephemeral-storage"]),
    st.one_of(st.integers(1, 5), st.integers(1, 2**50)),
)
POSITIVE, WHOLE = st.integers(1, 2**31 - 1), st.integers(0, 2**31 - 1)
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
LEVELS = st.sampled_from(["rack", "example.org/rack", "tier:1"])
TOLERATIONS = st.fixed_dictionaries(
    {"operator": st.sampled_from(["Equal", "Exists"])},
    optional={"key": NAMES, "value": NAMES, "effect": st.sampled_from(EFFECTS)},
)
TAINTS = st.fixed_dictionaries({"key": NAMES, "value": NAMES, "effect": st.sampled_from(EFFECTS)})
EXPRESSIONS = st.sampled_from(
    [*TERM[:1], {"key": "z", "operator": "Exists", "values": []}]
    + [{"key": "n", "operator": operator, "values": ["-4"]} for operator in ("Gt", "Lt")]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def several(values: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=most).map(tuple)


# Every field of every dataclass; one that is missing here fails the first test below.
TOPOLOGIES: dict[str, Any] = {
    "mode": st.sampled_from(["required", "preferred", "unconstrained"]),
    "level": LEVELS,
}
SLICES: dict[str, Any] = {
    "level": LEVELS,
    "size": st.integers(1, 64),
    "mode": st.sampled_from(SLICE_MODES),
}
SUBGROUPS: dict[str, Any] = {"size": st.integers(1, 64), "min_subgroups": st.integers(0, 64)}
POD_SETS: dict[str, Any] = {
    "name": NAMES,
    "count": st.integers(0, 100_000),
    "requests": AMOUNTS,
    "min_count": maybe(POSITIVE),
    "node_selector": MAPPINGS,
    "tolerations": several(TOLERATIONS),
    "affinity": several(st.lists(EXPRESSIONS, min_size=1, max_size=2).map(tuple)),
    "topology": maybe(
        st.builds(TopologySpec, **TOPOLOGIES) | st.just(TopologySpec("unconstrained"))
    ),
    "slices": several(st.builds(SliceSpec, **SLICES), 3),
    "group": st.sampled_from(["", "g"]),
    "subgroup": maybe(st.builds(SubgroupSpec, **SUBGROUPS)),
    "device_locality": st.sampled_from(["any", "prefer-island", "restricted", "require-island"]),
    "device_memory_mib": st.integers(0, 10**6),
}
WORKS: dict[str, Any] = {
    "namespace": NAMES,
    "name": NAMES,
    "pod_sets": st.lists(st.builds(PodSetSpec, **POD_SETS), min_size=1, max_size=3).map(tuple),
    "queue": st.sampled_from(["", "lq"]),
    "kind": st.sampled_from(["Workload", "PyTorchJob"]),
    "priority_class": st.sampled_from(["", "high"]),
    "priority": maybe(st.integers(-(2**31), 2**31 - 1)),
    "labels": MAPPINGS,
    "annotations": MAPPINGS,
    "ceiling_queue": st.sampled_from(["", "cq", "null"]),
    "min_member": maybe(POSITIVE),
    "role_minima": st.dictionaries(NAMES, WHOLE, max_size=2),
    "elastic": st.booleans(),
    "preemptible": st.booleans(),
    "stateless": st.booleans(),
    "expected_duration_s": maybe(POSITIVE),
    "max_execution_time_s": maybe(POSITIVE),
    "checkpoint_interval_s": maybe(POSITIVE),
    "on_failure": st.sampled_from(ON_FAILURE),
    "max_retries": maybe(WHOLE),
    "policies": several(
        st.sampled_from([POLICY, {**POLICY, "events": [], "exit_code": 3, "pod_set": ""}])
    ),
    "min_success": maybe(POSITIVE),
    "on_node_loss": st.sampled_from(ON_NODE_LOSS),
    "grace_s": maybe(st.integers(0, 86_400)),
    "ttl_s": maybe(WHOLE),
    "gates": st.lists(NAMES, unique=True, max_size=2).map(tuple),
    "active": st.booleans(),
    "template": JSON,
}
NODES: dict[str, Any] = {
    "name": NAMES,
    "labels": MAPPINGS,
    "annotations": st.sampled_from([{}, {"gpuplatform.io/islands": "4,4"}]),
    "taints": several(TAINTS),
    "capacity": AMOUNTS,
    "allocatable": AMOUNTS,
    "ready": st.booleans(),
    "schedulable": st.booleans(),
}
CHECKS: dict[str, Any] = {
    "name": NAMES,
    "kind": st.just("manual"),
    "queues": st.lists(NAMES, unique=True, max_size=2).map(tuple),
    "parameters": st.dictionaries(TEXTS, JSON, max_size=2),
    "description": TEXTS,
}


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        (TopologySpec, TOPOLOGIES),
        (SliceSpec, SLICES),
        (SubgroupSpec, SUBGROUPS),
        (PodSetSpec, POD_SETS),
        (WorkloadSpec, WORKS),
        (NodeSpec, NODES),
        (CheckSpec, CHECKS),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_field_is_tried(kind: Any, table: dict[str, Any]) -> None:
    assert list(table) == [field.name for field in fields(kind)]


ALONE = st.builds(WorkloadSpec, namespace=NAMES, name=NAMES, pod_sets=WORKS["pod_sets"])


@settings(max_examples=40, deadline=None)
@given(st.one_of(ALONE, st.builds(WorkloadSpec, **WORKS)))
def test_work_keeps_every_field(spec: WorkloadSpec) -> None:
    assert again(spec) == spec


@settings(max_examples=20, deadline=None)
@given(st.one_of(st.builds(NodeSpec, **NODES), st.builds(CheckSpec, **CHECKS)))
def test_machines_and_checks_keep_every_field(spec: object) -> None:
    assert again(spec) == spec
