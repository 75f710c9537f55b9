"""What a list says when it has nothing to show, and why: four answers that must not be mixed up.

Nothing exists yet (and how to begin), nothing matches the filter (and how to clear it), you may
see none (and whom to ask), or what stands here is old or could not be had.
"""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from finops.models import Fetch, Source
from gpuplatform.common.leases import CYCLE
from gpuplatform.common.models import Lease
from gpuplatform.common.pages import RAIL
from scheduling.models import Cycle

pytestmark = pytest.mark.django_db
NO_MATCH = "Nothing here matches the filter."
# Lists beyond the rail, whose beginnings stand in test_pages: words of the empty page, next step.
BEGINNINGS = {
    "alerts": ("Promises and machines agree",),
    "evictions": ("Nobody was evicted in this window",),
    "priority-classes": ("No priority has a name yet", "priority-class-new"),
    "agents": ("No agent has said hello yet",),
    "admission-checks": ("Nothing is asked before work starts",),
    "quotas-edit": ("No queue is promised any GPU here", "queue-new"),
    "gpu-hours": ("Nothing was held in this window",),
    "shared-costs": ("Nothing is shared yet", "shared-cost-new"),
    "token-prices": ("No model yet", "mapping-new"),
    "failures": ("Nothing failed in the last 14 days",),
    "search": ("Type something",),
}
# A filter that nothing matches, and what the page must not say then.
FILTERS = {
    "workloads": ("q=zebra", "No workload yet"),
    "people": ("q=zebra", "0 people have an account"),
    "audit": ("q=zebra", "Nothing has been changed yet"),
    "requests": ("state=declined", "Nobody has asked for quota yet"),
    "borrowing": ("borrower=zebra", "Nothing has been borrowed yet"),
    "evictions": ("team=ia&reason=Preempted", "Nobody was evicted in this window"),
    "queues": ("q=zebra", "No queue yet"),
    "nodes": ("state=cordoned", "No node yet"),
    "quotas-edit": ("team=zebra", "No queue is promised any GPU here"),
    "mappings": ("q=zebra", "No mapping yet"),
    "prices": ("subject=zebra", "No price is set yet"),
}
# Somebody without the right, and the address: a page of its own says who can help.
TURNED_AWAY = {
    "people": ("lea", 403),
    "person-new": ("lea", 403),
    "queue-new": ("lea", 403),
    "quotas-edit": ("lea", 403),
    "replays": ("lea", 403),
    "agents": ("lea", 403),
    "admission-checks": ("lea", 403),
    "submit": ("eve", 403),
    "audit": ("ian", 403),
    "webhooks": ("ian", 403),
    "bills": ("eve", 404),
    "cost": ("ian", 404),
    "prices": ("ian", 404),
    "sources": ("lea", 404),
    "drift": ("lea", 404),
    "failures": ("lea", 404),
}


def main_of(answer):
    """Return the page without frame, as a reader sees it."""
    text = answer.text
    start = text.find("<main")
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text[start:])).split())


@pytest.mark.parametrize("name", BEGINNINGS)
def test_an_empty_list_says_that_nothing_is_there_yet(ada, signed_in, name):
    words, *doors = BEGINNINGS[name]
    answer = signed_in(ada).get(reverse(name))
    assert words in main_of(answer)
    assert NO_MATCH not in answer.text
    assert [door for door in doors if f'href="{reverse(door)}' not in answer.text] == []


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_that_nothing_matches_says_so_and_can_be_cleared(platform, ada, signed_in, name):
    query, never = FILTERS[name]
    answer = signed_in(ada).get(f"{reverse(name)}?{query}")
    assert answer.status_code == 200
    assert NO_MATCH in main_of(answer)
    assert never not in main_of(answer)
    cleared = re.search(r'href="([^"]*)">Clear filter</a></div>', answer.text)
    assert cleared[1] == reverse(name)


def test_every_page_that_can_be_filtered_is_in_the_table(platform, ada, signed_in):
    """A form of filters with a free choice; the others have no choice that matches nothing."""
    browser = signed_in(ada)
    always_something = {"fair-share", "teams", "cost", "bills", "overview"}
    for item in RAIL:
        page = browser.get(reverse(item.name)).text
        filters = re.findall(r'<form class="filters"[^>]*(?:data-auto|method="get")', page)
        if filters and item.name not in always_something:
            assert item.name in FILTERS, item.name


@pytest.mark.parametrize("name", TURNED_AWAY)
def test_who_is_turned_away_reads_whom_to_ask(platform, cast, signed_in, name):
    who, code = TURNED_AWAY[name]
    answer = signed_in(getattr(cast, who)).get(reverse(name))
    assert answer.status_code == code
    assert "platform admin" in main_of(answer)
    assert "lead of th" in main_of(answer)  # of the, of that team
    assert f"Request {answer['X-Request-ID']}" in main_of(answer)


# ---- what is old -------------------------------------------------------------------------------
def beat(seconds_ago):
    """Let somebody have decided so long ago for the last time."""
    at = timezone.now() - timedelta(seconds=seconds_ago)
    Cycle.objects.update(at=at)
    Lease.objects.filter(name__startswith=CYCLE).update(until=at)


def test_the_overview_says_when_nobody_decides_any_more(platform, cast, signed_in):
    for person in (cast.ada, cast.lea):
        browser = signed_in(person)
        beat(seconds_ago=5)
        assert "Nobody has decided for" not in browser.get("/").text
        beat(seconds_ago=600)
        assert "Nobody has decided for 10 min" in main_of(browser.get("/"))


@pytest.mark.parametrize("name", ["overview", "queues", "workloads", "nodes", "borrowing"])
def test_a_live_page_says_as_of_when_and_what_it_says_without_a_connection(
    platform, ada, signed_in, name
):
    text = signed_in(ada).get(reverse(name)).text
    assert re.search(r'data-live="[a-z: -]+"', text)
    assert re.search(r'class="asof">.*?as of <time', text)
    assert 'role="status" data-behind="This page has lost its connection' in text


# ---- what could not be had ---------------------------------------------------------------------
def test_a_source_that_fails_says_so_on_its_page_and_among_the_failures(ada, signed_in):
    today = timezone.now().date()
    source = Source.objects.create(
        name="opencost", kind="opencost", plane="cost", first_day=today, time_zone="UTC"
    )
    Fetch.objects.create(source=source, day=today, outcome="failed", code="SOURCE_NO_DATA")
    browser = signed_in(ada)
    assert "opencost" in main_of(browser.get(reverse("failures")))
    assert "No reading failed" not in browser.get(reverse("failures")).text


def test_a_page_that_breaks_names_the_request_and_how_to_try_again(ada, monkeypatch):
    def broken(*_args, **_kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr("scheduling.views.load_overview", broken)
    browser = Client(raise_request_exception=False)
    browser.force_login(ada)
    answer = browser.get("/?cohort=llm")
    assert answer.status_code == 500
    assert f"Request {answer['X-Request-ID']}" in main_of(answer)
    assert 'href="/?cohort=llm">Try again</a>' in answer.text
    assert "ZeroDivisionError" not in answer.text
