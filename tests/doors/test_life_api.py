"""REST's doors to a workload's life: switches, gates, checkpoints, admission checks."""

from typing import Any

import pytest

from scheduling.cycle import run_cycle
from scheduling.models import AdmissionCheck, Workload
from scheduling.reconciler import reconcile
from tests.doors.test_workloads_api import BODY, GPU, PATH

pytestmark = pytest.mark.django_db
CHECKS = "/api/v1/admission-checks/"


@pytest.fixture
def only_gpus(three_teams: None) -> dict[str, Any]:
    return {**BODY, "pod_sets": [{"name": "main", "count": 1, "requests": {GPU: 1}}]}


@pytest.fixture
def submitted(lea: Any, send: Any, only_gpus: dict[str, Any]) -> str:
    answer = send(lea, "POST", PATH, {**only_gpus, "admission_gates": ["gates.example.com/a"]})
    assert answer.status_code == 201, answer.json()
    return str(answer["Location"])


def told(answer: Any) -> tuple[int, list[tuple[str, str]]]:
    body = answer.json()
    return answer.status_code, [(e["pointer"], e["code"]) for e in body.get("errors", ())]


def test_a_gate_is_opened_and_a_workload_is_switched_off_and_on(lea, send, submitted):
    assert send(lea, "GET", submitted).json()["admission_gates"] == ["gates.example.com/a"]
    added = send(lea, "PATCH", submitted, {"admission_gates": ["gates.example.com/b"]})
    assert told(added)[1] == [("/admission_gates", "GATE_ADDED")]
    opened = send(lea, "PATCH", submitted, {"admission_gates": []}).json()
    assert opened["admission_gates"] == []
    off = send(lea, "PATCH", submitted, {"active": False, "reason": "broken image"}).json()
    assert (off["status"], off["inactive_reason"]) == ("inactive", "UserRequest")
    assert (off["inactive"]["by"], off["inactive"]["message"]) == ("lea", "broken image")
    on = send(lea, "PATCH", submitted, {"active": True}).json()
    assert (on["status"], on["inactive_reason"]) == ("pending", "")


def test_a_checkpoint_needs_something_that_runs(lea, send, submitted):
    assert told(send(lea, "POST", f"{submitted}checkpoint/", {}))[1] == [
        ("/last_checkpoint_at", "NOT_RUNNING")
    ]
    wrong = send(lea, "POST", f"{submitted}checkpoint/", {"at": "yesterday"})
    assert told(wrong)[1] == [("/at", "BAD_VALUE")]
    Workload.objects.update(status="running", admitted_at="2026-01-01T00:00:00Z")
    saved = send(lea, "POST", f"{submitted}checkpoint/", {})
    assert saved.status_code == 200
    assert saved.json()["last_checkpoint_at"]


def test_an_admin_makes_a_check_and_answers_it(ada, lea, send, only_gpus):
    body = {"kind": "manual", "queues": ["*"], "description": "Is it needed?"}
    made = send(ada, "PUT", f"{CHECKS}approval/", body)
    assert (made.status_code, made["ETag"]) == (201, '"v1"')
    assert [row["name"] for row in send(ada, "GET", CHECKS).json()["results"]] == ["approval"]
    where = send(lea, "POST", PATH, only_gpus)["Location"]
    run_cycle()
    waits = send(lea, "GET", where).json()
    assert (waits["pending_reason"], waits["checks"][0]["state"]) == (
        "UnsatisfiedAdmissionChecks",
        "Pending",
    )
    assert send(lea, "POST", f"{where}checks/approval/", {"state": "Ready"}).status_code == 403
    bad = send(ada, "POST", f"{where}checks/approval/", {"state": "Maybe"})
    assert told(bad)[1] == [("/state", "BAD_VALUE")]
    unknown = send(ada, "POST", f"{where}checks/other/", {"state": "Ready"})
    assert told(unknown)[1] == [("/check", "NO_SUCH_CHECK")]
    said = send(ada, "POST", f"{where}checks/approval/", {"state": "Ready", "message": "yes"})
    assert (said.json()["state"], said.json()["by"]) == ("Ready", "ada")
    reconcile()
    assert send(lea, "GET", where).json()["status"] == "admitted"


def test_who_is_rejected_is_told_by_which_check_by_whom_and_in_which_words(
    ada, lea, send, only_gpus, signed_in
):
    send(ada, "PUT", f"{CHECKS}approval/", {"kind": "manual", "queues": ["*"]})
    where = send(lea, "POST", PATH, only_gpus)["Location"]
    assert send(lea, "GET", where).json()["inactive"] is None
    run_cycle()
    said = {"state": "Rejected", "message": "no budget left this quarter"}
    send(ada, "POST", f"{where}checks/approval/", said)
    reconcile()
    row = send(lea, "GET", where).json()
    assert row["inactive"] == {
        "code": "AdmissionCheckRejected",
        "sentence": "The check approval has rejected it.",
        "next_step": "Reactivate it once the cause is gone.",
        "check": "approval",
        "message": "no budget left this quarter",
        "by": "ada",
    }
    page = signed_in(lea).get(f"/workloads/{row['uid']}/").text
    life = page[page.index('id="h-life"') : page.index("</dl>", page.index('id="h-life"'))]
    for words in ("The check approval has rejected it.", "no budget left this quarter", "by ada"):
        assert words in life
    assert "Pending" not in page[page.index('id="h-life"') :].split("</section>")[0]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"kind": "oracle"}, ("/kind", "UNKNOWN_CHECK_KIND")),
        ({"kind": "manual", "queues": ["nowhere"]}, ("/queues/0", "QUEUE_NOT_FOUND")),
        ({"kind": "manual", "name": "other"}, ("/name", "NAME_DIFFERS")),
        ({"kind": "manual", "extra": 1}, ("/extra", "UNKNOWN_FIELD")),
        ({}, ("/kind", "REQUIRED")),
    ],
)
def test_what_a_check_cannot_be_is_refused_with_its_place(ada, send, body, found):
    status, problems = told(send(ada, "PUT", f"{CHECKS}approval/", body))
    assert (status, problems) == (422, [found])
    assert not AdmissionCheck.objects.exists()


def test_a_blind_edit_of_a_check_changes_nothing(ada, send):
    body = {"kind": "manual", "description": "first"}
    send(ada, "PUT", f"{CHECKS}approval/", body)
    blind = send(ada, "PUT", f"{CHECKS}approval/", body | {"description": "x"})
    assert blind.status_code == 428
    assert AdmissionCheck.objects.get().description == "first"
