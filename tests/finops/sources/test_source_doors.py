"""Sources through their doors: rules, pages, REST, commands, the nightly task."""

from datetime import UTC, date, datetime, timedelta
from io import StringIO

import pytest
import time_machine
from django.core.management import CommandError, call_command

from finops.ingest.configuring import save_source
from finops.ingest.due import due_days
from finops.ingest.loading import load_day
from finops.models import CostRow, Coverage, Fetch, Source
from finops.specs import SourceSpec
from finops.tasks import load_sources
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.problems import Rejected

pytestmark = pytest.mark.django_db
FIRST = date(2026, 6, 1)
NOON = datetime(2026, 6, 8, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def eighth():
    with time_machine.travel(NOON, tick=False) as clock:
        yield clock


def refused(spec):
    with pytest.raises(Rejected) as caught:
        save_source(spec, actor=None)
    return [(problem.path, problem.code) for problem in caught.value.problems]


# ---- rules --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": "No Name"}, ("name", "bad_name")),
        ({"name": "new"}, ("name", "reserved_name")),
        ({"kind": "kubecost"}, ("kind", "BAD_VALUE")),
        ({"url": "http://169.254.169.254/latest"}, ("url", "SOURCE_HOST_NOT_ALLOWED")),
        ({"url": "http://localhost.evil.example"}, ("url", "SOURCE_HOST_NOT_ALLOWED")),
        ({"url": "file:///etc/passwd"}, ("url", "SOURCE_BAD_ADDRESS")),
        ({"url": "http://ada:secret@localhost/"}, ("url", "SOURCE_BAD_ADDRESS")),
        ({"url": "http://[::1"}, ("url", "SOURCE_BAD_ADDRESS")),
        ({"currency": "EURO"}, ("currency", "BAD_VALUE")),
        ({"options": {"lable_keys": []}}, ("options.lable_keys", "unknown_choice")),
        ({"options": {"label_keys": ["a,b"]}}, ("options.label_keys", "BAD_VALUE")),
        ({"options": {"by_node": "yes"}}, ("options.by_node", "BAD_VALUE")),
        ({"cluster": "x" * 300}, ("cluster", "TOO_LONG")),
    ],
)
def test_what_is_no_source_is_refused_with_its_field(here, change, problem):
    fields = {"name": "oc", "kind": "opencost", "url": here} | change
    assert refused(SourceSpec(**fields)) == [problem]
    assert not Source.objects.exists()


def test_two_sources_of_one_cluster_would_count_twice(oc, here):
    second = SourceSpec("second", "opencost", url=here)
    assert refused(second) == [("cluster", "COUNTED_TWICE")]
    save_source(SourceSpec("second", "opencost", url=here, cluster="b"), actor=None)
    save_source(SourceSpec("third", "opencost", url=here, enabled=False), actor=None)


def test_a_source_keeps_its_kind_and_saving_it_as_it_is_changes_nothing(oc, here, ada):
    assert refused(SourceSpec("oc", "prometheus", url=here)) == [("kind", "immutable")]
    first_day = date(2026, 6, 1)
    same = save_source(SourceSpec("oc", "opencost", url=here, first_day=first_day), ada)
    assert same.version == 1
    other = save_source(
        SourceSpec("oc", "opencost", url=here, currency="USD"), ada, reason="is, and why so"
    )
    assert (other.version, other.first_day) == (2, first_day)
    entry = AuditEntry.objects.get(action="source.updated")
    assert (entry.before["currency"], entry.after["currency"]) == ("EUR", "USD")


# ---- what is due --------------------------------------------------------------------------------
def test_every_day_that_is_over_is_due_once_and_the_last_three_every_night(oc, week, eighth):
    assert due_days(oc, NOON) == [date(2026, 6, number) for number in range(7, 0, -1)]
    load_sources()
    assert due_days(oc, NOON) == []
    eighth.shift(timedelta(hours=1))  # the two days with nothing are asked for again
    assert due_days(oc, NOON + timedelta(hours=1)) == [date(2026, 6, 6), date(2026, 6, 3)]
    tomorrow = NOON.replace(hour=1) + timedelta(days=1)
    assert due_days(oc, tomorrow) == [date(2026, 6, n) for n in (8, 7, 6, 3)]
    assert [day.day for day in due_days(oc, NOON + timedelta(days=8))][-1] == 1  # once a week


def test_nothing_is_due_before_its_first_day_or_when_it_is_switched_off(oc):
    oc.first_day = date(2026, 6, 6)
    assert due_days(oc, NOON) == [date(2026, 6, 7), date(2026, 6, 6)]
    assert due_days(oc, NOON.replace(day=7, hour=0, minute=10)) == []  # it settles first
    oc.enabled = False
    assert due_days(oc, NOON) == []


def test_the_nightly_task_stops_at_a_source_that_is_away(oc, settings):
    settings.SOURCE_HOSTS = ["localhost:9"]
    Source.objects.update(url="http://localhost:9")
    load_sources()
    assert Fetch.objects.count() == 1
    assert Coverage.objects.get().state == "missing"


# ---- commands -----------------------------------------------------------------------------------
def run(name, *arguments):
    out = StringIO()
    call_command(name, *arguments, stdout=out)
    return out.getvalue()


def test_a_range_of_days_is_loaded_by_command_and_may_be_repeated(oc, week):
    with pytest.raises(CommandError, match="2 of 7 days could not be loaded"):
        run("load_source", "oc", "--from", "2026-06-01", "--to", "2026-06-07")
    rows = CostRow.objects.count()
    out = run("load_source", "oc", "--from", "2026-06-04", "--to", "2026-06-05")
    assert out.splitlines() == [
        "2026-06-04 unchanged 4 rows",
        "2026-06-05 unchanged 4 rows",
    ]
    assert CostRow.objects.count() == rows
    with pytest.raises(CommandError):
        run("load_source", "oc", "--from", "2026-06-01", "--to", "2026-06-07", "--missing")
    assert Fetch.objects.count() == 7 + 2 + 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("oc", "--from", "2026-06-01"),
        ("oc", "--day", "2026-06-01", "--to", "2026-06-02"),
        ("oc", "--from", "2026-06-02", "--to", "2026-06-01"),
        ("oc", "--day", "June"),
        ("nobody", "--day", "2026-06-01"),
        ("oc", "--day", "2026-06-08"),
    ],
)
def test_days_that_cannot_be_meant_are_refused(oc, arguments):
    with pytest.raises(CommandError):
        run("load_source", *arguments)
    assert not Fetch.objects.exists()


def test_a_test_asks_about_one_hour_and_stores_nothing(oc, week):
    week.days[date(2026, 6, 8)] = week.days[FIRST]
    out = run("test_source", "oc")
    assert week.questions()[0]["window"] == "2026-06-08T11:00:00Z,2026-06-08T12:00:00Z"
    assert out.splitlines()[:2] == [
        "2026-06-08 11:00 - 12:00 UTC: 5 rows",
        "  gpu_hours: 3.5",
    ]
    assert not Fetch.objects.exists()


# ---- pages and REST -----------------------------------------------------------------------------
def test_the_page_shows_each_day_and_what_the_source_said(oc, week, signed_in, fin):
    load_sources()
    page = signed_in(fin).get("/sources/oc/").content.decode()
    assert "oc: 2 days are missing" in page
    assert page.count("is-loaded") == 5
    assert page.count("is-missing") == 2
    assert "That is a gap, not a cost of zero" in page
    assert "s3cret" not in page
    listed = signed_in(fin).get("/sources/").content.decode()
    assert "2 days are missing" in listed


def test_a_reading_is_judged_on_the_page_with_a_reason(oc, opencost, signed_in, fin):
    row = dict.fromkeys(("cpuCost", "ramCost", "pvCost", "networkCost"), 0)
    opencost.days[FIRST] = [{"ns-a": row | {"gpuHours": 24, "gpuCost": 33.6}}]
    load_day(oc, FIRST)
    opencost.days[FIRST] = [{"ns-a": row | {"gpuHours": 12, "gpuCost": 16.8}}]
    load_day(oc, FIRST)
    browser = signed_in(fin)
    page = browser.get("/sources/oc/").content.decode()
    assert "gpu_hours 12 instead of 24" in page
    address = "/sources/oc/days/2026-06-01/accept/"
    said = browser.post(address, {"reason": " "}, follow=True).content.decode()
    assert "Say why." in said
    assert Coverage.objects.get().state == "quarantined"
    said = browser.post(address, {"reason": "late pods, and why so"}, follow=True).content.decode()
    assert "2026-06-01: accepted" in said
    assert Coverage.objects.get().state == "loaded"


def test_the_form_saves_what_the_rules_allow_and_says_what_they_refuse(here, signed_in, ada):
    browser = signed_in(ada)
    typed = {
        "name": "oc",
        "url": "http://elsewhere.example",
        "currency": "eur",
        "reason": "new, and why so",
    }
    typed |= {"label_keys": "equipo, app.kubernetes.io/name", "by_node": "on", "enabled": "on"}
    page = browser.post("/sources/new/?kind=opencost", typed)
    assert page.status_code == 422
    assert "does not allow calls to elsewhere.example" in page.content.decode()
    browser.post("/sources/new/?kind=opencost", typed | {"url": here})
    source = Source.objects.get()
    assert source.options["label_keys"] == ["equipo", "app.kubernetes.io/name"]
    assert (source.currency, source.time_zone) == ("EUR", "UTC")
    again = browser.post("/sources/new/?kind=opencost", typed | {"url": here})
    assert "There is a source of that name" in again.content.decode()
    change = typed | {"url": here, "currency": "usd", "seen": "1"}
    assert browser.post("/sources/oc/edit/", change).status_code == 302
    stale = browser.post("/sources/oc/edit/", change | {"currency": "gbp"})
    assert "Somebody changed it since you saw it" in stale.content.decode()
    assert Source.objects.get().currency == "USD"


def test_rest_answers_days_and_takes_a_load(oc, week, client, token_of, fin):
    given = {"HTTP_AUTHORIZATION": token_of(fin, "cost:read", "cost:close")}
    loaded = client.post("/api/v1/sources/oc/days/2026-06-01/", **given).json()
    assert (loaded["outcome"], loaded["rows"]) == ("applied", 5)
    assert loaded["measures"]["gpu_hours"] == "84.000000"
    gone = client.post("/api/v1/sources/oc/days/2026-06-03/", **given).json()
    assert (gone["outcome"], gone["code"]) == ("failed", "SOURCE_NO_DATA")
    days = client.get("/api/v1/sources/oc/days/?from=2026-06-01&to=2026-06-03", **given).json()
    assert [(day["day"], day["state"]) for day in days] == [
        ("2026-06-01", "loaded"),
        ("2026-06-03", "missing"),
    ]
    source = client.get("/api/v1/sources/oc/", **given).json()
    assert source["days"] == {"loaded": 1, "partial": 0, "missing": 6, "waiting": 0}
    tested = client.post("/api/v1/sources/oc/test/", **given).json()
    assert (tested["ok"], tested["code"]) == (False, "SOURCE_NO_DATA")
    early = client.post("/api/v1/sources/oc/days/2026-06-08/", **given)
    assert (early.status_code, early.json()["errors"][0]["code"]) == (422, "DAY_NOT_OVER")
    bad = client.get("/api/v1/sources/oc/days/?from=June", **given)
    assert bad.status_code == 400
    assert client.post("/api/v1/sources/oc/days/2026-06-31/", **given).status_code == 404
