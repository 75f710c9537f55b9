"""The one search field: everything that its reader may open, and nothing else."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

pytestmark = pytest.mark.django_db


def found(browser, text):
    return browser.get("/search/", {"q": text}, headers={"HX-Request": "true"}).text


@pytest.mark.parametrize(
    ("text", "href"),
    [
        ("later", "/workloads/{later}/"),
        ("ns-datos", "/workloads/{train}/"),
        ("{later}", "/workloads/{later}/"),
        ("{later_head}", "/workloads/{later}/"),
        ("CQ-DATOS", "/queues/cq-datos/"),
        ("llm", "/cohorts/llm/"),
        ("datos", "/teams/datos/"),
        ("node-02", "/nodes/h100-node-02/"),
        ("h100-sxm", "/flavors/h100-sxm/"),
        ("lea", "/people/lea/edit/"),
        ("borrow", "/borrowing/"),
    ],
)
@pytest.mark.usefixtures("lea")
def test_a_name_leads_to_its_page(platform, ada, signed_in, text, href):
    words = {
        "later": platform.later.uid,
        "train": platform.train.uid,
        "later_head": str(platform.later.uid)[:9],
    }
    assert f'href="{href.format(**words)}"' in found(signed_in(ada), text.format(**words))


def test_a_member_finds_what_is_theirs_and_nothing_of_others(platform, lea, signed_in):
    browser = signed_in(lea)
    assert "/workloads/" in found(browser, "later")
    for text in ("secret", "cq-ia", "ns-ia", str(platform.secret.uid), "lea"):
        answer = found(browser, text)
        assert "href" not in answer or "/teams/" in answer, text
        assert str(platform.secret.uid) not in answer.replace(f"“{text}”", "")


def test_states_are_told_in_the_language_of_the_page(platform, ada, signed_in):
    headers = {"HX-Request": "true", "Accept-Language": "de"}
    page = signed_in(ada).get("/search/", {"q": "later"}, headers=headers).text
    assert "ns-datos, Wartend" in page


def test_nothing_found_says_what_was_looked_for(platform, ada, signed_in):
    assert "“&lt;b&gt;zebra”" in found(signed_in(ada), "<b>zebra")


@pytest.mark.parametrize("text", ["", " ", "%", "_" * 500, "'", "ZZZZ-ffff", "f" * 40])
def test_any_text_is_a_question(platform, ada, signed_in, text):
    assert signed_in(ada).get("/search/", {"q": text}).status_code == 200


def test_an_answer_costs_few_queries(platform, ada, signed_in):
    browser = signed_in(ada)
    found(browser, "a")
    with CaptureQueriesContext(connection) as queries:
        found(browser, "a")
    assert len(queries) <= 13  # four of them ask who is looking
