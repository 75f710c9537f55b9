"""GPUs as nodes describe them and as pods ask for them: every door says the same."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gpuplatform.common import clock
from gpuplatform.common.problems import Rejected
from queues.models import FlavorQuota
from queues.services import save_namespace
from queues.specs import NamespaceSpec
from scheduling import lifecycle
from scheduling.cycle import run_cycle
from scheduling.devices import devices_of, named_requests
from scheduling.engine.machines import VGPU_NUMBER, Devices
from scheduling.engine.snapshot import DeviceRequest
from scheduling.engine.terms import DeviceLocality
from scheduling.engine.usage import is_gpu
from scheduling.loader import load_snapshot
from scheduling.models import Node, Placement
from scheduling.rules import check_workload
from scheduling.services import load_world, save_node, submit_workload
from scheduling.specs import NodeSpec, PodSetSpec, WorkloadSpec
from scheduling.workload_body import read_workload
from tests.doors.samples import on_cluster
from tests.scheduling.loop import world

GPU, ALIAS = "nvidia.com/gpu", "nvidia.com/gpu-memory"
NUMBER, MEMORY, CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
ISLANDS = "gpuplatform.io/gpu-islands"
HALVES = ((0, 1, 2, 3), (4, 5, 6, 7))
GIB = 2**30


def gfd(**facts: int | str) -> dict[str, str]:
    """Labels as GPU feature discovery writes them."""
    return {f"nvidia.com/gpu.{name}": str(value) for name, value in facts.items()}


@pytest.mark.parametrize(
    ("labels", "annotations", "offered", "expected"),
    [
        pytest.param({}, {}, {GPU: 8}, None, id="whole GPUs, all alike"),
        pytest.param(gfd(count=8, memory=81559, replicas=1), {}, {GPU: 8}, None, id="as ever"),
        pytest.param({}, {ISLANDS: "0-3,4-7"}, {GPU: 8}, Devices(8, islands=HALVES), id="islands"),
        pytest.param(
            {}, {ISLANDS: "0+2, 1+3"}, {GPU: 4}, Devices(4, islands=((0, 2), (1, 3))), id="mixed"
        ),
        pytest.param(
            {}, {ISLANDS: "0-3,4-7"}, {GPU: 6}, Devices(8, islands=HALVES), id="two have failed"
        ),
        pytest.param(
            gfd(count=2, memory=24576, replicas=4), {}, {GPU: 8}, Devices(2, 24576, 4), id="turns"
        ),
        pytest.param(
            gfd(replicas=4), {}, {GPU: 8}, Devices(2, None, 4), id="turns, no more known"
        ),
        pytest.param(
            {},
            {},
            {NUMBER: 20, MEMORY: 49152, CORES: 200},
            Devices(2, 24576, 10),
            id="Volcano's parts",
        ),
        pytest.param({}, {}, {NUMBER: 20}, None, id="parts of nobody knows how many devices"),
        pytest.param({}, {ISLANDS: "0-3,4-7"}, {"cpu": 1}, None, id="no GPU is offered"),
        pytest.param({}, {}, {"nvidia.com/mig-3g.40gb": 2}, None, id="MIG slices are counted"),
        pytest.param(gfd(replicas="many"), {}, {GPU: 8}, None, id="what cannot be read is absent"),
    ],
)
def test_a_node_says_what_its_gpus_are_like(
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    offered: Mapping[str, int],
    expected: Devices | None,
) -> None:
    assert devices_of(labels, annotations, offered) == expected


@pytest.mark.parametrize(
    ("requests", "named", "memory"),
    [
        ({GPU: 1}, {GPU: 1}, 0),
        ({GPU: 1, ALIAS: 20 * GIB}, {GPU: 1}, 20_480),
        ({ALIAS: 20 * GIB}, {NUMBER: 1, MEMORY: 20_480}, 0),
        ({ALIAS: GIB + 1}, {NUMBER: 1, MEMORY: 1025}, 0),
        ({MEMORY: 3000}, {NUMBER: 1, MEMORY: 3000}, 0),
        ({NUMBER: 2, MEMORY: 3000}, {NUMBER: 2, MEMORY: 3000}, 0),
        ({CORES: 30}, {NUMBER: 1, CORES: 30}, 0),
    ],
)
def test_parts_of_devices_have_one_name(
    requests: Mapping[str, int], named: Mapping[str, int], memory: int
) -> None:
    found = named_requests(requests)

    assert (found.requests, found.memory_mib) == (named, memory)
    assert named_requests(found.requests).requests == named


NODE = NodeSpec("n1", allocatable={GPU: 8}, capacity={GPU: 8})


def parts(offered: dict[str, int]) -> dict[str, Any]:
    return {"allocatable": offered, "capacity": offered}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("facts", "path", "cause"),
    [
        ({"annotations": {ISLANDS: "0-3;4-7"}}, f"annotations[{ISLANDS}]", "NotIslands"),
        ({"annotations": {ISLANDS: ""}}, f"annotations[{ISLANDS}]", "NotIslands"),
        ({"annotations": {ISLANDS: "0-9999999,3"}}, f"annotations[{ISLANDS}]", "NotIslands"),
        ({"annotations": {ISLANDS: "0-4,4-7"}}, f"annotations[{ISLANDS}]", "InTwoIslands"),
        ({"annotations": {ISLANDS: "0-3,5-7"}}, f"annotations[{ISLANDS}]", "InNoIsland"),
        ({"annotations": {ISLANDS: "0-3"}}, f"annotations[{ISLANDS}]", "InNoIsland"),
        (
            {"annotations": {ISLANDS: "0-3,4-8"}, "labels": gfd(count=8)},
            f"annotations[{ISLANDS}]",
            "NoSuchGpu",
        ),
        ({"labels": gfd(replicas="many")}, "labels[nvidia.com/gpu.replicas]", "NotANumber"),
        ({"labels": gfd(replicas=101)}, "labels[nvidia.com/gpu.replicas]", "NotANumber"),
        ({"labels": gfd(replicas=0)}, "labels[nvidia.com/gpu.replicas]", "NoneOfThem"),
        ({"labels": gfd(count=0)}, "labels[nvidia.com/gpu.count]", "NoneOfThem"),
        ({"labels": gfd(count=2, replicas=3)}, f"allocatable[{GPU}]", "MoreThanThere"),
        (parts({NUMBER: 10, CORES: 7}), f"allocatable[{CORES}]", "NotWholeDevices"),
        (parts({NUMBER: 1, CORES: 200}), f"allocatable[{NUMBER}]", "FewerThanGpus"),
        (
            {key: {VGPU_NUMBER: 20_000_000} for key in ("allocatable", "capacity")},
            f"allocatable[{VGPU_NUMBER}]",
            "NotANumber",
        ),
    ],
)
def test_what_describes_no_gpus_is_refused(facts: dict[str, Any], path: str, cause: str) -> None:
    with pytest.raises(Rejected) as refusal:
        save_node(replace(NODE, **facts), actor=None)

    (problem,) = refusal.value.problems
    assert (problem.path, problem.code, problem.numbers["cause"]) == (path, "BAD_GPU_FACTS", cause)
    assert "{" not in problem.message


@pytest.mark.django_db
def test_islands_and_requests_for_them_reach_the_engine() -> None:
    save_node(replace(NODE, annotations={ISLANDS: "0-3,4-7"}), actor=None)
    pods = PodSetSpec("main", 1, {GPU: 4}, device_locality="require-island")
    parts = PodSetSpec("parts", 1, {ALIAS: 3 * GIB})
    submit_workload(WorkloadSpec("ns", "job", (pods,)), actor=None)
    plain = replace(pods, device_locality="any")
    submit_workload(WorkloadSpec("ns", "plain", (plain,)), actor=None)

    snapshot = load_snapshot()

    assert snapshot.nodes[0].devices == Devices(8, islands=HALVES)
    asked = {w.name: w.pod_sets[0].device for w in snapshot.workloads}
    near = DeviceRequest(4, locality=DeviceLocality.REQUIRE)
    assert asked == {"ns/job": near, "ns/plain": None}
    said = check_workload(WorkloadSpec("ns", "other", (parts,)), load_world())
    assert {d.code: d.path for d in said}["RESOURCE_ALIAS"] == (f"pod_sets[0].requests[{ALIAS}]")
    assert "VGPU_NUMBER_DEFAULTED" in {d.code for d in said}


@pytest.fixture
def queues(datos: Any) -> None:
    save_namespace(NamespaceSpec("ns-datos", team="datos"), actor=None)
    on_cluster(4, "kueue-three-teams")


@pytest.mark.django_db
@pytest.mark.usefixtures("queues")
def test_who_may_share_a_gpu_and_names_no_memory_is_warned() -> None:
    row = load_snapshot().nodes[0]
    facts = NodeSpec(
        row.name,
        {**row.labels, **gfd(count=2, memory=24576, replicas=4)},
        allocatable=row.allocatable,
    )
    save_node(facts, actor=None)
    pods = PodSetSpec("main", 1, {GPU: 1})
    spec = WorkloadSpec("ns-datos", "job", (pods,), queue="lq-datos")

    silent = check_workload(spec, load_world())
    told = check_workload(
        replace(spec, pod_sets=(replace(pods, device_memory_mib=4096),)), load_world()
    )

    assert [d.code for d in silent] == ["SHARED_WITHOUT_MEMORY"]
    assert row.name in silent[0].sentence
    assert told == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("offered", "asked"),
    [("nvidia.com/mig-3g.40gb", GPU), (GPU, "nvidia.com/mig-3g.40gb")],
)
def test_a_slice_and_a_whole_gpu_are_told_apart_by_name(offered: str, asked: str) -> None:
    """A queue in one resource admits only pods of that resource, and says both names."""
    world.nodes(1)
    Node.objects.update(allocatable={"cpu": 8000, offered: 4, asked: 4, "pods": 110})
    world.queue("datos", 4)
    FlavorQuota.objects.update(resource=offered)
    spec = WorkloadSpec("ns-datos", "job", (PodSetSpec("main", 1, {asked: 1}),), queue="lq")
    right = replace(spec, name="right", pod_sets=(PodSetSpec("main", 1, {offered: 1}),))

    (refusal,) = check_workload(spec, load_world())

    assert refusal.code == "UNCOVERED_RESOURCE"
    assert offered in refusal.sentence
    assert asked in refusal.sentence
    assert check_workload(right, load_world()) == []


@pytest.mark.django_db
def test_the_devices_of_an_admission_are_kept_and_come_back() -> None:
    world.nodes(1, gpus=8)
    Node.objects.update(annotations={ISLANDS: "0-3,4-7"})
    world.queue("datos", 8)
    first = world.work("datos", "first", gpus=3)
    near = world.work("datos", "near", gpus=4, topology={"device_locality": "require-island"})
    waits = world.work("datos", "waits", gpus=2, topology={"device_locality": "require-island"})

    run_cycle()

    rows = {p.admission.workload_id: p.devices for p in Placement.objects.all()}
    assert rows == {first.pk: [[0, 1, 2]], near.pk: [[4, 5, 6, 7]]}
    admitted = {w.key: w.admission for w in load_snapshot().workloads if w.admission}
    (assignment,) = admitted[str(near.pk)].assignments
    assert assignment.devices == {"h100-node-01": ((4, 5, 6, 7),)}
    assert world.status(waits) == "pending"

    lifecycle.cancel(first, at=clock.now())
    assert run_cycle().refused == ()


@pytest.mark.parametrize(
    "asked", [{NUMBER: 1, MEMORY: 12_288, CORES: 50}, {ALIAS: 12 * GIB}, {GPU: 1, ALIAS: GIB}]
)
def test_a_part_is_metered_once_whatever_it_says_of_memory_and_time(asked: dict[str, int]) -> None:
    named = named_requests(asked).requests

    assert sum(amount for resource, amount in named.items() if is_gpu(resource)) == 1


def test_json_names_locality_and_memory() -> None:
    pod_set = {"name": "main", "count": 1, "requests": {GPU: 4}}
    asked = {**pod_set, "device_locality": "restricted", "device_memory_mib": 40_960}
    body = {"name": "a", "namespace": "ns", "queue": "lq", "pod_sets": [asked]}

    (spec,) = read_workload(body).pod_sets

    assert (spec.device_locality, spec.device_memory_mib) == ("restricted", 40_960)
    with pytest.raises(Rejected) as refusal:
        read_workload({**body, "pod_sets": [{**asked, "device_memory_mib": -1}]})
    assert [p.path for p in refusal.value.problems] == ["pod_sets[0].device_memory_mib"]
