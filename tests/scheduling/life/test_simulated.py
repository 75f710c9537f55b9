"""The imagined cluster speaks the protocol: what it tells follows from the rows and the clock."""

from datetime import timedelta
from typing import Any

import pytest

from scheduling.backends.base import End, Gang, Member, MemberEnd, PlacedPods, Sighting
from scheduling.backends.simulated import FAILURES, START, STOP, SimulatedBackend
from scheduling.engine.terms import Outcome
from tests.scheduling.loop.world import NOON

PODS = (PlacedPods("worker", "n1", 2), PlacedPods("worker", "n2", 1))
FIRST = Member("worker", "n1", 0)


def after(seconds: float):
    return NOON + timedelta(seconds=seconds)


def seen(seconds: float, **columns: Any) -> Sighting:
    cluster = SimulatedBackend(after(seconds))
    cluster.converge([Gang(7, "w", NOON, PODS, **columns)])
    (sighting,) = cluster.observe()
    return sighting


def test_pods_of_a_node_have_names_that_stay_when_others_come_and_go():
    assert PlacedPods("worker", "n1", 2).members() == [FIRST, Member("worker", "n1", 1)]


def test_a_gang_is_ready_at_once_and_ends_on_time():
    assert seen(59, expected_duration_s=60) == Sighting(7, NOON, ready=3)
    assert seen(90, expected_duration_s=60) == Sighting(7, NOON, Outcome.SUCCEEDED, after(60))


def test_a_gang_that_starts_slowly_is_not_ready_before():
    hints = {START: "30"}
    assert seen(29, hints=hints) == Sighting(7, ready=0)
    assert seen(31, hints=hints) == Sighting(7, after(30), ready=3)
    assert seen(10**9, hints={START: "never"}) == Sighting(7, ready=0)


def test_a_member_fails_in_the_attempts_that_the_script_names():
    hints = {FAILURES: "60:137,10:1"}
    failed = MemberEnd(FIRST, End.FAILED, after(60), 137)
    assert seen(59, hints=hints) == Sighting(7, NOON, ready=3)
    assert seen(61, hints=hints) == Sighting(7, NOON, ready=2, ends=(failed,))
    begun = {"hints": hints, "begun_at": after(61)}
    failed = MemberEnd(FIRST, End.FAILED, after(71), 1)
    again = seen(75, attempt=2, **begun)
    assert again == Sighting(7, after(61), attempt=2, ready=2, ends=(failed,))
    assert seen(75, attempt=3, **begun) == Sighting(7, after(61), attempt=3, ready=3)


@pytest.mark.parametrize(("stop", "gone"), [("0", 0), ("20", 20), ("999", 30)])
def test_pods_that_stop_slowly_are_gone_after_their_grace(stop: str, gone: int):
    columns = {"hints": {STOP: stop}, "started_at": NOON, "evicted_at": after(100)}
    if gone:
        assert seen(100 + gone - 1, **columns) == Sighting(7, NOON)
    assert seen(100 + gone, **columns) == Sighting(7, NOON, released_at=after(100 + gone))


def test_what_ended_before_it_was_asked_to_stop_has_ended_by_itself():
    columns = {"expected_duration_s": 60, "evicted_at": after(61)}
    assert seen(70, **columns) == Sighting(7, NOON, Outcome.SUCCEEDED, after(60))


@pytest.mark.parametrize("hints", [{START: "-1"}, {STOP: "soon"}, {FAILURES: "x"}, {START: "²"}])
def test_annotations_that_cannot_be_read_break_nothing(hints: dict[str, str]):
    assert seen(5, hints=hints).admission == 7
