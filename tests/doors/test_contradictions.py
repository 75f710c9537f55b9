"""Every contradiction of the articles' manifests has its code, and a real door says it.

The rows are those of ``placement.md`` section 3, in its order; 15 and 16 ask nothing of us.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from gpuplatform.doors.importer import import_documents
from queues.models import ClusterQueue
from scheduling.models import Node
from tests.doors.samples import on_cluster

pytestmark = pytest.mark.django_db
GPU = "nvidia.com/gpu"
PLATFORM = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: Topology
metadata: {name: dc}
spec:
  levels:
  - {nodeLabel: topology.kubernetes.io/block}
  - {nodeLabel: topology.kubernetes.io/rack}
  - {nodeLabel: kubernetes.io/hostname}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: h100-sxm}
spec:
  nodeLabels: {accelerator: h100-sxm}
  topologyName: dc
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: cq}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu, cpu, memory]
    flavors:
    - name: h100-sxm
      resources:
      - {name: nvidia.com/gpu, nominalQuota: 32}
      - {name: cpu, nominalQuota: 900}
      - {name: memory, nominalQuota: 7000Gi}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: lq, namespace: ns-datos}
spec: {clusterQueue: cq}
"""


def queue(name: str = "narrow", nominal: int = 24, extra: str = "", **cells: str) -> str:
    """Return a ClusterQueue of GPUs, CPU and memory, and the local queue of its name."""
    amounts = {GPU: str(nominal), "cpu": "192", "memory": "768Gi", **cells}
    lines = "".join(
        f"\n      - {{name: {resource}, nominalQuota: {amount}{extra if resource == GPU else ''}}}"
        for resource, amount in amounts.items()
    )
    return f"""
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {{name: {name}}}
spec:
  namespaceSelector: {{}}
  cohort: shared
  resourceGroups:
  - coveredResources: [{", ".join(amounts)}]
    flavors:
    - name: h100-sxm
      resources:{lines}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {{name: {name}, namespace: ns-datos}}
spec: {{clusterQueue: {name}}}
"""


def volcano_queue(name: str, **lists: str) -> str:
    """Return a Volcano Queue with the given GPU amounts."""
    parts = {
        "guarantee": "guarantee: {resource: {nvidia.com/gpu: %s}}",
        "deserved": "deserved: {nvidia.com/gpu: %s}",
        "capability": "capability: {nvidia.com/gpu: %s}",
    }
    lines = "".join(f"\n  {parts[kind] % amount}" for kind, amount in lists.items())
    return f"""
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {{name: {name}}}
spec:
  weight: 1{lines}
"""


def volcano_job(more: str = "", note: str = "") -> str:
    """Return a Volcano Job of one role."""
    return f"""
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: tuned, namespace: ns-datos, labels: {{kueue.x-k8s.io/queue-name: lq}}}}
spec:
  {more}
  tasks:
  - name: worker
    replicas: 1
    template:
      metadata: {{annotations: {{{note}}}}}
      spec:
        containers:
        - name: main
          resources: {{limits: {{nvidia.com/gpu: 1}}}}
"""


def pod_group(spec: str) -> str:
    """Return a PodGroup."""
    return f"""
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {{name: tuned-pg, namespace: ns-datos, labels: {{kueue.x-k8s.io/queue-name: lq}}}}
spec: {{{spec}}}
"""


MEMBER = """
apiVersion: v1
kind: Pod
metadata:
  name: member
  namespace: ns-datos
  labels: {kueue.x-k8s.io/queue-name: lq}
  annotations: {scheduling.k8s.io/group-name: tuned-pg}
spec:
  schedulerName: volcano
  containers:
  - name: main
    resources: {limits: {nvidia.com/gpu: 1, cpu: 16, memory: 64Gi}}
"""
OPERATOR = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: tuned
  namespace: ns-datos
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 1
      template:
        spec:
          schedulerName: volcano
          containers:
          - name: pytorch
            resources: {limits: {nvidia.com/gpu: 1}}
"""


def body(**changes: Any) -> dict[str, Any]:
    """Return a workload of eight pods of four GPUs as REST takes it."""
    pods = {"name": "worker", "count": 8, "requests": {GPU: 4, "cpu": 16, "memory": "64Gi"}}
    pods |= changes.pop("pods", {})
    return {"name": "tuned", "namespace": "ns-datos", "queue": "lq", "pod_sets": [pods], **changes}


@dataclass(frozen=True)
class Row:
    """One row: what is sent (text is a manifest, else a workload), and what must be answered."""

    number: str
    sent: Any
    code: str
    numbers: dict[str, Any] = field(default_factory=dict)
    first: str = ""  # kept before
    refused: bool = True


ROWS = [
    Row(
        "1",
        body(queue="narrow"),
        "NEVER_FITS_QUEUE",
        {"need": 32, "ceiling": 16},
        queue(nominal=16),
    ),
    Row(
        "2",
        body(queue="narrow"),
        "NEVER_FITS_QUEUE",
        {"need": 32, "ceiling": 20},
        queue(nominal=16, extra=", borrowingLimit: 8")
        + "---"
        + queue("other", 8, ", lendingLimit: 4"),
    ),
    Row(
        "3", volcano_queue("v", guarantee="8"), "DESERVED_DEFAULTED", {"amount": 8}, refused=False
    ),
    Row(
        "3b",
        volcano_queue("v", guarantee="8", deserved="4"),
        "DESERVED_BELOW_GUARANTEE",
        {"deserved": 4, "guarantee": 8},
    ),
    Row("4", queue("alone", 2), "STRANDED_CAPACITY", {"amount": 22}, "SMALL", refused=False),
    Row(
        "5",
        volcano_queue("v", guarantee="8", capability="4"),
        "GUARANTEE_ABOVE_CAPABILITY",
        {"guarantee": 8, "capability": 4},
    ),
    Row(
        "6",
        queue("wide", 40),
        "GUARANTEES_EXCEED_CAPACITY",
        {"sum": 72, "capacity": 32},
        refused=False,
    ),
    Row(
        "7",
        body(pods={"topology": {"mode": "required", "level": "aisle"}}),
        "UNKNOWN_TOPOLOGY_LEVEL",
        {"level": "aisle"},
    ),
    Row(
        "8",
        pod_group("minMember: 1, minResources: {nvidia.com/gpu: 1}")
        + "---"
        + volcano_job(note="scheduling.volcano.sh/pod-group-name: tuned-pg"),
        "DUPLICATE_GANG",
    ),
    Row("9", OPERATOR, "QUEUE_DEFAULTED", {"queue": "default"}, refused=False),
    Row(
        "10",
        pod_group("minMember: 1, minResources: {nvidia.com/gpu: 1}") + "---" + MEMBER,
        "DEMAND_MISMATCH",
        {"missing": "cpu, memory"},
        refused=False,
    ),
    Row(
        "11",
        body(queue="narrow"),
        "NEVER_FITS_QUEUE",
        {"largest_gang": 6, "pods": 8},
        queue(nominal=24),
    ),
    Row("12", body(), "NEEDS_WHOLE_CLUSTER", {"need": 32, "have": 32}, refused=False),
    Row(
        "12b",
        body(pods={"count": 9}),
        "NEVER_FITS_CLUSTER",
        {"need": 36, "have": 32},
        "UPDATE",
    ),
    Row(
        "13",
        volcano_job(more="policies: [{event: PodEvicted, action: RestartJob}]"),
        "RESTART_WITHOUT_MIN_RUNTIME",
        refused=False,
    ),
    Row(
        "14",
        body(pods={"count": 1, "requests": {"volcano.sh/vgpu-memry": 20}}),
        "UNKNOWN_RESOURCE",
        {"nearest": "volcano.sh/vgpu-memory"},
    ),
    Row(
        "17",
        body(pods={"count": 4}, min_member=5),
        "GANG_LARGER_THAN_POD_COUNT",
        {"min_member": 5, "pods": 4},
    ),
    Row(
        "17b",
        pod_group("minMember: 8"),
        "GANG_LARGER_THAN_POD_COUNT",
        {"min_member": 8, "pods": 0},
    ),
    Row(
        "18",
        body(pods={"count": 4}, min_member=3, role_minima={"worker": 4}),
        "ROLE_MINIMA_EXCEED_GANG",
        {"sum_of_minima": 4, "min_member": 3},
    ),
    Row("19", body(pods={"count": 1}), "QUEUE_CANNOT_ADMIT", {"cause": "Hold"}, "HOLD", False),
    Row("19b", body(queue="nowhere"), "QUEUE_NOT_FOUND", {"queue": "nowhere"}),
    Row(
        "19c",
        body(priority_class="urgent"),
        "PRIORITY_CLASS_NOT_FOUND",
        {"priority_class": "urgent"},
    ),
    Row(
        "20",
        body(pods={"topology": {"mode": "required", "level": "rack"}}),
        "NEVER_FITS_TOPOLOGY",
        {"level": "topology.kubernetes.io/rack", "largest": 8, "need": 32},
    ),
    Row(
        "21",
        body(
            pods={
                "count": 2,
                "topology": {"mode": "required", "level": "rack"},
                "slice": {"level": "block", "size": 2},
            }
        ),
        "SLICE_WIDER_THAN_TOPOLOGY",
        {"level": "block"},
    ),
    Row("22", body(pods={"topology": {"mode": "required"}}), "TOPOLOGY_LEVEL_MISSING"),
    Row("22b", volcano_job(more="networkTopology: {mode: hard}"), "TOPOLOGY_LEVEL_MISSING"),
]


@pytest.fixture
def platform(db: None) -> None:
    on_cluster(32)
    import_documents(PLATFORM, actor=None)


PREPARED: dict[str, Callable[[], object]] = {
    "HOLD": lambda: ClusterQueue.objects.update(stop_policy="Hold"),
    "SMALL": lambda: ClusterQueue.objects.get(name="cq").quotas.update(nominal=8),
    "UPDATE": lambda: ClusterQueue.objects.get(name="cq").quotas.update(nominal=10**12),
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.number}-{row.code}")
def test_every_row_has_its_code_at_a_real_door(row: Row, platform, ada, send) -> None:
    if row.first in PREPARED:
        PREPARED[row.first]()
    elif row.first:
        import_documents(row.first, actor=None)
    if isinstance(row.sent, str):
        answer = send(ada, "POST", "/api/v1/manifests/", row.sent, "application/yaml")
    else:
        answer = send(ada, "POST", "/api/v1/workloads/", row.sent)
    found = _said(answer.json(), row.code)
    assert found, (answer.status_code, answer.content)
    assert any(row.numbers.items() <= numbers.items() for numbers in found), found
    assert (answer.status_code >= 400) is row.refused, answer.content


def _said(answer: Any, code: str) -> list[dict[str, Any]]:
    """Return the numbers of each time that an answer says the code, wherever it stands."""
    if isinstance(answer, list):
        return [numbers for part in answer for numbers in _said(part, code)]
    if not isinstance(answer, dict):
        return []
    own = [answer.get("numbers", {})] if answer.get("code") == code else []
    return own + [numbers for part in answer.values() for numbers in _said(part, code)]


def test_no_row_is_left_out() -> None:
    rows = {int("".join(filter(str.isdigit, row.number))) for row in ROWS}
    assert rows == set(range(1, 23)) - {15, 16}


def test_a_lost_node_makes_promises_exceed_capacity_and_its_return_clears_it(
    platform, ada, send
) -> None:
    """T11: the alert stands while it is so, and nothing else happens."""

    def alerts() -> dict[str, dict[str, Any]]:
        found = send(ada, "GET", "/api/v1/alerts/").json()["results"]
        return {alert["code"]: alert["numbers"] for alert in found}

    assert "GUARANTEES_EXCEED_CAPACITY" not in alerts()
    Node.objects.filter(name="h100-node-01").update(ready=False)
    found = alerts()["GUARANTEES_EXCEED_CAPACITY"]
    assert (found["sum"], found["capacity"]) == (32, 28)
    Node.objects.filter(name="h100-node-01").update(ready=True)
    assert "GUARANTEES_EXCEED_CAPACITY" not in alerts()


def test_a_queue_that_keeps_work_safe_answers_a_restart_at_eviction(platform, ada, send) -> None:
    ClusterQueue.objects.update(minimum_runtime_s=600)
    text = volcano_job(more="policies: [{event: PodEvicted, action: RestartJob}]")
    answer = send(ada, "POST", "/api/v1/manifests/", text, "application/yaml").json()
    assert not _said(answer, "RESTART_WITHOUT_MIN_RUNTIME")


@pytest.mark.parametrize(("topology", "part"), [("block", "rack"), ("rack", "rack")])
def test_a_slice_that_is_no_wider_than_its_pod_set_is_no_contradiction(
    platform, ada, send, topology, part
) -> None:
    pods = {
        "count": 2,
        "topology": {"mode": "required", "level": topology},
        "slice": {"level": part, "size": 2},
    }
    answer = send(ada, "POST", "/api/v1/workloads/?dry_run=All", body(pods=pods))
    assert answer.status_code == 200
    assert not _said(answer.json(), "SLICE_WIDER_THAN_TOPOLOGY")
