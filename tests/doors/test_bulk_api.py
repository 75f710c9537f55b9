"""``POST /api/v1/workloads/bulk/``: many at once, each judged as by the single door."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gpuplatform.common.models import AuditEntry, Change
from scheduling import bulk
from scheduling.cycle import run_cycle
from scheduling.models import Workload, WorkloadEvent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("three_teams_once")]
SINGLE, PATH = "/api/v1/workloads/", "/api/v1/workloads/bulk/"
GPU = "nvidia.com/gpu"


def body(name: str = "train", /, **changes: Any) -> dict[str, Any]:
    pods = [{"name": "main", "count": 1, "requests": {GPU: 1}}]
    return {
        "name": name,
        "namespace": "ns-datos",
        "queue": "lq-datos",
        "pod_sets": pods,
        **changes,
    }


@pytest.fixture
def bulk_of(lea: Any, send: Any) -> Any:
    return lambda *items, path=PATH: send(lea, "POST", path, {"workloads": list(items)})


def test_what_may_run_is_taken_in_and_what_may_not_is_told_why(bulk_of: Any) -> None:
    too_large = [{"name": "main", "count": 99, "requests": {GPU: 1}}]
    answer = bulk_of(body("a"), body("b", pod_sets=too_large), body("c", size=3), body("d"))
    assert answer.status_code == 200
    told = answer.json()
    assert (told["accepted"], told["refused"]) == (2, 2)
    assert [one["status"] for one in told["results"]] == [201, 422, 422, 201]
    assert [one["index"] for one in told["results"]] == [0, 1, 2, 3]
    first, large, unknown, last = told["results"]
    assert large["problem"]["errors"][0]["pointer"] == "/workloads/1/pod_sets"
    assert large["problem"]["errors"][0]["code"] == "NEVER_FITS_QUEUE"
    assert unknown["problem"]["errors"][0]["pointer"] == "/workloads/2/size"
    rows = Workload.objects.order_by("created_at")
    assert [(row.name, str(row.uid)) for row in rows] == [
        (one["workload"]["name"], one["workload"]["uid"]) for one in (first, last)
    ]


def test_a_workload_is_written_as_the_single_door_writes_it(
    bulk_of: Any, lea: Any, send: Any
) -> None:
    whole = {"priority": 5, "labels": {"project": "x"}, "annotations": {"note": "n"}}
    whole |= {"expected_duration_s": 60, "template": {"any": ["thing"]}, "min_member": 1}
    assert send(lea, "POST", SINGLE, body("one", **whole)).status_code == 201
    assert bulk_of(body("two", **whole)).status_code == 200
    one, two = Workload.objects.order_by("created_at")

    def shown(row: Workload) -> Any:
        answer = send(lea, "GET", f"{SINGLE}{row.uid}/").json()
        own = {"uid", "name", "created_at", "waiting_since"}
        events = [{**event, "at": ""} for event in answer["events"]]
        waited = {"counters": {**answer["counters"], "pending_s": 0}}  # the first for longer
        return {**{k: v for k, v in answer.items() if k not in own}, "events": events, **waited}

    assert shown(two) == shown(one)
    told = AuditEntry.objects.filter(action="workload.submitted").order_by("id")
    assert [(e.actor_name, e.team, e.subject) for e in told] == [
        ("lea", "datos", "ns-datos/one"),
        ("lea", "datos", "ns-datos/two"),
    ]
    assert told[1].after == {**told[0].after, "uid": str(two.uid)}
    assert Change.objects.filter(topic="workload", key=str(two.uid)).exists()


@pytest.mark.parametrize(
    "item",
    [
        [],
        {},
        body(pod_sets=[]),
        body("Not a name"),
        body(queue="lq-ia"),
        body(namespace="ns-ia", queue="lq-ia"),
        body(queue="nowhere"),
        body(priority_class="none"),
        body(pod_sets=[{"name": "main", "count": 1, "requests": {GPU: "1.5"}}]),
        body(pod_sets=[{"name": "main", "count": 1, "requests": {GPU: 99}}]),
        body(priority=2_000_000_000),
        body("there"),
    ],
)
def test_a_refusal_is_that_of_the_single_door(
    bulk_of: Any, lea: Any, send: Any, item: Any
) -> None:
    send(lea, "POST", SINGLE, body("there"))
    alone, among = send(lea, "POST", SINGLE, item), bulk_of(body("good"), item, body("other"))
    assert among.status_code == 200
    good, first, other = among.json()["results"]
    assert (good["status"], other["status"]) == (201, 201)
    assert first["status"] == alone.status_code
    mine, its = first["problem"], alone.json()
    assert (mine["type"], mine["detail"]) == (its["type"], its["detail"])
    assert [error["code"] for error in mine["errors"]] == [e["code"] for e in its["errors"]]
    assert [error["pointer"] for error in mine["errors"]] == [
        f"/workloads/1{error['pointer']}" for error in its["errors"]
    ]


def test_of_equal_names_in_one_call_the_first_counts(bulk_of: Any) -> None:
    told = bulk_of(body("same"), body("same")).json()
    assert [one["status"] for one in told["results"]] == [201, 409]
    assert told["results"][1]["problem"]["errors"][0]["code"] == "name_taken"


def test_a_call_of_which_nothing_may_run_is_refused_with_the_problems_of_all(
    bulk_of: Any,
) -> None:
    answer = bulk_of(body(queue="nowhere"), body("b", size=1))
    assert answer.status_code == 422
    pointers = [error["pointer"] for error in answer.json()["errors"]]
    assert pointers == ["/workloads/0/queue", "/workloads/1/size"]
    assert not Workload.objects.exists()


@pytest.mark.parametrize(
    ("sent", "pointer", "code"),
    [
        ([], "/workloads", "REQUIRED"),
        ({}, "/workloads", "REQUIRED"),
        ({"workloads": {}}, "/workloads", "REQUIRED"),
        ({"workloads": []}, "/workloads", "OUT_OF_RANGE"),
        ({"workloads": [0] * 1_001}, "/workloads", "OUT_OF_RANGE"),
        ({"workloads": [0], "more": 1}, "/more", "UNKNOWN_FIELD"),
    ],
)
def test_a_body_that_is_no_list_of_some_workloads_is_refused(
    lea: Any, send: Any, sent: Any, pointer: str, code: str
) -> None:
    answer = send(lea, "POST", PATH, sent)
    assert answer.status_code == 422
    assert [(e["pointer"], e["code"]) for e in answer.json()["errors"]] == [(pointer, code)]


def test_a_dry_run_says_the_same_and_writes_nothing(bulk_of: Any) -> None:
    told = bulk_of(body("a"), body("a"), path=f"{PATH}?dry_run=All").json()
    assert told["dry_run"]
    assert [one["status"] for one in told["results"]] == [200, 409]
    assert not Workload.objects.exists()
    assert not WorkloadEvent.objects.exists()


def test_the_cost_in_queries_does_not_grow_with_the_number(bulk_of: Any) -> None:
    bulk_of(body("warm"))
    counts = []
    for size in (2, 40):
        with CaptureQueriesContext(connection) as asked:
            answer = bulk_of(*(body(f"w{size}-{i}") for i in range(size)))
        assert answer.json()["accepted"] == size
        counts.append(len(asked))
    # SQLite writes 200 rows with a statement; the rest is the same whatever the number.
    assert counts[1] <= counts[0] + 2


def test_equals_of_one_call_are_admitted_in_their_order(bulk_of: Any) -> None:
    bulk_of(*(body(f"w{i}") for i in range(12)))
    run_cycle()
    admitted = Workload.objects.filter(status="admitted").order_by("created_at")
    assert [row.name for row in admitted] == [f"w{i}" for i in range(len(admitted))]
    assert len(admitted) > 2


def test_a_name_that_somebody_takes_meanwhile_refuses_that_one_alone(
    bulk_of: Any, lea: Any, send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, looks = bulk._without_taken, []  # noqa: SLF001

    def late(found: Any) -> Any:
        answers = look(found)
        if not looks:
            send(lea, "POST", SINGLE, body("b"))
        looks.append(1)
        return answers

    monkeypatch.setattr(bulk, "_without_taken", late)
    told = bulk_of(body("a"), body("b")).json()
    assert [one["status"] for one in told["results"]] == [201, 409]
    assert len(looks) == 2
