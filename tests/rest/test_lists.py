"""Lists over REST: order, fields, number, files; what an address does not know is refused."""

import csv
import io
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from django.test import Client

from tests.scheduling.loop.world import nodes, queue, work

pytestmark = pytest.mark.django_db
WORKLOADS = "/api/v1/workloads/"


@pytest.fixture
def get(cast: Any, token_of: Callable[..., str]) -> Callable[..., Any]:
    nodes(3)
    queue("datos", 4)
    queue("ia", 4)
    for name, priority in (("b", 1), ("a", 3), ("c", 2), ("d", 2)):
        work("datos", name, priority=priority)
    work("ia", "foreign", namespace="ns-ia")
    tokens = {name: token_of(getattr(cast, name)) for name in ("lea", "ada")}

    def ask(path: str, who: str = "lea", **headers: str) -> Any:
        return Client().get(path, headers={"Authorization": tokens[who], **headers})

    return ask


def names(answer: Any) -> list[str]:
    return [row["name"] for row in answer.json()["results"]]


@pytest.mark.parametrize(
    ("ordering", "expected"),
    [("name", "abcd"), ("-name", "dcba"), ("-priority", "adcb"), ("priority", "bdca")],
)
def test_a_list_is_sorted_through_all_its_pages(
    get: Callable[..., Any], ordering: str, expected: str
) -> None:
    answer = get(f"{WORKLOADS}?ordering={ordering}&limit=1")
    found = names(answer)
    while following := answer.json()["next"]:
        answer = get(following)
        found += names(answer)
    assert "".join(found) == expected


def test_a_list_as_manifests_has_all_rows_of_the_filter(get: Callable[..., Any]) -> None:
    answer = get(f"{WORKLOADS}?format=yaml&ordering=name&limit=1")
    assert answer["Content-Type"] == "application/yaml"
    documents = list(yaml.safe_load_all(b"".join(answer)))
    assert [(one["kind"], one["metadata"]["name"]) for one in documents] == [
        ("Workload", name) for name in "abcd"
    ]


def test_one_object_as_a_manifest_says_which_version_it_shows(get: Callable[..., Any]) -> None:
    path = "/api/v1/cluster-queues/cq-datos/"
    answer = get(path, Accept="application/yaml")
    (document,) = yaml.safe_load_all(b"".join(answer))
    assert document["metadata"]["annotations"] == {"gpuplatform.io/version": "1"}
    assert document["spec"]["resourceGroups"][0]["coveredResources"] == ["nvidia.com/gpu"]
    assert get("/api/v1/cluster-queues/cq-ia/", Accept="application/yaml").status_code == 404
    assert get("/api/v1/alerts/?format=yaml").status_code == 400


def test_only_the_fields_that_are_wanted_come(get: Callable[..., Any]) -> None:
    (row, *_) = get(f"{WORKLOADS}?fields=name,gpus&ordering=name").json()["results"]
    assert row == {"name": "a", "gpus": 1}
    (row, *_) = get(f"{WORKLOADS}?brief=1&ordering=name").json()["results"]
    assert set(row) == {"uid", "namespace", "name", "status", "queue", "team", "version"}
    (row,) = get("/api/v1/cluster-queues/?fields=name").json()["results"]
    assert row == {"name": "cq-datos"}


def test_the_number_is_told_where_it_is_asked_for(get: Callable[..., Any]) -> None:
    assert "count" not in get(f"{WORKLOADS}?limit=2").json()
    answer = get(f"{WORKLOADS}?limit=2&count=exact").json()
    assert (answer["count"], len(answer["results"])) == (4, 2)


@pytest.mark.parametrize(
    "query",
    [
        *("ordering=template", "ordering=--name", "fields=nothing", "brief=yes", "count=about"),
        *("format=xml", "sort=name", "page=2"),
    ],
)
def test_what_a_list_does_not_know_is_refused(get: Callable[..., Any], query: str) -> None:
    answer = get(f"{WORKLOADS}?{query}")
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert query.split("=", maxsplit=1)[0] in answer.json()["errors"][0]["pointer"]


@pytest.mark.parametrize("headers", [{}, {"Accept": "text/csv"}], ids=["format", "accept"])
def test_a_file_has_all_rows_of_the_filter_and_no_foreign_one(
    get: Callable[..., Any], headers: dict[str, str]
) -> None:
    query = "ordering=name&fields=name,blockers" + ("" if headers else "&format=csv")
    answer = get(f"{WORKLOADS}?{query}&limit=1", **headers)
    assert answer["Content-Type"].startswith("text/csv")
    rows = list(csv.reader(io.StringIO(answer.content.decode())))
    assert rows == [["name", "blockers"], *([name, "[]"] for name in "abcd")]


@pytest.mark.parametrize(
    ("path", "who", "count"),
    [("nodes", "lea", 3), ("cluster-queues", "lea", 1), ("cluster-queues", "ada", 2)],
)
def test_other_lists_are_files_too(
    get: Callable[..., Any], path: str, who: str, count: int
) -> None:
    answer = get(f"/api/v1/{path}/?format=csv", who)
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert len(rows) == count
    assert all(row["name"] for row in rows)


def test_a_refusal_is_a_problem_whatever_was_asked_for(get: Callable[..., Any]) -> None:
    answer = get(f"{WORKLOADS}?format=csv&status=wrong")
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert answer.json()["errors"][0]["pointer"] == "/status"


@pytest.mark.parametrize("kind", ["json", "yaml", "csv"])
@pytest.mark.parametrize("place", ["cohorts", "flavors", "nodes", "cluster-queues", "workloads"])
def test_an_order_that_is_none_is_refused_in_every_format(
    get: Callable[..., Any], place: str, kind: str
) -> None:
    answer = get(f"/api/v1/{place}/?format={kind}&ordering=nonsense")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/ordering")


def test_an_order_holds_in_files_too(get: Callable[..., Any]) -> None:
    rows = list(yaml.safe_load_all(b"".join(get("/api/v1/nodes/?format=yaml&ordering=-name"))))
    assert [one["metadata"]["name"][-1] for one in rows] == ["3", "2", "1"]
    found = yaml.safe_load_all(
        b"".join(get("/api/v1/cluster-queues/?format=yaml&ordering=-name", "ada"))
    )
    assert [one["metadata"]["name"] for one in found] == ["cq-ia", "cq-datos"]


@pytest.mark.parametrize("query", ["prices/?unit=nonsense", "mappings/?kind=nonsense"])
def test_a_word_that_a_filter_does_not_know_is_refused(
    get: Callable[..., Any], query: str
) -> None:
    answer = get(f"/api/v1/{query}", "ada")
    assert answer.status_code == 400
    assert "It is one of" in answer.json()["detail"]
    assert get(f"/api/v1/{query.replace('nonsense', '')}", "ada").json() == []
