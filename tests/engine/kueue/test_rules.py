"""Rules of ``Profile.kueue()`` that small worlds show."""

from dataclasses import replace
from typing import Any

import pytest

from scheduling.engine import codec, consumption, partial
from scheduling.engine.kueue.cycle import decide_heads
from scheduling.engine.profile import Profile
from scheduling.engine.scenario.loop import run
from scheduling.engine.scenario.reader import read_scenario
from scheduling.engine.scenario.world import World
from tests.engine.kueue.platform import platform, queue, running, work

KUEUE = Profile.kueue()
LOWER = {"preemption": {"within_cluster_queue": "LowerPriority"}}


def outcome(value: dict[str, Any], profile: Profile = KUEUE) -> dict[str, Any]:
    return run(read_scenario(value), profile)


def admitted(result: dict[str, Any]) -> list[list[str]]:
    return [[one["workload"] for one in c.get("admitted", [])] for c in result["cycles"]]


def test_one_head_of_each_queue_and_cycle() -> None:
    value = platform([queue("a", 4)], [work("x", 1, at=1), work("y", 1, at=2)])
    assert admitted(outcome(value)) == [["x"], ["y"]]


def test_recommended_drains_in_one_cycle() -> None:
    value = platform([queue("a", 4)], [work("x", 1, at=1), work("y", 1, at=2)])
    assert admitted(outcome(value, Profile.recommended())) == [["x", "y"]]


def test_a_thousand_equal_gangs_are_tried_once() -> None:
    deep = [work(f"w{i:05}", 8, at=i) for i in range(1000)]
    value = platform([queue("a", 4)], [*deep, work("small", 1, at=9999)])
    result = outcome(value)
    assert [cycle["cycle"] for cycle in result["cycles"]] == [2]
    assert result["final"]["pending"]["w00999"] == {"outcome": "NotConsidered"}


def test_a_profile_that_parks_no_shapes_tries_each() -> None:
    deep = [work(f"w{i}", 8, at=i) for i in range(5)]
    value = platform([queue("a", 4)], [*deep, work("small", 1, at=9999)])
    result = outcome(value, replace(KUEUE, park_shapes=False))
    assert [cycle["cycle"] for cycle in result["cycles"]] == [6]


def test_the_preemptor_stays_in_front_of_more_urgent_arrivals() -> None:
    events = [{"at_cycle": 2, "type": "submit", "workload": work("z", 4, at=9, priority=99)}]
    value = platform(
        [queue("a", 4, **LOWER)],
        [running("old", 4, priority=0), work("x", 4, at=2, priority=5)],
        events=events,
    )
    assert admitted(outcome(value))[1] == ["x"]
    loose = outcome(value, replace(KUEUE, sticky_preemptor=False))
    assert admitted(loose)[1] == ["z"]


def test_who_finds_no_victims_holds_its_share_for_the_cycle() -> None:
    queues = [queue("a", 4, "co"), queue("b", 0, "co")]
    waiting = [work("x", 4, at=1), work("y", 1, of="b", at=2)]
    value = platform(queues, [running("r", 2, priority=9), *waiting])
    first = outcome(value)["cycles"]
    assert [(c["cycle"], c["admitted"][0]["workload"]) for c in first] == [(2, "y")]
    eager = outcome(value, replace(KUEUE, hold_back=False))["cycles"]
    assert [(c["cycle"], c["admitted"][0]["workload"]) for c in eager] == [(1, "y")]


def test_a_memory_that_went_through_json_decides_the_same() -> None:
    deep = [work(f"w{i}", 8, at=i) for i in range(3)]
    world = World(read_scenario(platform([queue("a", 4)], [*deep, work("s", 1, at=9)])))
    world.remember(decide_heads(world.snapshot(), KUEUE).lobby)
    snapshot = world.snapshot()
    again = codec.decode_snapshot(codec.encode_snapshot(snapshot))
    assert again.memory.lobby.parked == ("w0", "w1", "w2")
    assert decide_heads(again, KUEUE).lobby == decide_heads(snapshot, KUEUE).lobby


def test_a_recording_from_before_the_lobby_is_read() -> None:
    world = World(read_scenario(platform([queue("a", 4)], [work("x", 1)])))
    encoded = codec.encode_snapshot(world.snapshot())
    del encoded["memory"]["lobby"], encoded["local_queues"], encoded["fair_strategies"]
    assert codec.decode_snapshot(encoded).memory.lobby.parked == ()


@pytest.mark.parametrize(("step", "counts"), [(0, (8, 4)), (3, (6, 3)), (6, (4, 2))])
def test_missing_pods_are_spread(step: int, counts: tuple[int, int]) -> None:
    pods = [
        {"name": "p", "count": 8, "min_count": 4, "requests": {"gpu": 1}},
        {"name": "q", "count": 4, "min_count": 2, "requests": {"gpu": 1}},
    ]
    whole = {**work("x", 1), "pod_sets": pods}
    workload = read_scenario(platform([queue("a", 4)], [whole])).workloads[0]
    assert tuple(p.count for p in partial.reduced(workload, step).pod_sets) == counts


@pytest.mark.parametrize(
    ("seconds", "half_life", "expected"), [(0, 600, 0.0), (600, 600, 0.5), (600, 0, 0.0)]
)
def test_usage_fades(seconds: float, half_life: float, expected: float) -> None:
    assert consumption.fading(seconds, half_life) == pytest.approx(expected)


def test_weight_zero_goes_last() -> None:
    assert consumption.figure({"gpu": 0.0}, {}, 0) == float("inf")
