"""A gang in slices over REST or as a manifest: submitted, placed, told apart by rack."""

from collections import Counter
from typing import Any

import pytest

from scheduling.cycle import run_cycle
from scheduling.models import Node, Workload
from tests.doors.samples import on_cluster

pytestmark = pytest.mark.django_db

PATH = "/api/v1/workloads/"
GPU = "nvidia.com/gpu"
RACK = "topology.kubernetes.io/rack"


def body(**pod_set: Any) -> dict[str, Any]:
    one = {"name": "main", "count": 12, "requests": {GPU: 1}, **pod_set}
    return {"name": "train", "namespace": "ns-x", "queue": "team-datos", "pod_sets": [one]}


@pytest.fixture
def _cluster() -> None:
    on_cluster(32, "kueue-topology-flavor", "volcano-queues")


@pytest.mark.usefixtures("_cluster")
def test_slices_are_placed_as_they_were_asked_for(ada: Any, send: Any) -> None:
    asked = {
        "topology": {"mode": "required", "level": "block"},
        "slice": {"level": "rack", "size": 6},
    }

    made = send(ada, "POST", PATH, body(**asked))
    run_cycle()

    assert (made.status_code, made.json()["warnings"]) == (201, [])
    work = send(ada, "GET", made["Location"]).json()
    assert work["pod_sets"][0]["slices"] == [{"level": RACK, "size": 6, "mode": "required"}]
    racks = pods_by_rack(work["placements"])
    assert sorted(racks.values()) == [6, 6]
    assert len({rack[:6] for rack in racks}) == 1  # rack-a1 and rack-a2 are in one block


def pods_by_rack(placements: list[dict[str, Any]]) -> Counter[str]:
    racks: Counter[str] = Counter()
    labels = {node.name: node.labels for node in Node.objects.all()}
    for placement in placements:
        racks[labels[placement["node"]][RACK]] += placement["count"]
    return racks


PARTITIONS = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: parted, namespace: ns-x}
spec:
  queue: team-datos
  tasks:
  - name: worker
    replicas: %(pods)d
    partitionPolicy:
      totalPartitions: %(parts)d
      partitionSize: %(size)d
      networkTopology: {mode: soft, highestTierName: rack}
    template:
      spec:
        restartPolicy: Never
        containers:
        - {name: main, image: train, resources: {limits: {nvidia.com/gpu: %(gpus)d}}}
"""


@pytest.mark.usefixtures("_cluster")
@pytest.mark.parametrize(
    ("numbers", "racks"),
    [
        ({"pods": 12, "parts": 2, "size": 6, "gpus": 1}, {"a1": 6, "a2": 6}),
        ({"pods": 3, "parts": 1, "size": 3, "gpus": 4}, {"a1": 2, "a2": 1}),
    ],
    ids=["each part in a rack", "a part that no rack can hold in a block"],
)
def test_partitions_with_a_soft_tier_stand_as_near_as_there_is_room(
    ada: Any, send: Any, client: Any, numbers: dict[str, int], racks: dict[str, int]
) -> None:
    made = send(ada, "POST", "/api/v1/manifests/", PARTITIONS % numbers, "text/yaml")
    run_cycle()

    (result,) = made.json()["results"]
    assert [found["code"] for found in result["diagnostics"]] == []
    work = send(ada, "GET", f"{PATH}{Workload.objects.get().uid}/").json()
    assert work["pod_sets"][0]["slices"] == [
        {"level": RACK, "size": numbers["size"], "mode": "preferred"}
    ]
    client.force_login(ada)
    page = client.get(f"/workloads/{work['uid']}/").content.decode()
    assert f"slices of {numbers['size']} in one rack where there is room" in page
    found = pods_by_rack(work["placements"])
    assert {rack.removeprefix("rack-"): pods for rack, pods in found.items()} == racks


@pytest.mark.usefixtures("_cluster")
@pytest.mark.parametrize(
    ("pod_set", "code", "pointer"),
    [
        ({"slice": {"level": "rack", "size": 5}}, "SLICES_NOT_WHOLE", "/pod_sets/0/slice/size"),
        ({"slice": {"level": "floor", "size": 6}},
         "UNKNOWN_TOPOLOGY_LEVEL", "/pod_sets/0/slice/level"),
        ({"slices": [{"level": "rack", "size": 6}, {"level": "block", "size": 3}]},
         "SLICE_WIDER_THAN_TOPOLOGY", "/pod_sets/0/slices/1/level"),
        ({"slice": {"level": "rack", "size": 6, "mode": "soft"}},
         "BAD_VALUE", "/pod_sets/0/slice/mode"),
        ({"slices": [{"level": "block", "size": 6},
                     {"level": "rack", "size": 3, "mode": "preferred"}]},
         "BAD_VALUE", "/pod_sets/0/slices/1/mode"),
        ({"slice": {"level": "rack", "size": 6}, "slices": []}, "BAD_VALUE", "/pod_sets/0/slices"),
        ({"group": "pair"}, "GROUP_OF_ONE", "/pod_sets/0/group"),
        ({"slice": {"level": "rack", "size": 12}}, "NEVER_FITS_TOPOLOGY", "/pod_sets"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_pointer_and_code(
    ada: Any, send: Any, pod_set: dict[str, Any], code: str, pointer: str
) -> None:
    answer = send(ada, "POST", PATH, body(**pod_set))

    assert answer.status_code == 422
    found = {(problem["code"], problem["pointer"]) for problem in answer.json()["errors"]}
    assert (code, pointer) in found
