"""Close board and summary, as page, file and answer."""

import csv
import io
import re
from decimal import Decimal

import pytest
import time_machine

from finops.billing import rebuild_draft
from finops.models import BillingPeriod, IssuedBill
from gpuplatform.common.models import AuditEntry
from queues.models import Team
from tests.finops import rows

from .world import AFTER, JUNE, charged_june, close, june, step

pytestmark = pytest.mark.django_db
BOARD, SUMMARY = f"/bills/{JUNE}/close/", f"/bills/{JUNE}/summary/"
API = f"/api/v1/periods/{JUNE}/"


@pytest.fixture(autouse=True)
def in_july():
    with time_machine.travel(AFTER, tick=False):
        yield


def text_of(response):
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def csv_rows(response):
    return list(csv.DictReader(io.StringIO(response.content.decode())))


def labelled(html, label):
    found = re.findall(rf'data-label="{label}">([^<]+)<', html)
    return [Decimal(text.replace(",", "").replace("\N{MINUS SIGN}", "-")) for text in found]


# ---- the walk ----------------------------------------------------------------------------------
def test_two_people_walk_a_month_to_its_end_in_the_browser(fin, ada, signed_in):
    charged_june()
    first, second = signed_in(fin), signed_in(ada)
    assert "I have reviewed" not in first.get(BOARD).content.decode()
    seen = first.get(BOARD).context["board"].digest
    for browser, name in ((first, "put_forward"), (first, "reviewed")):
        assert browser.post(f"{BOARD}{name}/", {"seen": seen}).status_code == 302
    assert "a second person closes it" in text_of(first.get(BOARD))
    assert "a second person closes it" in text_of(first.post(f"{BOARD}closed/", follow=True))
    assert "never changes again" in text_of(second.post(f"{BOARD}closed/", follow=True))
    page = text_of(second.get(BOARD))
    assert "GPU-2026-000001" in page
    assert "Close the month" not in page
    assert BillingPeriod.objects.get().status == "closed"


def test_a_stale_board_changes_nothing_and_says_so(fin, signed_in):
    teams = june()
    step("put_forward", fin)
    browser = signed_in(fin)
    seen = browser.get(BOARD).context["board"].digest
    rows.use(teams["ia"], 1, rows.JUNE, rows.JUNE + (rows.JULY - rows.JUNE) / 30)
    page = browser.post(f"{BOARD}reviewed/", {"seen": seen}, follow=True)
    assert "figures have changed since" in text_of(page)
    assert BillingPeriod.objects.get(name=JUNE).status == "provisional"


def test_what_stands_in_the_way_is_on_the_board_with_a_form_that_needs_a_reason(fin, signed_in):
    june(datos="")
    step("put_forward", fin)
    page = signed_in(fin).get(BOARD)
    assert "Datos is charged and has no cost centre" in text_of(page)
    assert "cannot be acknowledged" in text_of(page)
    assert page.context["board"].blocking == 1


def test_a_month_before_it_that_is_still_open_is_told_before_it_is_closed(fin, ada, signed_in):
    charged_june()
    assert "is still open" not in text_of(signed_in(fin).get(BOARD))
    rebuild_draft("2026-05", now=AFTER)
    said = "2026-05 is still open. Once this month is closed, no price"
    assert said in text_of(signed_in(fin).get(BOARD))
    close(fin, ada)
    late = {"unit": "gpu_hour", "subject": "*", "amount": "2", "valid_from": "2026-05-10"}
    answer = signed_in(fin).post("/prices/new/", late | {"reason": "a price of May"})
    assert "The last closed month ended 2026-07-01" in text_of(answer)  # May itself is not closed
    assert "is still open" not in text_of(signed_in(fin).get(BOARD))


def test_an_adjustment_by_hand_is_a_line_of_the_bill(fin, ada, signed_in):
    june()
    browser = signed_in(fin)
    typed = {"team": "ia", "amount": "-20.00", "reason": "node 7 was down for a day"}
    assert browser.post(f"{BOARD}adjust/", typed).status_code == 302
    bill = browser.get(f"/bills/{JUNE}/ia/?format=csv")
    line = csv_rows(bill)[-1]
    assert (line["line_type"], line["amount"]) == ("adjustment", "-20.00")
    assert line["note"].endswith("node 7 was down for a day")
    sums = "to the cent: €4,012.00 = capacity 4,032.00 + adjustments \N{MINUS SIGN}20.00"
    assert sums in text_of(browser.get(BOARD))
    refused = browser.post(
        f"{BOARD}adjust/", {"team": "x", "amount": "1", "reason": "y, and why so"}
    )
    assert refused.status_code == 422
    assert "no such team" in text_of(refused)


def test_an_adjustment_by_hand_is_taken_back_before_the_month_is_closed(fin, ada, signed_in):
    june()
    browser = signed_in(fin)
    before = browser.get(BOARD).context["board"].digest
    typed = {"team": "ia", "amount": "-200.00", "reason": "node 7 was down, typed wrongly"}
    browser.post(f"{BOARD}adjust/", typed)
    (line,) = browser.get(BOARD).context["board"].adjustments
    assert "Take back" in browser.get(BOARD).content.decode()
    said = browser.post(f"{BOARD}adjust/{line.pk}/take-back/", follow=True)
    assert "The line is taken back" in text_of(said)
    board = said.context["board"]
    assert (board.adjustments, board.digest) == ((), before)
    entry = AuditEntry.objects.get(action="billing_period.adjustment_taken_back")
    assert entry.before["amount"] == "-200.00"
    again = browser.post(f"{BOARD}adjust/{line.pk}/take-back/")
    assert (again.status_code, "no such adjustment" in text_of(again)) == (422, True)


def test_over_rest_an_adjustment_is_taken_back_by_the_number_that_the_month_says(fin, signed_in):
    june()
    browser = signed_in(fin)
    body = {"team": "ia", "amount": "-200.00", "reason": "node 7 was down, typed wrongly"}
    made = browser.post(f"{API}adjustments/", body, "application/json")
    (line,) = made.json()["adjustment_lines"]
    assert (line["team"], line["amount"], line["kind"]) == ("ia", "-200.00", "manual")
    left = browser.delete(f"{API}adjustments/{line['id']}/")
    assert (left.status_code, left.json()["adjustment_lines"]) == (200, [])


def test_a_closed_month_keeps_its_adjustments(fin, ada, signed_in):
    june()
    browser = signed_in(fin)
    browser.post(f"{BOARD}adjust/", {"amount": "1.00", "reason": "rounded by the landlord"})
    close(fin, ada)
    board = browser.get(BOARD)
    (line,) = board.context["board"].adjustments
    assert "Take back" not in board.content.decode()
    said = browser.post(f"{BOARD}adjust/{line.pk}/take-back/")
    assert (said.status_code, "Only a draft" in text_of(said)) == (422, True)


@pytest.mark.parametrize("path", [BOARD, API])
def test_leads_and_members_do_not_find_the_board(lea, ian, signed_in, path):
    june()
    assert {signed_in(who).get(path).status_code for who in (lea, ian)} == {404}


def test_auditors_look_and_do_not_touch(aud, signed_in):
    june()
    browser = signed_in(aud)
    assert browser.get(BOARD).status_code == 200
    assert "Put forward" not in browser.get(BOARD).content.decode()
    for path in (f"{BOARD}put_forward/", f"{BOARD}acknowledge/", f"{BOARD}adjust/"):
        assert browser.post(path, {}).status_code == 403


# ---- the summary -------------------------------------------------------------------------------
def test_every_figure_of_the_summary_stands_in_its_file(fin, ada, signed_in):
    charged_june()
    close(fin, ada)
    browser = signed_in(fin)
    html = browser.get(SUMMARY).content.decode()
    found = csv_rows(browser.get(SUMMARY + "?format=csv"))
    columns = {
        "Own use": "own",
        "Borrowed": "borrowed",
        "Idle": "idle",
        "Total": "total",
        "Charged": "charged",
        "Retained": "retained",
    }
    for label, column in columns.items():
        amounts = [Decimal(row[column]) for row in found]
        assert labelled(html, label) == [*amounts, sum(amounts)], label
    answer = browser.get(SUMMARY + "?format=json").json()
    assert [row["total"] for row in answer["rows"]] == [row["total"] for row in found]
    assert answer["sums"]["charged"] == "2116.80"
    assert Decimal(answer["sums"]["charged"]) + Decimal(answer["sums"]["retained"]) == 4032
    assert browser.get(f"{API}summary/").json() == answer


def test_parts_of_a_row_add_up_to_its_total(fin, signed_in):
    june()
    for row in csv_rows(signed_in(fin).get(SUMMARY + "?format=csv")):
        parts = ("own", "borrowed", "idle", "tokens", "adjustments", "other")
        assert sum(Decimal(row[part]) for part in parts) == Decimal(row["total"])


def test_a_lead_sees_the_own_row_with_what_was_promised(lea, signed_in):
    june()
    browser = signed_in(lea)
    (row,) = csv_rows(browser.get(SUMMARY + "?format=csv"))
    assert (row["team"], row["guaranteed"], row["ceiling"]) == ("datos", "2016.00", "")
    page = text_of(browser.get(SUMMARY))
    assert "2,016.00" in page
    assert "no limit" in page
    assert "Plataforma" not in page


# ---- REST --------------------------------------------------------------------------------------
def test_rest_walks_the_same_way_with_the_same_refusals(fin, ada, signed_in):
    charged_june()
    first, second = signed_in(fin), signed_in(ada)
    board = first.get(API).json()
    assert (board["status"], board["next"]) == ("open", ["put_forward"])
    seen = {"seen": board["lines_sha256"]}
    for name in ("put_forward", "reviewed"):
        answer = first.post(f"{API}{name}/", seen, content_type="application/json")
        assert answer.status_code == 200, answer.content
    refused = first.post(f"{API}closed/", {}, content_type="application/json")
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["code"] == "SECOND_PERSON"
    unread = second.post(f"{API}closed/", {"sean": ""}, content_type="application/json")
    assert unread.status_code in {400, 422}
    closed = second.post(f"{API}closed/", seen, content_type="application/json").json()
    assert closed["status"] == "closed"
    numbers = [one["invoice_number"] for one in closed["issued"]]
    assert numbers == ["GPU-2026-000001", "GPU-2026-000002", None, None]
    assert closed["freeze"]["lines_sha256"] == board["lines_sha256"]
    assert first.get("/api/v1/periods/").json()[0]["status"] == "closed"


def test_a_month_that_is_none_is_not_found(fin, signed_in):
    june()
    browser = signed_in(fin)
    for path in ("/api/v1/periods/2026-13/", "/api/v1/periods/x/", "/api/v1/periods/2026-05/"):
        assert browser.get(path).status_code == 404, path


# ---- the issued bill ---------------------------------------------------------------------------
def test_an_issued_bill_keeps_number_names_and_mode_in_every_form(fin, ada, signed_in):
    charged_june()
    close(fin, ada)
    Team.objects.filter(name="datos").update(
        display_name="Data", cost_center="9", accounting_mode="showback"
    )
    browser = signed_in(fin)
    file = browser.get(f"/bills/{JUNE}/datos/?format=csv")
    assert "gpu-chargeback_2026-06_datos_closed_r1.csv" in file["Content-Disposition"]
    line = csv_rows(file)[0]
    wanted = ("GPU-2026-000001", "1", "closed", "Datos", "1001", "")
    names = ("invoice_number", "revision", "status", "team_name", "cost_center", "note")
    assert tuple(line[name] for name in names) == wanted
    page = text_of(browser.get(f"/bills/{JUNE}/datos/"))
    assert "debit 1001, credit platform" in page
    assert "not charged" not in page
    shown = text_of(browser.get(f"/bills/{JUNE}/plataforma/"))
    assert "For information, not charged" in shown
    assert csv_rows(browser.get(f"/bills/{JUNE}/plataforma/?format=csv"))[0]["note"] == (
        "for information, not charged"
    )
    assert IssuedBill.objects.exclude(number=None).count() == 2


def test_pages_of_a_closed_month_call_teams_as_they_were_called(fin, ada, signed_in):
    charged_june()
    close(fin, ada)
    was = Team.objects.get(name="datos").display_name
    Team.objects.filter(name="datos").update(display_name="Renamed since")
    for page in (f"/bills/{JUNE}/", f"/bills/{JUNE}/datos/", BOARD, SUMMARY):
        text = text_of(signed_in(fin).get(page))
        assert was in text, page
        where = text.find("Renamed since")
        assert where < 0, (page, text[where - 60 : where + 30])
