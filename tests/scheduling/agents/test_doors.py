"""What agents may say over REST, and how: numbered, repeated, out of order, hostile."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from scheduling.agent_reports import MOST_REPORTS
from scheduling.models import Agent, AgentNode, MemberState, Node
from tests.scheduling.agents.conftest import Driver, node, turn
from tests.scheduling.loop.world import work

FIRST, SECOND = "1.1.worker.0.1@node-1", "1.1.worker.0.1@node-2"


def codes(answer: Any) -> list[str]:
    assert answer["Content-Type"] == "application/problem+json"
    return [error["code"] for error in answer.json()["errors"]]


def gang(**columns: Any) -> tuple[str, str]:
    """Let a gang of one member a node be admitted; return its members' names."""
    row = work("ia", "train", pods=2, gpus=4, **columns)
    turn()
    admission = row.admissions.get(released_at=None)
    return tuple(f"{admission.pk}.1.worker.0.1@node-{n}" for n in (1, 2))  # type: ignore[return-value]


# ---- who ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("holder", "status"),
    [
        ("ada cluster:agent", 200),
        ("ada admin", 200),
        ("ada read workloads:admin quota:write", 403),
        ("lea cluster:agent", 403),
        ("fin cluster:agent", 403),
        ("eve cluster:agent admin", 403),
    ],
)
def test_only_an_admins_token_with_the_scope_drives(
    platform: Any, cast: Any, token_of: Callable[..., str], holder: str, status: int
):
    who, *scopes = holder.split()
    agent = Driver(Client(), token_of(getattr(cast, who), *scopes))
    agent.epoch = 1
    found = [agent.call("POST", "hello/", {}), agent.send()]
    found.append(agent.call("GET", "desired/?epoch=1"))
    assert {answer.status_code for answer in found} == {status}


def test_the_scope_opens_nothing_else(driver: Driver):
    for path in ("/api/v1/workloads/", "/api/v1/nodes/", "/api/v1/agents/", "/api/v1/prices/"):
        answer = driver.client.get(path, headers={"Authorization": driver.token})
        assert answer.status_code == 403, path


def test_the_agent_of_another_person_is_not_there(driver: Driver, token_of: Callable[..., str]):
    from tests.conftest import person  # noqa: PLC0415

    other = Driver(Client(), token_of(person("bea", role="admin"), "cluster:agent"))
    other.epoch = driver.epoch
    answers = [other.call("POST", "hello/", {}), other.send(node("node-3"))]
    answers.append(other.call("GET", "desired/?epoch=1"))
    assert [(a.status_code, *codes(a)) for a in answers] == [(404, "not_found")] * 3


def test_a_node_of_another_agent_is_not_there(driver: Driver, token_of: Callable[..., str]):
    mine = gang()
    owner = Agent.objects.get().owner
    other = Driver(Client(), token_of(owner, "cluster:agent"), "rack-2")
    other.hello()
    for report in (
        node("node-1"),
        {"kind": "node_gone", "name": "node-1"},
        {"kind": "ready", "member": mine[0]},
    ):
        answer = other.send(node("node-9"), report)
        assert (answer.status_code, codes(answer)) == (404, ["not_found"])
        assert answer.json()["errors"][0]["pointer"].startswith("/reports/1/")
    assert not AgentNode.objects.filter(name="node-9").exists()  # the batch is taken whole
    assert not MemberState.objects.exists()
    assert other.desired()["run"] == []


# ---- numbers -----------------------------------------------------------------------------------
def test_a_batch_that_comes_twice_changes_nothing_the_second_time(driver: Driver):
    members = gang()
    batch = driver.numbered(*({"kind": "ready", "member": name} for name in members))
    first = driver.call("POST", "reports/", batch).json()
    rows = list(MemberState.objects.values())
    again = driver.call("POST", "reports/", batch).json()
    assert first == {"sequence": 4, "taken": 2, "repeated": 0, "ignored": 0}
    assert again == {"sequence": 4, "taken": 0, "repeated": 2, "ignored": 0}
    assert list(MemberState.objects.values()) == rows


def test_an_old_report_cannot_undo_a_newer_one(driver: Driver):
    driver.own("node-1", ready=False)
    late = {"epoch": driver.epoch, "reports": [{"sequence": 1, **node("node-1")}]}
    assert driver.call("POST", "reports/", late).json()["repeated"] == 1
    assert not Node.objects.get(name="node-1").ready


def test_a_gap_is_told_with_the_number_that_is_missing(driver: Driver):
    report = {"sequence": 5, **node("node-3")}
    answer = driver.call("POST", "reports/", {"epoch": 1, "reports": [report]})
    assert (answer.status_code, codes(answer)) == (409, ["SEQUENCE_GAP"])
    assert answer.json()["errors"][0]["numbers"] == {"expected": 3, "found": 5}
    assert not Node.objects.filter(name="node-3").exists()


def test_reports_within_a_batch_follow_each_other(driver: Driver):
    rows = [{"sequence": 4, **node("node-4")}, {"sequence": 3, **node("node-3")}]
    answer = driver.call("POST", "reports/", {"epoch": 1, "reports": rows})
    assert (answer.status_code, codes(answer)) == (409, ["SEQUENCE_GAP"])


def test_what_overlaps_is_taken_from_the_first_new_number_on(driver: Driver):
    rows = [{"sequence": 2, **node("node-2")}, {"sequence": 3, **node("node-3")}]
    answer = driver.call("POST", "reports/", {"epoch": 1, "reports": rows}).json()
    assert answer == {"sequence": 3, "taken": 1, "repeated": 1, "ignored": 0}


# ---- epochs ------------------------------------------------------------------------------------
def test_who_remembers_goes_on_and_who_does_not_begins_a_new_epoch(driver: Driver):
    assert driver.hello(epoch=1)["sequence"] == 2
    assert (driver.hello()["epoch"], driver.sequence) == (2, 0)


def test_who_was_replaced_is_told_and_changes_nothing(driver: Driver):
    members = gang()
    driver.hello()
    driver.epoch = 1
    stale = [driver.call("POST", "hello/", {"epoch": 1}), driver.send(node("node-3"))]
    stale += [driver.call("GET", "desired/?epoch=1")]
    assert [(a.status_code, *codes(a)) for a in stale] == [(409, "STALE_EPOCH")] * 3
    assert stale[0].json()["errors"][0]["numbers"] == {"epoch": 1, "current": 2}
    driver.epoch = 2
    assert driver.runs() == list(members)


# ---- hostile bodies ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "status", "found"),
    [
        ([], 422, [("", "BAD_TYPE")]),
        ({}, 422, [("/epoch", "REQUIRED")]),
        ({"epoch": "1"}, 422, [("/epoch", "BAD_TYPE")]),
        ({"epoch": 1, "reports": {}}, 422, [("/reports", "BAD_TYPE")]),
        ({"epoch": 1, "reports": [7]}, 422, [("/reports/0", "BAD_TYPE")]),
        ({"epoch": 1, "more": 1}, 422, [("/more", "UNKNOWN_FIELD")]),
        (
            {"epoch": 1, "reports": [{"sequence": 0, "kind": "dance"}]},
            422,
            [
                ("/reports/0/sequence", "OUT_OF_RANGE"),
                ("/reports/0/kind", "BAD_VALUE"),
                ("/reports/0/member", "REQUIRED"),
            ],
        ),
        (
            {"epoch": 1, "reports": [{"sequence": 3, "kind": "failed", "member": "x"}]},
            422,
            [("/reports/0/member", "BAD_VALUE")],
        ),
        (
            {
                "epoch": 1,
                "reports": [
                    {"sequence": 3, "kind": "failed", "member": FIRST, "exit_code": 0, "at": "now"}
                ],
            },
            422,
            [("/reports/0/at", "BAD_VALUE"), ("/reports/0/exit_code", "BAD_VALUE")],
        ),
        (
            {"epoch": 1, "reports": [{"sequence": 3, **node("Not A Name!")}]},
            422,
            [("/reports/0/node/name", "bad_name")],
        ),
        (
            {"epoch": 1, "reports": [{"sequence": 3, **node("n", allocatable={"cpu": "65"})}]},
            422,
            [("/reports/0/node/allocatable/cpu", "ALLOCATABLE_ABOVE_CAPACITY")],
        ),
        (
            {"epoch": 1, "reports": [{"sequence": n} for n in range(MOST_REPORTS + 1)]},
            422,
            [("/reports", "OUT_OF_RANGE")],
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_nothing_is_taken(
    driver: Driver, body: Any, status: int, found: list[tuple[str, str]]
):
    answer = driver.call("POST", "reports/", body)
    told = [(error["pointer"], error["code"]) for error in answer.json()["errors"]]
    assert (answer.status_code, told) == (status, found)
    assert Agent.objects.get().sequence == 2


@pytest.mark.parametrize(
    ("text", "status"),
    [("{", 400), ('{"epoch": 1, "epoch": 2}', 400), ('{"epoch": NaN}', 400), ("x" * 2**20, 413)],
    ids=["broken", "twice", "no number", "too large"],
)
def test_a_body_that_cannot_be_read_is_refused(driver: Driver, text: str, status: int):
    text = json.dumps({"epoch": 1, "reports": text}) if status == 413 else text
    answer = driver.call("POST", "reports/", text)
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")


@pytest.mark.parametrize("query", ["", "?epoch=", "?epoch=-1", "?epoch=1e3", "?epoch=1&wait=9"])
def test_what_should_run_is_asked_for_with_an_epoch_and_nothing_else(driver: Driver, query: str):
    assert driver.call("GET", f"desired/{query}").status_code == 400


@pytest.mark.parametrize(
    "member",
    [
        "999999999.1.worker.0.1@node-1",  # no such admission
        "{admission}.2.worker.0.1@node-1",  # an attempt that has not begun
        "{admission}.1.worker.7.1@node-1",  # a slot that is not there
        "{admission}.1.other.0.1@node-1",
        "{admission}.1.worker.0.3@node-1",  # a serial that nobody asked for
        "{admission}.1.worker.0.1@node-77",  # a node of nobody
    ],
)
def test_a_report_about_what_nobody_waits_for_is_ignored(driver: Driver, member: str):
    name = member.format(admission=gang()[0].split(".")[0])
    assert driver.of("ready", name)["ignored"] == 1
    assert not MemberState.objects.exists()


# ---- asking often ------------------------------------------------------------------------------
def test_who_asks_again_is_told_that_nothing_has_changed(driver: Driver):
    members = gang()
    first = driver.call("GET", "desired/?epoch=1")
    tag = {"If-None-Match": first["ETag"]}
    again = driver.call("GET", "desired/?epoch=1", **tag)
    assert (again.status_code, again.content) == (304, b"")
    driver.of("ready", members[0])
    assert driver.call("GET", "desired/?epoch=1", **tag).status_code == 200
