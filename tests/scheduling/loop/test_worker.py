"""The long-lived worker: what it does, and what it leaves alone."""

import logging
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gpuplatform.common import leases
from gpuplatform.common.models import Change, Lease
from gpuplatform.common.wakeup import request_cycle
from scheduling import lifecycle
from scheduling import worker as worker_module
from scheduling.engine.terms import Status
from scheduling.models import Cycle, Placement, UsageInterval, WorkloadEvent
from scheduling.models import Workload as Row
from scheduling.worker import Worker
from tests.scheduling.loop.world import NOON, RECLAIMS, nodes, queue, status, story, usage, work

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def teams(clock):
    nodes(2)
    queue("datos", 4, cohort="llm", borrowing_limit=4, **RECLAIMS)
    queue("ia", 4, cohort="llm", **RECLAIMS)
    return clock


def test_it_admits_starts_ends_and_meters(teams):
    worker = Worker()
    gang = work("datos", "gang", pods=2, gpus=2, expected_duration_s=600)
    worker.turn()
    assert status(gang) is Status.RUNNING
    assert story(gang) == ["admitted", "started"]
    teams.shift(HOUR)
    worker.turn()
    assert status(gang) is Status.FINISHED
    assert usage(gang) == [("nominal", "", 4, NOON, NOON + HOUR / 6)]


def test_what_the_cluster_does_is_followed_and_not_read_again(teams, monkeypatch, caplog):
    monkeypatch.setattr(worker_module, "CHECK_S", 0)  # what is kept is compared at each turn
    worker = Worker()
    first, second = (work("datos", n, pods=2, gpus=2, expected_duration_s=30) for n in "ab")
    worker.turn()
    with caplog.at_level(logging.CRITICAL), CaptureQueriesContext(connection) as asked:
        teams.shift(timedelta(seconds=31))
        worker.turn()
    assert [status(row) for row in (first, second)] == [Status.FINISHED] * 2
    assert not [one for one in asked.captured_queries if "scheduling_podset" in one["sql"]]
    third = work("ia", "third", gpus=4)
    request_cycle(lifecycle.CHANGED, third.uid)
    worker.turn()
    assert status(third) is Status.RUNNING
    assert alarms(caplog) == []


def test_many_are_told_why_they_wait_in_portions_and_the_rest_when_nothing_moves(
    teams, monkeypatch
):
    for name, value in (("EXPLAINED_AT_ONCE", 1), ("PORTION", 1), ("EVIDENCE_OF", 0)):
        monkeypatch.setattr(worker_module, name, value)
    monkeypatch.setattr(worker_module, "EVIDENCE_MOST", 0)  # a large world
    worker = Worker()
    work("datos", "runs")
    waits = [work(team, "waits", gpus=40) for team in ("datos", "ia")]
    worker.turn()
    assert [bool(told(row)) for row in waits] == [True, False]
    worker.turn()
    assert [bool(told(row)) for row in waits] == [True, True]


def told(row):
    row.refresh_from_db()
    return row.blockers


def test_of_very_many_decisions_the_first_are_said_and_the_others_counted(teams, monkeypatch):
    monkeypatch.setattr("scheduling.applied.MOST_LINES", 2)
    for number in range(4):
        work("datos", f"job{number}")
    assert Worker().decide().lines == (
        "admitted ns-datos/job0 (1x1 GPUs) on h100-node-01",
        "admitted ns-datos/job1 (1x1 GPUs) on h100-node-01",
        "and 2 decisions more",
    )


def test_an_idle_look_writes_one_sign_of_life_in_a_lease_period_and_nothing_else(teams):
    worker = Worker()
    work("datos", "runs")
    work("datos", "waits", gpus=40)
    worker.turn()

    def rows():
        kinds = (Cycle, Change, Row, WorkloadEvent, UsageInterval, Placement)
        counts = [kind.objects.count() for kind in kinds]
        versions = sorted(Row.objects.values_list("version", flat=True))
        return counts, versions, Lease.objects.get(name="cycle").fence

    before, beats = rows(), set()
    for _ in range(20):
        teams.shift(timedelta(seconds=1))
        worker.turn()
        beats.add(Lease.objects.get(name="cycle-seen").until)
    assert rows() == before
    assert len(beats) == 3  # in twenty seconds of periods of ten, the first one included


def alarms(caplog):
    return [one.getMessage() for one in caplog.records if one.levelno == logging.CRITICAL]


def test_a_change_that_nobody_noted_is_an_alarm_and_is_repaired(teams, caplog):
    worker = Worker()
    gang = work("datos", "gang", gpus=4)
    waits = work("ia", "waits", gpus=40)
    worker.turn()
    Row.objects.filter(pk=waits.pk).update(status="finished", outcome="cancelled", version=2)
    half = timedelta(seconds=worker_module.CHECK_S / 2)
    with caplog.at_level(logging.CRITICAL):
        for _ in range(2):
            assert alarms(caplog) == []
            teams.shift(half)
            worker.turn()
        (alarm,) = alarms(caplog)
        assert "not as the rows are: workloads pending: (1, 1) kept" in alarm
        caplog.clear()
        for _ in range(2):
            teams.shift(half)
            worker.turn()
    assert alarms(caplog) == []
    assert status(gang) is Status.RUNNING


def test_whoever_finds_that_somebody_else_has_decided_reads_the_world_anew(teams):
    one, other = Worker(), Worker()
    first = work("datos", "first")
    one.turn()
    second = work("ia", "second")
    request_cycle(lifecycle.CHANGED, second.uid)
    other.turn()
    third = work("ia", "third")
    request_cycle(lifecycle.CHANGED, third.uid)
    one.turn()
    assert [status(row) for row in (first, second, third)] == [Status.RUNNING] * 3
    assert UsageInterval.objects.filter(ended_at=None).count() == 3


@pytest.mark.parametrize("step", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_clock_that_steps_an_hour_stops_nothing(teams, step):
    worker = Worker()
    first = work("datos", "first")
    worker.turn()
    teams.shift(step)
    second = work("ia", "second")
    request_cycle(lifecycle.CHANGED, second.uid)
    worker.turn()
    assert [status(row) for row in (first, second)] == [Status.RUNNING] * 2


def test_while_somebody_else_decides_it_looks_once_and_waits_for_the_next_beat(teams, monkeypatch):
    worker, looks = Worker(), []
    gang = work("datos", "gang")
    other = leases.acquire(leases.CYCLE, "other", 10)
    decide = worker.decide
    monkeypatch.setattr(worker, "decide", lambda: looks.append(1) or decide())
    worker.turn()
    assert len(looks) == 1
    assert status(gang) is Status.PENDING
    leases.release(other)
    worker.turn()
    assert status(gang) is Status.RUNNING
