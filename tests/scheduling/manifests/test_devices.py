"""What manifests say of islands, parts of devices and their memory."""

from typing import Any

import pytest

from scheduling.manifests import Part
from scheduling.specs import NodeSpec
from tests.scheduling.manifests.reading import TEMPLATE, codes, job, only, parts_of, volcano

GPU, ISLANDS = "nvidia.com/gpu", "gpuplatform.io/gpu-islands"


@pytest.mark.parametrize(
    ("policy", "locality"),
    [
        ({}, "any"),
        ({"topologyPolicy": "none"}, "any"),
        ({"topologyPolicy": "best-effort"}, "prefer-island"),
        ({"topologyPolicy": "restricted"}, "restricted"),
        ({"topologyPolicy": "single-numa-node"}, "require-island"),
    ],
)
def test_volcanos_numa_policies_are_localities(policy: dict[str, str], locality: str) -> None:
    tasks = [{"name": "worker", "replicas": 2, "template": TEMPLATE, **policy}]

    (part,) = parts_of(volcano({"tasks": tasks, "queue": "q"}))

    assert only(part).pod_sets[0].device_locality == locality
    assert codes(part) == []


def test_an_unknown_numa_policy_is_refused() -> None:
    tasks = [{"name": "worker", "template": TEMPLATE, "topologyPolicy": "two-nodes"}]

    (part,) = parts_of(volcano({"tasks": tasks, "queue": "q"}))

    assert codes(part) == ["BAD_VALUE"]


def annotated(notes: dict[str, str]) -> Part:
    template = {"metadata": {"annotations": notes}, **TEMPLATE}
    labels = {"kueue.x-k8s.io/queue-name": "lq"}
    (part,) = parts_of(job({"template": template}, labels=labels))
    return part


def test_pods_name_their_island_and_device_memory_in_annotations() -> None:
    part = annotated(
        {
            "gpuplatform.io/device-locality": "require-island",
            "gpuplatform.io/gpu-memory": "20Gi",
        }
    )

    pod_set = only(part).pod_sets[0]
    assert (pod_set.device_locality, pod_set.device_memory_mib) == ("require-island", 20_480)
    assert codes(part) == []


@pytest.mark.parametrize(
    ("note", "code"),
    [
        ({"gpuplatform.io/device-locality": "near"}, "BAD_VALUE"),
        ({"gpuplatform.io/gpu-memory": "much"}, "BAD_QUANTITY"),
    ],
)
def test_a_word_that_means_nothing_is_named(note: dict[str, str], code: str) -> None:
    assert codes(annotated(note)) == [code]


def node(labels: dict[str, str], **notes: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": labels, "annotations": notes},
        "status": {"allocatable": {GPU: "8"}},
    }


def test_a_node_keeps_our_annotations_alone() -> None:
    (part,) = parts_of(node({}, **{ISLANDS: "0-3,4-7", "volumes.kubernetes.io/x": "y"}))

    (spec,) = part.specs
    assert isinstance(spec, NodeSpec)
    assert spec.annotations == {ISLANDS: "0-3,4-7"}
    assert codes(part) == []


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"nvidia.com/gpu.replicas": "4"}, ["SHARED_MEMORY_UNKNOWN"]),
        ({"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.memory": "24576"}, []),
        ({"nvidia.com/gpu.replicas": "1"}, []),
    ],
)
def test_turns_without_known_memory_are_warned_of(
    labels: dict[str, str], expected: list[str]
) -> None:
    (part,) = parts_of(node(labels))

    assert codes(part) == expected
