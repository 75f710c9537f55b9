"""Pages speak the reader's language; programs, and what is kept, speak English."""

import re
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from gpuplatform.common.models import AuditEntry
from gpuplatform.common.reasons import sentence
from gpuplatform.common.templatetags import money, shapes
from queues.models import User
from queues.services import set_language

GERMAN = {"Accept-Language": "de-AT,de;q=0.9,en;q=0.5"}


def language_of(page):
    return re.search(r'<html lang="([^"]+)"', page.text)[1]


# ---- whose language ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("wanted", "spoken"),
    [
        ("", "en"),
        ("de", "de"),
        ("de-AT,de;q=0.9,en;q=0.5", "de"),
        ("fr, es;q=0.8", "es"),
        ("fr", "en"),
        ("*", "en"),
        ("\N{BULLET}", "en"),
    ],
)
def test_the_page_to_sign_in_speaks_what_the_browser_prefers(client, wanted, spoken) -> None:
    page = client.get(reverse("login"), headers={"Accept-Language": wanted})
    assert language_of(page) == page["Content-Language"] == spoken
    assert {"Accept-Language", "Cookie"} <= set(page["Vary"].split(", "))


def test_a_browser_keeps_the_language_chosen_on_the_page_to_sign_in(client) -> None:
    chosen = client.post(reverse("set-language"), {"language": "es", "next": "/login/?next=/"})
    assert (chosen.status_code, chosen["Location"]) == (302, "/login/?next=/")
    assert language_of(client.get(reverse("login"), headers=GERMAN)) == "es"


def test_who_has_chosen_a_language_sees_it_in_every_browser(lea, signed_in) -> None:
    browser = signed_in(lea)
    page = browser.post(reverse("account-language"), {"language": "de"}, follow=True)
    assert language_of(page) == "de"
    assert '<option value="de" lang="de" selected>Deutsch</option>' in page.text
    other = {"Accept-Language": "es"}
    assert language_of(signed_in(lea).get(reverse("queues"), headers=other)) == "de"
    browser.post(reverse("account-language"), {"language": ""})
    assert language_of(signed_in(lea).get(reverse("queues"), headers=other)) == "es"
    noted = AuditEntry.objects.filter(action="user.language_set").order_by("id")
    assert [entry.after for entry in noted] == [{"language": "de"}, {"language": ""}]


def test_a_language_that_no_page_speaks_is_refused(lea, signed_in) -> None:
    page = signed_in(lea).post(reverse("account-language"), {"language": "tlh"}, follow=True)
    assert "is not one of en, de, es" in page.text
    assert User.objects.get(pk=lea.pk).language == ""


def test_a_page_in_german_is_german_from_its_title_to_its_table(lea, signed_in, datos) -> None:
    page = signed_in(lea).get(reverse("teams"), headers=GERMAN)
    assert "Ihre Teams</h1>" in page.text
    for words in (">Warteschlangen<", ">Abrechnungen<", ">Abmelden<", "Zum Inhalt springen"):
        assert words in page.text
    assert "Sign out" not in page.text


# ---- who is spoken to in English ---------------------------------------------------------------
@pytest.mark.parametrize(
    "address",
    [
        "/api/v1/queues/?limit=x",
        "/api/v1/workloads/no-such/",
        "/api/docs/",
        "/healthz",
        "/queues/?format=csv",
        "/workloads/?format=json",
        "/bills/2026-06/?format=focus",
    ],
)
def test_programs_are_answered_in_english_whatever_they_accept(lea, signed_in, address) -> None:
    set_language(lea, "de", actor=lea)
    answer = signed_in(lea).get(address, headers=GERMAN)
    assert answer["Content-Language"] == "en"
    assert "Accept-Language" not in answer.get("Vary", "")


def test_a_problem_over_rest_is_told_in_english(lea, datos, signed_in) -> None:
    set_language(lea, "de", actor=lea)
    wrong = {"name": "Not a name", "queue": "nowhere"}
    browser = signed_in(lea)
    answers = [
        browser.post("/api/v1/workloads/", wrong, "application/json", headers=headers).json()
        for headers in ({}, GERMAN)
    ]
    for answer in answers:
        answer.pop("request_id", None)
    assert answers[0] == answers[1]
    assert answers[0]["errors"]


def test_nothing_of_a_language_stays_behind_for_the_next_request() -> None:
    before = translation.get_language()
    Client().get(reverse("login"), headers=GERMAN)
    assert translation.get_language() == before == "en"


# ---- numbers and days --------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("language", "hours", "price", "day"),
    [
        ("en", "1,234.5", "€1,234.50", "14 Jul 2025 14:03"),
        ("de", "1.234,5", "1.234,50\N{NO-BREAK SPACE}€", "14. Juli 2025 14:03"),
        ("es", "1.234,5", "1.234,50\N{NO-BREAK SPACE}€", "14 jul 2025 14:03"),
    ],
)
def test_numbers_money_and_days_are_written_as_the_language_does(
    language, hours, price, day
) -> None:
    amount = Decimal("1234.5")
    with translation.override(language):
        assert shapes.hours(float(amount)) == money.gpu_hours(amount) == hours
        assert money.with_currency(amount, "EUR") == price
        assert money.whole_currency(Decimal(1234), "EUR") == re.sub(r"[.,]50", "", price)
        assert shapes.stamp(datetime(2025, 7, 14, 14, 3, tzinfo=UTC)) == day
        turn = {"rival": "a", "where": "b", "their_hours": "1234.5", "our_hours": "0"}
        assert hours in sentence("USED_MORE", turn)
