"""Pages, files and answers of money: the same figures everywhere, and nobody else's."""

import csv
import io
import os
import re
from datetime import timedelta
from decimal import Decimal
from html import unescape
from pathlib import Path

import pytest
import time_machine
from django.urls import reverse

from finops import billing, exports, services
from finops.models import Bill, BillingPeriod, Price
from finops.specs import PriceSpec
from gpuplatform.common.models import AuditEntry
from scheduling.models import UsageInterval

from . import rows

pytestmark = pytest.mark.django_db
GOLDEN = Path(__file__).parent / "golden"
TIMES = "\N{MULTIPLICATION SIGN}"
AFTER = rows.JULY + timedelta(days=1)
MONTH = "/bills/2026-06/"
OWN = "/bills/2026-06/datos/"


@pytest.fixture
def june():
    teams = rows.june()
    billing.rebuild_draft("2026-06", now=AFTER)
    return teams


def golden(name, found):
    """Return the bytes of a golden file; ``make golden`` writes it anew."""
    if os.environ.get("GOLDEN") == "write":
        (GOLDEN / name).write_bytes(found)
    return (GOLDEN / name).read_bytes()


def text_of(response):
    return unescape(re.sub(r"<[^>]+>", " ", response.content.decode()))


def numbers_of(html):
    """Return the amounts that stand in the cells called Amount, as decimals."""
    found = re.findall(r'data-label="Amount">([^<]+)<', html)
    return [Decimal(text.replace(",", "").replace("\N{MINUS SIGN}", "-")) for text in found]


def csv_rows(response):
    return list(csv.DictReader(io.StringIO(response.content.decode())))


# ---- what a month's idle is --------------------------------------------------------------------
@pytest.mark.parametrize("policy", ["separate", "proportional", "owner", "owner_net", "even"])
def test_idle_money_of_a_month_is_its_idle_hours_at_their_price(june, fin, signed_in, policy):
    billing.choose_idle_policy("2026-06", policy, None)
    figures = signed_in(fin).get(MONTH).context["view"].figures
    assert (figures.idle, round(figures.idle_gpu_hours, 4)) == (Decimal("1562.40"), 1116)


# ---- one selector, three readers ---------------------------------------------------------------
@pytest.mark.parametrize("policy", ["separate", "proportional", "owner", "owner_net", "even"])
def test_page_file_and_answer_show_the_same_figures(june, lea, signed_in, token_of, policy):
    billing.choose_idle_policy("2026-06", policy, None)
    browser = signed_in(lea)
    amounts = [line.amount for line in Bill.objects.get(team=june["datos"]).lines.all()]
    page = browser.get(OWN).content.decode()
    shown = [amount for amount in numbers_of(page) if amount in amounts]
    assert shown[: len(amounts)] == amounts
    assert [
        Decimal(row["amount"]) for row in csv_rows(browser.get(f"{OWN}?format=csv"))
    ] == amounts
    over_rest = browser.get(
        "/api/v1/bills/2026-06/datos/", headers={"Authorization": token_of(lea, "cost:read")}
    ).json()
    assert [Decimal(line["amount"]) for line in over_rest["lines"]] == amounts
    assert over_rest == browser.get(f"{OWN}?format=json").json()
    assert Decimal(over_rest["total"]) == sum(amounts)
    assert f"{sum(amounts):,.2f}" in page


def test_the_month_page_adds_up_to_the_cost_of_the_capacity(june, fin, signed_in):
    words = text_of(signed_in(fin).get(MONTH))
    for amount in ("1,512.00", "604.80", "352.80", "1,562.40", "4,032.00"):
        assert amount in words
    assert "add up to what the month cost, to the cent: €4,032.00 = capacity 4,032.00." in words
    assert "DRAFT" in text_of(signed_in(fin).get(OWN))


def test_a_bill_shows_its_formula_its_lender_and_the_rule_of_idle(june, lea, signed_in):
    billing.choose_idle_policy("2026-06", "proportional", None)
    words = text_of(signed_in(lea).get(OWN))
    assert f"270.0 GPU-h {TIMES} 1.40 = 378.00" in words
    assert "lender cq-ia" in words
    assert "in proportion to the direct cost of each team" in words
    assert f"1,562.40 {TIMES} 1,512.00 ÷ 2,469.60" in words
    assert "2,016.00" in words  # guaranteed: 2 x 720 h x 1.40


@pytest.mark.parametrize(("policy", "is_shown"), [("separate", True), ("hidden", False)])
def test_idle_of_the_platform_is_a_memo_unless_it_is_hidden(
    june, lea, signed_in, policy, is_shown
):
    billing.choose_idle_policy("2026-06", policy, None)
    assert ("1,562.40" in text_of(signed_in(lea).get(OWN))) is is_shown


# ---- who sees what -----------------------------------------------------------------------------
PATHS = (
    MONTH,
    OWN,
    "/bills/2026-06/ia/",
    "/bills/2026-06/__central__/",
    "/bills/2026-06/datos/chart.json",
    "/bills/2026-06/ia/chart.json",
    "/bills/",
    "/cost/",
    "/cost/idle.json",
)
ALL = dict.fromkeys(PATHS, 200)
LEAD = ALL | dict.fromkeys([path for path in PATHS if "/ia/" in path or "central" in path], 404)
NONE = dict.fromkeys(PATHS, 404)


ANSWERS = {"ada": ALL, "fin": ALL, "aud": ALL, "lea": LEAD, "ian": NONE, "eve": NONE}


@pytest.mark.parametrize("who", ANSWERS)
@pytest.mark.parametrize("form", ["", "?format=csv", "?format=json"])
def test_everybody_gets_the_bills_that_are_theirs_and_nothing_else(
    june, cast, signed_in, who, form
):
    browser = signed_in(getattr(cast, who))
    assert {path: browser.get(path + form).status_code for path in PATHS} == ANSWERS[who]


@pytest.mark.parametrize("path", [MONTH, OWN, "/bills/", "/cost/", "/cost/team.json"])
@pytest.mark.parametrize("form", ["", "?format=csv", "?format=json"])
def test_a_lead_reads_no_figure_of_another_team(june, lea, signed_in, path, form):
    with time_machine.travel(rows.JULY - timedelta(hours=1), tick=False):
        said = signed_in(lea).get(path + form).content.decode()
    for foreign in ("604.80", "352.80", "987.43", "Ia", "4,032.00", "4032.00"):
        # As a word: a form's random token may hold any two letters.
        assert not re.search(rf"\b{re.escape(foreign)}\b", said.replace("cq-ia", ""))


def test_strangers_are_sent_to_the_login(june, client):
    assert client.get(MONTH).status_code == 302


def test_over_rest_a_member_finds_no_bill(june, ian, lea, token_of, client):
    headers = {"Authorization": token_of(ian)}
    assert client.get("/api/v1/bills/2026-06/ia/", headers=headers).status_code == 404
    assert client.get("/api/v1/bills/2026-06/", headers=headers).status_code == 404
    mine = client.get("/api/v1/bills/2026-06/", headers={"Authorization": token_of(lea)}).json()
    assert [one["team"] for one in mine["bills"]] == ["datos"]
    assert mine["capacity_cost"] is None


@pytest.mark.parametrize("path", ["/bills/2026-13/", "/bills/2031-01/", "/bills/2026-06/nobody/"])
def test_what_is_not_there_is_not_found(june, fin, signed_in, path):
    assert signed_in(fin).get(path).status_code == 404


# ---- files -------------------------------------------------------------------------------------
@pytest.mark.parametrize("profile", ["machine", "excel-es", "excel-de"])
def test_the_file_of_a_bill_is_byte_for_byte_the_golden_one(june, lea, signed_in, profile):
    june["datos"].cost_center = "=HYPERLINK(1)"  # a malicious cell must not become a formula
    june["datos"].save()
    billing.choose_idle_policy("2026-06", "proportional", None)
    answer = signed_in(lea).get(f"{OWN}?format=csv&profile={profile}")
    assert answer.content == golden(f"datos_2026-06_{profile}.csv", answer.content)
    ending = "" if profile == "machine" else f"_{profile}"
    assert f"gpu-chargeback_2026-06_datos_draft_r0{ending}.csv" in answer["Content-Disposition"]
    assert answer["X-Content-Type-Options"] == "nosniff"
    entry = AuditEntry.objects.get(action="bill.exported")
    assert (entry.actor, entry.subject, entry.team) == (lea, "2026-06 datos csv", "datos")


def test_an_unknown_profile_is_refused(june, lea, signed_in):
    assert signed_in(lea).get(f"{OWN}?format=csv&profile=lotus").status_code == 422


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", '"\'=1+1"'),
        ("@sum", '"\'@sum"'),
        ("-5", '"\'-5"'),
        ("\tx", '"\'\tx"'),
        ("\N{FULLWIDTH EQUALS SIGN}1", '"\'\N{FULLWIDTH EQUALS SIGN}1"'),
        ('say "hi"', '"say ""hi"""'),
        ("a,b", '"a,b"'),
        ("nul\0byte", "nulbyte"),
        ("Datos", "Datos"),
    ],
)
def test_no_text_cell_is_a_formula(text, cell):
    assert exports.guarded(text) == cell


def test_negative_amounts_stay_numbers():
    row = {"amount": Decimal("-6.72"), "currency": "EUR"}
    assert exports.write_csv([row]).decode().splitlines()[1].split(",")[17] == "-6.72"
    assert "-6,72" in exports.write_csv([row], "excel-de").decode()


# ---- idle policy -------------------------------------------------------------------------------
def test_finance_compares_all_policies_and_chooses_one_with_a_reason(june, fin, signed_in):
    browser = signed_in(fin)
    words = text_of(browser.get(f"{MONTH}?compare"))
    for amount in ("2,468.57", "987.43", "576.00", "2,032.80", "2,772.00", "+956.57", "+382.63"):
        assert amount in words
    answer = browser.post(
        MONTH, {"idle_policy": "proportional", "reason": "as agreed, and why so", "seen": 1}
    )
    assert (answer.status_code, answer["Location"]) == (302, MONTH)
    said = text_of(browser.get(MONTH))
    assert "Idle policy was separate, is now proportional." in said
    assert "Datos 1,512.00 to 2,468.57; Ia 604.80 to 987.43" in said
    assert "central account 1,562.40 to 0.00." in said
    assert BillingPeriod.objects.get().idle_policy == "proportional"
    assert (
        AuditEntry.objects.get(action="billing_period.idle_policy_chosen").reason
        == "as agreed, and why so"
    )


@pytest.mark.parametrize(("who", "status"), [("aud", 403), ("lea", 403), ("ian", 404)])
def test_nobody_else_chooses_it(june, cast, signed_in, who, status):
    answer = signed_in(getattr(cast, who)).post(
        MONTH, {"idle_policy": "even", "reason": "x, and why so", "seen": 1}
    )
    assert answer.status_code == status
    assert BillingPeriod.objects.get().idle_policy == "separate"


def test_a_choice_without_a_reason_is_refused(june, fin, signed_in):
    assert signed_in(fin).post(MONTH, {"idle_policy": "even"}).status_code == 422


def test_an_idle_policy_chosen_on_a_page_that_is_out_of_date_overwrites_nothing(
    june, fin, ada, signed_in
):
    first, second = signed_in(fin), signed_in(ada)
    seen = [browser.get(MONTH).context["form"]["seen"].value() for browser in (first, second)]
    chosen = {"idle_policy": "even", "reason": "as agreed, and why so", "seen": seen[0]}
    assert first.post(MONTH, chosen).status_code == 302
    late = {"idle_policy": "separate", "reason": "as agreed, and why so", "seen": seen[1]}
    page = second.post(MONTH, late)
    assert (page.status_code, BillingPeriod.objects.get().idle_policy) == (422, "even")
    assert "Somebody has changed the rules of 2026-06" in page.content.decode()
    again = {**late, "seen": page.context["form"]["seen"].value()}
    assert second.post(MONTH, again).status_code == 302
    assert BillingPeriod.objects.get().idle_policy == "separate"


# ---- cost --------------------------------------------------------------------------------------
def test_the_cost_page_shows_the_month_so_far_and_what_open_loans_would_cost(june, fin, signed_in):
    UsageInterval.objects.filter(holding="borrowed").update(ended_at=None)
    with time_machine.travel(rows.JUNE + timedelta(hours=400), tick=False):
        billing.rebuild_open()
        words = text_of(signed_in(fin).get("/cost/"))
        figure = signed_in(fin).get("/cost/idle.json").json()
    assert "€2,240.00 so far" in words
    assert "1 open loan costs €2.80 an hour" in words  # one queue borrows, of two lenders
    assert "1 has no end: with it all loans cost €2,083.20 next month" in words  # 2 x 1.40 x 744 h
    assert "cq-datos" in words
    assert figure["data"][0]["name"] == "idle"


def test_the_figure_of_a_bill_adds_up_to_its_total(june, lea, signed_in):
    figure = signed_in(lea).get(f"{OWN}chart.json?theme=dark").json()
    assert [trace["name"] for trace in figure["data"]] == ["own use", "borrowed"]
    total = sum(amount for trace in figure["data"] for amount in trace["y"])
    assert round(total, 2) == 1512.00


# ---- prices ------------------------------------------------------------------------------------
def test_who_sees_a_bill_reads_prices_and_only_finance_and_admins_set_them(june, cast, signed_in):
    for who in ("ada", "fin", "aud", "lea", "ian", "eve"):
        browser = signed_in(getattr(cast, who))
        readable = 404 if who in {"ian", "eve"} else 200
        assert browser.get("/prices/").status_code == readable
        assert browser.get("/prices/calculator/").status_code == readable
        allowed = 200 if who in {"ada", "fin"} else 403
        assert browser.get("/prices/new/").status_code == allowed
    assert "1.40" in text_of(signed_in(cast.lea).get("/prices/"))


def test_finance_sets_a_price_in_the_browser(june, fin, signed_in):
    form = {
        "unit": "gpu_hour",
        "subject": rows.FLAVOR,
        "amount": "1.60",
        "valid_from": "2026-07-01 00:00",
        "reason": "energy went up",
    }
    answer = signed_in(fin).post("/prices/new/", form)
    assert (answer.status_code, answer["Location"]) == (302, "/prices/")
    old, new = Price.objects.order_by("valid_from")
    assert (old.valid_to, new.valid_from, new.created_by) == (rows.JULY, rows.JULY, fin)


def test_a_refused_price_keeps_what_was_typed_and_says_why(june, fin, signed_in):
    form = {
        "unit": "gpu_hour",
        "subject": rows.FLAVOR,
        "amount": "2",
        "valid_from": "2026-01-01 00:00",
        "reason": "too late, and why so",
    }
    answer = signed_in(fin).post("/prices/new/", form)
    assert answer.status_code == 422
    assert "a price is never edited" in text_of(answer)
    assert "too late, and why so" in answer.content.decode()
    assert Price.objects.count() == 1


def test_the_calculator_shows_the_articles_node_beside_the_price_in_force(june, fin, signed_in):
    services.set_price(PriceSpec("gpu_hour", "*", Decimal("1.40"), valid_from=rows.JUNE), None)
    answer = signed_in(fin).get("/prices/calculator/")
    words = text_of(answer)
    for amount in ("5.6098", "1.4024", "1.40", "0.7778"):
        assert amount in words
    assert "subject=%2A&amp;amount=1.4024" in answer.content.decode()
    wrong = signed_in(fin).get("/prices/calculator/?gpus=0&years=4")
    assert (wrong.status_code, "5.6098" in text_of(wrong)) == (200, False)


def test_prices_over_rest_obey_the_same_rules(june, fin, ian, token_of, client):
    rows.flavor("a100")
    price = {"unit": "gpu_hour", "subject": "a100", "amount": "0.90"}
    finance = {"Authorization": token_of(fin, "read", "cost:close")}
    created = client.post("/api/v1/prices/", price, "application/json", headers=finance)
    assert created.status_code == 201
    assert created.json()["amount"] == "0.90000000"
    again = client.post("/api/v1/prices/", price, "application/json", headers=finance)
    assert (again.status_code, again.json()) == (200, created.json())
    refused = client.post(
        "/api/v1/prices/", price, "application/json", headers={"Authorization": token_of(ian)}
    )
    assert refused.status_code == 403
    wrong = price | {"amuont": 1}
    assert client.post(
        "/api/v1/prices/", wrong, "application/json", headers=finance
    ).status_code in {400, 422}
    reading = {"Authorization": token_of(fin, "cost:read")}
    listed = client.get("/api/v1/prices/", headers=reading)
    assert {row["subject"] for row in listed.json()} == {"a100", rows.FLAVOR}
    for scopes, status in ((("cost:read",), 404), (("read",), 403)):
        headers = {"Authorization": token_of(ian, *scopes)}
        assert client.get("/api/v1/prices/", headers=headers).status_code == status


def test_names_of_pages_are_the_agreed_ones():
    assert reverse("bill", args=["2026-06", "datos"]) == OWN
    assert reverse("cost") == "/cost/"
    assert reverse("price-new") == "/prices/new/"


def test_the_command_rebuilds_and_prints_a_line_a_month(capsys):
    from django.core.management import call_command  # noqa: PLC0415

    rows.june()
    call_command("rebuild_bills", "2026-06")
    said = capsys.readouterr().out
    assert said == "2026-06: 4 bills, capacity 4032.00 EUR, 0 findings\n"


def test_a_rule_broken_over_rest_is_named_with_its_field_and_changes_nothing(
    june, fin, token_of, client
):
    price = {"unit": "gpu_hour", "subject": rows.FLAVOR, "amount": "9", "currency": "USD"}
    headers = {"Authorization": token_of(fin, "read", "cost:close")}
    answer = client.post("/api/v1/prices/", price, "application/json", headers=headers)
    assert answer.status_code == 422
    assert [error["code"] for error in answer.json()["errors"]] == ["CURRENCY_MISMATCH"]
    assert Price.objects.count() == 1


def test_the_overview_has_a_tile_for_those_who_may_see_a_bill(june, cast, rf):
    from finops.tiles import cost_tile  # noqa: PLC0415

    request = rf.get("/")
    with time_machine.travel(rows.JUNE + timedelta(hours=400), tick=False):
        billing.rebuild_open()
        for who, value in (("fin", "€2,240"), ("lea", "€1,512"), ("ian", None), ("eve", None)):
            request.user = getattr(cast, who)
            tile = cost_tile(request)
            assert (tile.value if tile else None) == value


def test_the_task_is_idempotent_and_has_the_name_of_the_timetable():
    from finops.tasks import rebuild_drafts  # noqa: PLC0415
    from gpuplatform.celery import app  # noqa: PLC0415

    rows.june()
    with time_machine.travel(AFTER, tick=False):
        assert rebuild_drafts() == rebuild_drafts() == ["2026-06", "2026-07"]
    assert rebuild_drafts.name in {row["task"] for row in app.conf.beat_schedule.values()}
