"""Who has a second factor is asked for it; who must have one sees nothing before."""

from datetime import timedelta

import pytest
from allauth.mfa.models import Authenticator
from django.core.cache import cache
from django.core.management import call_command
from django.urls import reverse

from gpuplatform.common.models import AuditEntry
from queues.services import issue_token
from tests.conftest import PASSWORD
from tests.queues.factors import by_password, code_of, enter, given, set_up

pytestmark = pytest.mark.django_db
START = "2026-06-01T00:00:00Z"
LED = f"{reverse('second-factor')}?next=/teams/"


@pytest.fixture(autouse=True)
def still(time_machine):
    time_machine.move_to(START, tick=False)
    return time_machine


@pytest.fixture
def secured(eve, still):
    """Eve's secret and recovery codes."""
    return given(eve)


def actions():
    return list(AuditEntry.objects.order_by("id").values_list("action", flat=True))


# ---- signing in ------------------------------------------------------------------------------


def test_without_a_second_factor_the_password_is_enough(eve):
    browser, answer = by_password("eve", next="/teams/")
    assert (answer.status_code, answer["Location"]) == (302, "/teams/")
    assert browser.get("/teams/").status_code == 200


def test_with_one_the_password_opens_nothing_until_the_code_is_right(secured):
    browser, answer = by_password("eve", next="/teams/")
    assert answer["Location"] == reverse("mfa_authenticate")
    assert browser.get("/teams/").status_code == 302
    before = browser.cookies["sessionid"].value

    wrong = enter(browser, "000000")
    assert wrong.status_code == 422
    assert "Incorrect code" in wrong.text
    assert browser.get("/teams/").status_code == 302

    right = enter(browser, code_of(secured[0]))
    assert (right.status_code, right["Location"]) == (302, "/teams/")
    assert browser.cookies["sessionid"].value != before  # nobody who knew it comes along
    assert browser.get("/teams/").status_code == 200


def test_the_page_for_codes_is_for_those_who_gave_a_password(client, secured):
    assert client.get(reverse("mfa_authenticate"))["Location"] == reverse("login")
    assert enter(client, code_of(secured[0]))["Location"] == reverse("login")


def test_a_code_is_good_once_wherever_the_cache_is(secured, still):
    secret, _ = secured
    now, next_one = code_of(secret), code_of(secret, 1)
    assert enter(by_password("eve")[0], now).status_code == 302
    for _ in range(2):
        assert enter(by_password("eve")[0], now).status_code == 422
        cache.clear()  # another machine
    still.shift(30)
    assert enter(by_password("eve")[0], now).status_code == 422  # a late clock, but used
    assert enter(by_password("eve")[0], next_one).status_code == 302


@pytest.mark.parametrize(("periods", "status"), [(-2, 422), (-1, 302), (1, 302), (2, 422)])
def test_a_clock_may_be_off_by_half_a_minute(secured, periods, status):
    assert enter(by_password("eve")[0], code_of(secured[0], periods)).status_code == status


@pytest.mark.parametrize(
    "sent", [{}, {"credential": "{}"}, {"code": ""}, {"code": "é１２３"}, {"code": "9" * 5000}]
)
def test_what_is_no_code_is_refused(secured, sent):
    browser, _ = by_password("eve")
    assert browser.post(reverse("mfa_authenticate"), sent).status_code == 422


@pytest.mark.parametrize("gap", [" ", "-"])
def test_a_code_may_be_typed_in_two_halves_and_is_used_up_all_the_same(secured, gap):
    code = code_of(secured[0])
    for typed, status in ((f"{code[:3]}{gap}{code[3:]}", 302), (code, 422)):
        assert enter(by_password("eve")[0], typed).status_code == status


def test_a_recovery_code_is_good_once_and_noted(secured):
    code = secured[1][3]
    assert enter(by_password("eve")[0], code).status_code == 302
    assert enter(by_password("eve")[0], code).status_code == 422
    assert enter(by_password("eve")[0], secured[1][4]).status_code == 302
    assert actions().count("second_factor.recovery_code_used") == 2


def test_after_five_wrong_codes_one_has_to_wait_whatever_the_browser(secured, still):
    for _ in range(5):
        assert enter(by_password("eve")[0], "000000").status_code == 422
    browser, _ = by_password("eve")
    refused = enter(browser, code_of(secured[0]))  # even the right one is not looked at
    assert (refused.status_code, refused["Retry-After"]) == (429, "10")
    assert "wait 10 seconds" in refused.text
    still.shift(10)
    assert enter(browser, code_of(secured[0])).status_code == 302


def test_who_was_shut_out_in_between_stays_out(secured, eve):
    browser, _ = by_password("eve")
    eve.is_active = False
    eve.save()
    enter(browser, code_of(secured[0]))
    assert browser.get("/teams/").status_code == 302


def test_the_question_for_a_code_does_not_wait_for_ever(secured, still):
    browser, _ = by_password("eve")
    still.shift(3600)
    assert enter(browser, code_of(secured[0]))["Location"] == reverse("login")


# ---- setting up ------------------------------------------------------------------------------


def test_setting_up_needs_a_right_code_and_is_audited(eve):
    browser, _ = by_password("eve")
    assert browser.post(reverse("mfa_activate_totp"), {"code": "123"}).status_code == 422
    assert not Authenticator.objects.exists()
    secret, codes = set_up(browser)
    assert len(set(codes)) == 10
    assert actions() == ["second_factor.added"]
    kept = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert secret not in kept  # a copy of the database opens nothing
    assert "set up" in browser.get(reverse("account")).text
    again = browser.get(reverse("mfa_view_recovery_codes")).text
    assert not [code for code in codes if code in again]  # shown once


def test_another_secret_of_the_installation_refuses_codes_and_says_no_more(secured, settings):
    settings.SECRET_KEY = "another"
    browser, _ = by_password("eve")
    assert enter(browser, code_of(secured[0])).status_code == 422


def test_who_signed_in_long_ago_gives_the_password_again(eve, still):
    browser, _ = by_password("eve")
    still.shift(3600)
    path = reverse("mfa_activate_totp")
    asked = browser.get(path)
    assert asked["Location"].startswith(reverse("account_reauthenticate"))
    for _ in range(5):
        assert browser.post(asked["Location"], {"password": "guess"}).status_code == 422
    assert browser.post(asked["Location"], {"password": PASSWORD}).status_code == 429
    still.shift(10)
    assert browser.post(asked["Location"], {"password": PASSWORD})["Location"] == path
    assert browser.get(path).status_code == 200


def test_a_second_factor_is_removed_with_a_code_not_with_the_password(secured, still):
    browser, _ = by_password("eve")
    enter(browser, code_of(secured[0]))
    still.shift(3600)
    path = reverse("mfa_deactivate_totp")
    asked = browser.get(path)["Location"]
    assert asked.startswith(reverse("mfa_reauthenticate"))
    assert (
        browser.post(reverse("account_reauthenticate"), {"password": PASSWORD}).status_code == 302
    )
    assert browser.get(path).status_code == 302
    assert browser.post(asked, {"code": code_of(secured[0])})["Location"] == path
    browser.post(path)
    assert not Authenticator.objects.exists()
    assert actions()[-1] == "second_factor.removed"
    assert by_password("eve", next="/teams/")[1]["Location"] == "/teams/"


def test_new_recovery_codes_end_the_old_ones(secured):
    secret, old = secured
    browser, _ = by_password("eve")
    enter(browser, code_of(secret))
    made = browser.post(reverse("mfa_generate_recovery_codes"), follow=True)
    new = made.context["unused_codes"]
    assert not set(new) & set(old)
    assert enter(by_password("eve")[0], old[0]).status_code == 422
    assert enter(by_password("eve")[0], new[0]).status_code == 302


# ---- whose role demands it -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ada", "fin", "lea"])
def test_who_needs_one_is_led_to_set_it_up_before_anything_else(name, settings, request, still):
    settings.MFA_REQUIRED_ROLES = frozenset({"admin", "finance", "lead"})
    request.getfixturevalue(name)
    browser, _ = by_password(name)
    for path in ("/teams/", "/people/", "/account/"):
        assert browser.get(path)["Location"] == f"{reverse('second-factor')}?next={path}"
    page = browser.get(LED)
    assert "Your role needs a second factor" in page.text
    refused = browser.get("/api/v1/teams/")
    assert refused.status_code == 403
    assert "second factor" in refused.json()["detail"]
    set_up(browser)
    assert browser.get("/teams/").status_code == 200
    assert browser.get("/api/v1/teams/").status_code == 200


def test_others_and_their_programs_are_left_alone(settings, cast, client):
    settings.MFA_REQUIRED_ROLES = frozenset({"admin", "finance"})
    for name in ("lea", "ian", "aud", "eve"):
        assert by_password(name)[0].get("/teams/").status_code == 200
    _, secret = issue_token(cast.ada, "robot", ["read"], actor=cast.ada, ttl=timedelta(days=1))
    answer = client.get("/api/v1/teams/", headers={"authorization": f"Bearer {secret}"})
    assert answer.status_code == 200


def test_who_comes_with_a_second_factor_is_not_asked_twice(secured, settings, eve):
    browser, _ = by_password("eve", next="/teams/")
    settings.MFA_REQUIRED_ROLES = frozenset({"admin"})
    eve.is_superuser = True
    eve.save()
    enter(browser, code_of(secured[0]))
    assert browser.get("/teams/").status_code == 200


def test_a_session_that_is_older_than_the_role_is_asked_for_a_code(ada, settings, still):
    early, _ = by_password("ada")
    secret, _ = set_up(by_password("ada")[0])
    still.shift(60)
    settings.MFA_REQUIRED_ROLES = frozenset({"admin"})
    page = early.get("/teams/", follow=True)
    assert "A code is needed" in page.text
    assert reverse("mfa_reauthenticate") in page.text
    path = f"{reverse('mfa_reauthenticate')}?next=/teams/"
    assert early.post(path, {"code": code_of(secret)})["Location"] == "/teams/"
    assert early.get("/teams/").status_code == 200


def test_who_removes_a_demanded_one_has_to_set_up_another(ada, settings):
    settings.MFA_REQUIRED_ROLES = frozenset({"admin"})
    browser, _ = by_password("ada")
    set_up(browser)
    browser.post(reverse("mfa_deactivate_totp"))
    assert browser.get("/teams/")["Location"] == LED


def test_the_page_leads_to_no_foreign_site(eve):
    browser, _ = by_password("eve")
    page = browser.get(f"{reverse('second-factor')}?next=https://evil.example")
    assert "evil.example" not in page.text


# ---- lost phones -----------------------------------------------------------------------------


def test_an_admin_takes_off_what_somebody_lost_and_says_why(secured, ada, signed_in):
    page, path = signed_in(ada), reverse("person-factor", args=["eve"])
    assert page.post(path, {"reason": ""}).status_code == 422
    assert Authenticator.objects.exists()
    assert page.post(path, {"reason": "The phone fell into a lake"}).status_code == 302
    assert not Authenticator.objects.exists()
    entry = AuditEntry.objects.latest("id")
    assert (entry.actor_name, entry.subject, entry.reason) == (
        "ada",
        "eve",
        "The phone fell into a lake",
    )
    assert by_password("eve", next="/teams/")[1]["Location"] == "/teams/"
    assert page.post(path, {"reason": "Once more, to be sure"}, follow=True).status_code == 200


def test_from_a_terminal_it_is_taken_off_where_no_admin_can_sign_in(secured, capsys):
    call_command("remove_second_factor", "eve")
    assert not Authenticator.objects.exists()
    assert AuditEntry.objects.latest("id").actor_name == "system"


def test_nobody_is_demanded_one_unless_the_installation_says_so(ada):
    assert by_password("ada")[0].get("/teams/").status_code == 200
