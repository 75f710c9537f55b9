"""The kinds of the public projects become pod sets as ``admission.md`` 4.2 lists them."""

import json
from typing import Any

import pytest

from gpuplatform.common.manifests import load_documents
from scheduling.manifests import Part, read
from scheduling.specs import WorkloadSpec
from tests.scheduling.manifests.public import GPU, KINDS, LEADERS, QUEUE, document, template


def parts_of(*bodies: dict[str, Any]) -> list[Part]:
    return read(load_documents("\n---\n".join(json.dumps(body) for body in bodies)))


def only(part: Part) -> WorkloadSpec:
    (spec,) = part.specs
    assert isinstance(spec, WorkloadSpec)
    return spec


def codes(part: Part) -> set[str]:
    return {found.code for found in part.diagnostics}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_becomes_its_pod_sets_in_their_order(kind: str) -> None:
    body, counts = KINDS[kind]
    (part,) = parts_of(body)

    spec = only(part)

    assert {pod_set.name: pod_set.count for pod_set in spec.pod_sets} == counts
    assert [pod_set.name for pod_set in spec.pod_sets] == list(counts)
    assert (spec.kind, spec.queue, spec.template) == (kind, "lq-datos", body)
    assert codes(part) <= {"FIELD_NOT_HONOURED"}  # a runtime that stands elsewhere


def test_every_group_of_a_leader_worker_set_is_a_gang_of_its_own() -> None:
    (part,) = parts_of(LEADERS)
    shapes = [
        (spec.name, [(p.name, p.count) for p in spec.pod_sets])
        for spec in part.specs
        if isinstance(spec, WorkloadSpec)
    ]
    pods = [("leader", 1), ("worker", 3)]
    assert shapes == [("a-leaderworkerset-0", pods), ("a-leaderworkerset-1", pods)]


def test_without_a_leader_template_all_pods_of_a_group_are_alike() -> None:
    body = document(
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io/v1",
        {"leaderWorkerTemplate": {"size": 4, "workerTemplate": template()}},
    )
    (part,) = parts_of(body)
    assert [(p.name, p.count) for p in only(part).pod_sets] == [("main", 4)]


def test_a_stateful_set_of_no_replicas_holds_nothing() -> None:
    body = document("StatefulSet", "apps/v1", {"replicas": 0, "template": template()})
    (part,) = parts_of(body)
    assert part.specs == []


def test_spark_adds_its_overhead_to_memory() -> None:
    (part,) = parts_of(KINDS["SparkApplication"][0])
    driver, executor = only(part).pod_sets
    assert driver.requests == {"cpu": 1000, "memory": (512 + 384) * 2**20}
    assert executor.requests == {"cpu": 2000, "memory": 9_448_928_052, GPU: 1}


def test_a_train_job_whose_runtime_says_what_it_asks_for_is_refused() -> None:
    body = document("TrainJob", "trainer.kubeflow.org/v1alpha1", {"trainer": {"numNodes": 2}})
    (part,) = parts_of(body)
    assert "REQUIRED" in codes(part)


def test_a_component_whose_pods_are_nowhere_is_refused() -> None:
    component = {"template": {"kind": "Secret"}}
    body = document(
        "AppWrapper", "workload.codeflare.dev/v1beta2", {"components": [component, component]}
    )
    (part,) = parts_of(body)
    assert [found.path for found in part.diagnostics if found.code == "REQUIRED"] == [
        "spec.components[0].podSets",
        "spec.components[1].podSets",
    ]


def test_pods_join_the_group_of_scheduler_plugins_by_a_label() -> None:
    group = document("PodGroup", "scheduling.x-k8s.io/v1alpha1", {"minMember": 2}, labels={})
    labels = {**QUEUE, "scheduling.x-k8s.io/pod-group": "a-podgroup"}
    pods = [
        document("Pod", "v1", template()["spec"], name=f"p{n}", labels=labels) for n in range(3)
    ]

    gang, *members = parts_of(group, *pods)

    spec = only(gang)
    assert (spec.queue, spec.min_member) == ("lq-datos", 2)
    assert sum(pod_set.count for pod_set in spec.pod_sets) == 3
    assert [member.specs for member in members] == [[], [], []]
    assert codes(gang) == set()
