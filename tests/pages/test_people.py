"""People in the browser: made and changed by admins, each their own password and tokens."""

import csv
import io
import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from gpuplatform.common.models import AuditEntry
from queues.models import ApiToken, Membership, PlatformRole, User
from queues.services import issue_token
from tests.conftest import PASSWORD, person

pytestmark = pytest.mark.django_db
REASON = "She joins in December"
NEW = {
    "username": "nova",
    "first_name": "Nova",
    "last_name": "Lund",
    "email": "nova@example.org",
    "roles": ["finance"],
    "sign_in": "generated",
    "reason": REASON,
    "teams-TOTAL_FORMS": "2",
    "teams-INITIAL_FORMS": "0",
    "teams-0-team": "datos",
    "teams-0-role": "lead",
    "teams-1-team": "",
    "teams-1-role": "member",
}
EVE = {"first_name": "Eve", "is_active": "yes", "reason": REASON}
TYPED = {"sign_in": "typed", "password": "a rare long one", "password_again": "a rare long one"}


def secret_in(page):
    return re.search(r"<output[^>]*><code>([^<]+)</code>", page.text)[1]


def actions(subject):
    rows = AuditEntry.objects.filter(subject=subject).order_by("id")
    return list(rows.values_list("action", flat=True))


def errors(page, field):
    forms = [page.context["form"], page.context["password_form"]]
    return [text for form in forms for text in form.errors.get(field, [])]


# ---- somebody new ------------------------------------------------------------------------------
def test_an_admin_makes_somebody_with_role_team_and_a_password_shown_once(
    ada, datos, signed_in, client
):
    page = signed_in(ada).post(reverse("person-new"), NEW)
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    nova = User.objects.get(username="nova")
    assert (nova.get_full_name(), nova.email) == ("Nova Lund", "nova@example.org")
    assert PlatformRole.objects.get(user=nova).role == "finance"
    assert Membership.objects.get(user=nova).role == "lead"
    assert actions("nova") == ["user.created", "platform_role.granted"]
    assert AuditEntry.objects.filter(subject="datos", reason=REASON).exists()
    assert secret_in(page) not in str(list(AuditEntry.objects.values()))
    assert client.login(username="nova", password=secret_in(page))


def test_the_page_of_a_new_team_leads_to_its_lead(ada, datos, signed_in):
    browser = signed_in(ada)
    team = browser.get(reverse("team", args=["datos"]))
    assert "Before Datos can work" in team.text
    path = reverse("person-new") + "?team=datos"
    assert f'href="{path}">Invite its lead' in team.text
    row = browser.get(path).context["rows"].forms[0]
    assert (row["team"].value(), row["role"].value()) == ("datos", "lead")
    assert browser.post(path, NEW).status_code == 200
    assert Membership.objects.get(user__username="nova").role == "lead"
    assert "It has a lead." in browser.get(reverse("team", args=["datos"])).text


def test_a_team_that_can_work_is_not_told_how_to_begin(platform, ada, lea, signed_in):
    for somebody in (ada, lea):
        page = signed_in(somebody).get(reverse("team", args=["datos"]))
        assert "can work" not in page.text


def test_a_typed_password_works_and_a_service_account_has_none(ada, signed_in, client, datos):
    browser, path = signed_in(ada), reverse("person-new")
    assert browser.post(path, NEW | TYPED).status_code == 302
    assert client.login(username="nova", password="a rare long one")
    robot = {"username": "robot", "sign_in": "none"}
    assert browser.post(path, NEW | robot).status_code == 302
    assert not User.objects.get(username="robot").has_usable_password()


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"username": "new"}, "username"),
        ({"username": "System"}, "username"),
        ({"username": "no va"}, "username"),
        ({"username": "ADA"}, "username"),
        ({"username": "x" * 151}, "username"),
        ({"email": "nowhere"}, "email"),
        ({"roles": ["king"]}, "roles"),
        ({"sign_in": "typed"}, "password"),
        (TYPED | {"password_again": "another one"}, "password_again"),
        (TYPED | {"password": "short", "password_again": "short"}, "password"),
        (TYPED | {"sign_in": "generated"}, "sign_in"),
    ],
    ids=str,
)
def test_what_is_wrong_with_somebody_new_stands_at_its_field(ada, datos, signed_in, typed, field):
    page = signed_in(ada).post(reverse("person-new"), NEW | typed)
    assert page.status_code == 422
    assert errors(page, field)
    assert "Nothing was saved" in page.text
    assert User.objects.count() == 1


# ---- somebody who is there ---------------------------------------------------------------------
def edit(browser, name, **typed):
    return browser.post(reverse("person-edit", args=[name]), EVE | typed)


def test_names_roles_and_access_are_changed_and_audited(ada, eve, signed_in, client):
    assert edit(signed_in(ada), "eve", roles=["auditor"], is_active="no").status_code == 302
    eve.refresh_from_db()
    assert (eve.first_name, eve.is_active) == ("Eve", False)
    assert actions("eve") == ["user.updated", "platform_role.granted"]
    entry = AuditEntry.objects.get(action="user.updated")
    assert (entry.reason, entry.after["is_active"]) == (REASON, False)
    assert not client.login(username="eve", password=PASSWORD)


def test_who_is_shut_out_is_out_at_once_with_all_tokens(ada, eve, signed_in, token_of, client):
    hers, token = signed_in(eve), token_of(eve)
    edit(signed_in(ada), "eve", is_active="no")
    assert hers.get(reverse("overview")).status_code == 302
    assert client.get("/api/v1/teams/", headers={"Authorization": token}).status_code == 401


def test_an_edit_that_changes_nothing_is_not_audited(ada, eve, signed_in):
    User.objects.filter(pk=eve.pk).update(first_name="Eve", email="")
    edit(signed_in(ada), "eve")
    assert actions("eve") == []


@pytest.mark.parametrize("typed", [{"roles": []}, {"roles": ["admin"], "is_active": "no"}])
def test_the_last_active_admin_stays(ada, signed_in, typed):
    person("gone", role="admin")
    User.objects.filter(username="gone").update(is_active=False)
    page = edit(signed_in(ada), "ada", **typed)
    assert page.status_code == 422
    assert "last active platform admin" in page.text
    ada.refresh_from_db()
    assert ada.is_active
    assert PlatformRole.objects.filter(user=ada, role="admin").exists()


def test_an_admin_may_go_where_another_one_stays(ada, signed_in):
    person("bea", role="admin")
    assert edit(signed_in(ada), "ada", roles=[]).status_code == 302
    assert not PlatformRole.objects.filter(user=ada).exists()


def test_a_stale_edit_of_a_person_shows_both_sides_and_can_then_be_applied(ada, eve, signed_in):
    browser, path = signed_in(ada), reverse("person-edit", args=["eve"])
    seen = browser.get(path).context["form"]["seen"].value()
    User.objects.filter(pk=eve.pk).update(last_name="Theirs")
    page = browser.post(path, EVE | {"seen": seen})
    assert page.status_code == 412
    box = page.text[page.text.index('id="h-conflict"') :]
    words = box[box.index("<p>") + 3 : box.index("</p>")]
    assert re.match(r"[A-Z].*\w\. Nothing of yours is lost", words), words
    rows = {row.label: row for row in page.context["conflict"]["clashes"]}
    assert (rows["last name"].theirs, rows["last name"].yours) == ("Theirs", "")
    assert page.context["form"]["last_name"].value() == "Theirs"  # hers is what was there before
    again = EVE | {"seen": page.context["form"]["seen"].value(), "last_name": "Mine"}
    assert browser.post(path, again).status_code == 302
    eve.refresh_from_db()
    assert eve.last_name == "Mine"


def test_an_admin_gives_another_password(ada, eve, signed_in, client):
    hers, path = signed_in(eve), reverse("person-password", args=["eve"])
    page = signed_in(ada).post(path, {"sign_in": "generated", "reason": REASON})
    assert client.login(username="eve", password=secret_in(page))
    assert hers.get(reverse("overview")).status_code == 302  # she is signed out elsewhere
    assert actions("eve") == ["user.password_set"]
    assert signed_in(ada).post(path, {"sign_in": "generated"}).status_code == 422


@pytest.mark.parametrize("name", ["person-edit", "person-password"])
def test_nobody_of_that_name_is_not_there(ada, signed_in, name):
    path = reverse(name, args=["nobody"])
    assert signed_in(ada).post(path, EVE).status_code == 404


# ---- the list ----------------------------------------------------------------------------------
def test_the_list_and_its_file_show_who_is_what(cast, signed_in):
    browser = signed_in(cast.ada)
    text = browser.get(reverse("people")).text
    assert all(name in text for name in ("ada", "lea", "platform admin", "Datos"))
    rows = list(csv.DictReader(io.StringIO(browser.get("/people/?format=csv&q=lea").text)))
    assert [(row["username"], row["teams"], row["active"]) for row in rows] == [
        ("lea", "datos:lead", "true")
    ]
    assert "Nothing here matches the filter" in browser.get("/people/?q=zzz").text


def test_only_admins_and_auditors_find_people_in_the_rail(cast, signed_in):
    link = f'href="{reverse("people")}"'
    found = {n: link in signed_in(p).get(reverse("account")).text for n, p in vars(cast).items()}
    assert found == {n: n in {"ada", "aud"} for n in vars(cast)}


def test_the_number_of_queries_of_the_list_does_not_grow(cast, signed_in):
    browser = signed_in(cast.ada)
    browser.get("/people/")

    def queries():
        with CaptureQueriesContext(connection) as seen:
            browser.get("/people/")
        return len(seen)

    before = queries()
    for number in range(9):
        person(f"more-{number}", role="auditor", datos="member", ia="lead")
    assert queries() == before


# ---- one's own account -------------------------------------------------------------------------
def test_everybody_changes_their_own_password_and_stays_signed_in(eve, signed_in, client):
    browser, path = signed_in(eve), reverse("account-password")
    typed = {"new_password1": "a rare long one", "new_password2": "a rare long one"}
    assert browser.post(path, typed | {"old_password": "wrong"}).status_code == 422
    assert browser.post(path, typed | {"old_password": PASSWORD}).status_code == 302
    assert browser.get(reverse("account")).status_code == 200
    assert client.login(username="eve", password="a rare long one")
    assert actions("eve") == ["user.password_set"]


def test_a_token_is_made_shown_once_used_and_revoked(ian, ia, signed_in, client):
    browser = signed_in(ian)
    typed = {"name": "laptop", "scopes": ["read", "workloads:submit"], "team": "ia", "days": "30"}
    page = browser.post(reverse("account-tokens"), typed)
    secret = secret_in(page)
    assert "no-store" in page["Cache-Control"]
    header = {"Authorization": f"Bearer {secret}"}
    assert client.get("/api/v1/teams/", headers=header).status_code == 200
    token = ApiToken.objects.get()
    assert (token.team, token.scopes) == (ia, ["read", "workloads:submit"])
    listed = browser.get(reverse("account")).text
    assert token.token_key in listed
    assert secret not in listed
    browser.post(reverse("account-token-revoke"), {"key": token.token_key})
    assert client.get("/api/v1/teams/", headers=header).status_code == 401
    assert actions("laptop") == ["token.issued", "token.revoked"]


def test_a_token_offers_no_scope_that_its_owner_could_not_use(ian, lea, ada, signed_in):
    def offered(user):
        form = signed_in(user).get(reverse("account")).context["form"]
        return [scope for scope, _label in form.fields["scopes"].choices]

    assert offered(ian) == ["read", "workloads:submit"]
    assert offered(lea) == ["read", "workloads:submit", "cost:read", "audit:read", "webhooks"]
    assert "admin" in offered(ada)
    typed = {"name": "more", "scopes": ["admin"], "days": "30"}
    assert signed_in(ian).post(reverse("account-tokens"), typed).status_code == 422


def test_nobody_revokes_the_token_of_somebody_else(ian, eve, signed_in):
    token, _secret = issue_token(ian, "his", ["read"], actor=ian, ttl=timedelta(days=1))
    for key in (token.token_key, "", "\x00"):
        path = reverse("account-token-revoke")
        assert signed_in(eve).post(path, {"key": key}).status_code == 404
    assert ApiToken.objects.count() == 1
