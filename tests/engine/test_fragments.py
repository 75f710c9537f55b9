"""How well free GPUs can still be used, against a count that places pods one at a time."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.engine.atlas import Atlas, exclusion
from scheduling.engine.books import Books
from scheduling.engine.fragments import ANYBODY, SIZES, Stranded, fragments
from scheduling.engine.machines import (
    CPU,
    GPU,
    MEMORY,
    PODS,
    WHOLE,
    Devices,
    Taint,
    Toleration,
)
from scheduling.engine.snapshot import DeviceRequest, Recent
from scheduling.engine.terms import DeviceLocality, Undeclared
from scheduling.engine.usual import usual_pods
from tests.engine.builders import BLOCK, GI, RACK, node, pods, world


def figures(made):
    (found,) = fragments(made.build())
    return found


def small(number, gpus=4, **amounts):
    """A node with the given amounts in place of its own."""
    made = node(number, gpus)
    return replace(made, allocatable={**made.allocatable, **amounts})


def waits_for(*pod_sets):
    made = world().topology().queue("a", 64, None, undeclared=Undeclared.IGNORE)
    return made.pending("w", "a", *pod_sets)


# ---- figures that can be worked out by hand -----------------------------------------------------
def test_the_figures_of_a_half_used_cluster() -> None:
    made = world().topology().nodes(6).queue("a", 24, None)
    made.running("x", "a", gpus=3, on={"h100-node-01": 1})
    (found,) = fragments(replace(made.build(), shapes=(Recent(pods(1, 3), 1),)))
    assert (found.flavor, found.resource, found.nodes, found.empty_nodes) == (
        "h100-sxm",
        GPU,
        6,
        5,
    )
    assert (found.total, found.free) == (24 * WHOLE, 21 * WHOLE)
    # Node 1 has one GPU left and no pod of three fits there; the others hold one such pod each.
    assert found.usable == 15 * WHOLE
    assert found.stranded == {Stranded.PIECES: 6 * WHOLE}
    # A pod of three fits where four are free, and there all that is free counts as useful.
    assert (found.fragment, found.ratio) == (1 * WHOLE, round(1 / 21, 4))
    assert found.gangs == {
        1: {"host": 4, RACK: 8, BLOCK: 13, "cluster": 21},
        2: {"host": 2, RACK: 4, BLOCK: 6, "cluster": 10},
        4: {"host": 1, RACK: 2, BLOCK: 3, "cluster": 5},
        8: {"host": 0, RACK: 0, BLOCK: 0, "cluster": 0},
    }


def test_work_that_waits_says_what_usually_comes() -> None:
    made = waits_for(pods(2, 1))
    made.nodes(2).running("x", "a", gpus=3, on={"h100-node-01": 1})
    found = figures(made)
    assert (found.usable, found.stranded, found.ratio) == (5 * WHOLE, {}, 0.0)


def test_work_that_stands_says_nothing_of_who_comes() -> None:
    made = world().nodes(2).queue("a", 64, None)
    found = figures(made.running("x", "a", gpus=3, on={"h100-node-01": 1}))
    assert (found.usable, found.stranded, found.ratio) == (5 * WHOLE, {}, None)


def test_pods_of_the_last_days_count_before_those_that_wait() -> None:
    made = waits_for(pods(2, 1))
    made.nodes(2).running("x", "a", gpus=3, on={"h100-node-01": 1})
    snapshot = replace(made.build(), shapes=(Recent(pods(1, 2), 7),))
    (found,) = fragments(snapshot)
    assert (found.usable, found.stranded) == (4 * WHOLE, {Stranded.PIECES: WHOLE})


def test_with_nobody_known_every_free_gpu_with_anything_beside_it_is_usable() -> None:
    found = figures(world().topology().nodes(2))
    assert (found.usable, found.stranded) == (8 * WHOLE, {})
    assert (found.fragment, found.ratio) == (None, None)


@pytest.mark.parametrize(
    ("machine", "ask", "usable", "stranded"),
    [
        (small(1), {}, 4, {}),
        (small(1, **{CPU: 32_000}), {"cpu": 16}, 2, {Stranded.CPU: 2}),
        (small(1, **{MEMORY: 64 * GI}), {"memory": 64}, 1, {Stranded.MEMORY: 3}),
        (small(1, **{PODS: 3}), {}, 3, {Stranded.PODS: 1}),
        (small(1, 3), {"gpus": 2}, 2, {Stranded.PIECES: 1}),
        (small(1, 3), {"gpus": 4}, 0, {Stranded.PIECES: 3}),
        (replace(node(1), schedulable=False), {}, 0, {Stranded.CORDONED: 4}),
        (replace(node(1), ready=False), {}, 0, {Stranded.NOT_READY: 4}),
        (replace(node(1), ready=False, schedulable=False), {}, 0, {Stranded.NOT_READY: 4}),
        (replace(node(1), taints=(Taint("a", "b"),)), {}, 0, {Stranded.TAINT: 4}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_each_cause_strands_what_it_stops(machine, ask, usable, stranded) -> None:
    made = waits_for(pods(1, **{"gpus": 1, **ask}))
    made.node_list.append(machine)
    found = figures(made)
    assert found.usable == usable * WHOLE
    assert found.stranded == {cause: gpus * WHOLE for cause, gpus in stranded.items()}


def test_a_resource_that_nobody_named_is_another_one() -> None:
    made = waits_for(pods(1, 1, requests={GPU: 1, "rdma/nic": 1}))
    made.node_list.append(small(1, **{"rdma/nic": 1}))
    found = figures(made)
    assert (found.usable, found.stranded) == (WHOLE, {Stranded.OTHER: 3 * WHOLE})


def test_a_taint_that_the_flavor_or_a_usual_pod_tolerates_strands_nothing() -> None:
    tainted = replace(node(1), taints=(Taint("a", "b"),))
    made = waits_for(pods(1, 1, tolerations=(Toleration("a", "Exists"),)))
    made.node_list.append(tainted)
    assert figures(made).stranded == {}
    made = waits_for(pods(1, 1)).flavor(tolerations=(Toleration("a", "Exists"),))
    made.node_list.append(tainted)
    assert figures(made).stranded == {}


def test_what_is_left_of_a_shared_device_is_stranded_as_a_share() -> None:
    part = DeviceRequest(1, share=600)
    made = waits_for(pods(1, 1, device=part))
    made.node_list.append(replace(node(1, 2), devices=Devices(2)))
    made.running("x", "a", pods(1, 1, device=part), on={"h100-node-01": 1})
    (work,) = [w for w in made.workloads if w.name == "x" or w.key == "x"]
    (held,) = work.admission.assignments
    told = replace(held, devices={"h100-node-01": ((0,),)})
    made.workloads[made.workloads.index(work)] = replace(
        work, admission=replace(work.admission, assignments=(told,))
    )
    found = figures(made)
    assert found.free == 1400
    assert (found.usable, found.stranded) == (600, {Stranded.SHARE: 800})


def test_pods_that_need_one_island_can_use_no_gpus_of_two() -> None:
    near = DeviceRequest(4, locality=DeviceLocality.REQUIRE)
    made = waits_for(pods(1, 4, device=near))
    islands = ((0, 1, 2, 3), (4, 5, 6, 7))
    made.node_list.append(replace(node(1, 8), devices=Devices(8, islands=islands)))
    made.running("x", "a", pods(2, 1), on={"h100-node-01": 2})
    (held,) = made.workloads[-1].admission.assignments
    told = replace(held, devices={"h100-node-01": ((0,), (4,))})
    admission = replace(made.workloads[-1].admission, assignments=(told,))
    made.workloads[-1] = replace(made.workloads[-1], admission=admission)
    found = figures(made)
    assert (found.free, found.usable) == (6 * WHOLE, 0)
    assert found.stranded == {Stranded.PIECES: 6 * WHOLE}


def test_a_gang_needs_the_cpu_that_such_pods_usually_ask_for() -> None:
    made = waits_for(pods(1, 2, cpu=40))
    made.node_list += [small(1, 8, **{CPU: 80_000}), small(2, 8, **{CPU: 10_000})]
    gangs = figures(made).gangs
    assert (gangs[2]["host"], gangs[1]["host"], gangs[4]["cluster"]) == (2, 4, 1)


def test_two_flavors_of_one_node_count_it_each_for_itself() -> None:
    made = world().nodes(1).flavor("h100-sxm").flavor("all")
    made.flavors["all"] = replace(made.flavors["all"], node_labels={})
    assert [f.flavor for f in fragments(made.build())] == ["all", "h100-sxm"]


# ---- against a count that knows no shortcut -----------------------------------------------------
@st.composite
def clusters(draw):
    made = world().topology().queue("a", 64, None, undeclared=Undeclared.IGNORE)
    for number in range(1, draw(st.integers(1, 5)) + 1):
        machine = small(
            number,
            draw(st.integers(0, 8)),
            **{
                CPU: draw(st.sampled_from([0, 8_000, 32_000, 64_000])),
                MEMORY: draw(st.sampled_from([16, 64, 512])) * GI,
                PODS: draw(st.sampled_from([1, 3, 110])),
            },
        )
        state = draw(st.sampled_from(["", "", "", "", "cordoned", "down", "tainted"]))
        machine = replace(
            machine,
            ready=state != "down",
            schedulable=state != "cordoned",
            taints=(Taint("only"),) if state == "tainted" else (),
        )
        made.node_list.append(machine)
    for number in range(draw(st.integers(0, 3))):
        ask = pods(
            draw(st.integers(1, 3)),
            draw(st.integers(0, 4)),
            cpu=draw(st.sampled_from([1, 8, 16])),
            memory=draw(st.sampled_from([1, 16, 64])),
        )
        made.pending(f"w{number}", "a", ask)
    return made.build()


def naive_use(room, machine, asks):
    """Return the most GPUs that one kind of pod takes of a node, put there one at a time."""
    most = 0
    for requests in asks:
        left = {r: room.free(machine.name, r) for r in (*requests, PODS)}
        gpus = 0
        while all(left[r] >= n for r, n in requests.items()) and left[PODS] >= 1:
            left = {r: n - requests.get(r, 0) for r, n in left.items()} | {PODS: left[PODS] - 1}
            gpus += requests[GPU]
            if not requests[GPU]:
                break
        most = max(most, gpus)
    return most


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(snapshot=clusters())
def test_every_free_gpu_is_in_exactly_one_class(snapshot) -> None:
    atlas = Atlas(snapshot)
    room = Books(snapshot, atlas).now.room
    asks = [p.pod_set.requests for p in usual_pods(atlas) if p.pod_set.requests.get(GPU)]
    flavors = atlas.flavors(["h100-sxm"])
    usable, out = 0, Counter()
    for machine in snapshot.nodes:
        why = exclusion(machine, ANYBODY, flavors)[0]
        free = room.free(machine.name, GPU)
        if why:
            out[Stranded(why)] += free
        else:
            usable += naive_use(room, machine, asks or [{**ANYBODY.requests, GPU: 1}])
    for found in fragments(snapshot):
        assert found.usable + sum(found.stranded.values()) == found.free
        assert found.free == sum(room.free(n.name, GPU) for n in snapshot.nodes) * WHOLE
        assert found.usable == usable * WHOLE
        assert all(found.stranded[cause] > 0 for cause in found.stranded)
        for cause in (Stranded.NOT_READY, Stranded.CORDONED, Stranded.TAINT):
            assert found.stranded.get(cause, 0) == out[cause] * WHOLE
        assert found.ratio is None or 0 <= found.ratio <= 1


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(snapshot=clusters())
def test_the_largest_gangs_are_those_that_can_be_put_there_pod_by_pod(snapshot) -> None:
    snapshot = replace(snapshot, workloads=())
    atlas = Atlas(snapshot)
    room, flavors = Books(snapshot, atlas).now.room, atlas.flavors(["h100-sxm"])
    for size in SIZES:
        sums: dict[str, Counter] = {level: Counter() for level in ("host", RACK, BLOCK, "cluster")}
        for machine in snapshot.nodes:
            if exclusion(machine, ANYBODY, flavors)[0]:
                continue
            held = naive_use(room, machine, [{**ANYBODY.requests, GPU: size}]) // size
            block, rack = machine.labels[BLOCK], machine.labels[RACK]
            for level, domain in (
                ("host", machine.name), (RACK, (block, rack)), (BLOCK, block), ("cluster", ""),
            ):  # fmt: skip
                sums[level][domain] += held
        want = {level: max(found.values(), default=0) for level, found in sums.items()}
        for found in fragments(snapshot):
            assert found.gangs[size] == want


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(snapshot=clusters(), data=st.data())
def test_the_order_of_lists_means_nothing(snapshot, data) -> None:
    other = replace(
        snapshot,
        nodes=tuple(data.draw(st.permutations(snapshot.nodes))),
        workloads=tuple(data.draw(st.permutations(snapshot.workloads))),
    )
    assert fragments(other) == fragments(snapshot)
