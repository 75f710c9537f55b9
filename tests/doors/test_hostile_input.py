"""What a hostile client tries: nothing foreign shows, nothing is read as something else."""

from collections.abc import Callable
from typing import Any

import pytest

from queues import services
from queues.specs import LocalQueueSpec
from scheduling.models import Workload
from tests.doors.test_bad_input import (
    BODY,
    GPU,
    MANIFESTS,
    WORKLOADS,
    asks,
    body,
    check_problem,
    pods,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("three_teams_once")]

JOB = """apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: %s, labels: {%s}}
spec:
  template:
    spec:
      containers:
      - name: main
        resources: %s
"""
LABEL = "kueue.x-k8s.io/queue-name: lq-datos"
ONE = "{limits: {nvidia.com/gpu: 1}}"


def job(namespace: str = "ns-datos", label: str = LABEL, asked: str = ONE) -> str:
    return JOB % ("j", namespace, label, asked)


def errors(response: Any) -> list[tuple[str, str]]:
    return [(e["pointer"], e["code"]) for e in response.json()["errors"]]


# ---- work outside every queue ------------------------------------------------------------------
@pytest.mark.parametrize("who", ["lea", "ian", "eve", "fin", "aud"])
def test_only_admins_run_work_outside_every_queue(
    who: str, cast: Any, send: Any, signed_in: Any
) -> None:
    person = getattr(cast, who)

    answer = check_problem(send(person, "POST", WORKLOADS, body(queue="")), 422)
    assert [(e["pointer"], e["code"]) for e in answer["errors"]] == [("/queue", "QUEUE_REQUIRED")]
    manifest = send(person, "POST", MANIFESTS, job(label=""), "text/yaml")
    assert errors(manifest) == [("/documents/0", "QUEUE_REQUIRED")]
    page = signed_in(person).post("/submit/", {"text": job(label=""), "submit": "yes"})
    assert page.status_code == (422 if who in {"lea", "ian"} else 403)

    assert not Workload.objects.exists()


def test_an_admin_may(ada: Any, send: Any) -> None:
    assert send(ada, "POST", WORKLOADS, body(queue="")).status_code == 201
    assert send(ada, "POST", MANIFESTS, job(label=""), "text/yaml").status_code == 201


def test_an_admins_token_for_a_team_may_not(ada: Any, datos: Any, client: Any, token_of: Any):
    headers = {"Authorization": token_of(ada, team=datos)}
    sent = body(queue="")
    response = client.post(WORKLOADS, sent, content_type="application/json", headers=headers)
    assert errors(response) == [("/queue", "QUEUE_REQUIRED")]


# ---- what is foreign is not there --------------------------------------------------------------
def without(text: str, *words: str) -> str:
    for word in words:
        text = text.replace(word, "?")
    return text


@pytest.fixture
def told(send: Any, signed_in: Any) -> Callable[..., list[str]]:
    """Return everything that is said about a submission, through all doors."""

    def say(person: Any, namespace: str, queue: str, **more: Any) -> list[str]:
        sent = {**BODY, "namespace": namespace, "queue": queue, **more}
        text = job(namespace, f"kueue.x-k8s.io/queue-name: {queue}")
        found = [
            send(person, "POST", WORKLOADS, sent),
            send(person, "POST", f"{WORKLOADS}?dry_run=All", sent),
            send(person, "POST", MANIFESTS, text, "text/yaml"),
        ]
        page = signed_in(person).post("/submit/", {"text": text, "dry_run": "1"})
        said = [f"{r.status_code} {r.content.decode()}" for r in found]
        said = [s.replace(r.json()["request_id"], "?") for s, r in zip(said, found, strict=True)]
        table = page.content.decode().partition("<tbody>")[2].partition("</tbody>")[0]
        assert table or page.status_code == 403
        return [without(each, namespace, queue) for each in (*said, f"{page.status_code} {table}")]

    return say


@pytest.mark.parametrize("who", ["ian", "eve"])
@pytest.mark.parametrize(
    "more",
    [{}, {"labels": {"gpuplatform.io/team": "datos"}}, {"pod_sets": asks("400")["pod_sets"]}],
)
def test_a_foreign_namespace_answers_like_one_that_is_not_there(
    who: str, more: dict[str, Any], cast: Any, told: Any
) -> None:
    person = getattr(cast, who)

    foreign = told(person, "ns-datos", "lq-datos", **more)

    assert "QUEUE_NOT_FOUND" in foreign[0]
    assert foreign[0].startswith("422")
    assert foreign == told(person, "ns-nowhere", "lq-nowhere", **more)
    assert foreign == told(person, "ns-datos", "lq-nowhere", **more)


def test_a_copy_of_somebody_elses_job_does_not_tell_its_id(lea: Any, ian: Any, send: Any) -> None:
    send(lea, "POST", MANIFESTS, job(), "text/yaml")
    uid = str(Workload.objects.get().uid)

    response = send(ian, "POST", MANIFESTS, job(), "text/yaml")

    assert uid not in response.content.decode()
    assert {code for _, code in errors(response)} == {"QUEUE_NOT_FOUND"}


def test_nothing_is_kept_where_impossible_work_is_accepted(
    ian: Any, send: Any, settings: Any
) -> None:
    settings.ACCEPT_IMPOSSIBLE_WORKLOADS = True

    for namespace in ("ns-datos", "ns-nowhere"):
        response = send(ian, "POST", WORKLOADS, body(namespace=namespace))
        assert (response.status_code, errors(response)) == (422, [("/queue", "QUEUE_NOT_FOUND")])
    assert not Workload.objects.exists()


def test_a_door_of_ones_own_into_a_foreign_queue_is_named(lea: Any, send: Any) -> None:
    services.save_local_queue(LocalQueueSpec("ns-datos", "lq-other", "cq-ia"), actor=None)

    response = send(lea, "POST", WORKLOADS, body(queue="lq-other"))

    assert (response.status_code, errors(response)) == (403, [("/queue", "NOT_YOUR_TEAM")])


# ---- amounts -----------------------------------------------------------------------------------
@pytest.mark.parametrize("amount", ["1.5", 1.5, "1n", "1500m", "1e-1"])
@pytest.mark.parametrize("resource", [GPU, "example.com/thing"])
def test_what_comes_whole_is_not_divided(amount: Any, resource: str, lea: Any, send: Any) -> None:
    answer = check_problem(send(lea, "POST", WORKLOADS, asks(amount, resource)), 422)

    (error,) = answer["errors"]
    assert error["code"] == "BAD_QUANTITY"
    assert "whole pieces" in error["detail"]


@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_what_can_be_divided_is_rounded_up(resource: str, ada: Any, send: Any) -> None:
    sent = pods(requests={GPU: "1", resource: "0.0001"}) | {"queue": ""}

    assert send(ada, "POST", WORKLOADS, sent).status_code == 201
    assert Workload.objects.get().pod_sets.get().requests[resource] == 1


def test_half_a_gpu_in_a_manifest_refuses_it(ada: Any, send: Any) -> None:
    sent = job(asked="{limits: {nvidia.com/gpu: 0.5}}")

    response = send(ada, "POST", MANIFESTS, sent, "text/yaml")

    assert [code for _, code in errors(response)] == ["BAD_QUANTITY"]


@pytest.mark.parametrize("least", [1, 3])
def test_a_job_that_asks_for_other_gpus_than_its_limit_is_refused(
    least: int, lea: Any, send: Any
) -> None:
    sent = job(asked=f"{{requests: {{nvidia.com/gpu: {least}}}, limits: {{nvidia.com/gpu: 2}}}}")

    response = send(lea, "POST", MANIFESTS, sent, "text/yaml")

    (error,) = response.json()["errors"]
    assert (response.status_code, error["code"]) == (422, "BAD_VALUE")
    assert error["pointer"].endswith("/requests/nvidia.com~1gpu")
    assert "must be equal" in error["detail"]


# ---- parameters --------------------------------------------------------------------------------
READ = [
    "/api/v1/workloads/",
    "/api/v1/nodes/",
    "/api/v1/teams/",
    "/api/v1/teams/datos/",
    "/api/v1/cohorts/",
    "/api/v1/cluster-queues/",
    "/api/v1/cluster-queues/cq-datos/",
    "/api/v1/local-queues/",
    "/api/v1/local-queues/ns-datos/lq-datos/",
    "/api/v1/flavors/",
    "/api/v1/prices/",
    "/api/v1/bills/2026-06/",
    "/api/v1/bills/2026-06/datos/",
    "/api/v1/workloads/00000000-0000-0000-0000-000000000000/",
]


FILED = ("workloads", "nodes", "teams", "cohorts", "cluster-queues", "local-queues", "flavors")
FILES = {f"/api/v1/{name}/" for name in FILED}


@pytest.mark.parametrize("path", READ)
@pytest.mark.parametrize("query", ["colour=red", "format=csv", "format=xml"])
def test_a_parameter_that_nobody_knows_is_refused(
    path: str, query: str, ada: Any, send: Any
) -> None:
    response = send(ada, "GET", f"{path}?{query}")

    if query == "format=csv" and path in FILES:
        assert response["Content-Type"].startswith("text/csv")
        return
    check_problem(response, 400)
    assert errors(response) == [(f"/{query.partition('=')[0]}", "invalid")]


LISTS = [path for path in READ if path.count("/") == 4 and "prices" not in path]


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    "cursor", ["", "!!!", "cD14!", "cD14", "eD0x", "cD0lMDA=", "bz0tMQ==", "cD"]
)
def test_a_damaged_cursor_is_refused(path: str, cursor: str, ada: Any, send: Any) -> None:
    response = send(ada, "GET", f"{path}?cursor={cursor}")

    # "p=x" is whole, and a place in a list by name
    if cursor == "cD14" and "workloads" not in path:
        assert response.status_code == 200
        return
    check_problem(response, 400)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"{MANIFESTS}?atomic=1"),
        ("POST", f"{MANIFESTS}?atomic=True"),
        ("POST", f"{MANIFESTS}?atomic="),
        ("POST", f"{MANIFESTS}?format=json"),
        ("POST", f"{MANIFESTS}?limit=1"),
        ("GET", "/api/v1/nodes/?ready=maybe"),
        ("GET", "/api/v1/nodes/?ready=1"),
        ("GET", "/api/v1/nodes/?schedulable=True"),
    ],
)
def test_a_parameter_has_its_values(method: str, path: str, ada: Any, send: Any) -> None:
    sent = job() if method == "POST" else None
    check_problem(send(ada, method, path, sent, "text/yaml"), 400)


@pytest.mark.parametrize("path", [WORKLOADS, "/api/v1/prices/"])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_what_is_sent_has_no_format(path: str, form: str, ada: Any, send: Any) -> None:
    check_problem(send(ada, "POST", f"{path}?format={form}", BODY), 400)


# ---- how refusals look -------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/v1/nothing/", 404, "not_found"),
        ("GET", "/api/v1/teams/nothing/", 404, "not_found"),
        ("PATCH", WORKLOADS, 405, "method_not_allowed"),
        ("PUT", "/api/v1/cluster-queues/cq-datos/", 428, "precondition_required"),
    ],
)
def test_every_refusal_lists_at_least_one_error(  # noqa: PLR0917
    method: str, path: str, status: int, code: str, ada: Any, send: Any
) -> None:
    answer = check_problem(send(ada, method, path, {}), status)

    (error,) = answer["errors"]
    assert (error["pointer"], error["code"]) == ("", code)
    assert error["detail"]


def test_who_is_not_let_in_gets_an_error_too(eve: Any, send: Any) -> None:
    assert errors(send(None, "GET", WORKLOADS)) == [("", "not_authenticated")]
    sent = {"unit": "gpu_hour", "subject": "*", "amount": "1"}
    assert errors(send(eve, "POST", "/api/v1/prices/", sent)) == [("", "permission_denied")]


@pytest.mark.parametrize(
    ("sent", "kind"),
    [("[]", "a list"), ("null", "null"), ("7", "a whole number"), ('"x"', "text")],
)
def test_a_body_of_another_type_is_told_which(sent: str, kind: str, ada: Any, send: Any) -> None:
    for method, path in (("POST", WORKLOADS), ("PUT", "/api/v1/cohorts/new/")):
        answer = check_problem(send(ada, method, path, sent), 422)
        assert answer["detail"] == f"body must be a mapping, and is {kind}."


LONG = "x" * 5_000


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        (WORKLOADS, body(queue=LONG)),
        (WORKLOADS, body(name=LONG)),
        (WORKLOADS, body(namespace=LONG)),
        (WORKLOADS, body(priority_class=LONG)),
        (WORKLOADS, body(labels={"a": LONG})),
        (WORKLOADS, body(on_failure=LONG)),
        (WORKLOADS, asks(LONG)),
        (WORKLOADS, asks([LONG])),
        (WORKLOADS, pods(name=LONG, count=0)),
        ("/api/v1/prices/", {"unit": LONG, "subject": LONG, "amount": LONG}),
    ],
    ids=str,
)
def test_no_answer_repeats_more_than_a_little(path: str, sent: Any, ada: Any, send: Any) -> None:
    response = send(ada, "POST", path, sent)

    assert 400 <= response.status_code < 500
    assert "x" * 81 not in response.content.decode()


def test_an_unknown_key_is_cut_in_sentences(ada: Any, send: Any) -> None:
    answer = send(ada, "POST", WORKLOADS, body(**{LONG: 1})).json()

    assert "x" * 81 not in answer["detail"]
    assert all("x" * 81 not in error["detail"] for error in answer["errors"])


def test_two_priorities_are_told_in_a_sentence(lea: Any, send: Any) -> None:
    answer = send(lea, "POST", WORKLOADS, body(priority=1, priority_class="x")).json()

    assert "a workload has one priority" in answer["detail"]


QUEUE = """apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cq-x}
spec:
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: h100-sxm
      resources: [{name: nvidia.com/gpu, nominalQuota: 1, borrowingLimit: 1}]
"""


def test_a_rules_refusal_points_into_the_document(ada: Any, send: Any) -> None:
    response = send(ada, "POST", MANIFESTS, QUEUE, "text/yaml")

    cell = "/documents/0/spec/resourceGroups/0/flavors/0/resources/0/borrowingLimit"
    assert errors(response) == [(cell, "no_cohort")]


def test_an_unknown_host_is_told_so_in_the_form_of_all_problems(client: Any) -> None:
    answer = client.get("/api/v1/teams/", headers={"Host": "elsewhere.example"})
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert answer.json()["status"] == 400
    page = client.get("/", headers={"Host": "elsewhere.example"})
    assert (page.status_code, "text/html" in page["Content-Type"]) == (400, True)
