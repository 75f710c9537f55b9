"""Who comes through the company's identity provider gets in as who they are, with their groups."""

import pytest
from allauth.socialaccount.models import SocialAccount
from django.urls import reverse

from gpuplatform.common.models import AuditEntry
from queues.models import PlatformRole, User
from queues.services import add_group_grant
from tests.conftest import PASSWORD
from tests.queues.factors import by_password, code_of, enter, given
from tests.queues.provider import CLIENT, SECRET, Double, key

pytestmark = pytest.mark.django_db


@pytest.fixture
def provider(httpserver, settings):
    double = Double(httpserver)
    settings.OIDC_ISSUER, settings.OIDC_NAME = double.issuer, "Acme"
    settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = CLIENT, SECRET
    settings.OIDC_ASK = "gpu-help@acme.example"
    return double


@pytest.fixture
def rules(datos, ia, db):
    """Give groups their places."""
    add_group_grant("/gpu/datos", datos, "member", actor=None)
    add_group_grant("/gpu/datos-leads", datos, "lead", actor=None)
    add_group_grant("/gpu/ia", ia, "member", actor=None)
    add_group_grant("/gpu/money", None, "finance", actor=None)
    add_group_grant("/gpu/admins", None, "admin", actor=None)


def places(username="nora"):
    """Return somebody's teams and roles."""
    user = User.objects.get(username=username)
    teams = dict(user.memberships.values_list("team__name", "role"))
    return teams, set(user.platform_roles.values_list("role", flat=True))


def inside(browser):
    return browser.get("/teams/").status_code == 200


# ---- getting in ------------------------------------------------------------------------------


def test_the_door_shows_the_button_only_where_there_is_a_provider(client, settings, provider):
    page = client.get("/login/?next=/teams/")
    assert "Sign in with Acme" in page.text
    assert f"{reverse('provider-begin')}?next=%2Fteams%2F" in page.text
    settings.OIDC_ISSUER = ""
    assert "Acme" not in client.get("/login/").text
    assert client.get(reverse("provider-begin")).status_code == 404
    assert client.get(reverse("provider-callback")).status_code == 404


def test_who_comes_for_the_first_time_is_made_and_gets_what_their_groups_give(provider, rules):
    browser, answer = provider.sign_in(
        path="?next=/teams/datos/",
        groups=["/gpu/datos", "/gpu/money", "/else"],
        name="Nora Lind",
        email="nora@acme.example",
        email_verified=True,
    )
    assert (answer.status_code, answer["Location"]) == (302, "/teams/datos/")
    assert browser.get("/teams/datos/").status_code == 200
    nora = User.objects.get(username="nora")
    assert (nora.first_name, nora.last_name, nora.email) == ("Nora", "Lind", "nora@acme.example")
    assert not nora.has_usable_password()
    assert places() == ({"datos": "member"}, {"finance"})
    assert set(AuditEntry.objects.values_list("action", "actor_name")) >= {
        ("user.created", "identity provider"),
        ("membership.set", "identity provider"),
        ("platform_role.granted", "identity provider"),
    }
    assert SocialAccount.objects.get().extra_data == {}  # nothing of what was said is kept


def test_the_client_proves_itself_and_the_code_is_bound_to_this_browser(provider, rules, client):
    asked = provider.begin(client)
    assert asked["code_challenge_method"] == "S256"
    assert set(asked["scope"].split()) == {"openid", "profile", "email"}
    assert asked["redirect_uri"] == f"http://testserver{reverse('provider-callback')}"
    provider.end(client, asked)
    sent = provider.asked[0]
    assert sent["code_verifier"]
    assert (sent["who"].username, sent["who"].password) == (CLIENT, SECRET)


def test_a_session_begins_anew_and_ends_after_a_working_day(provider, rules, client):
    asked = provider.begin(client)
    before = client.cookies["sessionid"].value
    provider.said["groups"] = ["/gpu/datos"]
    provider.end(client, asked)
    assert client.cookies["sessionid"].value != before
    assert client.session.get_expiry_age() == 12 * 3600


def test_it_leads_to_no_foreign_site(provider, rules):
    _, answer = provider.sign_in(path="?next=https://evil.example/", groups=["/gpu/datos"])
    assert answer["Location"] == "/"


def test_the_next_time_it_is_the_same_person_whatever_they_are_called_then(provider, rules):
    provider.sign_in(groups=["/gpu/datos"])
    provider.sign_in(preferred_username="nora.berg", family_name="Berg", given_name="Nora")
    assert User.objects.filter(username__startswith="nora").count() == 1
    assert User.objects.get().last_name == "Berg"


# ---- groups ----------------------------------------------------------------------------------


def test_a_group_that_is_left_is_lost_at_the_next_sign_in(provider, rules):
    provider.sign_in(groups=["/gpu/datos", "/gpu/ia", "/gpu/money"])
    provider.sign_in(groups=["/gpu/ia"])
    assert places() == ({"ia": "member"}, set())
    provider.sign_in(groups=["/gpu/ia", "/gpu/datos", "/gpu/datos-leads"])
    assert places() == ({"ia": "member", "datos": "lead"}, set())
    provider.sign_in(groups=["/gpu/datos"])
    assert places() == ({"datos": "member"}, set())
    gone = AuditEntry.objects.filter(action="membership.removed").order_by("id")
    assert [(one.team, one.actor_name) for one in gone] == [
        ("datos", "identity provider"),
        ("ia", "identity provider"),
    ]


def test_what_was_given_by_hand_stays_as_it_was_given(provider, rules, ian):
    ian.email = "ian@acme.example"
    ian.save()
    PlatformRole.objects.create(user=ian, role="auditor")
    provider.sign_in(
        email="ian@acme.example", email_verified=True, groups=["/gpu/datos", "/gpu/money"]
    )
    assert places("ian") == ({"ia": "member", "datos": "member"}, {"auditor", "finance"})
    _, answer = provider.sign_in(groups=[])
    assert answer["Location"] == "/"  # there is still what was given by hand
    assert places("ian") == ({"ia": "member"}, {"auditor"})


def test_a_membership_that_an_admin_confirms_is_given_by_hand(provider, rules, ada, signed_in):
    provider.sign_in(groups=["/gpu/datos"])
    signed_in(ada).post(
        reverse("team-member", args=["datos"]), {"username": "nora", "role": "member"}
    )
    provider.sign_in(groups=[])
    assert places() == ({"datos": "member"}, set())


def test_without_a_place_one_stays_out_and_is_told_whom_to_ask(provider, rules):
    browser, answer = provider.sign_in(groups=["/else"])
    assert answer.status_code == 403
    assert "gpu-help@acme.example" in answer.text
    assert not User.objects.exists()
    provider.sign_in(groups=["/gpu/datos"])
    browser, answer = provider.sign_in(groups=[])
    assert answer.status_code == 403
    assert not inside(browser)
    assert places() == ({}, set())


def test_where_so_set_one_comes_in_without_a_place_and_sees_nothing(provider, rules, settings):
    settings.OIDC_WITHOUT_GROUP = True
    browser, answer = provider.sign_in(groups=[])
    assert answer.status_code == 302
    page = browser.get("/teams/")
    assert "None of your groups has a place here: ask gpu-help@acme.example." in page.text
    assert "datos" not in page.text
    assert browser.get("/teams/datos/").status_code == 404


# ---- who it is -------------------------------------------------------------------------------


def test_who_is_shut_out_stays_out(provider, rules):
    provider.sign_in(groups=["/gpu/datos"])
    User.objects.update(is_active=False)
    browser, answer = provider.sign_in()
    assert answer.status_code == 403
    assert "shut out" in answer.text
    assert not inside(browser)


# ---- what is not believed --------------------------------------------------------------------


@pytest.mark.parametrize("twist", [{"nonce": "another"}, {"sub": ""}, {"groups": 7}])
def test_what_is_not_believed_opens_nothing_and_takes_nothing_away(provider, rules, twist):
    provider.sign_in(groups=["/gpu/datos"])
    provider.twist = twist
    browser, answer = provider.sign_in(groups=[])
    assert answer.status_code == 403
    assert "came to nothing" in answer.text
    assert not inside(browser)
    assert places() == ({"datos": "member"}, set())


def test_a_token_that_another_key_signed_opens_nothing(provider, rules):
    provider.signer = key("second")
    assert provider.sign_in(groups=["/gpu/datos"])[1].status_code == 403
    assert not User.objects.exists()


def test_user_information_adds_to_the_token_if_it_is_about_the_same_person(provider, rules):
    provider.extra = {"userinfo_endpoint": f"{provider.issuer}/userinfo"}
    provider.told = {"sub": "1001", "groups": ["/gpu/datos"]}
    assert provider.sign_in()[1].status_code == 302
    assert places() == ({"datos": "member"}, set())
    provider.told = {"sub": "1002", "groups": ["/gpu/admins"]}
    assert provider.sign_in()[1].status_code == 403
    assert places() == ({"datos": "member"}, set())


def test_an_answer_belongs_to_one_beginning_in_one_browser(provider, rules, client):
    provider.said["groups"] = ["/gpu/datos"]
    asked = provider.begin(client)
    stranger, _ = by_password("nobody")
    assert provider.end(stranger, asked).status_code == 403  # a code that was slipped to somebody
    assert provider.end(client, asked, state="guess").status_code == 403
    assert provider.end(client, asked)["Location"] == "/"
    client.post(reverse("logout"))
    assert provider.end(client, asked).status_code == 403  # again


def test_who_changes_their_mind_is_back_at_the_door(provider, client):
    asked = provider.begin(client)
    query = {"error": "access_denied", "state": asked["state"]}
    assert client.get(reverse("provider-callback"), query)["Location"] == reverse("login")
    asked = provider.begin(client)
    query = {"error": "server_error", "state": asked["state"]}
    assert client.get(reverse("provider-callback"), query).status_code == 403


# ---- when it is away, and passwords ----------------------------------------------------------


def test_a_provider_that_is_away_is_told_and_passwords_go_on(provider, client, eve):
    asked = provider.begin(client)
    provider.server.stop()
    try:
        for answer in (client.get(reverse("provider-begin")), provider.end(client, asked)):
            assert answer.status_code == 503
            assert "Acme does not answer" in answer.text
    finally:
        provider.server.start()
    assert inside(by_password("eve")[0])


@pytest.mark.parametrize("body", ["<html>", "[]", "{}", '{"issuer": "https://evil.example"}'])
def test_a_provider_that_talks_nonsense_is_no_fault_of_ours(httpserver, settings, client, body):
    settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID = httpserver.url_for("/x"), CLIENT
    httpserver.expect_request("/x/.well-known/openid-configuration").respond_with_data(body)
    assert client.get(reverse("provider-begin")).status_code in {403, 503}


def test_passwords_can_be_left_to_one_admin(provider, settings, ada, lea):
    settings.LOCAL_SIGN_IN_ONLY = "ada"
    browser, answer = by_password("lea")
    assert "Sign in with Acme: passwords are not taken any more." in answer.text
    assert not inside(browser)
    assert inside(by_password("ada")[0])


@pytest.mark.parametrize("change", [{"username": "away"}, {"is_active": False}, {"password": "!"}])
def test_nobody_is_locked_out_where_that_admin_is_none(provider, settings, ada, fin, change):
    settings.LOCAL_SIGN_IN_ONLY = "ada"
    other = User.objects.create_superuser("root", password=PASSWORD)
    assert not inside(by_password("root")[0])
    User.objects.filter(pk=ada.pk).update(**change)
    assert inside(by_password(other.username)[0])
    assert not inside(by_password("fin")[0])


def test_without_a_provider_that_setting_means_nothing(settings, lea):
    settings.LOCAL_SIGN_IN_ONLY = "ada"
    assert inside(by_password("lea")[0])


# ---- with a second factor --------------------------------------------------------------------


def test_a_second_factor_is_asked_for_after_the_provider_too(provider, rules):
    provider.sign_in(groups=["/gpu/datos"])
    secret, _ = given(User.objects.get())
    browser, answer = provider.sign_in(path="?next=/teams/datos/")
    assert answer["Location"] == reverse("mfa_authenticate")
    assert not inside(browser)
    assert enter(browser, code_of(secret))["Location"] == "/teams/datos/"


@pytest.mark.parametrize("trusted", [True, False])
def test_the_provider_may_count_as_the_second_factor(provider, rules, settings, trusted):
    settings.MFA_REQUIRED_ROLES = frozenset({"finance"})
    settings.OIDC_IS_SECOND_FACTOR = trusted
    browser, _ = provider.sign_in(groups=["/gpu/money"])
    assert inside(browser) is trusted
    assert browser.get(reverse("mfa_activate_totp")).status_code == 200  # no password to ask for


def test_one_persons_second_factor_is_not_anothers(provider, rules, settings, ada):
    settings.MFA_REQUIRED_ROLES = frozenset({"admin"})
    settings.OIDC_IS_SECOND_FACTOR = True
    provider.sign_in(groups=["/gpu/datos"])
    given(User.objects.get(username="nora"))
    browser, answer = provider.sign_in()
    assert answer["Location"] == reverse("mfa_authenticate")
    browser.post("/login/", {"username": "ada", "password": PASSWORD})
    assert not inside(browser)
