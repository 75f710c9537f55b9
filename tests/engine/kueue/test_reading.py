"""Scenarios are read strictly: every problem is named with its path."""

from typing import Any

import pytest

from scheduling.engine.scenario.fields import BadScenario
from scheduling.engine.scenario.reader import read_scenario
from tests.engine.kueue.platform import platform, queue, work

NO_SUCH_POD_SET = {"name": "other", "count": 1, "flavors": {"gpu": "h100"}}
POD = {"name": "p", "count": 1, "requests": {"gpu": 1}}
GROUP = {"required": "rack", "group": "g"}
BAD_TERM = {"key": "zone", "operator": "Exists", "values": ["x"]}
EDIT = {"at_cycle": 1, "type": "set_quota", "flavor": "h100", "resource": "gpu", "nominal": 1}
LIMITED = {
    "covered_resources": ["gpu"],
    "flavors": [{"name": "h100", "resources": {"gpu": {"nominal": 4, "lending_limit": 1}}}],
}
FLAVOR = "cluster_queues[0].resource_groups[0].flavors[0]"


def problems(value: Any) -> list[str]:
    with pytest.raises(BadScenario) as caught:
        read_scenario(value)
    return [str(problem) for problem in caught.value.problems]


def good(**more: Any) -> dict[str, Any]:
    return platform([queue("a", 4)], [work("x", 2)]) | more


def held(flavors: dict[str, str], **more: Any) -> dict[str, Any]:
    pod_set = {"name": "main", "count": 2, "flavors": flavors, **more}
    return work("x", 2, admission={"reserved_at": 1, "pod_sets": [pod_set]})


def on(node: str, pods: int) -> dict[str, Any]:
    return {"levels": ["host"], "domains": [{"values": [node], "count": pods}]}


def test_a_good_one() -> None:
    assert read_scenario(good()).workloads[0].queue == "a"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"colour": 1}, "colour: unknown field"),
        ({"settings": {"cycles": 3}}, "settings.cycles: unknown field"),
        (
            {"workloads": [{**work("x", 1), "pods": 1}]},
            "workloads[0].pods: unknown field",
        ),
        (
            {"workloads": [work("x", 1, pods={"requests": {"gpu": -1}})]},
            "workloads[0].pod_sets[0].requests.gpu: must not be negative",
        ),
        (
            {"workloads": [work("x", 1, of="none")]},
            "workloads[0].queue: unknown local queue 'q-none'",
        ),
        (
            {"workloads": [work("x", 1), work("x", 2)]},
            "workloads[1].name: 'x' is there twice",
        ),
        (
            {"cluster_queues": [queue("a", -4)]},
            f"{FLAVOR}.resources.gpu.nominal: must not be below 0",
        ),
        (
            {"flavors": []},
            f"{FLAVOR}.name: unknown flavor 'h100'",
        ),
        (
            {"local_queues": [{"name": "q-a", "cluster_queue": "b"}]},
            "local_queues[0].cluster_queue: unknown cluster queue 'b'",
        ),
        (
            {"cohorts": [{"name": "c", "parent": "d"}, {"name": "d", "parent": "c"}]},
            "cohorts[0].parent: the cohort is above itself",
        ),
        (
            {"events": [{"at_cycle": 1, "type": "finish", "workload": "y"}]},
            "events[0].workload: unknown workload 'y'",
        ),
        (
            {"events": [{"at_cycle": 0, "type": "explode"}]},
            "events[0].at_cycle: must not be below 1",
        ),
        (
            {"settings": {"cycle_seconds": -1}},
            "settings.cycle_seconds: must not be below 0",
        ),
        (
            {"settings": {"start_at": float("nan")}},
            "settings.start_at: must be finite",
        ),
        (
            {"events": [{"at_cycle": 1, "type": "submit", "workload": work("x", 1)}]},
            "events[0].workload.name: 'x' is there twice",
        ),
        (
            {
                "workloads": [
                    work("x", 1, admission={"reserved_at": 1, "pod_sets": [NO_SUCH_POD_SET]})
                ]
            },
            "workloads[0].admission.pod_sets[0].name: unknown pod set 'other'",
        ),
        (
            {"flavors": [{"name": "h100", "topology": "t"}]},
            "flavors[0].topology: unknown topology 't'",
        ),
        (
            {"cluster_queues": [queue("a", 10**30)]},
            f"{FLAVOR}.resources.gpu.nominal: must not be above 9223372036854775807",
        ),
        (
            {"cluster_queues": [queue("a", 4, fair_weight=float("inf"))]},
            "cluster_queues[0].fair_weight: must be finite",
        ),
        (
            {"cluster_queues": [queue("a", 4, stop_policy="Pause")]},
            "cluster_queues[0].stop_policy: must be one of None, Hold, HoldAndDrain",
        ),
        (
            {"cluster_queues": [queue("", 4)]},
            "cluster_queues[0].name: must not be empty",
        ),
        (
            {"workloads": [work("x", 2, pods={"min_count": 3})]},
            "workloads[0].pod_sets[0].min_count: must not be above count",
        ),
        (
            {"workloads": [work("x", 1, priority=2**31)]},
            "workloads[0].priority: must not be above 2147483647",
        ),
        (
            {"workloads": [{**work("x", 1), "created_at": "noon"}]},
            "workloads[0].created_at: must be a number",
        ),
        (
            {"workloads": [{**work("x", 1), "created_at": 10**400}]},
            "workloads[0].created_at: must not be above 1e+15",
        ),
        (
            {"workloads": [{**work("x", 1), "pod_sets": []}]},
            "workloads[0].pod_sets: must hold at least one pod set",
        ),
        (
            {"workloads": [{**work("x", 1), "pod_sets": [POD, POD]}]},
            "workloads[0].pod_sets[1].name: 'p' is there twice",
        ),
        (
            {"workloads": [{**work("x", 1), "pod_sets": [{**POD, "topology_request": GROUP}]}]},
            "workloads[0].pod_sets: group 'g' must be two pod sets, one of them of one pod",
        ),
        (
            {"workloads": [held({"gpu": "a100"})]},
            "workloads[0].admission.pod_sets[0].flavors.gpu: unknown flavor 'a100'",
        ),
        (
            {"workloads": [held({"gpu": "h100"}, count=9)]},
            "workloads[0].admission.pod_sets[0].count: must not be above the count of the pod set",
        ),
        (
            {"workloads": [held({"gpu": "h100"}, topology=on("n", 1))]},
            "workloads[0].admission.pod_sets[0].topology.domains: must hold 2 pods together",
        ),
        (
            {"workloads": [held({"gpu": "h100"}, topology=on("n", 2))]},
            "workloads[0].admission.pod_sets[0].topology.domains: unknown node 'n'",
        ),
        (
            {"workloads": [work("x", 1, admission={"reserved_at": 1, "pod_sets": []})]},
            "workloads[0].admission.pod_sets: holds nothing for pod set 'main'",
        ),
        (
            {"workloads": [work("x", 1, reclaimable={"main": 2})]},
            "workloads[0].reclaimable.main: must not be above count",
        ),
        (
            {"workloads": [work("x", 1, replaces="y")]},
            "workloads[0].replaces: unknown workload 'y'",
        ),
        (
            {"workloads": [work("x", 1, pods={"affinity": [{"match_expressions": [BAD_TERM]}]})]},
            (
                "workloads[0].pod_sets[0].affinity[0].match_expressions[0].values: "
                "must be empty for Exists"
            ),
        ),
        (
            {"events": [{"at_cycle": 1, "type": "explode"}]},
            (
                "events[0].type: must be one of finish, delete, submit, set_priority, set_quota, "
                "set_stop_policy, set_node, advance_clock, checkpoint, reclaim_pods, scale"
            ),
        ),
        (
            {"events": [{"at_cycle": 1, "type": "finish", "workload": "x", "priority": 3}]},
            "events[0].priority: unknown field",
        ),
        (
            {"events": [{**EDIT, "cluster_queue": "a", "resource": "cpu"}]},
            "events[0].resource: the queue has no quota for 'cpu' of flavor 'h100'",
        ),
        (
            {"events": [{"at_cycle": 1, "type": "scale", "workload": "x", "counts": {"b": 1}}]},
            "events[0].counts.b: unknown pod set 'b'",
        ),
        (
            {"settings": {"resource_transformations": [{"input": "gpu", "outputs": {"u": "2"}}]}},
            "settings.resource_transformations[0].outputs.u: must be a number",
        ),
        (
            {"events": [{**EDIT, "cohort": "none"}]},
            "events[0].cohort: unknown cohort 'none'",
        ),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], expected: str) -> None:
    assert problems(good(**change))[0] == expected


def test_all_problems_are_listed() -> None:
    """Those of single fields and those between the parts, in one go."""
    bad = good(
        colour=1,
        cohorts=[{"name": "c", "parent": "c"}],
        local_queues=[
            {"name": "q-a", "cluster_queue": "a"},
            {"name": "q-b", "cluster_queue": "b"},
        ],
        workloads=[work("x", 1), {**work("x", -1), "created_at": None}],
    )
    assert problems(bad) == [
        "workloads[1].pod_sets[0].count: must not be below 0",
        "workloads[1].created_at: is required",
        "colour: unknown field",
        "workloads[1].name: 'x' is there twice",
        "cohorts[0].parent: the cohort is above itself",
        "local_queues[1].cluster_queue: unknown cluster queue 'b'",
    ]


def test_what_only_follows_from_another_problem_is_not_told_again() -> None:
    assert problems(good(flavors="h100")) == ["flavors: must be a list"]
    assert problems(good(local_queues=[3])) == ["local_queues[0]: must be an object"]
    assert problems(good(flavors=[{}])) == ["flavors[0].name: is required"]


@pytest.mark.parametrize("value", [None, 3, [], "text"])
def test_what_is_no_object_is_refused(value: Any) -> None:
    assert problems(value) == [": must be an object"]


def test_limits_that_have_no_effect_are_no_contradiction():
    made = platform([queue("a", 4, limits={"borrowing_limit": 1, "lending_limit": 5})], [])
    made["cohorts"] = [{"name": "c", "resource_groups": [LIMITED]}]
    assert read_scenario(made).queues[0].name == "a"
