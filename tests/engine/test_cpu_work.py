"""Work that asks for no GPU is kept off the CPU and memory that free GPUs need."""

from dataclasses import replace

import pytest

from scheduling.engine.cycle import decide
from scheduling.engine.feasibility import check_workload
from scheduling.engine.invariants import violations
from scheduling.engine.machines import GPU, Devices
from scheduling.engine.plan import Admit
from scheduling.engine.terms import PlacementPolicy
from tests.engine.builders import GI, pods, world

ONE, CPU_NODE = "h100-node-01", "h100-node-02"


def decided(made):
    snapshot = made.build()
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    admits = [d for d in plan.decisions if isinstance(d, Admit)]
    return {d.workload: dict(d.assignments[0].nodes) for d in admits}


def cpu_pool(**changes):
    """A GPU node of 8 GPUs, 96 cores and 800 Gi, and a node of 16 cores without GPUs."""
    made = world().nodes(2, 8).queue("cq", 99, cohort=None, cpu=999, memory=9999)
    gpu, plain = made.node_list
    offered = {"cpu": 96_000, "memory": 800 * GI, "pods": 110}
    made.node_list = [
        replace(gpu, allocatable={**offered, GPU: 8}, **changes),
        replace(plain, allocatable={**offered, "cpu": 16_000}),
    ]
    return made


@pytest.mark.parametrize("policy", list(PlacementPolicy))
def test_work_without_gpus_goes_to_nodes_without_gpus_first(policy):
    made = cpu_pool().flavor(policy=policy)
    for key in "abc":
        made.pending(key, "cq", pods(1, 0, cpu=8))

    assert list(decided(made).values()) == [{CPU_NODE: 1}, {CPU_NODE: 1}, {ONE: 1}]


def used(made, gpus, cpu):
    """Let work with GPUs run on the GPU node."""
    return made.running("r", "cq", pods(1, gpus, cpu=cpu), on={ONE: 1})


@pytest.mark.parametrize(
    ("gpus", "cpu", "expected"),
    [
        pytest.param(0, 0, 0, id="every core goes with a free GPU"),
        pytest.param(8, 8, 88, id="no GPU is free: all the rest"),
        pytest.param(4, 40, 8, id="4 free GPUs keep 48 of 56"),
        pytest.param(4, 50, 0, id="what is left is less than they need"),
    ],
)
def test_a_hard_rule_leaves_free_gpus_their_part_of_cpu(gpus, cpu, expected):
    made = cpu_pool()
    made.node_list = made.node_list[:1]
    if gpus:
        used(made, gpus, cpu)
    made.pending("fits", "cq", pods(max(expected, 1), 0, cpu=1))
    made.pending("more", "cq", pods(expected + 1, 0, cpu=1))
    snapshot = replace(made.build(), keeps_for_gpus=True)

    admitted = [d.workload for d in decide(snapshot).decisions if isinstance(d, Admit)]

    assert admitted == (["fits"] if expected else [])
    soft = [d.workload for d in decide(made.build()).decisions if isinstance(d, Admit)]
    assert "fits" in soft


def test_memory_is_kept_as_well_and_parts_of_gpus_count():
    made = cpu_pool(devices=Devices(8))
    made.node_list = made.node_list[:1]
    made.running("r", "cq", pods(1, 4, memory=300), on={ONE: 1})
    made.pending("p", "cq", pods(1, 0, memory=100)).pending("q", "cq", pods(1, 0, memory=1))
    snapshot = replace(made.build(), keeps_for_gpus=True)

    admitted = [d.workload for d in decide(snapshot).decisions if isinstance(d, Admit)]

    assert admitted == ["p"]


def test_a_gpu_node_with_room_to_spare_goes_before_one_without():
    made = cpu_pool()
    made.node_list[1] = replace(made.node_list[1], allocatable={**made.node_list[0].allocatable})
    made.running("r", "cq", pods(1, 8, cpu=8), on={CPU_NODE: 1})
    made.pending("p", "cq", pods(1, 0, cpu=8))

    assert decided(made) == {"p": {CPU_NODE: 1}}


def test_what_gpus_keep_makes_no_request_impossible():
    made = cpu_pool()
    made.node_list = made.node_list[:1]
    work = made.pending("p", "cq", pods(1, 0, cpu=8)).build().workloads[-1]

    assert check_workload(replace(made.build(), keeps_for_gpus=True), work) == ()
