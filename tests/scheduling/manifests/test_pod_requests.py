"""What one pod asks for, by the formula of Kubernetes; where it may stand."""

from typing import Any

import pytest

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.fields import Fields
from scheduling.manifests.pods import read_requests, read_template

GPU = "nvidia.com/gpu"


def container(cpu: str = "", *, gpu: int = 0, always: bool = False, **more: Any) -> dict[str, Any]:
    requests = {**({"cpu": cpu} if cpu else {}), **({GPU: gpu} if gpu else {})}
    row: dict[str, Any] = {"name": "c", "resources": {"requests": requests, **more}}
    return {**row, "restartPolicy": "Always"} if always else row


def requests_of(**spec: Any) -> dict[str, int]:
    found: list[Diagnostic] = []
    read = read_requests(Fields(spec, "Pod/ns/p", found, "spec"))
    assert found == []
    return read


CASES: list[tuple[str, dict[str, Any], dict[str, int]]] = [
    ("containers add up", {"containers": [container("1"), container("500m")]}, {"cpu": 1_500}),
    (
        "an init container counts where it is larger",
        {"containers": [container("1")], "initContainers": [container("3")]},
        {"cpu": 3_000},
    ),
    (
        "init containers run one after the other",
        {"containers": [container("4")], "initContainers": [container("3"), container("3")]},
        {"cpu": 4_000},
    ),
    (
        "a sidecar runs beside the containers",
        {"containers": [container("2")], "initContainers": [container("1", always=True)]},
        {"cpu": 3_000},
    ),
    (
        "a sidecar started before runs beside an init container",
        {
            "containers": [container("1")],
            "initContainers": [container("2", always=True), container("5")],
        },
        {"cpu": 7_000},
    ),
    (
        "a sidecar started after does not",
        {
            "containers": [container("1")],
            "initContainers": [container("5"), container("2", always=True)],
        },
        {"cpu": 5_000},
    ),
    (
        "overhead comes on top",
        {"containers": [container("1")], "overhead": {"cpu": "250m", "memory": "64Mi"}},
        {"cpu": 1_250, "memory": 64 * 2**20},
    ),
    (
        "absent requests equal the limits",
        {"containers": [container("1", limits={"cpu": "2", GPU: "4"})]},
        {"cpu": 1_000, GPU: 4},
    ),
    (
        "pod-level resources rule for what they name",
        {"containers": [container("1", gpu=2)], "resources": {"requests": {"cpu": "6"}}},
        {"cpu": 6_000, GPU: 2},
    ),
    (
        "overhead comes on top of pod-level requests",
        {
            "containers": [container("1")],
            "resources": {"requests": {"cpu": "4"}},
            "overhead": {"cpu": "250m"},
        },
        {"cpu": 4_250},
    ),
    (
        "pod-level limits only bound what containers ask for",
        {
            "containers": [container("1")],
            "resources": {"limits": {"cpu": "8", "memory": "1Gi"}},
            "overhead": {"memory": "64Mi"},
        },
        {"cpu": 1_000, "memory": 2**30 + 64 * 2**20},
    ),
    (
        "what an init container or sidecar asks for is asked for",
        {
            "containers": [container()],
            "initContainers": [container("2"), container("1", always=True)],
            "resources": {"limits": {"cpu": "8"}},
        },
        {"cpu": 2_000},
    ),
    (
        "a container's limit is its request, whatever the pod's limit is",
        {
            "containers": [container(limits={"cpu": "3"})],
            "resources": {"limits": {"cpu": "8"}},
        },
        {"cpu": 3_000},
    ),
    (
        "pod-level requests and limits stand side by side",
        {
            "containers": [container("1")],
            "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "8", "memory": "1Gi"}},
        },
        {"cpu": 2_000, "memory": 2**30},
    ),
    ("odd fractions are rounded up", {"containers": [container("0.0001")]}, {"cpu": 1}),
    ("nothing asked is nothing", {"containers": [{"name": "c"}]}, {}),
]


@pytest.mark.parametrize(("case", "spec", "expected"), CASES, ids=[case for case, *_ in CASES])
def test_a_pod_asks_for(case: str, spec: dict[str, Any], expected: dict[str, int]) -> None:
    assert requests_of(**spec) == expected


@pytest.mark.parametrize(
    ("resources", "code"),
    [
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, "REQUEST_ABOVE_LIMIT"),
        ({"requests": {GPU: "1"}, "limits": {GPU: "2"}}, "BAD_VALUE"),
        ({"requests": {GPU: "2"}, "limits": {GPU: "1"}}, "BAD_VALUE"),
        ({"limits": {GPU: "1.5"}}, "BAD_QUANTITY"),
        ({"limits": {"pods": "1"}}, "RESERVED_RESOURCE"),
        ({"limits": {GPU: "-1"}}, "NEGATIVE"),
        ({"limits": {GPU: "many"}}, "BAD_QUANTITY"),
        ({"limits": []}, "BAD_TYPE"),
    ],
)
def test_doubtful_requests_are_reported(resources: dict[str, Any], code: str) -> None:
    found: list[Diagnostic] = []
    spec = {"containers": [{"name": "c", "resources": resources}]}

    read_requests(Fields(spec, "Pod/ns/p", found, "spec"))

    assert [diagnostic.code for diagnostic in found] == [code]


def template(**changes: Any) -> dict[str, Any]:
    return {"metadata": {}, "spec": {"containers": [container("1")], **changes}}


@pytest.mark.parametrize(
    "field",
    ["topologySpreadConstraints", "schedulingGates", "nodeName", "runtimeClassName"],
)
def test_what_would_change_placement_and_is_not_followed_is_said(field: str) -> None:
    found: list[Diagnostic] = []
    value = "x" if field in {"nodeName", "runtimeClassName"} else {"a": 1}

    read_template(Fields(template(**{field: value}), "Pod/ns/p", found))

    assert [(d.code, d.path) for d in found] == [("FIELD_NOT_HONOURED", f"spec.{field}")]


def test_an_unknown_field_is_said() -> None:
    found: list[Diagnostic] = []

    read_template(Fields(template(nodeSelctor={}), "Pod/ns/p", found))

    assert [(d.code, d.path) for d in found] == [("UNKNOWN_FIELD", "spec.nodeSelctor")]


@pytest.mark.parametrize(
    ("annotations", "mode", "level"),
    [
        ({"kueue.x-k8s.io/podset-required-topology": "rack"}, "required", "rack"),
        ({"kueue.x-k8s.io/podset-preferred-topology": "rack"}, "preferred", "rack"),
        ({"kueue.x-k8s.io/podset-unconstrained-topology": "true"}, "unconstrained", None),
    ],
)
def test_topology_annotations_are_read(
    annotations: dict[str, str], mode: str, level: str | None
) -> None:
    found: list[Diagnostic] = []
    body = {**template(), "metadata": {"annotations": annotations}}

    asked = read_template(Fields(body, "Pod/ns/p", found)).pod_set.topology

    assert asked is not None
    assert (asked.mode, asked.level, found) == (mode, level, [])
