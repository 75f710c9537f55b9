"""A filter that is not understood shows nothing and says so; it never answers with all rows."""

import pytest
from django.urls import reverse

from scheduling.models import Node

pytestmark = pytest.mark.django_db

LISTS = ("workloads", "borrowing", "evictions", "audit", "queues", "fair-share", "nodes")
LISTS += ("teams", "people", "requests", "prices", "mappings")
WRONG = [
    *((name, "nonsense=1", "nonsense") for name in LISTS),
    ("workloads", "state=impossible", "impossible"),
    ("workloads", "team=nope", "nope"),
    ("workloads", "queue=nope", "nope"),
    ("borrowing", "open=maybe", "maybe"),
    ("evictions", "days=8", "8"),
    ("queues", "flavor=nope", "nope"),
    ("queues", "cohort=nope", "nope"),
    ("queues", "only=nope", "nope"),
    ("fair-share", "tree=nope", "nope"),
    ("nodes", "domain=nope", "nope"),
    ("nodes", "state=nope", "nope"),
    ("requests", "state=nope", "nope"),
    ("prices", "unit=nope", "nope"),
    ("mappings", "kind=nope", "nope"),
]


@pytest.mark.parametrize(("name", "query", "word"), WRONG)
def test_what_is_not_understood_is_said_and_no_row_is_shown(  # noqa: PLR0917 - a table
    platform, ada, signed_in, name, query, word
):
    browser = signed_in(ada)
    page = browser.get(f"{reverse(name)}?{query}")
    assert page.status_code == 200
    assert word in page.context["not_understood"]
    assert page.context["not_understood"] in page.text.replace("&#x27;", "'")
    assert "Nothing here matches the filter" not in page.text
    assert reverse("workload", args=[platform.train.uid]) not in page.text.split("<form")[-1]
    for kind in ("csv", "json"):
        answer = browser.get(f"{reverse(name)}?{query}&format={kind}")
        assert (answer.status_code, word in answer.text) == (400, True)


@pytest.mark.parametrize("name", ["cost-by", "gpu-hours"])
def test_cost_and_hours_are_not_shown_by_what_nobody_knows(platform, ada, signed_in, name):
    browser, address = signed_in(ada), f"{reverse(name)}?nonsense=1"
    page, file = browser.get(address), browser.get(f"{address}&format=csv")
    assert (page.status_code, "nonsense" in page.text, "<tbody" in page.text) == (422, True, False)
    assert (file.status_code, "nonsense" in file.text) == (400, True)


@pytest.mark.parametrize("query", ["status=pending", "state=pending", "name=late", "q=late"])
def test_the_list_of_workloads_knows_the_names_that_rest_has(platform, ada, signed_in, query):
    page = signed_in(ada).get(f"{reverse('workloads')}?{query}&sort=-gpus&page=1")
    assert [row.record.name for row in page.context["table"].page.object_list] == ["later"]


@pytest.mark.parametrize(
    ("query", "datos", "ia"),
    [
        ("q=cq-da", True, False),
        ("q=Ia", False, True),
        ("only=borrowing", True, False),
        ("only=waiting", True, False),
        ("only=stopped", False, False),
    ],
)
def test_the_tree_of_queues_is_narrowed_and_its_file_with_it(  # noqa: PLR0917 - a table
    platform, ada, signed_in, query, datos, ia
):
    browser = signed_in(ada)
    page = browser.get(f"{reverse('queues')}?{query}")
    tree = page.text.partition('id="who"')[0]
    found = [f'href="{reverse("queue", args=[name])}"' in tree for name in ("cq-datos", "cq-ia")]
    assert found == [datos, ia]
    assert ("Nothing here matches the filter" in page.text) is not (datos or ia)
    rows = browser.get(f"{reverse('queues')}?{query}&format=json").json()
    assert {row["name"] for row in rows} == {
        name for name, is_there in (("cq-datos", datos), ("cq-ia", ia)) if is_there
    }


@pytest.mark.parametrize(
    ("query", "count"), [("state=ready", 3), ("state=cordoned", 1), ("team=datos", 3)]
)
def test_nodes_are_narrowed_and_their_file_with_them(platform, ada, signed_in, query, count):
    Node.objects.filter(name="h100-node-03").update(schedulable=False)
    browser = signed_in(ada)
    page = browser.get(f"{reverse('nodes')}?{query}")
    rows = browser.get(f"{reverse('nodes')}?{query}&format=json").json()
    assert [row.node.name for row in page.context["rows"]] == [row["node"] for row in rows]
    assert len(rows) == count
