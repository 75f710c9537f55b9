"""PUT says the whole wanted state: nothing is assumed, nothing is bent into shape."""

import pytest
from rest_framework.test import APIClient

from queues import services
from queues.forms.quotas import QuotaRowForm
from queues.models import ClusterQueue, Cohort
from queues.specs import CohortSpec
from tests.queues.promises import GPU
from tests.queues.test_services import RICH_QUEUE

pytestmark = [pytest.mark.django_db, pytest.mark.urls("queues.api_urls")]
QUEUE, COHORT = "/cluster-queues/cq-datos/", "/cohorts/llm-platform/"


@pytest.fixture
def client(ada):
    client = APIClient()
    client.force_authenticate(ada)
    return client


@pytest.fixture
def rich(datos):
    services.save_cohort(CohortSpec("llm-platform"), actor=None)
    services.save_cluster_queue(RICH_QUEUE, actor=None)


def put(client, path, body, seen="*"):
    return client.put(path, body, format="json", headers={"If-Match": seen} if seen else {})


def found(response):
    return {(error["pointer"], error["code"]) for error in response.json()["errors"]}


OF_QUEUES = (
    "cohort groups namespace_selector queueing_strategy stop_policy fair_weight preemption"
    " reclaimable undeclared fungibility minimum_runtime_s yields_to_own admission_order"
    " priority_first carried"
)
OF_COHORTS = "parent groups fair_weight fairness reclaim_to quota_source"


@pytest.mark.parametrize(("path", "fields"), [(QUEUE, OF_QUEUES), (COHORT, OF_COHORTS)])
def test_an_empty_body_takes_nothing_away(rich, client, path, fields):
    before = client.get(path).json()
    expected = {(f"/{name}", "REQUIRED") for name in fields.split()}
    for response in (put(client, path, {}), client.put(path, headers={"If-Match": "*"})):
        assert (response.status_code, found(response)) == (422, expected)
    assert client.get(path).json() == before


@pytest.mark.parametrize("path", [QUEUE, COHORT])
def test_each_field_that_is_left_out_is_asked_for(rich, client, path):
    whole = client.get(path).json()
    for key in set(whole) - {"name", "version", "team"}:
        body = {name: value for name, value in whole.items() if name != key}
        assert found(put(client, path, body)) == {(f"/{key}", "REQUIRED")}


def test_something_new_needs_only_what_makes_the_promise(client):
    assert found(put(client, QUEUE, {}, "")) == {
        ("/cohort", "REQUIRED"),
        ("/groups", "REQUIRED"),
        ("/namespace_selector", "REQUIRED"),
    }
    body = {"cohort": None, "groups": [], "namespace_selector": None}
    assert put(client, QUEUE, body, "").status_code == 201
    assert found(put(client, COHORT, {}, "")) == {
        ("/parent", "REQUIRED"),
        ("/groups", "REQUIRED"),
    }


@pytest.mark.parametrize("path", [QUEUE, COHORT])
def test_the_name_in_the_body_is_that_of_the_address(rich, client, path):
    body = client.get(path).json() | {"name": "other"}
    assert found(put(client, path, body)) == {("/name", "NAME_DIFFERS")}


CELL = "/groups/0/flavors/0/quotas/0"


def groups(**cell):
    quotas = [{"resource": GPU, "nominal": 1, **cell}]
    return {"groups": [{"resources": [GPU], "flavors": [{"flavor": "f", "quotas": quotas}]}]}


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        ({"name": 7}, "/name", "BAD_TYPE"),
        ({"version": "1"}, "/version", "BAD_TYPE"),
        ({"cohort": 7}, "/cohort", "BAD_TYPE"),
        ({"team": 7}, "/team", "BAD_TYPE"),
        ({"stop_policy": 0}, "/stop_policy", "BAD_TYPE"),
        ({"stop_policy": None}, "/stop_policy", "REQUIRED"),
        ({"stop_policy": "Later"}, "/stop_policy", "BAD_VALUE"),
        ({"reclaimable": 0.0}, "/reclaimable", "BAD_TYPE"),
        ({"reclaimable": "true"}, "/reclaimable", "BAD_TYPE"),
        ({"reclaimable": 1}, "/reclaimable", "BAD_TYPE"),
        ({"fair_weight": "\uff11"}, "/fair_weight", "BAD_TYPE"),
        ({"fair_weight": "1_0"}, "/fair_weight", "BAD_TYPE"),
        ({"fair_weight": True}, "/fair_weight", "BAD_TYPE"),
        ({"fair_weight": -1}, "/fair_weight", "NEGATIVE"),
        ({"minimum_runtime_s": "3600"}, "/minimum_runtime_s", "BAD_TYPE"),
        ({"minimum_runtime_s": -1}, "/minimum_runtime_s", "NEGATIVE"),
        ({"minimum_runtime_s": 2**31}, "/minimum_runtime_s", "OUT_OF_RANGE"),
        ({"yields_to_own": "yes"}, "/yields_to_own", "BAD_TYPE"),
        ({"admission_order": "age"}, "/admission_order", "BAD_VALUE"),
        ({"fungibility": {}}, "/fungibility/preference", "REQUIRED"),
        ({"carried": []}, "/carried", "BAD_TYPE"),
        ({"namespace_selector": "x"}, "/namespace_selector", "BAD_TYPE"),
        (
            {"namespace_selector": {"matchLabels": {"a": 1}}},
            "/namespace_selector/matchLabels/a",
            "BAD_TYPE",
        ),
        (
            {"namespace_selector": {"matchExpressions": [{"key": 1, "operator": "Exists"}]}},
            "/namespace_selector/matchExpressions/0/key",
            "BAD_TYPE",
        ),
        ({"groups": {}}, "/groups", "BAD_TYPE"),
        ({"groups": None}, "/groups", "REQUIRED"),
        ({"groups": [7]}, "/groups/0", "BAD_TYPE"),
        (groups(resource=7), f"{CELL}/resource", "BAD_TYPE"),
        (groups(nominal=None), f"{CELL}/nominal", "REQUIRED"),
        (groups(nominal=True), f"{CELL}/nominal", "BAD_QUANTITY"),
        (groups(nominal="\uff11"), f"{CELL}/nominal", "BAD_QUANTITY"),
        (groups(nominal=1.5), f"{CELL}/nominal", "BAD_QUANTITY"),
        (groups(borrowing_limit="1n"), f"{CELL}/borrowing_limit", "BAD_QUANTITY"),
        (groups(lending_limit="-1"), f"{CELL}/lending_limit", "NEGATIVE"),
        (groups(colour="green"), f"{CELL}/colour", "UNKNOWN_FIELD"),
    ],
)
def test_nothing_is_bent_into_shape(rich, client, change, pointer, code):
    body = client.get(QUEUE).json()
    assert (pointer, code) in found(put(client, QUEUE, body | change))
    assert client.get(QUEUE).json() == body


@pytest.mark.parametrize("amount", ["1.5", "1n"])
def test_the_form_refuses_a_part_of_a_gpu_too(amount):
    data = {"flavor": "f", "resource": GPU, "nominal": amount}
    row = QuotaRowForm(data, flavors=[("f", "f")])
    assert not row.is_valid()
    assert "whole pieces" in str(row.errors["nominal"])


@pytest.mark.parametrize("value", [1.0, "100", True])
def test_a_threshold_is_a_whole_number(rich, client, value):
    body = client.get(QUEUE).json()
    body["preemption"]["max_priority_threshold"] = value
    pointer = "/preemption/max_priority_threshold"
    assert found(put(client, QUEUE, body)) == {(pointer, "BAD_TYPE")}


@pytest.mark.parametrize(
    ("path", "key"), [("/cluster-queues/new-one/", "cohort"), ("/cohorts/new-one/", "parent")]
)
def test_a_name_that_nobody_declared_is_told(client, path, key):
    body = {key: "mistyped", "groups": [], "namespace_selector": None}
    if key == "parent":
        del body["namespace_selector"]
    (warning,) = put(client, path, body, "").json()["warnings"]
    assert (warning["code"], warning["path"]) == ("COHORT_IMPLICIT", key)
    assert "mistyped" in warning["detail"]

    services.save_cohort(CohortSpec("mistyped"), actor=None)
    whole = client.get(path).json()
    assert put(client, path, whole).json()["warnings"] == []
    assert Cohort.objects.filter(name="mistyped").exists()


@pytest.mark.parametrize("seen", ["v1", '"v1"', " v1 "])
def test_a_version_without_quotation_marks_is_understood(rich, client, seen):
    body = client.get(QUEUE).json() | {"stop_policy": "None"}
    assert put(client, QUEUE, body, seen).status_code == 200
    assert put(client, QUEUE, body, seen).status_code == 412
    assert ClusterQueue.objects.get().version == 2


@pytest.mark.parametrize("seen", ['"v1', 'v1"', 'W/"v1"', "1", "v\u0661"])
def test_anything_else_is_no_version(rich, client, seen):
    body = client.get(QUEUE).json()
    assert put(client, QUEUE, body, seen.encode().decode("latin-1")).status_code == 412
