"""``PATCH /api/v1/workloads/<uid>/``: another size, pods that are over, progress that is safe."""

from typing import Any

import pytest

from gpuplatform.common.models import AuditEntry
from scheduling.cycle import run_cycle
from scheduling.models import Workload
from scheduling.reconciler import reconcile

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("three_teams_once")]
PATH = "/api/v1/workloads/"
BODY = {
    "name": "train",
    "namespace": "ns-datos",
    "queue": "lq-datos",
    "elastic": True,
    "pod_sets": [{"name": "main", "count": 2, "requests": {"nvidia.com/gpu": 1}}],
}


@pytest.fixture
def train(lea: Any, send: Any) -> str:
    made = send(lea, "POST", PATH, BODY)
    assert made.status_code == 201
    assert not [w for w in made.json()["warnings"] if w["path"] == "elastic"]
    run_cycle()
    reconcile()
    return f"{PATH}{made.json()['uid']}/"


@pytest.fixture
def asked(lea: Any, send: Any, train: str) -> Any:
    return lambda body: send(lea, "PATCH", train, body)


def test_an_elastic_workload_is_brought_to_another_size(lea: Any, send: Any, train: str) -> None:
    answer = send(lea, "PATCH", train, {"pod_sets": [{"name": "main", "count": 1}]})
    assert answer.status_code == 200
    (pods,) = answer.json()["pod_sets"]
    assert (pods["count"], pods["wanted"], answer.json()["gpus"]) == (1, None, 1)
    assert answer.json()["growth"] is None
    entry = AuditEntry.objects.get(action="workload.scaled")
    assert (entry.actor_name, entry.team) == ("lea", "datos")
    assert (entry.before["pods"], entry.after["pods"]) == ({"main": 2}, {"main": 1})


def test_more_pods_are_asked_for(lea: Any, send: Any, train: str) -> None:
    answer = send(lea, "PATCH", train, {"pod_sets": [{"name": "main", "count": 3}]})
    (pods,) = answer.json()["pod_sets"]
    assert (pods["count"], pods["wanted"]) == (2, 3)
    assert answer.json()["growth"]["blockers"] == []
    assert answer.json()["events"][-1]["kind"] == "growth_asked"


def test_pods_that_are_over_and_safe_progress_are_reported(
    lea: Any, send: Any, train: str
) -> None:
    now = Workload.objects.get().admitted_at.isoformat()
    body = {"pod_sets": [{"name": "main", "finished": 1}], "last_checkpoint_at": now}
    answer = send(lea, "PATCH", train, body)
    assert answer.status_code == 200
    assert answer.json()["pod_sets"][0]["finished"] == 1
    assert answer.json()["last_checkpoint_at"] is not None
    assert not AuditEntry.objects.filter(action="workload.scaled").exists()


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ([], "", "BAD_TYPE"),
        ({}, "/pod_sets", "REQUIRED"),
        ({"size": 3}, "/size", "UNKNOWN_FIELD"),
        ({"pod_sets": [{"count": 1}]}, "/pod_sets/0/name", "REQUIRED"),
        ({"pod_sets": [{"name": "main", "count": "1"}]}, "/pod_sets/0/count", "BAD_TYPE"),
        ({"pod_sets": [{"name": "main", "count": 0}]}, "/pod_sets/0/count", "POD_COUNT"),
        ({"pod_sets": [{"name": "main", "finished": -1}]}, "/pod_sets/0/finished", "NEGATIVE"),
        ({"pod_sets": [{"name": "x", "count": 1}]}, "/pod_sets/0/name", "POD_SET_NOT_FOUND"),
        ({"pod_sets": [{"name": "main", "count": 99}]}, "/pod_sets", "NEVER_FITS_QUEUE"),
        ({"last_checkpoint_at": "noon"}, "/last_checkpoint_at", "BAD_VALUE"),
        ({"last_checkpoint_at": "2026-06-01T12:00:00"}, "/last_checkpoint_at", "BAD_VALUE"),
        ({"last_checkpoint_at": "2099-06-01T12:00:00Z"}, "/last_checkpoint_at", "OUT_OF_RANGE"),
    ],
    ids=str,
)
def test_what_cannot_be_is_a_problem_at_its_place(
    asked: Any, body: Any, pointer: str, code: str
) -> None:
    answer = asked(body)
    assert answer.status_code == 422
    assert (pointer, code) in {(e["pointer"], e["code"]) for e in answer.json()["errors"]}
    assert Workload.objects.get().gpus == 2


def test_what_has_ended_is_a_conflict(lea: Any, send: Any, train: str) -> None:
    send(lea, "DELETE", train)
    answer = send(lea, "PATCH", train, {"pod_sets": [{"name": "main", "count": 1}]})
    assert answer.status_code == 409


def test_partial_admission_and_elastic_exclude_each_other(lea: Any, send: Any) -> None:
    pods = [{**BODY["pod_sets"][0], "min_count": 1}]
    answer = send(lea, "POST", PATH, {**BODY, "pod_sets": pods})
    found = [(e["code"], e["pointer"]) for e in answer.json()["errors"]]
    assert (answer.status_code, found) == (422, [("PARTIAL_AND_ELASTIC", "/pod_sets/0/min_count")])


def test_a_wrong_checkpoint_is_the_only_problem_of_its_request(asked: Any) -> None:
    answer = asked({"last_checkpoint_at": "yesterday"})
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/last_checkpoint_at"]
