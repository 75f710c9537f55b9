"""Ray's kinds and MPI jobs ask for all their replicas at once (``admission.md`` 4.2)."""

from typing import Any

import pytest

from tests.scheduling.manifests.reading import (
    QUEUE,
    TEMPLATE,
    codes,
    counts,
    document,
    only,
    parts_of,
)


def test_a_rayjob_has_hosts_times_replicas_and_a_submitter() -> None:
    group = {"groupName": "w", "replicas": 2, "numOfHosts": 3, "template": TEMPLATE}
    cluster = {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [group]}
    body = document("RayJob", "ray.io/v1", {"rayClusterSpec": cluster}, labels=QUEUE)
    (part,) = parts_of(body)

    assert counts(only(part)) == {"head": 1, "w": 6, "submitter": 1}
    assert codes(part) == []


RAY_HEAD = {"cpu": 1000, "memory": 2**30}
AUTOSCALES = {"enableInTreeAutoscaling": True}


@pytest.mark.parametrize(
    ("group", "cluster", "workers", "head", "found"),
    [
        ({"replicas": 4, "minReplicas": 0, "maxReplicas": 6}, {}, 4, RAY_HEAD, []),
        ({"replicas": 4, "minReplicas": 2, "numOfHosts": 3}, {}, 12, RAY_HEAD, []),
        ({"minReplicas": 0}, {}, 1, RAY_HEAD, []),
        (
            {"replicas": 1, "minReplicas": 0, "maxReplicas": 6},
            AUTOSCALES,
            1,
            {"cpu": 1500, "memory": 2**30 + 512 * 2**20},
            ["AUTOSCALER_NOT_FOLLOWED"],
        ),
        (
            {"replicas": 2},
            {**AUTOSCALES, "autoscalerOptions": {"resources": {"limits": {"cpu": "2"}}}},
            2,
            {"cpu": 3000, "memory": 2**30},
            ["AUTOSCALER_NOT_FOLLOWED"],
        ),
        ({}, {"autoscalerOptions": {"idleTimeoutSeconds": 60}}, 1, RAY_HEAD, []),
        (
            {},
            {"gcsFaultToleranceOptions": {"redisAddress": "r"}},
            1,
            RAY_HEAD,
            ["FIELD_NOT_HONOURED"],
        ),
    ],
)
def test_ray_asks_for_its_replicas_at_once_whatever_its_own_scaling_may_do(
    group: dict[str, Any],
    cluster: dict[str, Any],
    workers: int,
    head: dict[str, int],
    found: list[str],
) -> None:
    first = {"cpu": "1", "memory": "1Gi"}
    body = {"headGroupSpec": {"template": pod_of(first)}, **cluster}
    body |= {"workerGroupSpecs": [{"groupName": "w", "template": TEMPLATE, **group}]}
    for kind, spec in (
        ("RayCluster", body),
        ("RayJob", {"rayClusterSpec": body}),
        ("RayService", {"rayClusterConfig": body}),
    ):
        (part,) = parts_of(document(kind, "ray.io/v1", spec, labels=QUEUE))
        work = only(part)
        assert counts(work)["w"] == workers
        assert (work.role_minima, work.min_member) == ({}, None)
        assert [p.subgroup for p in work.pod_sets if p.name == "w"] == [None]
        assert work.pod_sets[0].requests == head
        assert codes(part) == found


def pod_of(limits: dict[str, str]) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]}}


def test_a_head_is_as_large_as_what_takes_its_place_or_stands_in_its_pod() -> None:
    cluster: dict[str, Any] = {
        "headGroupSpec": {"template": pod_of({"cpu": "100m", "memory": "1Gi"})}
    }
    cluster |= {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}}
    spec = {"rayClusterSpec": cluster, "submissionMode": "SidecarMode"}
    (part,) = parts_of(document("RayJob", "ray.io/v1", spec, labels=QUEUE))
    (head,) = only(part).pod_sets
    assert head.requests == {"cpu": 700, "memory": 2**30 + 200 * 2**20}


def test_an_mpi_job_starts_with_all_its_workers() -> None:
    types = {"Launcher": {"template": TEMPLATE}, "Worker": {"replicas": 4, "template": TEMPLATE}}
    policy = {"schedulingPolicy": {"minAvailable": 2}}
    spec = {"mpiReplicaSpecs": types, "runPolicy": policy}
    (part,) = parts_of(document("MPIJob", "kubeflow.org/v2beta1", spec, labels=QUEUE))
    assert only(part).min_member is None
    assert codes(part) == ["FIELD_NOT_HONOURED"]
