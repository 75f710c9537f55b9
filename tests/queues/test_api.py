"""REST of the promises: own rows only, a version for every change, and what is read fits back."""

import pytest
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from queues import services
from queues.models import ClusterQueue, Cohort, FlavorQuota, ResourceFlavor, Topology
from queues.specs import CohortSpec, FlavorSpec, LocalQueueSpec, TopologySpec
from tests.queues.promises import GPU, queue
from tests.queues.test_services import RICH_QUEUE

pytestmark = [pytest.mark.django_db, pytest.mark.urls("queues.api_urls")]
BODY = {
    "cohort": "llm-platform",
    "namespace_selector": None,
    "groups": [
        {
            "resources": [GPU, "memory"],
            "flavors": [
                {
                    "flavor": "h100-sxm",
                    "quotas": [
                        {"resource": GPU, "nominal": 16, "borrowing_limit": "8"},
                        {"resource": "memory", "nominal": "512Gi"},
                    ],
                }
            ],
        }
    ],
}


@pytest.fixture
def promises(datos, ia):
    services.save_flavor(FlavorSpec("h100-sxm", {"a": "b"}), actor=None)
    services.save_cohort(CohortSpec("llm-platform"), actor=None)
    services.save_cluster_queue(queue(team="datos"), actor=None)
    services.save_cluster_queue(queue(name="cq-ia", team="ia", cohort="other"), actor=None)
    services.save_local_queue(LocalQueueSpec("ns-datos", "lq", "cq-datos"), actor=None)


@pytest.fixture
def rest():
    def client_of(user):
        client = APIClient()
        client.force_authenticate(user)
        return client

    return client_of


def names(response):
    return [row["name"] for row in response.json()["results"]]


LISTS = {
    "/teams/": {"ada": ["datos", "ia"], "lea": ["datos"], "eve": []},
    "/cluster-queues/": {"ada": ["cq-datos", "cq-ia"], "lea": ["cq-datos"], "eve": []},
    "/cohorts/": {"ada": ["llm-platform", "other"], "lea": ["llm-platform"], "eve": []},
    "/local-queues/": {"ada": ["lq"], "lea": ["lq"], "ian": [], "eve": []},
    "/flavors/": {"ada": ["h100-sxm"], "eve": ["h100-sxm"]},
}


@pytest.mark.parametrize("path", LISTS)
def test_lists_hold_own_rows_only(promises, cast, rest, path):
    for name, expected in LISTS[path].items():
        assert names(rest(getattr(cast, name)).get(path)) == expected


@pytest.mark.parametrize(
    "path", ["/teams/ia/", "/cluster-queues/cq-ia/", "/cohorts/other/", "/flavors/none/"]
)
def test_a_foreign_object_is_not_there(promises, lea, rest, path):
    assert rest(lea).get(path).status_code == 404
    assert rest(lea).put(path, BODY, format="json").status_code in {404, 405}


def test_a_foreign_local_queue_is_not_there(promises, lea, ian, rest):
    assert rest(lea).get("/local-queues/ns-datos/lq/").json()["cluster_queue"] == "cq-datos"
    assert rest(ian).get("/local-queues/ns-datos/lq/").status_code == 404


def test_strangers_are_asked_to_sign_in(promises):
    assert APIClient().get("/teams/").status_code == 401


def test_pages_of_a_list(promises, ada, rest):
    first = rest(ada).get("/cluster-queues/?limit=1")
    second = rest(ada).get(first.json()["next"])
    assert (names(first), names(second)) == (["cq-datos"], ["cq-ia"])
    assert second.json()["next"] is None


def test_local_queues_of_one_name_are_all_on_the_pages(promises, ada, rest):
    for namespace in ("ns-a", "ns-b", "ns-c"):
        services.save_local_queue(LocalQueueSpec(namespace, "lq", "cq-datos"), actor=None)
    seen, path = [], "/local-queues/?limit=1"
    while path:
        page = rest(ada).get(path).json()
        seen += [row["namespace"] for row in page["results"]]
        path = page["next"]
    assert seen == ["ns-a", "ns-b", "ns-c", "ns-datos"]


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("query", ["team=ia", "offset=1", "limit=0", "limit=501", "limit=x"])
def test_a_parameter_that_means_nothing_here_is_refused(promises, ada, rest, path, query):
    response = rest(ada).get(f"{path}?{query}")
    assert response.status_code == 400
    assert [e["pointer"] for e in response.json()["errors"]] == [f"/{query.partition('=')[0]}"]


def test_a_lists_queries_do_not_grow_with_its_rows(
    promises, ada, rest, django_assert_max_num_queries
):
    for number in range(10):
        services.save_cluster_queue(queue(name=f"cq-{number}"), actor=None)
    with django_assert_max_num_queries(5):
        rest(ada).get("/cluster-queues/")
    with django_assert_max_num_queries(6):
        rest(ada).get("/cohorts/")


def test_what_is_read_can_be_sent_back_unchanged(ada, rest):
    services.save_cluster_queue(RICH_QUEUE, actor=None)
    client = rest(ada)
    first = client.get("/cluster-queues/cq-datos/")
    headers = {"If-Match": first["ETag"]}
    again = client.put("/cluster-queues/cq-datos/", first.json(), format="json", headers=headers)
    assert again.status_code == 200, again.content
    warnings = again.json()["warnings"]
    assert [(w["code"], w["severity"]) for w in warnings] == [
        ("COHORT_IMPLICIT", "warning"),
        ("FAIR_WEIGHT_KEPT", "info"),
        ("UNKNOWN_RESOURCE", "warning"),
    ]
    assert again.json() == first.json() | {"warnings": warnings}
    assert again["ETag"] == '"v1"'


def test_a_weight_counts_where_the_top_cohort_is_fair(ada, rest):
    services.save_cohort(CohortSpec("llm-platform", "top"), actor=None)
    services.save_cohort(CohortSpec("top", fairness="share"), actor=None)
    services.save_cluster_queue(RICH_QUEUE, actor=None)
    client = rest(ada)
    first = client.get("/cluster-queues/cq-datos/")
    headers = {"If-Match": first["ETag"]}
    again = client.put("/cluster-queues/cq-datos/", first.json(), format="json", headers=headers)
    assert again.status_code == 200
    # No node has the licence; and a tree that shares does not look at the right to evict.
    told = [warning["code"] for warning in again.json()["warnings"]]
    assert told == ["UNKNOWN_RESOURCE", "BORROW_WITHIN_COHORT_UNUSED"]


def test_a_queue_is_made_and_changed(ada, rest):
    client = rest(ada)
    made = client.put("/cluster-queues/cq-new/", BODY, format="json")
    assert (made.status_code, made["ETag"]) == (201, '"v1"')
    cells = made.json()["groups"][0]["flavors"][0]["quotas"]
    assert [(cell["nominal"], cell["borrowing_limit"]) for cell in cells] == [
        ("16", "8"),
        ("512Gi", None),
    ]
    changed = client.put(
        "/cluster-queues/cq-new/",
        made.json() | {"stop_policy": "Hold"},
        format="json",
        headers={"If-Match": '"v1"'},
    )
    assert (changed.status_code, changed["ETag"]) == (200, '"v2"')
    assert FlavorQuota.objects.filter(resource="memory").get().nominal == 512 * 1024**3


@pytest.mark.parametrize("path", ["/cluster-queues/cq-datos/", "/cohorts/llm-platform/"])
def test_a_change_needs_the_version_that_was_seen(promises, ada, rest, path):
    response = rest(ada).put(path, {}, format="json")
    assert response.status_code == 428


def test_a_change_of_an_old_version_is_refused(promises, ada, rest):
    headers = {"If-Match": '"v9"'}
    client = rest(ada)
    body = client.get("/cluster-queues/cq-datos/").json()
    response = client.put("/cluster-queues/cq-datos/", body, format="json", headers=headers)
    assert response.status_code == 412
    assert ClusterQueue.objects.get(name="cq-datos").version == 1


def test_an_admin_may_overwrite_whatever_is_there(promises, ada, rest):
    headers = {"If-Match": "*"}
    client = rest(ada)
    body = client.get("/cohorts/llm-platform/").json()
    response = client.put("/cohorts/llm-platform/", body, format="json", headers=headers)
    assert response.status_code == 200


def test_a_lead_sees_the_queue_but_may_not_change_it(promises, lea, rest):
    path, headers = "/cluster-queues/cq-datos/", {"If-Match": '"v1"'}
    assert rest(lea).put(path, BODY, format="json", headers=headers).status_code == 403
    assert rest(lea).put("/cohorts/new/", {}, format="json").status_code == 404
    assert not Cohort.objects.filter(name="new").exists()


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ({"resource": GPU, "nominal": "-1"}, "NEGATIVE"),
        ({"resource": GPU, "nominal": "lots"}, "BAD_QUANTITY"),
        ({"resource": GPU, "nominal": "1", "lending_limit": "2"}, "lending_above_nominal"),
    ],
)
def test_bad_amounts_are_named_and_nothing_changes(ada, rest, cell, code):
    groups = [{"resources": [GPU], "flavors": [{"flavor": "f", "quotas": [cell]}]}]
    body = {"cohort": "llm", "namespace_selector": None, "groups": groups}
    response = rest(ada).put("/cluster-queues/cq/", body, format="json")
    assert response.status_code == 422
    (error,) = response.json()["errors"]
    assert error["code"] == code
    assert error["pointer"].startswith("/groups/0/flavors/0/quotas/0/")
    assert not ClusterQueue.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"groups": {}},
        {"groups": [{}]},
        {"fair_weight": "NaN"},
        {"preemption": 1},
        {"colour": "green"},
        {"preemption": {"colour": "green"}},
    ],
)
def test_a_body_of_the_wrong_shape_is_refused(ada, rest, body):
    response = rest(ada).put("/cluster-queues/cq/", body, format="json")
    assert response.status_code == 422
    assert not ClusterQueue.objects.exists()


def test_the_schema_names_every_address_without_a_complaint(capsys):
    generator = SchemaGenerator(urlconf="queues.api_urls")
    schema = generator.get_schema(request=None, public=True)
    assert len(schema["paths"]) == 16
    assert {method for path in schema["paths"].values() for method in path} == {
        "get",
        "put",
        "delete",
    }
    assert capsys.readouterr().err == ""


# ---- flavors and topologies ---------------------------------------------------------------------
@pytest.mark.parametrize("policy", ["binpack", "spread"])
def test_a_flavor_is_read_and_put_back_with_another_policy(ada, rest, promises, policy):
    client = rest(ada)
    first = client.get("/flavors/h100-sxm/")
    assert first.json()["policy"] == "fragmentation"
    again = client.put(
        "/flavors/h100-sxm/",
        first.json() | {"policy": policy},
        format="json",
        headers={"If-Match": first["ETag"]},
    )
    assert (again.status_code, again.json()["policy"], again["ETag"]) == (200, policy, '"v2"')


def test_a_change_of_a_flavor_says_everything_and_a_new_one_its_labels(ada, rest, promises):
    client = rest(ada)
    body = {"node_labels": {"kind": "l40s"}}
    answer = client.put("/flavors/l40s/", body, format="json")
    assert (answer.status_code, answer.json()["policy"]) == (201, "fragmentation")
    answer = client.put("/flavors/l40s/", body, format="json", headers={"If-Match": "v1"})
    missing = {problem["pointer"] for problem in answer.json()["errors"]}
    assert missing == {"/node_taints", "/tolerations", "/topology", "/policy"}
    body |= {"policy": "luck"}
    answer = client.put("/flavors/l4/", body, format="json")
    assert [(e["pointer"], e["code"]) for e in answer.json()["errors"]] == [
        ("/policy", "BAD_VALUE")
    ]


def test_a_topology_is_put_and_read_back(ada, rest):
    client = rest(ada)
    levels = ["example.com/block", "kubernetes.io/hostname"]
    assert client.put("/topologies/dc/", {"levels": levels}, format="json").status_code == 201
    assert client.get("/topologies/dc/").json() == {"name": "dc", "levels": levels, "version": 1}
    answer = client.put(
        "/topologies/dc/", {"levels": [""]}, format="json", headers={"If-Match": "*"}
    )
    assert answer.status_code == 422


PUTS = {
    "/cluster-queues/cq-datos/": ClusterQueue,
    "/cohorts/llm-platform/": Cohort,
    "/flavors/h100-sxm/": ResourceFlavor,
    "/topologies/dc/": Topology,
}


@pytest.mark.parametrize("path", PUTS)
def test_a_dry_run_answers_and_keeps_nothing(ada, rest, promises, path):
    client = rest(ada)
    services.save_topology(TopologySpec("dc", ("rack", "kubernetes.io/hostname")), actor=None)
    body = client.get(path).json()
    body |= {
        "/cluster-queues/cq-datos/": {"stop_policy": "Hold", "groups": []},
        "/cohorts/llm-platform/": {"fairness": "share"},
        "/flavors/h100-sxm/": {"policy": "spread"},
        "/topologies/dc/": {"levels": ["block", "kubernetes.io/hostname"]},
    }[path]
    answer = client.put(f"{path}?dry_run=All", body, format="json", headers={"If-Match": "*"})
    assert (answer.status_code, answer.json()["dry_run"]) == (200, True)
    assert {k: answer.json()[k] for k in body if k != "version"} == {
        k: v for k, v in body.items() if k != "version"
    }
    assert [row.version for row in PUTS[path].objects.filter(name=body["name"])] == [1]
    refused = client.put(f"{path}?dry_run=yes", body, format="json", headers={"If-Match": "*"})
    assert refused.status_code == 400
