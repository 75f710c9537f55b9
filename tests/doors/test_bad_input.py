"""Bad input gets problem details with path, code and sentence, and changes nothing."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("three_teams_once")]

GPU = "nvidia.com/gpu"
WORKLOADS, MANIFESTS = "/api/v1/workloads/", "/api/v1/manifests/"
POD_SET = {"name": "main", "count": 1, "requests": {GPU: "1"}}
BODY = {"name": "a", "namespace": "ns-datos", "queue": "lq-datos", "pod_sets": [POD_SET]}


def body(**changes: Any) -> dict[str, Any]:
    return {**BODY, **changes}


def pods(**changes: Any) -> dict[str, Any]:
    return body(pod_sets=[{**POD_SET, **changes}])


def asks(amount: Any, resource: str = GPU) -> dict[str, Any]:
    return pods(requests={resource: amount})


def check_problem(response: Any, status: int) -> dict[str, Any]:
    answer: dict[str, Any] = response.json()
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    assert answer["type"].startswith("urn:gpuplatform:problem:")
    assert answer["status"] == status
    assert answer["title"]
    assert answer["detail"]
    assert answer["request_id"] == response["X-Request-ID"]
    assert "Traceback" not in response.content.decode()
    return answer


BAD_WORKLOADS: list[tuple[Any, str, str]] = [
    (body(name=None), "/name", "REQUIRED"),
    (body(name=7), "/name", "BAD_TYPE"),
    (body(name="Not A Name"), "/name", "bad_name"),
    (body(name="a" * 300), "/name", "bad_name"),
    (body(namespace=""), "/namespace", "bad_name"),
    (body(queue="nowhere"), "/queue", "QUEUE_NOT_FOUND"),
    (body(priority_class="urgent"), "/priority_class", "PRIORITY_CLASS_NOT_FOUND"),
    (body(priority=2**40), "/priority", "OUT_OF_RANGE"),
    (body(priority=1, priority_class="x"), "/priority", "BAD_VALUE"),
    (body(labels=[]), "/labels", "BAD_TYPE"),
    (body(labels={"a": 1}), "/labels/a", "BAD_TYPE"),
    (body(labels={"a b": "c"}), "/labels/a b", "bad_label_key"),
    (body(min_member=5), "/min_member", "GANG_LARGER_THAN_POD_COUNT"),
    (body(role_minima={"other": 1}), "/role_minima/other", "ROLE_NOT_FOUND"),
    (body(elastic="yes"), "/elastic", "BAD_TYPE"),
    (body(on_failure="explode"), "/on_failure", "BAD_VALUE"),
    (body(expected_duration_s=-1), "/expected_duration_s", "NEGATIVE"),
    (body(expected_duration_s=1.5), "/expected_duration_s", "BAD_TYPE"),
    (body(surprise=1), "/surprise", "UNKNOWN_FIELD"),
    (body(pod_sets=None), "/pod_sets", "REQUIRED"),
    (body(pod_sets={}), "/pod_sets", "BAD_TYPE"),
    (body(pod_sets=[]), "/pod_sets", "NO_POD_SETS"),
    (body(pod_sets=[POD_SET, POD_SET]), "/pod_sets/0/name", "POD_SET_TWICE"),
    (
        body(pod_sets=[{**POD_SET, "name": f"p{n}"} for n in range(19)]),
        "/pod_sets",
        "TOO_MANY_POD_SETS",
    ),
    (body(pod_sets=[1]), "/pod_sets/0", "BAD_TYPE"),
    (pods(count=0), "/pod_sets/0/count", "POD_COUNT"),
    (pods(count=-1), "/pod_sets/0/count", "NEGATIVE"),
    (pods(count="1"), "/pod_sets/0/count", "BAD_TYPE"),
    (pods(count=True), "/pod_sets/0/count", "BAD_TYPE"),
    (pods(count=100_001), "/pod_sets/0/count", "POD_COUNT"),
    (pods(count=10**25), "/pod_sets/0/count", "OUT_OF_RANGE"),
    (pods(min_count=2), "/pod_sets/0/min_count", "MIN_COUNT_ABOVE_COUNT"),
    (pods(oops=1), "/pod_sets/0/oops", "UNKNOWN_FIELD"),
    (pods(topology={"mode": "hard"}), "/pod_sets/0/topology/mode", "BAD_VALUE"),
    (
        pods(topology={"mode": "required"}),
        "/pod_sets/0/topology/level",
        "TOPOLOGY_LEVEL_MISSING",
    ),
    (
        pods(topology={"mode": "required", "level": "moon"}),
        "/pod_sets/0/topology/level",
        "UNKNOWN_TOPOLOGY_LEVEL",
    ),
    (pods(tolerations=[{"operator": "x"}]), "/pod_sets/0/tolerations/0/operator", "BAD_VALUE"),
    (pods(device_locality="near"), "/pod_sets/0/device_locality", "BAD_VALUE"),
    (pods(subgroup={"size": 2, "min_subgroups": 2}), "/pod_sets/0/subgroup", "SUBGROUP_TOO_LARGE"),
    (asks("-1"), "/pod_sets/0/requests/nvidia.com~1gpu", "NEGATIVE"),
    (asks(-1), "/pod_sets/0/requests/nvidia.com~1gpu", "NEGATIVE"),
    (asks("many"), "/pod_sets/0/requests/nvidia.com~1gpu", "BAD_QUANTITY"),
    (asks("NaN"), "/pod_sets/0/requests/nvidia.com~1gpu", "BAD_QUANTITY"),
    (asks(10**25), "/pod_sets/0/requests/nvidia.com~1gpu", "BAD_QUANTITY"),
    (asks(1e300), "/pod_sets/0/requests/nvidia.com~1gpu", "BAD_QUANTITY"),
    (asks(True), "/pod_sets/0/requests/nvidia.com~1gpu", "BAD_QUANTITY"),
    (asks([1]), "/pod_sets/0/requests/nvidia.com~1gpu", "BAD_QUANTITY"),
    (asks("1", "pods"), "/pod_sets/0/requests/pods", "RESERVED_RESOURCE"),
    (asks("1", "no good"), "/pod_sets/0/requests/no good", "bad_label_key"),
    (
        pods(count=100, requests={GPU: 2**60}),
        "/pod_sets/0/requests/nvidia.com~1gpu",
        "BAD_QUANTITY",
    ),
    (asks(5), "/pod_sets", "NEVER_FITS_QUEUE"),
    ({}, "/name", "REQUIRED"),
    ([], "", "BAD_TYPE"),
    ("text", "", "BAD_TYPE"),
]


@pytest.mark.parametrize(("sent", "pointer", "code"), BAD_WORKLOADS, ids=range(len(BAD_WORKLOADS)))
def test_a_bad_workload_is_refused_with_pointer_and_code(  # noqa: PLR0917
    sent: Any, pointer: str, code: str, lea: Any, send: Any, rows: Callable[[], dict[str, int]]
) -> None:
    before = rows()

    content = f'"{sent}"' if isinstance(sent, str) else sent
    answer = check_problem(send(lea, "POST", WORKLOADS, content), 422)

    assert (pointer, code) in [(e["pointer"], e["code"]) for e in answer["errors"]]
    assert all(error["detail"] for error in answer["errors"])
    assert rows() == before


@pytest.mark.parametrize(
    ("count", "amount", "codes"),
    [
        (0, "1.5", ("POD_COUNT", "BAD_QUANTITY")),
        ("two", "9Zi", ("BAD_TYPE", "BAD_QUANTITY")),
        (-3, -1, ("NEGATIVE", "NEGATIVE")),
        (0, "x", ("POD_COUNT", "BAD_QUANTITY")),
    ],
)
def test_several_mistakes_are_all_told_at_once_each_with_its_pointer(
    lea: Any, send: Any, count: Any, amount: Any, codes: tuple[str, str]
) -> None:
    sent = pods(count=count, requests={GPU: amount}, min_count=2)
    answer = send(lea, "POST", WORKLOADS, {**sent, "name": "Not A Name", "labels": {"a b": "c"}})
    found = {(error["pointer"], error["code"]) for error in answer.json()["errors"]}
    assert found == {
        ("/name", "bad_name"),
        ("/labels/a b", "bad_label_key"),
        ("/pod_sets/0/count", codes[0]),
        ("/pod_sets/0/requests/nvidia.com~1gpu", codes[1]),
    }


BAD_BODIES: list[tuple[str | bytes, int]] = [
    ('{"name": ', 400),
    ('{"name": NaN}', 400),
    ('{"name": 1e999}', 400),
    ('{"name": ' + "9" * 5_000 + "}", 400),
    ('{"a": 1, "a": 2}', 400),
    ('{"name": "\\u0000"}', 400),
    ('{"name": "\\ud800"}', 400),
    ('{"a":' * 100_000, 400),
    (b"\xff\xfe", 400),
    (b"x" * (2**20 + 1), 413),
]


@pytest.mark.parametrize(("sent", "status"), BAD_BODIES, ids=range(len(BAD_BODIES)))
def test_a_body_that_is_no_json_is_refused(
    sent: str | bytes, status: int, lea: Any, send: Any, rows: Callable[[], dict[str, int]]
) -> None:
    before = rows()

    check_problem(send(lea, "POST", WORKLOADS, sent), status)

    assert rows() == before


GOOD = "apiVersion: v1\nkind: Namespace\nmetadata: {name: fresh}\n---\n"
QUOTA = """apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cq-x}
spec:
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: h100-sxm
      resources: [{name: nvidia.com/gpu, nominalQuota: %s}]
"""
CELL = "/documents/1/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota"
BAD_MANIFESTS: list[tuple[str | bytes, int, str, str]] = [
    (GOOD + "a: [", 400, "BAD_SYNTAX", "/documents/1"),
    (GOOD + "a: &x 1\nb: *x\n", 400, "ANCHOR", "/documents/1"),
    (GOOD + "a: 1\na: 1\n", 400, "DUPLICATE_KEY", "/documents/1"),
    (GOOD + "a: " + "[" * 60 + "]" * 60, 400, "TOO_DEEP", "/documents/1"),
    (GOOD + 'a: "\\0"', 400, "BAD_TEXT", "/documents/1"),
    (GOOD + "- a\n", 400, "NOT_A_MAPPING", "/documents/1"),
    (GOOD + "apiVersion: v1\nkind: Secret\n", 422, "UNKNOWN_KIND", "/documents/1/kind"),
    (GOOD + "kind: ClusterQueue\n", 422, "UNKNOWN_KIND", "/documents/1/kind"),
    (GOOD + "a: 1\n", 422, "UNKNOWN_KIND", "/documents/1/kind"),
    (GOOD + QUOTA % "-1", 422, "NEGATIVE", CELL),
    (GOOD + QUOTA % "lots", 422, "BAD_QUANTITY", CELL),
    (GOOD + QUOTA % "1e30", 422, "BAD_QUANTITY", CELL),
    (GOOD + QUOTA % ".nan", 422, "BAD_QUANTITY", CELL),
    (GOOD + QUOTA % "[1]", 422, "BAD_QUANTITY", CELL),
    (GOOD + "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: x\n", 422, "BAD_TYPE",
     "/documents/1/spec"),
    ("", 400, "EMPTY_SUBMISSION", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "status", "code", "pointer"), BAD_MANIFESTS, ids=range(len(BAD_MANIFESTS))
)
def test_unreadable_manifests_refuse_the_whole_submission(  # noqa: PLR0917
    sent: str | bytes,
    status: int,
    code: str,
    pointer: str,
    ada: Any,
    send: Any,
    rows: Callable[[], dict[str, int]],
) -> None:
    before = rows()

    answer = check_problem(send(ada, "POST", MANIFESTS, sent, "application/yaml"), status)

    assert (code, pointer) in [(e["code"], e["pointer"]) for e in answer["errors"]]
    assert rows() == before


def test_a_huge_manifest_is_refused(
    ada: Any, send: Any, rows: Callable[[], dict[str, int]]
) -> None:
    before = rows()

    check_problem(send(ada, "POST", MANIFESTS, b"#" * (2**20 + 1), "text/yaml"), 413)

    assert rows() == before


@pytest.mark.parametrize("who", ["fin", "aud"])
def test_work_for_a_team_that_is_seen_and_not_ones_own_is_refused(
    who: str, cast: Any, send: Any, rows: Callable[[], dict[str, int]]
) -> None:
    before = rows()

    answer = check_problem(send(getattr(cast, who), "POST", WORKLOADS, BODY), 403)

    assert rows() == before
    assert [(e["pointer"], e["code"]) for e in answer["errors"]] == [("/queue", "NOT_YOUR_TEAM")]


def test_a_label_does_not_open_a_foreign_namespace(
    ian: Any, send: Any, rows: Callable[[], dict[str, int]]
) -> None:
    before = rows()

    sent = body(labels={"gpuplatform.io/team": "ia"})
    check_problem(send(ian, "POST", WORKLOADS, sent), 422)

    assert rows() == before


def test_who_does_not_sign_in_is_told_how(send: Any) -> None:
    response = send(None, "POST", WORKLOADS, BODY)

    check_problem(response, 401)
    assert response["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    ("method", "path", "kind", "status"),
    [
        ("GET", "/api/v1/nothing/", "application/json", 404),
        ("GET", "/api/elsewhere", "application/json", 404),
        ("GET", f"{WORKLOADS}00000000-0000-0000-0000-000000000000/", "application/json", 404),
        ("GET", f"{WORKLOADS}not-a-uuid/", "application/json", 404),
        ("PUT", WORKLOADS, "application/json", 405),
        ("GET", MANIFESTS, "application/json", 405),
        ("POST", WORKLOADS, "text/yaml", 415),
        ("POST", MANIFESTS, "text/csv", 415),
        ("GET", f"{WORKLOADS}?colour=red", "application/json", 400),
        ("GET", f"{WORKLOADS}?state=asleep", "application/json", 400),
        ("GET", f"{WORKLOADS}?limit=0", "application/json", 400),
        ("GET", f"{WORKLOADS}?limit=9999", "application/json", 400),
        ("GET", f"{WORKLOADS}?cursor=cD14", "application/json", 400),
        ("GET", "/api/v1/nodes/?colour=red", "application/json", 400),
        ("POST", f"{MANIFESTS}?dry_run=perhaps", "text/yaml", 400),
        ("POST", f"{MANIFESTS}?colour=red", "text/yaml", 400),
    ],
)
def test_every_refusal_under_api_is_problem_details(  # noqa: PLR0917
    method: str, path: str, kind: str, status: int, lea: Any, send: Any
) -> None:
    check_problem(send(lea, method, path, "x: 1" if method == "POST" else None, kind), status)


def test_a_fault_of_ours_shows_no_trace(
    lea: Any, send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: Any, **_kwargs: Any) -> None:
        raise ZeroDivisionError("a secret of the house")

    monkeypatch.setattr("scheduling.api.load_world", fail)

    response = send(lea, "POST", WORKLOADS, BODY)

    check_problem(response, 500)
    assert "secret" not in response.content.decode()
