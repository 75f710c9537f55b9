"""What scenarios may say beyond the recorded format (``docs/scenarios.md``)."""

from typing import Any

import pytest

from scheduling.engine.profile import Profile
from scheduling.engine.queue_rules import MinimumRuntime
from scheduling.engine.scenario.loop import run
from scheduling.engine.scenario.reader import read_scenario
from scheduling.engine.scenario.world import World
from scheduling.engine.snapshot import Expression, Snapshot
from scheduling.engine.terms import Fairness, Operator
from tests.engine.kueue.platform import platform, queue, running, work

PROFILES = (Profile.recommended(), Profile.kueue())
RECOMMENDED = Profile.recommended()


def seen(value: dict[str, Any]) -> Snapshot:
    return World(read_scenario(value)).snapshot()


def when_admitted(outcome: dict[str, Any]) -> dict[str, int]:
    return {
        one["workload"]: cycle["cycle"]
        for cycle in outcome["cycles"]
        for one in cycle.get("admitted", [])
    }


def test_every_field_reaches_the_engine() -> None:
    term = {"key": "zone", "operator": "In", "values": ["a"]}
    pods = {"affinity": [{"match_expressions": [term]}], "charges": {"gpu": 2}}
    own = {"minimum_runtime_s": 60, "minimum_runtime_yields_to_own": True}
    snapshot = seen(
        platform(
            [queue("a", 4, "co", usage_priority_first=True, reclaimable=False, **own)],
            [
                running("old", 1, last_checkpoint_at=50, reclaimable={"main": 1}),
                work("x", 2, pods=pods, replaces="old", preemptible=False),
            ],
            cohorts=[{"name": "co", "fairness": "history"}],
            settings={"half_life_seconds": 3600},
        )
    )
    host, (old, grown) = snapshot.cluster_queues["a"], snapshot.workloads
    assert (snapshot.half_life_s, snapshot.cohorts["co"].fairness) == (3600, Fairness.HISTORY)
    assert (host.minimum_runtime, host.priority_first) == (MinimumRuntime(60, True), True)
    assert host.reclaimable is False
    assert (old.last_checkpoint_at, old.reclaimable) == (50, {"main": 1})
    assert (grown.replaces, grown.preemptible) == ("old", False)
    assert grown.pod_sets[0].affinity == ((Expression("zone", Operator.IN, ("a",)),),)
    assert grown.pod_sets[0].charges == {"gpu": 2}


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_work_ends_by_itself_and_the_next_one_starts(profile: Profile) -> None:
    jobs = [work(f"w{i}", 4, at=i, expected_duration_s=30) for i in range(3)]
    outcome = run(read_scenario(platform([queue("a", 4)], jobs)), profile)
    assert when_admitted(outcome) == {"w0": 1, "w1": 4, "w2": 7}
    assert outcome["final"]["finished"] == ["w0", "w1", "w2"]
    assert outcome["quiescent"] is True


def test_an_end_beyond_the_last_cycle_is_not_waited_for() -> None:
    jobs = [work("x", 4, expected_duration_s=10_000)]
    outcome = run(read_scenario(platform([queue("a", 4)], jobs)), RECOMMENDED)
    assert (outcome["final"]["admitted"], outcome["quiescent"]) == (["x"], True)


def test_an_eviction_starts_the_duration_anew() -> None:
    events = [{"at_cycle": 2, "type": "submit", "workload": work("z", 4, at=9, priority=5)}]
    lower = {"preemption": {"within_cluster_queue": "LowerPriority"}}
    jobs = [work("x", 4, expected_duration_s=40)]
    events.append({"at_cycle": 4, "type": "finish", "workload": "z"})
    outcome = run(
        read_scenario(platform([queue("a", 4, **lower)], jobs, events=events)), PROFILES[0]
    )
    last = outcome["cycles"][-1]
    assert (last["cycle"], last["admitted"][0]["workload"]) == (4, "x")
    assert outcome["final"]["finished"] == ["x", "z"]


def test_a_checkpoint_and_finished_pods_are_noted() -> None:
    events = [
        {"at_cycle": 1, "type": "checkpoint", "workload": "x", "at": 7},
        {"at_cycle": 1, "type": "reclaim_pods", "workload": "x", "pods": {"main": 2}},
    ]
    scenario = read_scenario(platform([queue("a", 4)], [running("x", 4)], events=events))
    world = World(scenario)
    for event in scenario.events:
        world.apply(event)
    (noted,) = world.snapshot().workloads
    assert (noted.last_checkpoint_at, noted.reclaimable) == (7, {"main": 2})


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_what_running_work_sheds_starts_the_next_one(profile: Profile) -> None:
    events = [{"at_cycle": 3, "type": "scale", "workload": "x", "counts": {"main": 1}}]
    jobs = [running("x", 4), work("y", 3, at=2)]
    outcome = run(read_scenario(platform([queue("a", 4)], jobs, events=events)), profile)
    assert when_admitted(outcome) == {"y": 3}
    assert outcome["final"]["usage"]["a"] == {"h100": {"gpu": 4}}


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_quota_is_charged_what_transformations_say(profile: Profile) -> None:
    rule = {"input": "gpu", "outputs": {"unit": 2}, "strategy": "Replace"}
    lines = {"unit": {"nominal": 8}}
    groups = [{"covered_resources": ["unit"], "flavors": [{"name": "h100", "resources": lines}]}]
    asked = {**queue("a", 0), "resource_groups": groups}
    value = platform(
        [asked],
        [work("x", 3), work("y", 2, at=2), work("z", 1, at=3)],
        settings={"resource_transformations": [rule]},
    )
    outcome = run(read_scenario(value), profile)
    assert outcome["final"]["admitted"] == ["x", "z"]
    assert outcome["final"]["usage"]["a"] == {"h100": {"unit": 8}}
