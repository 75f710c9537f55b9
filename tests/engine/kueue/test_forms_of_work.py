"""Forms of work in scenarios: fields beyond the recorded ones, the same in both profiles."""

from typing import Any

import pytest

from scheduling.engine.profile import Profile
from scheduling.engine.scenario.fields import MOST_INTEGER, BadScenario
from scheduling.engine.scenario.loop import run
from scheduling.engine.scenario.reader import read_scenario
from tests.engine.kueue.platform import Scenario, platform, queue, running, work

BOTH = pytest.mark.parametrize(
    "profile", [Profile.kueue(), Profile.recommended()], ids=lambda p: p.name
)


def final(profile: Profile, scenario: Scenario) -> dict[str, Any]:
    outcome = run(read_scenario(scenario), profile)["final"]
    assert isinstance(outcome, dict)
    return outcome


def gpus(outcome: dict[str, Any]) -> int:
    used = outcome["usage"]["a"]["h100"]["gpu"]
    assert isinstance(used, int)
    return used


@BOTH
def test_a_gang_starts_with_the_pods_that_fit(profile):
    made = platform([queue("a", 5)], [work("w", 8, pods={"min_count": 2})])
    outcome = final(profile, made)
    assert (outcome["admitted"], gpus(outcome)) == (["w"], 5)


@BOTH
def test_a_copy_takes_the_place_of_what_it_is_a_copy_of(profile):
    made = platform([queue("a", 6)], [running("old", 4), work("new", 6, replaces="old")])
    outcome = final(profile, made)
    assert (outcome["admitted"], outcome["finished"], gpus(outcome)) == (["new"], ["old"], 6)


@BOTH
def test_a_copy_waits_for_the_difference(profile):
    made = platform([queue("a", 5)], [running("old", 4), work("new", 6, replaces="old")])
    outcome = final(profile, made)
    assert (outcome["admitted"], list(outcome["pending"])) == (["old"], ["new"])


@BOTH
def test_finished_pods_give_way(profile):
    first = running("first", 4, reclaimable={"main": 3})
    made = platform([queue("a", 4)], [first, work("next", 3)])
    outcome = final(profile, made)
    assert (outcome["admitted"], gpus(outcome)) == (["first", "next"], 4)


@BOTH
def test_quota_counts_the_charges(profile):
    made = platform(
        [queue("a", 4)],
        [work("dear", 2, pods={"charges": {"gpu": 2}}), work("late", 1, at=2)],
    )
    outcome = final(profile, made)
    assert (outcome["admitted"], gpus(outcome)) == (["dear"], 4)


@BOTH
@pytest.mark.parametrize(("values", "starts"), [(["a"], True), (["b"], False)])
def test_affinity_is_asked_of_the_flavor(profile, values, starts):
    term = {"match_expressions": [{"key": "zone", "operator": "In", "values": values}]}
    made = platform([queue("a", 4)], [work("w", 1, pods={"affinity": [term]})])
    made["flavors"] = [{"name": "h100", "node_labels": {"zone": "a"}}]
    assert (final(profile, made)["admitted"] == ["w"]) is starts


@pytest.mark.parametrize(
    ("pods", "path"),
    [
        ({"requests": {"gpu": MOST_INTEGER + 1}}, "requests.gpu: must not be above"),
        ({"charges": {"gpu": MOST_INTEGER + 1}}, "charges.gpu: must not be above"),
        ({"charges": {"gpu": -1}}, "charges.gpu: must not be negative"),
        ({"count": MOST_INTEGER + 1}, "count: must not be above"),
        (
            {
                "affinity": [
                    {"match_expressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}
                ]
            },
            "affinity[0].match_expressions[0].operator: must be one of",
        ),
        ({"affinity": [{"match_fields": []}]}, "affinity[0].match_fields: unknown field"),
    ],
)
def test_bad_forms_are_refused_with_their_path(pods, path):
    with pytest.raises(BadScenario) as caught:
        read_scenario(platform([queue("a", 4)], [work("w", 1, pods=pods)]))
    assert [
        str(p).startswith(f"workloads[0].pod_sets[0].{path}") for p in caught.value.problems
    ] == [True]


@BOTH
def test_the_largest_amounts_do_not_wrap_round(profile):
    made = platform(
        [queue("a", MOST_INTEGER)],
        [work("huge", 3, pods={"requests": {"gpu": MOST_INTEGER}}), work("small", 1, at=2)],
    )
    assert final(profile, made)["admitted"] == ["small"]
