"""A gang in slices over REST: submitted, placed by a cycle, told apart by rack."""

from collections import Counter
from typing import Any

import pytest

from scheduling.cycle import run_cycle
from scheduling.models import Node
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
    assert work["pod_sets"][0]["slices"] == [{"level": RACK, "size": 6}]
    racks: Counter[str] = Counter()
    labels = {node.name: node.labels for node in Node.objects.all()}
    for placement in work["placements"]:
        racks[labels[placement["node"]][RACK]] += placement["count"]
    assert sorted(racks.values()) == [6, 6]
    assert len({rack[:6] for rack in racks}) == 1  # rack-a1 and rack-a2 are in one block


@pytest.mark.usefixtures("_cluster")
@pytest.mark.parametrize(
    ("pod_set", "code", "pointer"),
    [
        ({"slice": {"level": "rack", "size": 5}}, "SLICES_NOT_WHOLE", "/pod_sets/0/slice/size"),
        ({"slice": {"level": "floor", "size": 6}},
         "UNKNOWN_TOPOLOGY_LEVEL", "/pod_sets/0/slice/level"),
        ({"slices": [{"level": "rack", "size": 6}, {"level": "block", "size": 3}]},
         "SLICE_WIDER_THAN_TOPOLOGY", "/pod_sets/0/slices/1/level"),
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
