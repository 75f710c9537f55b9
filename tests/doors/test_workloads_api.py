"""``/api/v1/workloads/`` and ``/api/v1/nodes/``: the contract, the pages, who sees what."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queues.models import LocalQueue, PriorityClass
from scheduling.models import Workload

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("three_teams_once")]

PATH = "/api/v1/workloads/"
GPU = "nvidia.com/gpu"
MOST_QUERIES = 15  # of one submission; they are bounded, whatever stands on the platform
BODY = {
    "name": "train",
    "namespace": "ns-datos",
    "queue": "lq-datos",
    "pod_sets": [{"name": "main", "count": 2, "requests": {GPU: 1, "cpu": "500m"}}],
}
ONE = [{"name": "main", "count": 1, "requests": {GPU: 1}}]
WHOLE = {
    **BODY,
    "pod_sets": [
        {
            "name": "main",
            "count": 2,
            "requests": {GPU: "1"},
            "node_selector": {"accelerator": "h100-sxm"},
            "tolerations": [{"key": GPU, "operator": "Exists"}],
            "topology": {"mode": "unconstrained"},
            "device_locality": "any",
        }
    ],
    "priority": 5,
    "labels": {"project": "x"},
    "annotations": {"note": "any text, really"},
    "min_member": 2,
    "role_minima": {"main": 2},
    "preemptible": False,
    "expected_duration_s": 600,
    "on_failure": "fail",
    "max_retries": 0,
    "template": {"any": ["thing"]},
}


@pytest.fixture
def only_gpus() -> dict[str, Any]:
    return {**BODY, "pod_sets": [{"name": "main", "count": 2, "requests": {GPU: 1}}]}


def test_the_answer_to_a_submission_is_what_is_read_afterwards(
    lea: Any, send: Any, only_gpus: Any
) -> None:
    for number, body in enumerate((only_gpus, WHOLE)):
        answer = send(lea, "POST", PATH, {**body, "name": f"one-{number}"})
        assert answer.status_code == 201, answer.content
        told = answer.json()
        found = send(lea, "GET", f"{PATH}{told['uid']}/").json()
        assert told["counters"].pop("pending_s") <= found["counters"].pop("pending_s")
        assert told == found


def test_the_whole_contract_is_taken(lea: Any, send: Any) -> None:
    response = send(lea, "POST", PATH, WHOLE)

    answer = response.json()
    assert response.status_code == 201
    assert response["Location"] == f"{PATH}{answer['uid']}/"
    assert (answer["status"], answer["team"], answer["gpus"]) == ("pending", "datos", 2)
    assert answer["warnings"] == []
    assert (answer["on_failure"], answer["max_retries"]) == ("fail", 0)
    assert answer["template"] == {"any": ["thing"]}
    assert answer["pod_sets"][0]["requests"] == {GPU: 1}
    assert [event["kind"] for event in answer["events"]] == ["submitted"]
    assert send(lea, "GET", response["Location"]).json()["uid"] == answer["uid"]


def test_minima_of_a_gang_are_followed_and_told(
    lea: Any, send: Any, only_gpus: dict[str, Any]
) -> None:
    body = {**only_gpus, "min_member": 1, "role_minima": {"main": 1}}
    body["pod_sets"] = [{**only_gpus["pod_sets"][0], "subgroup": {"size": 1, "min_subgroups": 1}}]
    answer = send(lea, "POST", PATH, body).json()

    assert answer["warnings"] == []
    assert answer["pods"] == {"wanted": 2, "standing": 0, "minimum": 1}
    assert answer["pod_sets"][0]["count"] == 2


def test_a_resource_without_quota_is_named(lea: Any, send: Any) -> None:
    response = send(lea, "POST", PATH, BODY)

    assert response.status_code == 422
    (error,) = response.json()["errors"]
    assert (error["code"], error["numbers"]["resource"]) == ("UNCOVERED_RESOURCE", "cpu")


def test_the_same_name_twice_is_a_conflict(
    lea: Any,
    send: Any,
    only_gpus: dict[str, Any],
) -> None:
    send(lea, "POST", PATH, only_gpus)

    response = send(lea, "POST", PATH, only_gpus)

    assert response.status_code == 409
    assert response.json()["type"] == "urn:gpuplatform:problem:name_taken"


def test_a_dry_run_answers_and_keeps_nothing(
    lea: Any,
    send: Any,
    only_gpus: dict[str, Any],
) -> None:
    response = send(lea, "POST", f"{PATH}?dry_run=All", only_gpus)

    assert (response.status_code, response.json()["dry_run"]) == (200, True)
    assert not Workload.objects.exists()


@pytest.mark.parametrize(
    ("who", "status", "seen"),
    [
        ("ada", 200, 1),
        ("fin", 200, 1),
        ("aud", 200, 1),
        ("lea", 200, 1),
        ("ian", 404, 0),
        ("eve", 404, 0),
    ],
)
def test_a_foreign_workload_is_not_there(  # noqa: PLR0917
    who: str,
    status: int,
    seen: int,
    cast: Any,
    send: Any,
    only_gpus: dict[str, Any],
) -> None:
    address = send(cast.lea, "POST", PATH, only_gpus)["Location"]
    person = getattr(cast, who)

    assert len(send(person, "GET", PATH).json()["results"]) == seen
    assert send(person, "GET", address).status_code == status


@pytest.mark.parametrize(
    ("who", "status"),
    [("ada", 204), ("lea", 204), ("ian", 404), ("aud", 403), ("fin", 403)],
)
def test_who_may_cancel(
    who: str,
    status: int,
    cast: Any,
    send: Any,
    only_gpus: dict[str, Any],
) -> None:
    address = send(cast.lea, "POST", PATH, only_gpus)["Location"]

    assert send(getattr(cast, who), "DELETE", address).status_code == status
    assert (Workload.objects.get().status == "finished") == (status == 204)


def test_what_has_ended_cannot_be_cancelled(
    lea: Any,
    send: Any,
    only_gpus: dict[str, Any],
) -> None:
    address = send(lea, "POST", PATH, only_gpus)["Location"]
    send(lea, "DELETE", address)

    assert send(lea, "DELETE", address).status_code == 409


def test_pages_lead_through_all_rows_newest_first(
    lea: Any,
    send: Any,
    only_gpus: dict[str, Any],
) -> None:
    for number in range(5):
        send(lea, "POST", PATH, {**only_gpus, "name": f"w{number}"})

    names, address = [], f"{PATH}?limit=2"
    while address:
        page = send(lea, "GET", address).json()
        names += [row["name"] for row in page["results"]]
        address = (page["next"] or "").removeprefix("http://testserver")

    assert names == ["w4", "w3", "w2", "w1", "w0"]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("state=pending", 2),
        ("state=pending,running", 2),
        ("state=running", 0),
        ("queue=lq-datos", 2),
        ("queue=other", 0),
        ("team=datos", 2),
        ("team=ia", 0),
        ("name=train", 1),
        ("namespace=ns-datos&name=eval", 1),
    ],
)
def test_filters_narrow_the_list(
    query: str,
    count: int,
    lea: Any,
    send: Any,
    only_gpus: dict[str, Any],
) -> None:
    send(lea, "POST", PATH, only_gpus)
    send(lea, "POST", PATH, {**only_gpus, "name": "eval"})

    assert len(send(lea, "GET", f"{PATH}?{query}").json()["results"]) == count


def test_nodes_are_listed_with_what_they_offer(eve: Any, send: Any) -> None:
    (node,) = send(eve, "GET", "/api/v1/nodes/").json()["results"]

    assert (node["name"], node["allocatable"][GPU]) == ("h100-node-01", 4)


def test_the_schema_is_served_and_its_reader_loads_nothing_from_elsewhere(
    send: Any,
) -> None:
    schema = send(None, "GET", "/api/v1/openapi.json").json()
    page = send(None, "GET", "/api/docs/").content.decode()

    assert {PATH, "/api/v1/manifests/", "/api/v1/nodes/"} <= schema["paths"].keys()
    assert schema["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    assert "://" not in page.replace("http://testserver", "")


# ---- what others have is an amount without a name ----------------------------------------------
def blocked_work(person: Any, send: Any) -> Workload:
    """Submit Ian's workload and let the engine's words of everybody stand in it."""
    foreign = Workload.objects.create(namespace="ns-datos", name="theirs", gpus=1)
    LocalQueue.objects.create(namespace="ns-ia", name="lq-ia", cluster_queue="cq-ia")
    body = {**BODY, "namespace": "ns-ia", "queue": "lq-ia", "name": "own"}
    body["pod_sets"] = [{"name": "main", "count": 1, "requests": {GPU: 1}}]
    own = Workload.objects.get(uid=send(person, "POST", PATH, body).json()["uid"])
    names = f"{own.uid}, {foreign.uid}"
    holders = {"holders": "cq-datos: 64, cq-ia: 3, cq-plataforma: 96", "flavor": "h100-sxm"}
    facts = {
        "LENDER_BUSY": holders,
        "WAITING_PREEMPTION": {"releasing": names},
        "CLAIMED": {"claimants": str(foreign.uid)},
        "BEHIND_IN_QUEUE": {"ahead": 1, "head": str(own.uid)},
    }
    own.blockers = [
        {"code": code, "resource": GPU, "needed": 4, "available": 0, "where": "", "facts": fact}
        for code, fact in facts.items()
    ]
    own.save()
    return own


def facts_of(answer: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for blocker in answer["blockers"]
        for key, value in blocker["facts"].items()
        if key not in {"flavor", "ahead"}
    }


def test_blockers_name_no_queue_and_no_workload_that_the_reader_may_not_see(
    ian: Any, ada: Any, send: Any
) -> None:
    own = blocked_work(ian, send)
    discreet = {
        "holders": "cq-ia: 3, other teams: 160",
        "releasing": f"{own.uid}, other teams: 1",
        "claimants": "other teams: 1",
        "head": str(own.uid),
    }
    assert send(ian, "GET", "/api/v1/cluster-queues/cq-datos/").status_code == 404

    assert facts_of(send(ian, "GET", f"{PATH}{own.uid}/").json()) == discreet
    assert facts_of(send(ian, "GET", PATH).json()["results"][0]) == discreet
    assert "cq-datos: 64" in facts_of(send(ada, "GET", f"{PATH}{own.uid}/").json())["holders"]


@pytest.mark.parametrize("suffix", ["", "?format=csv", "?format=json"])
def test_pages_and_files_of_workloads_name_nobody_else(
    ian: Any, send: Any, signed_in: Any, suffix: str
) -> None:
    own = blocked_work(ian, send)
    foreign = Workload.objects.get(name="theirs")
    paths = ["/workloads/", "/queues/cq-ia/", "/", *([] if suffix else [f"/workloads/{own.uid}/"])]

    for path in paths:
        text = signed_in(ian).get(f"{path}{suffix}").content.decode()
        assert "cq-datos" not in text
        assert "cq-plataforma" not in text
        assert str(foreign.uid) not in text


@pytest.mark.parametrize(
    ("who", "asked", "status"),
    [
        ("lea", {"priority": 100}, 201),
        ("lea", {"priority": 101}, 422),
        ("lea", {"priority_class": "urgent"}, 201),
        ("ada", {"priority": 9_999_999}, 201),
    ],
)
def test_a_number_of_priority_has_a_limit_and_a_class_is_the_admins_word(
    cast: Any, send: Any, who: str, asked: dict[str, Any], status: int
) -> None:
    """Queues evict by priority: a number is a claim on what others hold."""
    PriorityClass.objects.create(name="urgent", value=10_000)
    answer = send(getattr(cast, who), "POST", PATH, {**BODY, "pod_sets": ONE, **asked})
    assert answer.status_code == status, answer.json()
    if status == 422:
        (error,) = answer.json()["errors"]
        assert (error["code"], error["pointer"]) == ("PRIORITY_ABOVE_LIMIT", "/priority")


def test_a_submission_reads_what_may_refuse_it_and_not_the_work_of_others(
    ada: Any, send: Any, only_gpus: dict[str, Any]
) -> None:
    assert send(ada, "POST", PATH, only_gpus).status_code == 201
    with CaptureQueriesContext(connection) as asked:
        assert send(ada, "POST", PATH, {**only_gpus, "name": "another"}).status_code == 201
    told = [query["sql"] for query in asked.captured_queries]
    everything = [
        sql for sql in told if 'FROM "scheduling_workload" ' in sql and "LIMIT" not in sql
    ]
    assert everything == []
    assert len(told) <= MOST_QUERIES
