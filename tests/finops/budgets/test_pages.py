"""Budgets as page, file and answer: the same figures, and each sees the own."""

import csv
import io
import re
from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine

from finops.billing import rebuild_draft
from finops.budgets.measuring import measure_budgets
from finops.budgets.saving import save_budget
from finops.models import Bill, Budget, BudgetState
from finops.selectors.budgets import unusual_days
from queues.access import Actor
from tests.finops import rows

from .test_budgets import LATE, spec

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def june(fin):
    with time_machine.travel(LATE, tick=False):
        rows.june()
        save_budget(spec("datos-money", limit=Decimal(2000)), fin)
        save_budget(spec("ia-hours", subject="ia", measure="gpu_hours", limit=Decimal(400)), fin)
        measure_budgets()
        yield


def csv_rows(response):
    return list(csv.DictReader(io.StringIO(response.content.decode())))


def labelled(html, label):
    found = re.findall(rf'data-label="{label}">([\d,.]+)', html)
    return [Decimal(text.replace(",", "")) for text in found]


def test_page_file_and_answer_show_the_same_figures(fin, signed_in):
    browser = signed_in(fin)
    html = browser.get("/budgets/").content.decode()
    found = csv_rows(browser.get("/budgets/?format=csv"))
    for label in ("Limit", "Spent"):
        assert labelled(html, label) == [Decimal(row[label.lower()]) for row in found]
    answer = browser.get("/api/v1/budgets/").json()
    assert [row["spent"] for row in answer] == [row["spent"] for row in found]
    assert [row["percent"] for row in answer] == ["75.6", "108.0"]
    assert [row["level"] for row in answer] == [50, 100]
    assert "1 of 2 budgets is gone" in " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_a_budget_with_a_cent_left_is_not_gone(fin, signed_in):
    spent = BudgetState.objects.get(budget__name="datos-money").spent
    Budget.objects.filter(name="datos-money").update(limit=spent + Decimal("0.01"))
    html = signed_in(fin).get("/budgets/").content.decode()
    assert "99 %" in html
    assert "100 %" not in html


def test_a_lead_sees_the_own_budgets_only(lea, signed_in):
    browser = signed_in(lea)
    assert [row["name"] for row in csv_rows(browser.get("/budgets/?format=csv"))] == [
        "datos-money"
    ]
    assert browser.get("/api/v1/budgets/ia-hours/").status_code == 404


def test_a_budget_is_made_and_changed_in_the_browser_and_a_stale_edit_refused(fin, signed_in):
    browser = signed_in(fin)
    typed = {
        "name": "tags",
        "scope": "tag",
        "subject": "batch",
        "measure": "tokens",
        "limit": "1000000",
        "duration": "7d",
        "thresholds": "50, 100",
        "reason": "agreed in the June review",
    }
    assert browser.post("/budgets/new/", typed).status_code == 302
    row = Budget.objects.get(name="tags")
    assert (row.limit, row.thresholds, row.is_hard) == (1000000, [50, 100], False)
    assert (
        browser.post("/budgets/tags/edit/", typed | {"limit": "5", "seen": "1"}).status_code == 302
    )
    stale = browser.post("/budgets/tags/edit/", typed | {"limit": "6", "seen": "1"})
    assert stale.status_code == 422
    assert "has changed since it was seen" in stale.content.decode()
    wrong = browser.post("/budgets/new/", typed | {"name": "x", "duration": "2mo"})
    assert (wrong.status_code, "only one month" in wrong.content.decode()) == (422, True)


def test_a_budget_that_is_gone_when_it_is_made_says_so_at_once(fin, signed_in):
    Budget.objects.all().delete()
    browser = signed_in(fin)
    typed = {
        "name": "datos-june",
        "scope": "team",
        "team": "datos",
        "measure": "money",
        "limit": "1000",
        "duration": "1mo",
        "thresholds": "80, 100",
        "reason": "agreed in May",
    }
    assert browser.post("/budgets/new/", typed).status_code == 302
    words = " ".join(re.sub(r"<[^>]+>", " ", browser.get("/budgets/").content.decode()).split())
    assert "The only budget is gone" in words
    assert "1,512.00" in words
    assert "team Datos" in words
    BudgetState.objects.all().delete()
    words = browser.get("/budgets/").content.decode()
    assert "1 of 1 budgets is not measured yet" in words
    missing = browser.post("/budgets/new/", typed | {"team": "", "name": "x"})
    assert (missing.status_code, "Choose the team." in missing.content.decode()) == (422, True)


def test_a_day_is_judged_once_it_is_over(fin):
    rebuild_draft("2026-06", now=LATE)
    today = LATE.date()
    days = {today - timedelta(days=back): "90.00" for back in range(1, 29)} | {today: "5.00"}
    by_day = {day.isoformat(): {"gpu_direct": amount} for day, amount in days.items()}
    Bill.objects.filter(team__name="datos").update(by_day=by_day)
    everybody = Actor(None, frozenset({"finance"}))
    assert unusual_days(everybody) == []
    with time_machine.travel(LATE + timedelta(days=1), tick=False):
        assert [seen.day for _team, seen in unusual_days(everybody)] == [today]
