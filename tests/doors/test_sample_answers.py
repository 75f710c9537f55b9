"""The articles' manifests get the answers that their README promises: every row of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import pytest

from gpuplatform.doors.importer import import_documents
from gpuplatform.doors.report import ImportReport
from queues.models import Cohort, ResourceFlavor, Team
from scheduling.engine.diagnostics import resource_ceilings
from scheduling.loader import load_snapshot
from scheduling.models import Node, Workload
from tests.doors.samples import EXAMPLES, load, on_cluster, result_of, text_of, worth_saying

pytestmark = pytest.mark.django_db

Numbers = Mapping[str, str | int]
GPU = "nvidia.com/gpu"
RENAMED = {"FIELD_RENAMED": [{"old": "spec.cohort", "new": "spec.cohortName"}]}
HELPLESS = {"LENDER_CANNOT_RECLAIM": [{"queues": "cq-ia, cq-plataforma"}]}
WHOLE_32 = {"NEEDS_WHOLE_CLUSTER": [{"need": 32, "have": 32}]}
NEVER_16 = {"NEVER_FITS_CLUSTER": [{"need": 32, "have": 16}]}


def queue_never(*ceilings: int, **numbers: int) -> dict[str, list[Numbers]]:
    rows = [{"resource": GPU, "need": 32, "ceiling": ceiling, **numbers} for ceiling in ceilings]
    return {"NEVER_FITS_QUEUE": list(rows)}


def over(promised: int, capacity: int) -> dict[str, list[Numbers]]:
    numbers = {"sum": promised, "capacity": capacity, "resource": GPU}
    return {"GUARANTEES_EXCEED_CAPACITY": [numbers]}


def stranded(amount: int) -> dict[str, list[Numbers]]:
    return {"STRANDED_CAPACITY": [{"amount": amount, "resource": GPU}]}


@dataclass(frozen=True)
class Row:
    """Samples in order, on a cluster of so many GPUs; what the last one's objects get."""

    gpus: int
    samples: Sequence[str]
    kind: str
    name: str
    codes: Mapping[str, Sequence[Numbers]] = field(default_factory=dict)
    rejected: bool = False

    def __str__(self) -> str:
        return f"{'+'.join(self.samples)} on {self.gpus}: {self.kind} {self.name}"


TWO, THREE = "kueue-two-teams-rayjob", "kueue-three-teams"
SINGLE = ["kueue-flavor", "kueue-clusterqueue-single"]
PG, VJ = "volcano-queues-podgroup-job", "volcano-topology-job"
TORCH, FULL = "pytorchjob-kueue-volcano", "pytorchjob-kueue-volcano-full"
RAY = ("RayJob", "ns-datos/batch-eval-llama70b")
GROUP = ("PodGroup", "ml-training/pytorch-train-pg")
PRETRAIN = ("Job", "ml-training/llm-pretrain")
TUNE, FULL_TUNE = (
    ("PyTorchJob", "ns-datos/llm-finetune-70b"),
    ("PyTorchJob", "ns-datos/distributed-finetune"),
)
NO_PODS = {"GANG_LARGER_THAN_POD_COUNT": [{"min_member": 8, "pods": 0}]}
NO_CLASS = {"PRIORITY_CLASS_NOT_FOUND": [{"priority_class": "high-priority"}]}
AS_NAME = {"LEVEL_AS_NAME": [{"level": "block"}]}
NO_LEVEL = {"UNKNOWN_TOPOLOGY_LEVEL": [{"level": "block"}]}
BLOCK_16 = {"NEVER_FITS_TOPOLOGY": [{"largest": 16, "need": 32}]}
DEFAULTED = {"QUEUE_DEFAULTED": [{"queue": "team-datos"}]}
MISSPELT = {"UNKNOWN_ANNOTATION": [{"annotation": "scheduling.volcano.sh/pod-group-name"}]}
NO_TRAINING_CLASS = {"PRIORITY_CLASS_NOT_FOUND": [{"priority_class": "training-high"}]}
IN_GROUP = {
    "DUPLICATE_GANG": [{"other": "Job/ns-datos/finetune-70b"}],
    "DEMAND_MISMATCH": [{"missing": "cpu, memory"}],
    **NO_TRAINING_CLASS,
}
IN_JOB = {
    "DUPLICATE_GANG": [{"other": "PodGroup/ns-datos/finetune-70b-pg"}],
    "RESTART_WITHOUT_MIN_RUNTIME": [{}],
    **MISSPELT,
    **NO_TRAINING_CLASS,
}

ROWS = [
    # Kueue objects
    Row(0, ["kueue-flavor"], "ResourceFlavor", "h100-sxm"),
    Row(
        0,
        ["kueue-clusterqueue-single"],
        "ClusterQueue",
        "cq-team-datos",
        {"FlavorNotFound": [{"flavor": "h100-sxm"}]},
    ),
    Row(0, SINGLE, "ClusterQueue", "cq-team-datos"),
    Row(16, SINGLE, "ClusterQueue", "cq-team-datos"),
    Row(32, SINGLE, "ClusterQueue", "cq-team-datos", stranded(16)),
    Row(4, SINGLE, "ClusterQueue", "cq-team-datos", over(16, 4)),
    Row(
        0,
        ["kueue-localqueue"],
        "LocalQueue",
        "ns-datos/lq-datos",
        {"ClusterQueueNotFound": [{"target": "cq-team-datos"}]},
    ),
    Row(0, [*SINGLE, "kueue-localqueue"], "LocalQueue", "ns-datos/lq-datos"),
    Row(0, ["kueue-topology-flavor"], "Topology", "datacenter-topology"),
    Row(0, ["kueue-topology-flavor"], "ResourceFlavor", "h100-sxm"),
    Row(16, [TWO], *RAY, {"NEEDS_WHOLE_CLUSTER": [{"need": 16, "have": 16}]}),
    Row(16, [TWO], "ClusterQueue", "cq-team-datos", over(24, 16)),
    Row(16, [TWO], "ClusterQueue", "cq-team-ia", over(24, 16)),
    Row(32, [TWO], *RAY),
    Row(32, [TWO], "ClusterQueue", "cq-team-ia", stranded(8)),
    Row(4, [TWO], *RAY, {"NEVER_FITS_CLUSTER": [{"need": 16, "have": 4}]}, True),
    Row(4, [TWO], "ClusterQueue", "cq-team-datos", over(24, 4)),
    Row(4, [THREE], "ClusterQueue", "cq-datos", RENAMED),
    Row(4, [THREE], "ClusterQueue", "cq-ia", {**RENAMED, **HELPLESS}),
    Row(4, [THREE], "ClusterQueue", "cq-plataforma", {**RENAMED, **HELPLESS}),
    Row(16, [THREE], "ClusterQueue", "cq-datos", {**RENAMED, **stranded(12)}),
    # Volcano objects
    Row(0, ["volcano-queues"], "Queue", "team-datos"),
    Row(32, ["volcano-queues"], "Queue", "team-datos", stranded(8)),
    Row(32, ["volcano-queues"], "Queue", "team-ia", stranded(8)),
    Row(16, ["volcano-queues"], "Queue", "team-datos"),
    Row(4, ["volcano-queues"], "Queue", "team-ia", over(12, 4)),
    Row(
        32,
        ["volcano-queues", "volcano-podgroup"],
        *GROUP,
        {**queue_never(16), **NO_PODS, **NO_CLASS, **WHOLE_32},
        True,
    ),
    Row(
        16,
        ["volcano-queues", "volcano-podgroup"],
        *GROUP,
        {**queue_never(12), **NO_PODS, **NO_CLASS, **NEVER_16},
        True,
    ),
    Row(
        0,
        ["volcano-podgroup"],
        *GROUP,
        {"QUEUE_NOT_FOUND": [{"queue": "team-datos"}], **NO_PODS, **NO_CLASS},
        True,
    ),
    Row(
        16,
        ["volcano-worker-pod"],
        "Pod",
        "ml-training/pytorch-train-worker-0",
        {**MISSPELT, "QUEUE_DEFAULTED": [{"queue": "default"}]},
    ),
    Row(
        32,
        ["volcano-queues", VJ],
        *PRETRAIN,
        {**queue_never(16), **AS_NAME, **NO_LEVEL, **WHOLE_32},
        True,
    ),
    Row(
        32,
        ["kueue-topology-flavor", "volcano-queues", VJ],
        *PRETRAIN,
        {**queue_never(16), **AS_NAME, **BLOCK_16, **WHOLE_32},
        True,
    ),
    Row(
        32,
        ["volcano-queues", "kueue-topology-flavor", VJ],
        *PRETRAIN,
        {**queue_never(16), **AS_NAME, **BLOCK_16, **WHOLE_32},
        True,
    ),
    Row(
        16,
        ["kueue-topology-flavor", "volcano-queues", VJ],
        *PRETRAIN,
        {**queue_never(12), **AS_NAME, **BLOCK_16, **NEVER_16},
        True,
    ),
    Row(32, [PG], "Queue", "team-datos"),
    Row(16, [PG], "Queue", "team-datos", over(24, 16)),
    Row(
        32,
        [PG],
        "PodGroup",
        "ns-datos/finetune-70b-pg",
        {**queue_never(24, largest_gang=6, pods=8), **IN_GROUP, **WHOLE_32},
        True,
    ),
    Row(
        32,
        [PG],
        "Job",
        "ns-datos/finetune-70b",
        {**queue_never(24, largest_gang=6, pods=8), **IN_JOB, **WHOLE_32},
        True,
    ),
    Row(
        16,
        [PG],
        "PodGroup",
        "ns-datos/finetune-70b-pg",
        {**queue_never(16), **IN_GROUP, **NEVER_16},
        True,
    ),
    Row(
        16,
        [PG],
        "Job",
        "ns-datos/finetune-70b",
        {**queue_never(16), **IN_JOB, **NEVER_16},
        True,
    ),
    # Both layers
    Row(
        32,
        [TWO, TORCH],
        *TUNE,
        {**queue_never(20, largest_gang=5), **DEFAULTED, **WHOLE_32},
        True,
    ),
    Row(16, [TWO, TORCH], *TUNE, {**queue_never(20), **DEFAULTED, **NEVER_16}, True),
    Row(
        32,
        [*SINGLE, "kueue-localqueue", TORCH],
        *TUNE,
        {**queue_never(16), **DEFAULTED, **WHOLE_32},
        True,
    ),
    Row(32, [TWO, "volcano-queues", TORCH], *TUNE, {**queue_never(20, 16), **WHOLE_32}, True),
    Row(32, [TWO, FULL], *FULL_TUNE, {**queue_never(20), **DEFAULTED, **WHOLE_32}, True),
    Row(32, [TWO, PG, FULL], *FULL_TUNE, {**queue_never(20, 24), **WHOLE_32}, True),
    Row(16, [TWO, PG, FULL], *FULL_TUNE, {**queue_never(20, 16), **NEVER_16}, True),
    Row(4, [THREE, "kueue-job-label"], "Job", "ns-datos/queue-label-example"),
    Row(16, [TWO, "kueue-job-label"], "Job", "ns-datos/queue-label-example"),
    Row(32, [TWO, "kueue-job-label"], "Job", "ns-datos/queue-label-example"),
    Row(
        4,
        ["kueue-job-label"],
        "Job",
        "ns-datos/queue-label-example",
        {"QUEUE_NOT_FOUND": [{"queue": "lq-datos"}]},
        True,
    ),
    # Cost side
    Row(16, ["deployment-team-labels"], "Deployment", "ns-datos/vllm-llama-70b"),
    Row(16, ["deployment-team-annotation"], "Deployment", "ns-ia/vllm-llama-8b"),
    Row(
        0,
        ["litellm-config"],
        "LiteLLMConfiguration",
        "LiteLLMConfiguration",
        {"TOKEN_PRICE_ABOVE_IRON": [{"price": "1.40", "iron": "0.7778", "times": "1.8"}]},
    ),
    Row(
        0,
        ["opencost-helm-values"],
        "OpenCostValues",
        "OpenCostValues",
        {"NODE_PRICE_COUNTED_TWICE": [{"extra": "6.27", "node": "5.60"}]},
    ),
]


@cache
def report_of(gpus: int, *samples: str) -> ImportReport:
    """Return what is said of these samples, each set of them imported once."""
    return on_cluster(gpus, *samples)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_object_gets_its_answer(row: Row) -> None:
    result = result_of(report_of(row.gpus, *row.samples), row.kind, row.name)

    found = worth_saying(result)
    assert result.is_rejected == row.rejected
    assert found.keys() == row.codes.keys()
    for code, expected in row.codes.items():
        assert len(found[code]) == len(expected), code
        for numbers, wanted in zip(found[code], expected, strict=True):
            assert wanted.items() <= numbers.items(), code


@pytest.mark.parametrize("row", [row for row in ROWS if row.rejected], ids=str)
def test_a_rejected_workload_leaves_no_row(row: Row) -> None:
    on_cluster(row.gpus, *row.samples)

    namespace, name = row.name.split("/")
    assert not Workload.objects.filter(namespace=namespace, name=name).exists()


@pytest.mark.parametrize(
    ("gpus", "samples", "ceilings"),
    [
        (16, SINGLE, {"cq-team-datos": 16}),
        (0, [TWO], {"cq-team-datos": 20, "cq-team-ia": 16}),
        (4, [THREE], {"cq-datos": 4, "cq-ia": 4, "cq-plataforma": 4}),
        (32, ["volcano-queues"], {"team-datos": 16, "team-ia": 8}),
        (16, ["volcano-queues"], {"team-datos": 12, "team-ia": 8}),
        (4, ["volcano-queues"], {"team-datos": 8, "team-ia": 4}),
        (32, [PG], {"team-datos": 24, "team-ia": 16}),
        (16, [PG], {"team-datos": 16, "team-ia": 8}),
    ],
    ids=str,
)
def test_every_queue_has_its_ceiling(
    gpus: int, samples: list[str], ceilings: Mapping[str, int]
) -> None:
    on_cluster(gpus, *samples)

    snapshot = load_snapshot()
    assert {name: resource_ceilings(snapshot, name)[GPU] for name in ceilings} == ceilings


@pytest.mark.parametrize(("gpus", "nodes"), [(4, 1), (16, 4), (32, 8)])
def test_clusters_are_accepted_whole(gpus: int, nodes: int) -> None:
    report = on_cluster(gpus)

    assert not report.rejected
    assert Node.objects.filter(ready=True, schedulable=True).count() == nodes
    assert sum(node.allocatable[GPU] for node in Node.objects.all()) == gpus
    assert Node.objects.first().allocatable["cpu"] == 120_000


def test_a_named_cohort_is_made_implicitly() -> None:
    load("kueue-clusterqueue-single")

    assert Cohort.objects.get(name="llm-platform").implicit


def test_the_rayjob_has_a_head_three_workers_and_a_submitter_without_gpu() -> None:
    on_cluster(16, TWO)

    workload = Workload.objects.get(name="batch-eval-llama70b")
    assert workload.gpus == 16
    assert [(p.name, p.count, p.requests) for p in workload.pod_sets.all()] == [
        ("head", 1, {"cpu": 16_000, "memory": 64 * 2**30, GPU: 4}),
        ("gpu-worker", 3, {"cpu": 16_000, "memory": 64 * 2**30, GPU: 4}),
        ("submitter", 1, {"cpu": 500, "memory": 200 * 2**20}),
    ]


def test_corrected_to_five_pods_the_pytorchjob_is_accepted() -> None:
    on_cluster(32, TWO)

    report = import_documents(text_of(TORCH).replace("replicas: 7", "replicas: 4"), actor=None)

    result = result_of(report, *TUNE)
    assert not result.is_rejected
    assert worth_saying(result) == {"QUEUE_DEFAULTED": [{"queue": "team-datos"}]}


def test_a_group_with_neither_pods_nor_resources_is_told_once() -> None:
    on_cluster(32, "volcano-queues")

    text = """
    apiVersion: scheduling.volcano.sh/v1beta1
    kind: PodGroup
    metadata: {name: empty, namespace: ml-training}
    spec: {minMember: 8, queue: team-datos}
    """
    (group,) = import_documents(text, actor=None).results
    assert [d.path for d in group.diagnostics if d.code == "GANG_LARGER_THAN_POD_COUNT"] == [
        "spec.minMember"
    ]


def test_the_worker_pod_with_its_group_still_leaves_the_group_without_pods() -> None:
    on_cluster(32, "volcano-queues")

    both = text_of("volcano-podgroup") + "\n---\n" + text_of("volcano-worker-pod")
    report = import_documents(both, actor=None)

    group = worth_saying(result_of(report, *GROUP))
    assert group["GANG_LARGER_THAN_POD_COUNT"] == [{"min_member": 8, "pods": 0}]
    assert not result_of(report, "Pod", "ml-training/pytorch-train-worker-0").is_rejected


def test_with_the_spelling_corrected_the_group_has_one_pod_and_the_pod_its_fate() -> None:
    on_cluster(32, "volcano-queues")

    pod = text_of("volcano-worker-pod").replace("pod-group-name:", "group-name:")
    report = import_documents(text_of("volcano-podgroup") + "\n---\n" + pod, actor=None)

    group = worth_saying(result_of(report, *GROUP))
    assert group["GANG_LARGER_THAN_POD_COUNT"] == [{"min_member": 8, "pods": 1}]
    assert result_of(report, "Pod", "ml-training/pytorch-train-worker-0").is_rejected


def test_the_label_example_of_four_gpus_borrows_two_and_needs_the_whole_node() -> None:
    on_cluster(4, THREE)

    labelled = text_of("deployment-team-labels").replace(
        "    equipo: datos\n    producto",
        "    kueue.x-k8s.io/queue-name: lq-datos\n    equipo: datos\n    producto",
        1,
    )
    report = import_documents(labelled, actor=None)

    result = result_of(report, "Deployment", "ns-datos/vllm-llama-70b")
    assert worth_saying(result).keys() == {"NEEDS_WHOLE_CLUSTER"}
    assert Workload.objects.get().queue_name == "lq-datos"


@pytest.mark.parametrize("sample", ["deployment-team-labels", "deployment-team-annotation"])
def test_a_deployment_without_queue_is_use_outside_quota_of_its_team(sample: str) -> None:
    for name in ("datos", "ia"):
        Team.objects.create(name=name, display_name=name)

    report = on_cluster(16, sample)

    assert "OUTSIDE_QUOTA" in report.results[0].codes
    workload = Workload.objects.get()
    assert workload.queue_name == ""
    assert workload.team.name == ("datos" if "labels" in sample else "ia")


def test_litellm_brings_two_models_and_no_team() -> None:
    load("litellm-config")

    assert Team.objects.count() == 0


# ---- variations of the clusters ----------------------------------------------------------------
def with_taint(gpus: int) -> None:
    taint = "spec:\n  taints: [{key: nvidia.com/gpu, effect: NoSchedule}]\nstatus:"
    name = {4: "cluster-1-node", 16: "cluster", 32: "cluster-32"}[gpus]
    import_documents(text_of(name).replace("\nstatus:", f"\n{taint}"), actor=None)


def test_on_tainted_nodes_a_flavor_without_toleration_refuses_its_work() -> None:
    with_taint(4)

    report = load(THREE, "kueue-job-label")

    found = worth_saying(report.results[0])
    assert report.results[0].is_rejected
    assert found["TAINT_NOT_TOLERATED"][0]["taint"].startswith("nvidia.com/gpu")


def test_on_tainted_nodes_a_flavor_with_toleration_accepts_it() -> None:
    with_taint(16)

    report = load(TWO)

    assert not result_of(report, *RAY).is_rejected


@pytest.mark.parametrize("sample", ["volcano-worker-pod", VJ])
def test_on_tainted_nodes_every_volcano_pod_is_refused(sample: str) -> None:
    with_taint(32)

    report = load("volcano-queues", sample)

    assert report.results[0].is_rejected
    assert "TAINT_NOT_TOLERATED" in report.results[0].codes


def test_a_node_that_is_not_ready_takes_its_gpus_out_of_the_capacity() -> None:
    import_documents(
        text_of("cluster").replace('status: "True"', 'status: "False"', 1), actor=None
    )

    report = load(TWO)

    queue = worth_saying(result_of(report, "ClusterQueue", "cq-team-ia"))
    assert queue["GUARANTEES_EXCEED_CAPACITY"][0]["capacity"] == 12
    ray = result_of(report, *RAY)
    assert ray.is_rejected
    assert worth_saying(ray)["NEVER_FITS_CLUSTER"][0]["have"] == 12


RACK = "    topology.kubernetes.io/rack: rack-a1\n"


def test_a_node_without_a_level_is_refused_for_a_topology_pool() -> None:
    load("kueue-topology-flavor")

    report = import_documents(text_of("cluster").replace(RACK, "", 1), actor=None)

    node = result_of(report, "Node", "h100-node-01")
    assert node.is_rejected
    assert worth_saying(node)["NODE_WITHOUT_LEVEL"][0]["level"] == "topology.kubernetes.io/rack"
    assert Node.objects.count() == 3


def test_a_topology_that_comes_later_names_the_nodes_outside_it() -> None:
    import_documents(text_of("cluster").replace(RACK, "", 1), actor=None)

    report = load("kueue-topology-flavor")

    flavor = worth_saying(result_of(report, "ResourceFlavor", "h100-sxm"))
    assert flavor["NODES_OUTSIDE_TOPOLOGY"][0]["nodes"] == "h100-node-01"


# ---- one example over another ------------------------------------------------------------------
def test_a_second_example_over_the_first_is_refused_on_the_local_queue_only() -> None:
    load(THREE)

    report = load(TWO)

    refused = [r for r in report.results if r.is_rejected]
    assert ("LocalQueue", "ns-datos/lq-datos") in [(r.kind, r.name) for r in refused]
    assert "immutable" in result_of(report, "LocalQueue", "ns-datos/lq-datos").codes
    assert not result_of(report, "ClusterQueue", "cq-team-datos").is_rejected


def test_the_topology_of_a_flavor_can_not_be_taken_away() -> None:
    load("kueue-topology-flavor")

    report = load("kueue-flavor")

    assert result_of(report, "ResourceFlavor", "h100-sxm").is_rejected
    assert ResourceFlavor.objects.get().topology == "datacenter-topology"


def test_a_flavor_whose_topology_is_missing_leaves_its_queue_inactive() -> None:
    flavor = text_of("kueue-topology-flavor").split("---\n")[1]
    import_documents(flavor, actor=None)

    report = load("kueue-clusterqueue-single")

    assert worth_saying(report.results[0]).keys() == {"TopologyNotFound"}


def test_loading_an_example_twice_changes_nothing_the_second_time() -> None:
    on_cluster(16, TWO)

    report = load(TWO)

    assert {result.action for result in report.results} == {"unchanged"}


@pytest.mark.usefixtures("shared")
def test_the_examples_are_the_articles_own(shared) -> None:
    for original in sorted((shared / "samples" / "manifests").glob("*.yaml")):
        assert (EXAMPLES / original.name).read_bytes() == original.read_bytes()
