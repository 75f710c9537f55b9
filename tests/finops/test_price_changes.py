"""A price that reaches back, or ends: which drafts it makes old, and how they get new."""

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape

import pytest
import time_machine
from celery import current_app

from finops import billing, services
from finops.models import Bill, BillingPeriod, Price
from finops.specs import PriceSpec
from finops.staleness import stale_periods
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.problems import Rejected

from . import rows

pytestmark = pytest.mark.django_db
NOW = rows.JULY + timedelta(days=70)  # September: June is neither this month nor the last
MIDDLE = rows.JUNE + timedelta(hours=360)
MONTH = "/bills/2026-06/"


@pytest.fixture(autouse=True)
def september():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def june():
    teams = rows.june()
    rows.flavor()
    for name in ("2026-06", "2026-07", "2026-08"):
        billing.rebuild_draft(name)
    return teams


@pytest.fixture
def sent(monkeypatch):
    messages = []
    monkeypatch.setattr(
        current_app, "send_task", lambda name, **options: messages.append((name, options))
    )
    return messages


def text_of(response):
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


def stale():
    return [period.name for period in stale_periods()]


def doubled(start=MIDDLE, **fields):
    return PriceSpec("gpu_hour", rows.FLAVOR, Decimal("2.80"), valid_from=start, **fields)


def form(**fields):
    return {
        "unit": "gpu_hour",
        "subject": rows.FLAVOR,
        "amount": "2.80",
        "valid_from": "2026-06-16 00:00",
        "reason": "the contract said so",
        **fields,
    }


# ---- what gets old, and new again --------------------------------------------------------------
def test_a_price_that_reaches_back_makes_every_open_month_it_touches_anew(
    june, sent, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        services.set_price(doubled(), None)
    months = ["2026-06", "2026-07", "2026-08"]
    assert stale() == months
    ((name, options),) = sent
    assert (name, options["kwargs"]) == ("finops.rebuild_drafts", {"months": months})
    billing.rebuild_open()
    assert stale() == []
    june_cost = BillingPeriod.objects.get(name="2026-06").capacity_cost
    assert june_cost == Decimal("2016.00") + Decimal("4032.00")


def test_the_task_makes_the_months_it_is_told_and_twice_is_harmless(june):
    from finops.tasks import rebuild_drafts  # noqa: PLC0415

    services.set_price(doubled(), None)
    assert rebuild_drafts(["2026-06"]) == rebuild_drafts(["2026-06"]) == ["2026-06"]
    assert stale() == ["2026-07", "2026-08"]
    assert rebuild_drafts() == ["2026-07", "2026-08", "2026-09"]


def test_a_draft_that_a_newer_price_passed_by_is_found_by_the_round(june):
    Price.objects.update(created_at=NOW + timedelta(seconds=1))
    assert stale() == ["2026-06", "2026-07", "2026-08"]


@pytest.mark.parametrize(
    ("start", "end", "touched"),
    [
        (MIDDLE, rows.JULY, ["2026-06"]),
        (rows.JULY, None, ["2026-07", "2026-08"]),
        (NOW + timedelta(days=1), None, []),
    ],
)
def test_months_that_a_price_does_not_touch_stay_as_they_are(june, start, end, touched):
    Price.objects.update(valid_to=MIDDLE)
    services.set_price(doubled(start, valid_to=end), None)
    assert stale() == touched


def test_a_closed_month_is_never_called_old(june):
    BillingPeriod.objects.filter(name="2026-06").update(status="closed")
    services.set_price(doubled(rows.JULY), None)
    assert stale() == ["2026-07", "2026-08"]


def test_pages_say_that_they_are_out_of_date_and_title_table_and_comparison_agree(
    june, fin, signed_in
):
    services.set_price(doubled(), None)
    browser = signed_in(fin)
    for path in (MONTH, f"{MONTH}datos/", f"{MONTH}?compare"):
        assert "Out of date, being rebuilt" in text_of(browser.get(path))
    assert "being rebuilt" in text_of(browser.get("/bills/"))
    assert browser.get(f"{MONTH}?compare").context["comparison"] is None
    billing.rebuild_open()
    answer = browser.get(f"{MONTH}?compare")
    words, comparison = text_of(answer), answer.context["comparison"]
    assert "Out of date" not in words
    assert "June 2026 costs €6,048.00" in words
    assert comparison.total == Decimal("6048.00")
    assert {cell.difference for row in comparison.rows for cell in row.cells if cell.chosen} == {0}
    shown = [cell.total for row in comparison.rows for cell in row.cells if cell.chosen]
    assert shown == [one.total for one in answer.context["view"].bills]


def test_an_old_month_that_was_metered_and_never_billed_gets_its_bills():
    rows.june()
    assert [period.name for period in billing.rebuild_open()] == [
        "2026-06",
        "2026-07",
        "2026-08",
        "2026-09",
    ]


# ---- asking first ------------------------------------------------------------------------------
def test_reaching_back_shows_the_open_months_first_and_changes_nothing(june, fin, signed_in):
    browser = signed_in(fin)
    BillingPeriod.objects.filter(name="2026-06").update(fixed_cost=10)  # beside its capacity
    asked = browser.post("/prices/new/", form())
    words = text_of(asked)
    assert (asked.status_code, Price.objects.count()) == (200, 1)
    assert "This reaches back into 3 open months" in words
    assert "June 2026, now €4,042.00" in words
    done = browser.post("/prices/new/", form(confirm=asked.context["confirm"]))
    assert (done.status_code, Price.objects.count()) == (302, 2)
    assert "Being made anew: 2026-06, 2026-07, 2026-08." in text_of(browser.get("/prices/"))


def test_a_confirmation_of_other_months_is_none(june, fin, signed_in):
    assert signed_in(fin).post("/prices/new/", form(confirm="2026-08")).status_code == 200
    assert Price.objects.count() == 1


def test_what_is_refused_is_refused_before_anything_is_asked(june, fin, signed_in):
    answer = signed_in(fin).post("/prices/new/", form(valid_from="2026-01-01 00:00"))
    assert (answer.status_code, answer.context["months"]) == (422, [])


# ---- known flavors -----------------------------------------------------------------------------
def test_flavors_are_a_list_with_the_price_for_all_first(june, fin, signed_in):
    page = signed_in(fin).get("/prices/new/").content.decode()
    options = re.findall(r'<option value="([^"]*)"', page)
    assert options[:2] == ["*", rows.FLAVOR]


def test_an_unknown_flavor_is_refused_alike_by_page_and_rest(
    june, fin, signed_in, token_of, client
):
    sentence = (
        f"There is no flavor h100; choose one of {rows.FLAVOR}, "
        "or * for every flavor without a price of its own."
    )
    page = signed_in(fin).post("/prices/new/", form(subject="h100"))
    assert (page.status_code, sentence in text_of(page)) == (422, True)
    price = {"unit": "gpu_hour", "subject": "h100", "amount": "2.80"}
    headers = {"Authorization": token_of(fin, "cost:close")}
    answer = client.post("/api/v1/prices/", price, "application/json", headers=headers)
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["code"]) == (422, "FLAVOR_NOT_FOUND")
    assert error["detail"] == sentence
    assert Price.objects.count() == 1


def test_a_misspelt_field_is_told_beside_all_else_that_is_wrong(june, fin, token_of, client):
    price = {"unit": "gpu_hour", "subject": rows.FLAVOR, "ammount": "2.80", "valid_form": "now"}
    headers = {"Authorization": token_of(fin, "cost:close")}
    answer = client.post("/api/v1/prices/", price, "application/json", headers=headers)
    assert answer.status_code == 400
    told = {error["pointer"]: error["detail"] for error in answer.json()["errors"]}
    assert told == {
        "/amount": "This field is required.",
        "/ammount": "unknown field",
        "/valid_form": "unknown field",
    }


def test_a_flavor_that_is_gone_but_was_metered_can_still_be_priced(june):
    rows.flavor().delete()
    services.set_price(doubled(), None)
    assert Price.objects.count() == 2


# ---- ending ------------------------------------------------------------------------------------
def test_a_price_in_force_is_ended_with_a_reason_and_its_months_are_made_anew(
    june, fin, signed_in
):
    price = Price.objects.get()
    browser = signed_in(fin)
    path = f"/prices/{price.pk}/end/"
    assert path in browser.get("/prices/").content.decode()
    wanted = {"valid_to": "2026-07-15 00:00", "reason": "sold, and why so"}
    asked = browser.post(path, wanted)
    assert asked.context["confirm"] == "2026-07 2026-08"
    assert browser.post(path, wanted | {"confirm": "2026-07 2026-08"}).status_code == 302
    price.refresh_from_db()
    assert price.valid_to == rows.JULY + timedelta(days=14)
    entry = AuditEntry.objects.get(action="price.ended")
    assert (entry.actor, entry.reason, entry.before["valid_to"]) == (fin, "sold, and why so", None)
    assert stale() == ["2026-07", "2026-08"]


def test_it_ends_now_where_no_time_is_given_and_only_once(june, fin, signed_in):
    price, browser = Price.objects.get(), signed_in(fin)
    path = f"/prices/{price.pk}/end/"
    assert browser.post(path, {"reason": ""}).status_code == 422
    assert browser.post(path, {"reason": "sold, and why so"}).status_code == 302
    price.refresh_from_db()
    assert price.valid_to == NOW
    assert browser.post(path, {"reason": "again, and why so"}).status_code == 404


LATER = NOW + timedelta(days=9)


def test_a_price_that_has_not_begun_is_taken_back_and_the_one_before_it_goes_on(
    june, fin, signed_in
):
    old = Price.objects.get()
    wrong = services.set_price(doubled(LATER), fin)
    browser, path = signed_in(fin), f"/prices/{wrong.pk}/end/"
    assert "Take back" in browser.get("/prices/").content.decode()
    page = browser.get(path).content.decode()
    assert "Empty takes it back" in page
    assert "Nothing follows it" not in page
    assert browser.post(path, {"reason": "a typing mistake"}).status_code == 302
    old.refresh_from_db()
    assert (Price.objects.get(), old.valid_to) == (old, None)
    entry = AuditEntry.objects.get(action="price.taken_back")
    assert (entry.actor, entry.reason, entry.after) == (fin, "a typing mistake", None)
    assert services.set_price(doubled(LATER), fin).valid_from == LATER


def test_one_that_has_begun_is_not_taken_back(june):
    price = services.set_price(doubled(LATER), None)
    with time_machine.travel(LATER, tick=False), pytest.raises(Rejected):
        services.end_price(price.pk, None, "trial")


@pytest.mark.parametrize(
    ("ends_at", "code"),
    [
        (rows.JUNE - timedelta(days=31), "WINDOW_BACKWARDS"),
        (NOW + timedelta(days=9), "PRICE_ENDED"),
        (rows.JULY - timedelta(days=1), "PERIOD_CLOSED"),
    ],
)
def test_an_end_that_breaks_a_rule_changes_nothing(june, ends_at, code):
    BillingPeriod.objects.filter(name="2026-06").update(status="closed")
    Price.objects.update(valid_to=NOW + timedelta(days=5))
    price = Price.objects.get()
    with pytest.raises(Rejected) as refusal:
        services.end_price(price.pk, None, "trial", ends_at)
    assert [problem.code for problem in refusal.value.problems] == [code]
    assert Price.objects.get().valid_to == price.valid_to
    assert Bill.objects.exists()
    assert stale() == []


@pytest.mark.parametrize(("who", "status"), [("aud", 403), ("lea", 403), ("eve", 403)])
def test_nobody_else_ends_one(june, cast, signed_in, who, status):
    path = f"/prices/{Price.objects.get().pk}/end/"
    assert (
        signed_in(getattr(cast, who)).post(path, {"reason": "x, and why so"}).status_code == status
    )
