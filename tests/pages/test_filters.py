"""A filter that is not understood shows nothing and says so; it never answers with all rows."""

import pytest
from django.urls import reverse

pytestmark = pytest.mark.django_db

LISTS = ("workloads", "borrowing", "evictions", "audit")
WRONG = [
    *((name, "nonsense=1", "nonsense") for name in LISTS),
    ("workloads", "state=impossible", "impossible"),
    ("workloads", "team=nope", "nope"),
    ("workloads", "queue=nope", "nope"),
    ("borrowing", "open=maybe", "maybe"),
    ("evictions", "days=8", "8"),
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


@pytest.mark.parametrize("query", ["status=pending", "state=pending", "name=late", "q=late"])
def test_the_list_of_workloads_knows_the_names_that_rest_has(platform, ada, signed_in, query):
    page = signed_in(ada).get(f"{reverse('workloads')}?{query}&sort=-gpus&page=1")
    assert [row.record.name for row in page.context["table"].page.object_list] == ["later"]
