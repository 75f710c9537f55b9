"""Slices, groups and partitions in manifests become what pod sets ask for."""

import json
from typing import Any

import pytest

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.fields import Fields
from scheduling.manifests.pods import read_template
from scheduling.specs import PodSetSpec, SliceSpec, SubgroupSpec, TopologySpec
from tests.scheduling.manifests.reading import (
    QUEUE,
    TEMPLATE,
    codes,
    document,
    only,
    parts_of,
    volcano,
)

KUEUE = "kueue.x-k8s.io"
LAYERS = f"{KUEUE}/podset-slice-required-topology-constraints"
PAIR = {f"{KUEUE}/podset-slice-required-topology": "rack", f"{KUEUE}/podset-slice-size": "8"}
BLOCK, RACK = TopologySpec("required", "block"), TopologySpec("required", "rack")


def template(annotations: dict[str, str]) -> dict[str, Any]:
    return {**TEMPLATE, "metadata": {"annotations": annotations}}


def read(annotations: dict[str, str]) -> tuple[PodSetSpec, list[tuple[str, str]]]:
    found: list[Diagnostic] = []
    shape = read_template(Fields(template(annotations), "Pod/ns/p", found))
    return shape.pod_set, [(d.code, d.path) for d in found]


def test_one_slice_is_a_level_and_a_size() -> None:
    pod_set, found = read(PAIR)
    assert (pod_set.slices, found) == ((SliceSpec("rack", 8),), [])


@pytest.mark.parametrize("size", [16, "16"])
def test_slices_of_slices_are_a_list(size: int | str) -> None:
    layers = [{"topology": "block", "size": size}, {"topology": "rack", "size": "8"}]
    pod_set, found = read({LAYERS: json.dumps(layers)})
    assert (pod_set.slices, found) == ((SliceSpec("block", 16), SliceSpec("rack", 8)), [])


@pytest.mark.parametrize("missing", sorted(PAIR))
def test_a_level_without_size_or_a_size_without_level_is_said(missing: str) -> None:
    pod_set, found = read({key: value for key, value in PAIR.items() if key != missing})
    assert pod_set.slices == ()
    assert found == [("REQUIRED", f"metadata.annotations[{missing}]")]


@pytest.mark.parametrize(
    "text", ["", "rack", "{}", "[1]", '[{"topology": "rack"}]', '[{"size": 1}]', "[" * 5000]
)
def test_a_list_that_is_none_is_said(text: str) -> None:
    _, found = read({LAYERS: text})
    assert found == [("BAD_VALUE", f"metadata.annotations[{LAYERS}]")]


def test_the_list_and_the_pair_exclude_each_other() -> None:
    _, found = read({**PAIR, LAYERS: '[{"topology": "rack", "size": 8}]'})
    assert found == [("BAD_VALUE", f"metadata.annotations[{LAYERS}]")]


def test_templates_of_one_group_make_pod_sets_of_one_group() -> None:
    pods = template(
        {f"{KUEUE}/podset-group-name": "pair", f"{KUEUE}/podset-required-topology": "rack"}
    )
    replicas = {
        name: {"replicas": n, "template": pods} for name, n in (("Master", 1), ("Worker", 3))
    }
    body = document(
        "PyTorchJob", "kubeflow.org/v1", {"pytorchReplicaSpecs": replicas}, labels=QUEUE
    )
    (part,) = parts_of(body)
    found = [(p.name, p.group, p.topology) for p in only(part).pod_sets]
    assert found == [("master", "pair", RACK), ("worker", "pair", RACK)]
    assert codes(part) == []


# ---- Volcano ---------------------------------------------------------------------------------
HARD = {"mode": "hard", "highestTierName": "block"}


def tasks(**policy: Any) -> list[dict[str, Any]]:
    more = {"partitionPolicy": policy} if policy else {}
    return [{"name": "worker", "replicas": 8, "template": TEMPLATE, **more}]


def test_the_network_topology_of_a_job_holds_for_all_its_tasks_at_once() -> None:
    two = [{"name": n, "replicas": c, "template": TEMPLATE} for n, c in (("ps", 1), ("worker", 3))]
    (part,) = parts_of(volcano({"queue": "q", "networkTopology": HARD, "tasks": two}))
    assert [(p.topology, p.group) for p in only(part).pod_sets] == [(BLOCK, "job")] * 2


def test_one_task_is_no_group() -> None:
    (part,) = parts_of(volcano({"queue": "q", "networkTopology": HARD}))
    assert [(p.topology, p.group) for p in only(part).pod_sets] == [(BLOCK, "")]


def test_partitions_are_subgroups_and_with_a_hard_tier_slices() -> None:
    policy = {"totalPartitions": 2, "partitionSize": 4, "minPartitions": 1}
    hard = {**policy, "networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    plain, near = parts_of(
        volcano({"queue": "q", "tasks": tasks(**policy)}),
        volcano({"queue": "q", "tasks": tasks(**hard), "networkTopology": HARD}),
    )
    assert [(p.subgroup, p.slices) for p in only(plain).pod_sets] == [(SubgroupSpec(4, 1), ())]
    (pod_set,) = only(near).pod_sets
    assert (pod_set.topology, pod_set.slices) == (BLOCK, (SliceSpec("tier:1", 4),))
    assert (codes(plain), codes(near)) == ([], [])


def test_a_soft_tier_makes_slices_that_are_only_preferred() -> None:
    soft = {
        "totalPartitions": 2,
        "partitionSize": 4,
        "networkTopology": {"mode": "soft", "highestTierAllowed": 1},
    }
    (part,) = parts_of(volcano({"queue": "q", "tasks": tasks(**soft)}))
    assert only(part).pod_sets[0].slices == (SliceSpec("tier:1", 4, "preferred"),)
    assert codes(part) == []


def test_a_soft_partition_without_tier_stands_where_the_job_stands() -> None:
    soft = {"totalPartitions": 2, "partitionSize": 4, "networkTopology": {"mode": "soft"}}
    (part,) = parts_of(volcano({"queue": "q", "tasks": tasks(**soft)}))
    assert (only(part).pod_sets[0].slices, codes(part)) == ((), [])


def test_a_hard_partition_without_tier_lacks_one() -> None:
    hard = {"totalPartitions": 2, "partitionSize": 4, "networkTopology": {"mode": "hard"}}
    (part,) = parts_of(volcano({"queue": "q", "tasks": tasks(**hard)}))
    assert codes(part) == ["TOPOLOGY_LEVEL_MISSING"]


def test_partitions_that_are_not_all_replicas_are_refused() -> None:
    (part,) = parts_of(volcano({"queue": "q", "tasks": tasks(totalPartitions=3, partitionSize=4)}))
    assert codes(part) == ["PARTITIONS_NOT_WHOLE"]


def pod_group(policies: list[dict[str, Any]]) -> dict[str, Any]:
    spec = {"minMember": 4, "minResources": {"nvidia.com/gpu": "16"}, "subGroupPolicy": policies}
    return document("PodGroup", "scheduling.volcano.sh/v1beta1", {**spec, "queue": "q"})


def test_a_subgroup_policy_for_all_pods_makes_slices() -> None:
    policy = {"name": "pairs", "subGroupSize": 2, "networkTopology": {"highestTierName": "rack"}}
    (part,) = parts_of(pod_group([policy]))
    (pod_set,) = only(part).pod_sets
    assert (pod_set.subgroup, pod_set.slices) == (SubgroupSpec(2, 0), (SliceSpec("rack", 2),))


def test_a_soft_subgroup_policy_makes_slices_that_are_only_preferred() -> None:
    near = {"mode": "soft", "highestTierName": "rack"}
    (part,) = parts_of(pod_group([{"subGroupSize": 2, "networkTopology": near}]))
    assert only(part).pod_sets[0].slices == (SliceSpec("rack", 2, "preferred"),)
    assert "FIELD_NOT_HONOURED" not in codes(part)


def test_a_subgroup_policy_for_some_pods_is_said_not_to_be_followed() -> None:
    policy = {"subGroupSize": 2, "labelSelector": {"matchLabels": {"a": "b"}}}
    (part,) = parts_of(pod_group([policy]))
    assert only(part).pod_sets[0].subgroup is None
    ignored = {d.path for d in part.diagnostics if d.code == "FIELD_NOT_HONOURED"}
    policy_path = "spec.subGroupPolicy[0]"
    assert ignored == {f"{policy_path}.labelSelector", f"{policy_path}.subGroupSize"}
