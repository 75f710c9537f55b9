"""Pages: right for the role, with data and without, the same rows as file, a fixed cost."""

import csv
import io
import json
from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from gpuplatform.common.pages import RAIL
from scheduling.models import Cycle, Node, UsageInterval, Workload
from tests.scheduling.loop import world
from tests.scheduling.loop.world import NOON

from .conftest import decide, finished

pytestmark = pytest.mark.django_db

LISTS = ("overview", "queues", "workloads", "nodes", "borrowing", "teams", "audit", "submit")
LISTS += ("flavors", "fair-share", "replays", "requests", "priority-classes")
MONEY = ("cost", "bills", "prices", "price-new", "price-calculator", "shared-costs")
MONEY += ("shared-cost-new", "failures")
OWN = ("people", "account", "account-password", "webhooks", "webhook-new", "settings")
NEW = (
    "quotas-edit",
    "queue-new",
    "cohort-new",
    "team-new",
    "team-onboard",
    "person-new",
    "flavor-new",
    "topology-new",
    "priority-class-new",
)
# What an empty list says, and where its reader goes on.
BEGINNINGS = {
    "overview": ("How to begin", "submit", "team-onboard", "queue-new", "price-new", "person-new"),
    "queues": ("No queue yet", "queue-new"),
    "workloads": ("No workload yet", "submit"),
    "nodes": ("No node yet", "submit"),
    "teams": ("No team yet", "team-onboard"),
    "people": ("1 person has an account", "person-new"),
    "requests": ("Nobody has asked for quota yet", "request-new"),
    "fair-share": ("No cohort shares anything yet", "cohort-new"),
    "replays": ("Nothing was replayed yet", "replay-new"),
    "borrowing": ("Nothing has been borrowed yet",),
    "cost": ("Nothing is billed yet",),
    "bills": ("Nothing is billed yet",),
    "prices": ("No price is set yet", "price-new"),
    "budgets": ("No budget is set", "budget-new"),
    "drift": ("Nothing to compare yet",),
    "mappings": ("No mapping yet", "mapping-new"),
    "sources": ("No source is connected yet", "source-new"),
    "flavors": ("No flavor yet", "flavor-new", "topology-new"),
    "audit": ("Nothing has been changed yet",),
    "webhooks": ("No webhook yet", "webhook-new"),
    "account": ("No token yet",),
    "settings": ("None is connected", "source-new", "failures"),
}
EXPORTED = ("queues", "workloads", "nodes", "borrowing", "teams", "audit")


def details(platform):
    return [
        reverse("queue", args=["cq-datos"]),
        reverse("queue-edit", args=["cq-datos"]),
        reverse("cohort", args=["llm"]),
        reverse("cohort-edit", args=["llm"]),
        reverse("team", args=["datos"]),
        reverse("team-edit", args=["datos"]),
        reverse("node", args=["h100-node-01"]),
        reverse("flavor", args=["h100-sxm"]),
        reverse("flavor-edit", args=["h100-sxm"]),
        *(reverse("workload", args=[w.uid]) for w in (platform.train, platform.later)),
    ]


@pytest.mark.parametrize("name", [*LISTS, *NEW, *MONEY, *OWN])
def test_a_page_is_there_when_there_is_nothing_yet(ada, signed_in, name):
    answer = signed_in(ada).get(reverse(name))
    assert answer.status_code == 200
    assert "<h1" in answer.text


@pytest.mark.parametrize("name", BEGINNINGS)
def test_an_empty_list_says_so_and_how_to_begin(ada, signed_in, name):
    words, *doors = BEGINNINGS[name]
    text = signed_in(ada).get(reverse(name)).text
    main = text[text.index("<main") :]
    assert words in main
    assert [door for door in doors if f'href="{reverse(door)}' not in main] == []


def test_every_page_of_the_rail_has_its_beginning():
    rail = {item.name for item in RAIL}
    assert rail - {"submit"} <= set(BEGINNINGS)


@pytest.mark.parametrize("name", [*LISTS, *MONEY, "account"])
def test_an_empty_platform_is_no_error_for_anybody(cast, signed_in, name):
    for person in vars(cast).values():
        assert signed_in(person).get(reverse(name)).status_code in {200, 403, 404}


@pytest.mark.parametrize("name", [*LISTS, *NEW, *MONEY, *OWN])
def test_a_page_shows_what_there_is(platform, ada, signed_in, name):
    assert signed_in(ada).get(reverse(name)).status_code == 200


def test_every_detail_page_is_there_for_an_admin(platform, ada, signed_in):
    browser = signed_in(ada)
    assert {path: browser.get(path).status_code for path in details(platform)} == dict.fromkeys(
        details(platform), 200
    )


@pytest.mark.parametrize("name", [*LISTS, *NEW, *MONEY, *OWN])
def test_strangers_are_asked_to_sign_in(client, db, name):
    answer = client.get(reverse(name))
    assert (answer.status_code, answer["Location"].split("?")[0]) == (302, "/login/")


def test_somebody_without_a_team_sees_whom_to_ask(platform, eve, signed_in):
    browser = signed_in(eve)
    assert "Ask the lead of your team" in browser.get(reverse("queues")).text
    assert browser.get(reverse("submit")).status_code == 403
    assert "cq-datos" not in browser.get(reverse("overview")).text


# ---- the sentences -----------------------------------------------------------------------------
def test_the_overview_speaks_of_the_platform_to_an_admin(platform, ada, signed_in):
    page = signed_in(ada).get(reverse("overview")).text
    assert "14 of 16 GPUs are in use and 4 more are wanted" in page
    assert "12 of 8 used, 4 borrowed" in page


def test_the_overview_speaks_of_their_own_teams_to_members(platform, lea, ian, signed_in):
    mine = signed_in(lea).get(reverse("overview")).text
    assert "Your teams use 8 of their 8 GPUs, borrow 4 and want 4 more" in mine
    assert "secret" not in mine
    other = signed_in(ian).get(reverse("overview")).text
    assert "Your teams use 2 of their 8 GPUs and wait for none" in other
    assert "train" not in other


def test_a_waiting_workload_says_why_with_numbers(platform, lea, signed_in):
    page = signed_in(lea).get(reverse("workload", args=[platform.later.uid])).text
    assert "BORROW_LIMIT" in page
    assert "asks <b>4 GPUs</b>" in page
    assert "missing 4" in page


def test_a_running_workload_names_its_nodes(platform, lea, signed_in):
    page = signed_in(lea).get(reverse("workload", args=[platform.train.uid])).text
    assert "train runs on 3 nodes" in page or "train is admitted to 3 nodes" in page
    assert "h100-node-0" in page
    assert "Began to borrow" in page


def test_zero_no_limit_and_unknown_are_told_apart(platform, ada, signed_in):
    page = signed_in(ada).get(reverse("queue", args=["cq-ia"])).text
    assert "no limit" in page
    assert "N/A" not in page


# ---- nobody else's rows ------------------------------------------------------------------------
def test_foreign_objects_are_not_there(platform, lea, signed_in):
    browser = signed_in(lea)
    foreign = [
        reverse("queue", args=["cq-ia"]),
        reverse("team", args=["ia"]),
        reverse("workload", args=[platform.secret.uid]),
    ]
    assert [browser.get(path).status_code for path in foreign] == [404, 404, 404]
    assert browser.post(reverse("workload-cancel", args=[platform.secret.uid])).status_code == 404


@pytest.mark.parametrize("name", [*LISTS, "chart-quota-use", "chart-borrowed"])
@pytest.mark.parametrize("form", ["", "?format=csv", "?format=json"])
def test_lists_and_files_hold_no_foreign_row(platform, cast, signed_in, name, form):
    for person, foreign in ((cast.lea, "secret"), (cast.ian, "later")):
        answer = signed_in(person).get(reverse(name) + form)
        if answer.status_code != 403:
            assert foreign not in answer.text


def test_a_node_shows_that_others_are_there_but_not_who(platform, ian, signed_in):
    browser = signed_in(ian)
    node = platform.train.admissions.get().placements.first().node
    assert "a workload of another team" in browser.get(reverse("node", args=[node])).text
    assert "others" in browser.get(reverse("nodes")).text


def test_a_lender_sees_the_loan_but_not_the_borrowers_workload(platform, ian, signed_in):
    page = signed_in(ian).get(reverse("borrowing")).text
    assert "cq-datos" in page
    assert "of another team" in page


@pytest.mark.parametrize("name", NEW)
def test_only_admins_edit_promises(platform, cast, signed_in, name):
    codes = {
        who: signed_in(getattr(cast, who)).get(reverse(name)).status_code
        for who in ("ada", "lea", "ian", "fin", "aud", "eve")
    }
    assert codes == {"ada": 200, "lea": 403, "ian": 403, "fin": 403, "aud": 403, "eve": 403}


# ---- files -------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", EXPORTED)
def test_the_two_files_hold_the_same_rows(platform, ada, signed_in, name):
    browser = signed_in(ada)
    table = list(csv.DictReader(io.StringIO(browser.get(reverse(name) + "?format=csv").text)))
    objects = json.loads(browser.get(reverse(name) + "?format=json").text)
    assert len(table) == len(objects)
    assert not objects or list(table[0]) == list(objects[0])


def test_a_file_has_the_rows_of_the_filter_and_all_of_them(platform, ada, signed_in):
    finished("ia", 60)
    browser = signed_in(ada)
    path = reverse("workloads") + "?format=csv"
    assert len(browser.get(path).text.splitlines()) == 1 + 63
    assert len(browser.get(path + "&state=pending").text.splitlines()) == 1 + 1
    assert len(browser.get(path + "&queue=cq-datos").text.splitlines()) == 1 + 2


def test_no_cell_of_a_file_starts_a_formula(platform, ada, signed_in):
    Workload.objects.filter(pk=platform.later.pk).update(name="=HYPERLINK(1)")
    text = signed_in(ada).get(reverse("workloads") + "?format=csv").text
    assert ",'=HYPERLINK(1)," in text


def test_the_quota_file_shows_the_engines_numbers(platform, ada, signed_in):
    rows = json.loads(signed_in(ada).get(reverse("queues") + "?format=json").text)
    (datos,) = [row for row in rows if row["name"] == "cq-datos"]
    shown = {k: datos[k] for k in ("nominal", "used", "borrowed", "lent", "ceiling", "available")}
    assert shown == {
        "nominal": 8,
        "used": 12,
        "borrowed": 4,
        "lent": 0,
        "ceiling": 12,
        "available": 0,
    }


# ---- live, and robust --------------------------------------------------------------------------
@pytest.mark.parametrize(
    "query",
    [
        "page=abc",
        "page=999999",
        "state=nonsense",
        "team=nobody",
        "sort=nonsense",
        "q=%00%27",
        "borrower=%00",
    ],
)
def test_a_nonsensical_address_is_never_a_failure(platform, ada, signed_in, query):
    browser = signed_in(ada)
    for name in ("workloads", "queues", "nodes", "borrowing", "audit", "teams"):
        code = 400 if "%00" in query else 200
        assert browser.get(f"{reverse(name)}?{query}").status_code == code


def test_pages_are_answered_for_names_that_do_not_exist(ada, signed_in):
    browser = signed_in(ada)
    for name in ("queue", "queue-edit", "cohort", "cohort-edit", "team", "team-edit", "node"):
        assert browser.get(reverse(name, args=["nothing"])).status_code == 404


def test_a_name_with_a_nul_is_no_request(ada, signed_in):
    assert signed_in(ada).get("/queues/%00/").status_code == 400


def test_no_page_allows_a_foreign_script(platform, ada, signed_in):
    answer = signed_in(ada).get(reverse("overview"))
    assert "default-src 'self'" in answer["Content-Security-Policy"]
    assert "unsafe-eval" not in answer["Content-Security-Policy"]


# ---- a fixed number of queries -----------------------------------------------------------------
def queries_of(browser, path):
    browser.get(path)  # the first one may fill a cache of the session
    with CaptureQueriesContext(
        connection,
    ) as seen:
        assert browser.get(path).status_code == 200
    return len(seen)


@pytest.mark.parametrize(
    "path",
    [
        *(f"/{name}/" for name in ("queues", "workloads", "nodes", "borrowing", "teams", "audit")),
        "/",
        "/queues/cq-datos/",
        "/cohorts/llm/",
        "/teams/datos/",
        "/nodes/h100-node-01/",
        "/charts/quota-use/",
        "/charts/borrowed/",
        "/workloads/?format=csv",
        "/borrowing/?format=json",
    ],
)
def test_the_number_of_queries_does_not_grow_with_the_rows(platform, ada, signed_in, path):
    browser = signed_in(ada)
    before = queries_of(browser, path)
    for name in ("vision", "speech", "bio"):
        world.queue(name, 4, cohort="llm", borrowing_limit=8)
        world.work(name, "train", pods=2, gpus=3)
        world.work(name, "waits", pods=9, gpus=4)
    finished("datos", 10)
    Node.objects.bulk_create(
        Node(name=f"more-{n}", labels={"accelerator": world.FLAVOR}, allocatable={world.GPU: 8})
        for n in range(6)
    )
    decide()
    assert UsageInterval.objects.count() > 4
    assert queries_of(browser, path) == before


def test_the_story_of_a_workload_costs_the_same_however_long(platform, ada, signed_in):
    browser, path = signed_in(ada), reverse("workload", args=[platform.train.uid])
    before = queries_of(browser, path)
    for _ in range(10):
        platform.train.events.create(kind="evicted", reason="Preempted", other=platform.secret)
    assert queries_of(browser, path) == before


# ---- acting ------------------------------------------------------------------------------------
def test_a_member_cancels_a_workload_of_the_team(platform, lea, signed_in):
    answer = signed_in(lea).post(
        reverse("workload-cancel", args=[platform.later.uid]), follow=True
    )
    assert "later is cancelled." in answer.text
    platform.later.refresh_from_db()
    assert (platform.later.status, platform.later.outcome) == ("finished", "cancelled")


def test_cancelling_twice_says_so_and_changes_nothing(platform, lea, signed_in):
    browser, path = signed_in(lea), reverse("workload-cancel", args=[platform.later.uid])
    browser.post(path)
    assert browser.post(path, follow=True).status_code == 200


def test_an_auditor_sees_a_workload_but_may_not_cancel_it(platform, aud, signed_in):
    browser = signed_in(aud)
    assert browser.get(reverse("workload", args=[platform.later.uid])).status_code == 200
    assert browser.post(reverse("workload-cancel", args=[platform.later.uid])).status_code == 403


def test_an_admin_cordons_a_node_with_a_reason(platform, ada, lea, signed_in):
    path = reverse("node-cordon", args=["h100-node-01"])
    assert signed_in(lea).post(path, {"cordoned": "yes"}).status_code == 403
    browser = signed_in(ada)
    assert browser.post(path, {"cordoned": "yes", "reason": "short"}).status_code == 422
    assert Node.objects.get(name="h100-node-01").schedulable
    answer = browser.post(path, {"cordoned": "yes", "reason": "Replacing a fan"}, follow=True)
    assert "h100-node-01 is cordoned." in answer.text
    assert not Node.objects.get(name="h100-node-01").schedulable
    browser.post(path, {"cordoned": "no", "reason": "The fan is replaced"})
    assert Node.objects.get(name="h100-node-01").schedulable


def test_health_needs_no_sign_in(client, db):
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json()["database"] == "ok"


@pytest.mark.parametrize(
    ("age", "cycle"), [(None, "none"), (0, "ok"), (30, "ok"), (31, "late"), (-5, "ok")]
)
def test_readiness_tells_how_long_ago_a_cycle_ran(client, db, age, cycle):
    with time_machine.travel(NOON, tick=False):
        if age is not None:
            Cycle.objects.create(at=NOON - timedelta(seconds=age), fence=1, holder="x")
        answer = client.get("/readyz")
    shown = None if age is None else max(0, age)
    assert (answer.status_code, answer.json()["cycle"]) == (200, cycle)
    assert answer.json()["last_cycle_age_s"] == shown
