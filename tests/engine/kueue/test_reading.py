"""Scenarios are read strictly: every problem is named with its path."""

from typing import Any

import pytest

from scheduling.engine.scenario.fields import BadScenario
from scheduling.engine.scenario.reader import read_scenario
from tests.engine.kueue.platform import platform, queue, work

NO_SUCH_POD_SET = {"name": "other", "count": 1, "flavors": {"gpu": "h100"}}
FLAVOR = "cluster_queues[0].resource_groups[0].flavors[0]"


def problems(value: Any) -> list[str]:
    with pytest.raises(BadScenario) as caught:
        read_scenario(value)
    return [str(problem) for problem in caught.value.problems]


def good(**more: Any) -> dict[str, Any]:
    return platform([queue("a", 4)], [work("x", 2)]) | more


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
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], expected: str) -> None:
    assert problems(good(**change))[0] == expected


def test_all_problems_are_listed() -> None:
    bad = good(
        cohorts=[{"name": "c", "parent": "c"}],
        local_queues=[
            {"name": "q-a", "cluster_queue": "a"},
            {"name": "q-b", "cluster_queue": "b"},
        ],
        workloads=[work("x", 1), work("x", 1)],
    )
    assert problems(bad) == [
        "workloads[1].name: 'x' is there twice",
        "cohorts[0].parent: the cohort is above itself",
        "local_queues[1].cluster_queue: unknown cluster queue 'b'",
    ]


@pytest.mark.parametrize("value", [None, 3, [], "text"])
def test_what_is_no_object_is_refused(value: Any) -> None:
    assert problems(value)[0] == ": must be an object"
