"""A gang on machines of agents: from its start to what is metered, whatever happens to them."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client

from scheduling.agents import forget_agent
from scheduling.engine.machines import GPU
from scheduling.models import Agent, Alert, MemberEnd, Node, Placement, Workload
from scheduling.services import cancel_workload, delete_node, set_cordon
from scheduling.watch import watch
from tests.scheduling.agents.conftest import Driver, node, turn
from tests.scheduling.loop.world import NOON, status, story, usage, work

Clock = time_machine.Traveller


def after(seconds: float) -> Any:
    return NOON + timedelta(seconds=seconds)


def go(clock: Clock, seconds: float) -> None:
    """Let it be so many seconds after noon, and the platform look and decide."""
    clock.move_to(after(seconds))
    turn()


def submit(
    driver: Driver, *, pods: int = 2, gpus: int = 4, **columns: Any
) -> tuple[Workload, list[str]]:
    row = work("ia", "train", pods=pods, gpus=gpus, **columns)
    turn()
    return row, driver.runs()


def test_a_gang_starts_when_all_members_are_ready_and_ends_when_all_have_finished(
    driver: Driver, clock: Clock
):
    row, members = submit(driver)
    assert [(m["rank"], m["node"], m["gpus"]) for m in driver.desired()["run"]] == [
        (0, "node-1", 4),
        (1, "node-2", 4),
    ]
    assert driver.desired()["run"][1]["gang"] == {
        "size": 2,
        "leader": "node-1",
        "nodes": ["node-1", "node-2"],
    }
    clock.move_to(after(10))
    driver.of("ready", members[0])
    turn()
    assert status(row) == "admitted"
    clock.move_to(after(20))
    driver.of("ready", members[1])
    turn()
    assert (status(row), row.started_at) == ("running", after(20))
    clock.move_to(after(60))
    driver.of("finished", members[0], at=after(50).isoformat())
    turn()
    assert driver.runs() == members[1:]
    driver.of("finished", members[1])
    turn()
    assert (status(row), row.outcome, row.finished_at) == ("finished", "succeeded", after(60))
    assert driver.desired()["run"] == driver.desired()["stop"] == []
    held = [(end - start).total_seconds() * amount for *_, amount, start, end in usage(row)]
    assert sum(held) == 4 * 50 + 4 * 60  # a member's quota is free when the member is over


def test_work_that_is_over_before_its_other_half_is_ready_has_run(driver: Driver, clock: Clock):
    row, members = submit(driver)
    clock.move_to(after(5))
    driver.of("finished", members[0])
    clock.move_to(after(8))
    driver.of("ready", members[1])
    turn()
    assert (status(row), row.started_at) == ("running", after(8))


def test_a_member_that_fails_restarts_the_gang_once_the_others_are_gone(
    driver: Driver, clock: Clock
):
    row, members = submit(driver, on_failure="restart", max_retries=1)
    driver.of("ready", *members)
    turn()
    clock.move_to(after(30))
    driver.of("failed", members[0], exit_code=137, why="killed")
    turn()
    assert (status(row), row.retries) == ("admitted", 1)
    assert (driver.runs(), driver.stops()) == ([], members[1:])  # first the last one has to go
    driver.of("released", members[1], exit_code=143)
    second = [name.replace(".1.worker", ".2.worker") for name in members]
    assert (driver.runs(), driver.stops()) == (second, [])
    clock.move_to(after(40))
    driver.of("ready", *second)
    turn()
    assert (status(row), row.started_at) == ("running", after(40))
    end = MemberEnd.objects.get()
    assert (end.attempt, end.end, end.exit_code, end.why) == (1, "failed", 137, "killed")
    driver.of("failed", second[1], exit_code=1)
    turn()
    driver.of("released", second[0])
    turn()
    assert (status(row), row.outcome) == ("finished", "failed")
    assert not row.admissions.filter(released_at=None).exists()


def test_reports_of_an_earlier_attempt_do_no_harm(driver: Driver, clock: Clock):
    row, members = submit(driver)
    driver.of("ready", *members)
    turn()
    driver.of("failed", members[0], exit_code=1)
    turn()
    driver.of("failed", members[1], exit_code=1)  # it died with the other one
    turn()
    assert (status(row), row.retries) == ("admitted", 1)
    assert driver.of("ready", members[1])["ignored"] == 1


def test_quota_and_nodes_are_held_until_the_last_member_has_left(driver: Driver, clock: Clock):
    row, members = submit(driver)
    driver.of("ready", *members)
    go(clock, 10)
    cancel_workload(row.uid, actor=None)
    go(clock, 20)
    assert (driver.runs(), driver.stops()) == ([], members)
    assert driver.desired()["stop"][0]["grace_s"] == 30
    driver.of("released", members[0])
    go(clock, 30)
    assert row.admissions.filter(released_at=None).exists()
    driver.of("released", members[1], exit_code=143)
    turn()
    assert row.admissions.get().released_at == after(30)
    assert {end for *_, end in usage(row)} == {after(30)}


def test_a_member_that_never_started_has_to_be_released_as_well(driver: Driver, clock: Clock):
    row, members = submit(driver)
    cancel_workload(row.uid, actor=None)
    turn()
    assert driver.stops() == members  # it may be starting just now
    driver.of("released", *members)
    turn()
    assert row.admissions.get().released_at is not None


def test_a_member_that_wavers_is_noted_and_forgiven(driver: Driver, clock: Clock):
    row, members = submit(driver)
    driver.of("ready", *members)
    turn()
    clock.move_to(after(10))
    driver.of("unready", members[1])
    go(clock, 12)
    admission = row.admissions.get()
    assert admission.unready_since == after(10)
    driver.of("ready", members[1])
    go(clock, 15)
    admission.refresh_from_db()
    assert admission.unready_since is None
    assert [line for line in story(row) if line.startswith("readiness")] == [
        "readiness_lost",
        "readiness_back",
    ]


def test_a_gang_that_never_gets_ready_waits_its_turn_again(
    driver: Driver, clock: Clock, platform: Any
):
    platform.PODS_READY_TIMEOUT_S = 300
    row, members = submit(driver)
    driver.of("ready", members[0])
    go(clock, 301)
    assert status(row) == "pending"
    driver.of("released", *members)
    turn()
    assert row.admissions.get().released_at is not None


def test_progress_that_a_member_has_saved_is_the_gangs(driver: Driver, clock: Clock):
    row, members = submit(driver)
    driver.of("ready", *members)
    turn()
    clock.move_to(after(100))
    driver.of("checkpoint", members[0], at=after(90).isoformat())
    driver.of("checkpoint", members[1], at=after(80).isoformat())
    driver.of("checkpoint", members[1], at=after(9_999).isoformat())  # from the future: now
    turn()
    row.refresh_from_db()
    assert row.last_checkpoint_at == after(100)


@pytest.mark.parametrize("at", [NOON - timedelta(days=1), NOON + timedelta(days=1)])
def test_a_wrong_clock_of_an_agent_bills_nobody_for_another_day(
    driver: Driver, clock: Clock, at: Any
):
    row, members = submit(driver)
    driver.of("ready", *members, at=at.isoformat())
    turn()
    clock.move_to(after(60))
    driver.of("finished", *members, at=at.isoformat())
    turn()
    row.refresh_from_db()
    assert NOON <= row.started_at <= row.finished_at <= after(60)


# ---- agents and nodes --------------------------------------------------------------------------
def test_nodes_of_a_silent_agent_are_not_ready_until_it_is_heard_again(
    driver: Driver, clock: Clock
):
    driver.own("node-3", ready=False)
    go(clock, 59)
    watch()
    assert not Alert.objects.filter(code="AGENT_SILENT").exists()
    go(clock, 61)
    watch()
    alert = Alert.objects.get(code="AGENT_SILENT")
    assert (alert.subject, alert.cleared_at) == ("Agent/rack-1", None)
    assert not Node.objects.filter(ready=True).exists()
    go(clock, 70)
    driver.tell()
    watch()
    alert.refresh_from_db()
    assert alert.cleared_at == after(70)
    assert set(Node.objects.filter(ready=True).values_list("name", flat=True)) == {
        "node-1",
        "node-2",
    }


def test_asking_what_should_run_shows_that_an_agent_lives(driver: Driver, clock: Clock):
    for seconds in (40, 80, 120):
        go(clock, seconds)
        driver.desired()
    assert Agent.objects.get().silent_since is None


def test_a_gang_of_a_silent_agent_moves_and_its_old_members_hold_their_place_until_heard(
    driver: Driver, clock: Clock
):
    row, members = submit(driver)
    driver.of("ready", *members)
    turn()
    go(clock, 61)
    go(clock, 61 + 61)  # the grace of gangs that lose nodes
    assert status(row) == "pending"
    first = row.admissions.get()
    assert first.released_at is None  # nobody knows whether they have stopped
    driver.tell()
    assert driver.stops() == members
    driver.of("released", *members)
    go(clock, 130)
    assert status(row) == "admitted"
    assert driver.runs() != members


def test_what_stood_on_a_node_that_is_gone_has_left(driver: Driver, clock: Clock):
    row, members = submit(driver)
    driver.of("ready", *members)
    turn()
    cancel_workload(row.uid, actor=None)
    driver.of("released", members[0])
    go(clock, 10)
    assert row.admissions.get().released_at is None
    driver.tell({"kind": "node_gone", "name": "node-2"})
    assert not Node.objects.filter(name="node-2").exists()
    go(clock, 20)
    assert row.admissions.get().released_at == after(20)


def test_a_node_that_comes_back_with_a_forgotten_member_has_to_stop_it(
    driver: Driver, clock: Clock
):
    row, members = submit(driver)
    driver.of("ready", *members)
    turn()
    delete_node("node-2", actor=None)
    cancel_workload(row.uid, actor=None)
    driver.of("released", members[0])
    go(clock, 10)
    assert row.admissions.get().released_at is not None
    driver.own("node-2")
    assert driver.stops() == members[1:]
    driver.of("released", members[1])
    assert driver.stops() == []


def test_an_agent_that_is_forgotten_leaves_nodes_that_are_nobodys(
    driver: Driver, clock: Clock, ada: Any
):
    row, _members = submit(driver)
    cancel_workload(row.uid, actor=None)
    turn()
    assert row.admissions.get().released_at is None
    forget_agent("rack-1", actor=ada)
    go(clock, 10)
    assert row.admissions.get().released_at is not None
    assert not Node.objects.filter(ready=True).exists()
    assert driver.call("GET", "desired/?epoch=1").status_code == 404
    other = Driver(Client(), driver.token, "rack-2")
    other.hello()
    other.own("node-1")
    assert Node.objects.get(name="node-1").ready


def test_a_cordon_stays_whatever_the_agent_reports(driver: Driver, ada: Any):
    set_cordon("node-1", True, actor=ada)
    driver.own("node-1", labels={"accelerator": "h100-sxm", "rack": "r1"})
    row = Node.objects.get(name="node-1")
    assert (row.schedulable, row.labels["rack"]) == (False, "r1")
    driver.own("node-1", schedulable=True)
    assert Node.objects.get(name="node-1").schedulable


def test_capacity_that_an_agent_reports_decides_what_fits(driver: Driver):
    driver.own("node-2", capacity={GPU: 2, "cpu": "64", "memory": "512Gi", "pods": 110})
    row, members = submit(driver)
    assert (status(row), members) == ("pending", [])
    driver.tell(node("node-2"))
    turn()
    assert status(row) == "admitted"


def test_an_agent_that_has_lost_its_memory_is_told_what_was_heard_of_members(driver: Driver):
    _row, members = submit(driver)
    driver.of("ready", members[0])
    driver.hello()
    assert [(m["member"], m["heard"]) for m in driver.desired()["run"]] == [
        (members[0], "ready"),
        (members[1], ""),
    ]


def test_two_agents_see_the_members_of_their_own_nodes_only(driver: Driver):
    other = Driver(Client(), driver.token, "rack-2")
    other.hello()
    driver.tell({"kind": "node_gone", "name": "node-2"})
    other.own("node-2")
    row, first = submit(driver)
    second = other.runs()
    assert ([m.split("@")[1] for m in first], [m.split("@")[1] for m in second]) == (
        ["node-1"],
        ["node-2"],
    )
    assert other.desired()["run"][0]["gang"]["size"] == 2
    driver.of("ready", *first)
    other.of("ready", *second)
    turn()
    assert status(row) == "running"


def test_a_pod_that_left_with_surplus_may_come_back_as_the_next_of_its_name(driver: Driver):
    _row, members = submit(driver)
    driver.of("ready", *members)
    turn()
    driver.of("released", members[1])  # nobody asked: its room is free for the next one
    assert driver.runs() == [members[0], members[1].replace(".0.1@", ".0.2@")]


def test_the_placement_of_devices_and_the_document_reach_the_agent(driver: Driver):
    template = {
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {
                            "name": "main",
                            "image": "train:1",
                            "command": ["python", "train.py"],
                            "args": ["--fast"],
                            "env": [{"name": "A", "value": "b"}, {"name": "S", "valueFrom": {}}],
                        }
                    ]
                }
            }
        }
    }
    notes = {"gpuplatform.io/command": "sleep 1", "example.org/secret": "no"}
    submit(driver, template=template, annotations=notes)
    Placement.objects.filter(node="node-1").update(devices=[[0, 1, 2, 3]])
    first, second = driver.desired()["run"]
    assert (first["devices"], second["devices"]) == ([0, 1, 2, 3], None)
    assert first["container"] == {
        "image": "train:1",
        "command": ["python", "train.py"],
        "args": ["--fast"],
        "env": {"A": "b"},
    }
    assert first["command"] == "sleep 1"
    assert first["workload"]["annotations"] == {"gpuplatform.io/command": "sleep 1"}
