"""Work, machines and checks written as documents and read again say exactly the same."""

from dataclasses import replace

import pytest

from gpuplatform.common.manifests import load_documents
from gpuplatform.common.yamls import dumped
from scheduling.manifests import read
from scheduling.manifests.export import manifest_of
from scheduling.specs import (
    CheckSpec,
    NodeSpec,
    PodSetSpec,
    SliceSpec,
    SubgroupSpec,
    TopologySpec,
    WorkloadSpec,
)

GPU = "nvidia.com/gpu"
TERM = (
    {"key": "gpu", "operator": "In", "values": ["h100", "1e5"]},
    {"key": "metadata.name", "operator": "NotIn", "values": ["node-7"]},
)
POLICY = {"action": "RestartJob", "events": ["PodEvicted"], "exit_code": None, "pod_set": "w"}
POD_SET = PodSetSpec("w", 8, {GPU: 4, "cpu": 1500, "memory": 3 * 2**30})
WORK = WorkloadSpec("ns-a", "train", (POD_SET,), "lq-a", priority=0, grace_s=30)
POD_SETS = {
    "a minimum": replace(POD_SET, min_count=3),
    "a selector and tolerations": replace(
        POD_SET,
        node_selector={"pool": "yes", "size": "8"},
        tolerations=({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},),
    ),
    "affinity of two terms": replace(POD_SET, affinity=(TERM, (TERM[0],))),
    "a required level": replace(POD_SET, topology=TopologySpec("required", "example.org/rack")),
    "a preferred level": replace(POD_SET, topology=TopologySpec("preferred", "rack")),
    "no level": replace(POD_SET, topology=TopologySpec("unconstrained")),
    "a level without force": replace(POD_SET, topology=TopologySpec("unconstrained", "rack")),
    "one slice": replace(POD_SET, slices=(SliceSpec("rack", 4),)),
    "a preferred slice": replace(POD_SET, slices=(SliceSpec("rack", 4, "preferred"),)),
    "slices of slices": replace(POD_SET, slices=(SliceSpec("block", 4), SliceSpec("rack", 2))),
    "a group": replace(POD_SET, group="g", topology=TopologySpec("required", "rack")),
    "subgroups": replace(POD_SET, subgroup=SubgroupSpec(4, 0)),
    "near devices": replace(POD_SET, device_locality="require-island", device_memory_mib=40_000),
}
WORKS = {
    "nothing special": WORK,
    "labels and annotations": replace(
        WORK, labels={"team": "null"}, annotations={"example.org/note": "a: [b]\n#c"}
    ),
    "a class": replace(WORK, priority_class="high", priority=100),
    "a negative priority": replace(WORK, priority=-5),
    "no queue": replace(WORK, queue=""),
    "a gang": replace(WORK, min_member=5, role_minima={"w": 2}, elastic=True),
    "a second ceiling": replace(WORK, ceiling_queue="team-a", preemptible=False, stateless=True),
    "times": replace(
        WORK,
        expected_duration_s=60,
        max_execution_time_s=90,
        checkpoint_interval_s=10,
        ttl_s=0,
        grace_s=86_400,
    ),
    "failures": replace(
        WORK,
        on_failure="keep",
        max_retries=0,
        min_success=2,
        on_node_loss="requeue",
        policies=(POLICY,),
    ),
    "gates, and out of the queue": replace(WORK, gates=("a/b", "c"), active=False),
    "a document of its own": replace(
        WORK, kind="PyTorchJob", template={"kind": "PyTorchJob", "spec": {"n": [1, None, "2"]}}
    ),
    **{name: replace(WORK, pod_sets=(pod_set,)) for name, pod_set in POD_SETS.items()},
    "several pod sets": replace(
        WORK, pod_sets=tuple(replace(p, name=f"p{n}") for n, p in enumerate(POD_SETS.values()))
    ),
}


def again(spec: object) -> object:
    """Return what reading the document of ``spec`` gives."""
    (part,) = read(load_documents("".join(dumped([manifest_of(spec)]))))
    assert not [found for found in part.diagnostics if found.is_error]
    return part.specs[0]


@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS)
def test_work_is_read_as_it_was_written(work: WorkloadSpec) -> None:
    assert again(work) == work


@pytest.mark.parametrize(
    "spec",
    [
        NodeSpec("n1", {"pool": "a"}, capacity={GPU: 4}, allocatable={GPU: 4}),
        NodeSpec(
            "n2",
            {"pool": "1e5"},
            {"gpuplatform.io/islands": "4,4"},
            ({"key": "gpu", "value": "yes", "effect": "NoExecute"},),
            {"cpu": 128_000, "memory": 2**40},
            {"cpu": 120_500, "memory": 2**40 - 1},
            ready=False,
            schedulable=False,
        ),
        CheckSpec("approval", "manual", ("cq-a", "cq-b"), {"days": 2}, "Somebody says: yes"),
        CheckSpec("all", "manual", ("*",)),
    ],
    ids=lambda spec: spec.name,
)
def test_machines_and_checks_are_read_as_they_were_written(spec: object) -> None:
    assert again(spec) == spec


def test_a_class_of_kubernetes_is_called_one() -> None:
    named = manifest_of(replace(WORK, priority_class="high"), {"high"})["spec"]
    assert named["priorityClassRef"] == {
        "group": "scheduling.k8s.io",
        "kind": "PriorityClass",
        "name": "high",
    }


KUEUES_OWN = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: job-train-4a5b, namespace: ns-a, labels: {kueue.x-k8s.io/job-uid: "77"}}
spec:
  queueName: lq-a
  priorityClassName: high
  priorityClassSource: kueue.x-k8s.io/workloadpriorityclass
  priority: 100
  active: true
  maximumExecutionTimeSeconds: 3600
  podSets:
  - name: main
    count: 3
    minCount: 2
    topologyRequest: {preferred: rack, podIndexLabel: x}
    template:
      metadata: {labels: {equipo: datos}}
      spec:
        priorityClassName: high
        containers: [{name: c, resources: {limits: {nvidia.com/gpu: 2}}}]
"""


def test_a_workload_that_kueue_wrote_is_work_as_well() -> None:
    (part,) = read(load_documents(KUEUES_OWN))
    (spec,) = part.specs
    assert isinstance(spec, WorkloadSpec)
    assert (spec.queue, spec.priority_class, spec.max_execution_time_s) == ("lq-a", "high", 3600)
    assert spec.labels["equipo"] == "datos"
    pods = PodSetSpec("main", 3, {GPU: 2}, 2, topology=TopologySpec("preferred", "rack"))
    assert spec.pod_sets == (pods,)
    assert spec.template == part.document.body


@pytest.mark.parametrize(
    ("key", "text", "code"),
    [
        ("kind", "K" * 64, "BAD_VALUE"),
        ("min-member", "many", "BAD_VALUE"),
        ("min-member", "0", "OUT_OF_RANGE"),
        ("elastic", '"yes"', "BAD_TYPE"),
        ("policies", '[{"action": "Dance", "events": ["*"]}]', "POLICY_ACTION"),
        ("template", "[" * 60, "BAD_VALUE"),
        ("colour", '"red"', "UNKNOWN_FIELD"),
    ],
)
def test_what_an_annotation_of_ours_cannot_mean_is_said(key: str, text: str, code: str) -> None:
    document = manifest_of(WORK)
    document["metadata"]["annotations"][f"workload.gpuplatform.io/{key}"] = text
    (part,) = read(load_documents("".join(dumped([document]))))
    assert code in {found.code for found in part.diagnostics}


def test_a_check_that_no_controller_of_ours_answers_is_for_people() -> None:
    text = (
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: AdmissionCheck\nmetadata: {name: far}\n"
        "spec: {controllerName: kueue.x-k8s.io/multikueue}\n"
    )
    (part,) = read(load_documents(text))
    (found,) = part.diagnostics
    told = (found.code, found.numbers["controller"])
    assert told == ("CHECK_BY_PEOPLE", "kueue.x-k8s.io/multikueue")
    assert part.specs == [CheckSpec("far", "manual")]
