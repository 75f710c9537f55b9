"""Each kind of work becomes pod sets, a gang and a queue, and says what it cannot follow."""

from typing import Any

import pytest

from scheduling.specs import NodeSpec, SubgroupSpec, WorkloadSpec
from tests.scheduling.manifests.reading import (
    CONTAINERS,
    GPU,
    QUEUE,
    TEMPLATE,
    codes,
    counts,
    document,
    job,
    only,
    parts_of,
    volcano,
)


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({}, 1),
        ({"parallelism": 4}, 4),
        ({"parallelism": 4, "completions": 3}, 3),
        ({"parallelism": 2, "completions": 9}, 2),
    ],
)
def test_a_job_runs_the_lesser_of_parallelism_and_completions(
    spec: dict[str, Any], count: int
) -> None:
    (part,) = parts_of(job(spec, labels=QUEUE))

    assert counts(only(part)) == {"main": count}
    assert codes(part) == []


@pytest.mark.parametrize(
    ("label", "deadline", "stopped"),
    [("50", None, 50), (None, 100, 100), ("50", 100, 50), ("100", 50, 50), (None, None, None)],
)
def test_the_shorter_of_two_deadlines_holds(
    label: str | None, deadline: int | None, stopped: int | None
) -> None:
    labels = {"kueue.x-k8s.io/max-exec-time-seconds": label} if label else {}
    spec = {"activeDeadlineSeconds": deadline} if deadline else {}
    (part,) = parts_of(job(spec, labels={**QUEUE, **labels}))
    assert only(part).max_execution_time_s == stopped


def test_labels_and_annotations_of_a_job_are_read() -> None:
    labels = {
        **QUEUE,
        "kueue.x-k8s.io/priority-class": "high",
        "kueue.x-k8s.io/max-exec-time-seconds": "3600",
    }
    notes = {
        "gpuplatform.io/expected-duration-seconds": "900",
        "kueue.x-k8s.io/job-min-parallelism": "2",
    }
    (part,) = parts_of(job({"parallelism": 4}, labels=labels, annotations=notes))

    spec = only(part)
    assert (spec.queue, spec.priority_class) == ("lq", "high")
    assert (spec.max_execution_time_s, spec.expected_duration_s) == (3_600, 900)
    assert spec.pod_sets[0].min_count == 2
    assert spec.template == part.document.body


def test_a_deployment_is_one_workload_for_each_replica() -> None:
    body = document("Deployment", "apps/v1", {"replicas": 3, "template": TEMPLATE}, labels=QUEUE)
    (part,) = parts_of(body)

    assert [spec.name for spec in part.specs] == ["a-0", "a-1", "a-2"]
    assert {spec.queue for spec in part.specs if isinstance(spec, WorkloadSpec)} == {"lq"}


def test_a_pytorchjob_has_a_master_and_workers() -> None:
    replicas = {
        "Worker": {"replicas": 7, "template": TEMPLATE},
        "Master": {"template": TEMPLATE},
    }
    policy = {"schedulingPolicy": {"minAvailable": 8, "priorityClass": "high"}}
    body = document(
        "PyTorchJob",
        "kubeflow.org/v1",
        {"pytorchReplicaSpecs": replicas, "runPolicy": policy},
        labels=QUEUE,
    )
    (part,) = parts_of(body)

    spec = only(part)
    assert counts(spec) == {"master": 1, "worker": 7}
    assert [pod_set.name for pod_set in spec.pod_sets] == ["master", "worker"]
    assert (spec.min_member, spec.priority_class) == (8, "high")


def test_a_volcano_job_is_one_gang_of_all_its_pods_unless_it_says_less() -> None:
    whole, less = parts_of(volcano({"queue": "q"}), volcano({"queue": "q", "minAvailable": 4}))

    assert (only(whole).min_member, only(less).min_member) == (8, 4)
    assert only(whole).queue == "q"


def test_a_task_minimum_is_a_role_minimum() -> None:
    tasks = [{"name": "ps", "replicas": 4, "minAvailable": 2, "template": TEMPLATE}]
    (part,) = parts_of(volcano({"queue": "q", "tasks": tasks}))

    assert only(part).role_minima == {"ps": 2}


def test_partitions_of_a_task_are_subgroups() -> None:
    policy = {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3}
    tasks = [{"name": "w", "replicas": 8, "partitionPolicy": policy, "template": TEMPLATE}]
    (part,) = parts_of(volcano({"queue": "q", "tasks": tasks}))

    assert only(part).pod_sets[0].subgroup == SubgroupSpec(2, 3)
    assert codes(part) == []


@pytest.mark.parametrize(
    ("network", "mode", "level", "found"),
    [
        ({"mode": "hard", "highestTierAllowed": 1}, "required", "tier:1", []),
        ({"mode": "soft", "highestTierAllowed": 2}, "preferred", "tier:2", []),
        ({"highestTierName": "rack"}, "required", "rack", []),
        ({"highestTierAllowed": "block"}, "required", "block", ["LEVEL_AS_NAME"]),
        ({"mode": "hard"}, "unconstrained", None, ["TOPOLOGY_LEVEL_MISSING"]),
        ({"mode": "soft"}, "unconstrained", None, []),
    ],
)
def test_network_topology_is_a_mode_and_a_level(
    network: dict[str, Any], mode: str, level: str | None, found: list[str]
) -> None:
    (part,) = parts_of(volcano({"queue": "q", "networkTopology": network}))

    asked = only(part).pod_sets[0].topology
    assert asked is not None
    assert (asked.mode, asked.level) == (mode, level)
    assert codes(part) == found


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("1h30m", 5_400), ("1.5h", 5_400), ("2h45m10s", 9_910)],
)
def test_the_running_estimate_is_a_declared_duration(text: str, seconds: int) -> None:
    (part,) = parts_of(volcano({"queue": "q", "runningEstimate": text}))

    assert only(part).expected_duration_s == seconds


@pytest.mark.parametrize("text", ["soon", "1", "1d", "h", "-1h", "1.2.3h"])
def test_an_estimate_that_is_none_is_reported(text: str) -> None:
    (part,) = parts_of(volcano({"queue": "q", "runningEstimate": text}))

    assert codes(part) == ["BAD_QUANTITY"]


@pytest.mark.parametrize(
    ("labels", "notes", "spec", "expected"),
    [
        (QUEUE, {}, {}, ("lq", "", [])),
        ({}, {}, {"queue": "vq"}, ("vq", "", [])),
        (QUEUE, {}, {"queue": "vq"}, ("lq", "vq", [])),
        (QUEUE, {"scheduling.volcano.sh/queue-name": "vq"}, {}, ("lq", "vq", [])),
        ({}, {"scheduling.volcano.sh/queue-name": "vq"}, {}, ("vq", "", [])),
        ({}, {}, {}, ("", "", ["QUEUE_DEFAULTED"])),
    ],
)
def test_a_local_queue_is_charged_and_a_volcano_queue_beside_it_only_bounds(
    labels: dict[str, str],
    notes: dict[str, str],
    spec: dict[str, Any],
    expected: tuple[str, str, list[str]],
) -> None:
    (part,) = parts_of(volcano(spec, labels=labels, annotations=notes))

    assert (only(part).queue, only(part).ceiling_queue, codes(part)) == expected


@pytest.mark.parametrize("group", ["scheduling.k8s.io", "scheduling.volcano.sh"])
def test_pods_that_name_a_group_beside_them_join_one_gang(group: str) -> None:
    pods = [
        {
            **document("Pod", "v1", {"containers": CONTAINERS}),
            "metadata": {
                "name": f"p{n}",
                "namespace": "ns",
                "annotations": {f"{group}/group-name": "a"},
            },
        }
        for n in range(3)
    ]
    leader = document("PodGroup", "scheduling.volcano.sh/v1beta1", {"minMember": 3, "queue": "q"})
    *members, gang = parts_of(*pods, leader)

    assert counts(only(gang)) == {"pods-0": 3}
    assert only(gang).min_member == 3
    assert [(part.specs, part.member_of) for part in members] == [([], "PodGroup/ns/a")] * 3
    assert codes(gang) == []


def test_subgroups_of_a_group_are_those_of_the_pods_that_they_select() -> None:
    group = "scheduling.k8s.io"
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "spec": {"containers": CONTAINERS if role == "w" else []},
            "metadata": {
                "name": f"{role}{n}",
                "namespace": "ns",
                "labels": {"role": role},
                "annotations": {f"{group}/group-name": "a"},
            },
        }
        for role, count in (("w", 4), ("ps", 1))
        for n in range(count)
    ]
    policy = {"name": "w", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["n"]}
    policy["labelSelector"] = {"matchLabels": {"role": "w"}}
    spec = {"minMember": 3, "queue": "q", "subGroupPolicy": [policy]}
    *_, gang = parts_of(*pods, document("PodGroup", "scheduling.volcano.sh/v1beta1", spec))

    found = {p.name: (p.count, p.subgroup) for p in only(gang).pod_sets}
    assert found == {"pods-0": (4, SubgroupSpec(2, 1)), "pods-1": (1, None)}
    assert only(gang).min_member == 3
    assert codes(gang) == []


def test_a_group_without_pods_asks_for_exactly_what_it_announces() -> None:
    spec = {"minMember": 3, "minResources": {GPU: "10"}, "queue": "q"}
    (part,) = parts_of(document("PodGroup", "scheduling.volcano.sh/v1beta1", spec))

    pod_sets = only(part).pod_sets
    assert sum(p.count for p in pod_sets) == 3
    assert sum(p.count * p.requests[GPU] for p in pod_sets) == 10
    assert codes(part) == ["GANG_LARGER_THAN_POD_COUNT"]


def node(**status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "spec": status.pop("spec", {}),
        "status": {"capacity": {"cpu": "8", GPU: "4"}, **status},
    }


@pytest.mark.parametrize(
    ("changes", "ready", "schedulable"),
    [
        ({}, True, True),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, False, True),
        ({"conditions": [{"type": "Ready", "status": "Unknown"}]}, False, True),
        ({"spec": {"unschedulable": True}}, True, False),
    ],
)
def test_a_node_says_whether_it_takes_pods(
    changes: dict[str, Any], ready: bool, schedulable: bool
) -> None:
    (part,) = parts_of(node(**changes))

    (spec,) = part.specs
    assert isinstance(spec, NodeSpec)
    assert (spec.ready, spec.schedulable) == (ready, schedulable)
    assert spec.allocatable == {"cpu": 8_000, GPU: 4}


def test_a_node_brings_its_taints() -> None:
    (part,) = parts_of(node(spec={"taints": [{"key": GPU, "effect": "NoExecute"}]}))

    assert part.specs[0].taints == ({"key": GPU, "value": "", "effect": "NoExecute"},)


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("scheduling.volcano.sh/pod-group-name", "UNKNOWN_ANNOTATION"),
        ("scheduling.k8s.io/group", "UNKNOWN_ANNOTATION"),
        ("kueue.x-k8s.io/no-such", "UNKNOWN_ANNOTATION"),
        ("kueue.x-k8s.io/priority-boost", "FIELD_NOT_HONOURED"),
    ],
)
def test_annotations_of_schedulers_that_nothing_follows_are_said(key: str, code: str) -> None:
    (part,) = parts_of(job(labels=QUEUE, annotations={key: "x"}))

    assert codes(part) == [code]


@pytest.mark.parametrize("key", ["finops.io/equipo", "example.com/x", "plain"])
def test_other_annotations_are_nobody_s_business(key: str) -> None:
    (part,) = parts_of(job(labels=QUEUE, annotations={key: "x"}))

    assert codes(part) == []


def test_a_deployment_that_would_be_stored_too_often_is_refused() -> None:
    padded = {"template": TEMPLATE, "replicas": 900}
    body = document("Deployment", "apps/v1", padded, annotations={"pad": "x" * 100_000})
    (part,) = parts_of(body)

    assert ("OUT_OF_RANGE", "spec.replicas") in [(d.code, d.path) for d in part.diagnostics]


@pytest.mark.parametrize(("said", "expected"), [("false", False), ("true", True), ("", True)])
def test_what_volcano_calls_not_preemptable_is_never_evicted(said: str, expected: bool) -> None:
    notes = {"volcano.sh/preemptable": said} if said else {}
    (part,) = parts_of(job(labels=QUEUE, annotations=notes))

    assert (part.specs[0].preemptible, codes(part)) == (expected, [])
