"""Whom a comer from the identity provider is here, and what groups give."""

from dataclasses import replace

import pytest
from allauth.socialaccount.models import SocialAccount
from django.urls import reverse

from gpuplatform.common.models import AuditEntry
from queues.models import GroupGrant, User
from queues.services import add_group_grant, follow_groups
from queues.sign_in.arriving import Refusal, arrive
from queues.sign_in.claims import Comer

pytestmark = pytest.mark.django_db
NORA = Comer("1001", "nora", "Nora", "Lind", "", False, frozenset({"/g"}))


@pytest.fixture(autouse=True)
def provider(settings, datos):
    settings.OIDC_ISSUER = "https://id.acme.example"
    add_group_grant("/g", datos, "member", actor=None)
    add_group_grant("/admins", None, "admin", actor=None)
    return settings


def come(**other):
    user, refusal = arrive(replace(NORA, **other))
    assert refusal is None
    return user


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("nora", "nora-2"),
        ("system", "system-2"),  # the audit trail signs so
        ("new", "new-2"),
        ("x" * 150, "x" * 150),
    ],
)
def test_a_user_name_is_one_that_nobody_has(wanted, name):
    User.objects.create_user("Nora")
    assert come(username=wanted).username == name
    assert come(subject="other", username=wanted).username == name.removesuffix("-2")[:148] + (
        "-3" if name.endswith("-2") else "-2"
    )


ADDRESS = {"email": "Lea@Example.org", "email_verified": True}


@pytest.mark.parametrize(
    ("said", "is_lea"),
    [
        (ADDRESS, True),
        (ADDRESS | {"email_verified": False}, False),
        (ADDRESS | {"email": "other@example.org", "username": "lea"}, False),
        (ADDRESS | {"email": ""}, False),
    ],
)
def test_only_a_verified_address_makes_one_somebody_who_is_there(lea, said, is_lea):
    assert (come(**said) == lea) is is_lea
    assert lea.has_usable_password()


def test_an_address_of_two_people_or_of_somebody_linked_links_nobody(lea):
    assert come(**ADDRESS) == lea
    assert come(subject="2", **ADDRESS) != lea
    SocialAccount.objects.all().delete()
    User.objects.create_user("twin", "lea@example.org")
    assert come(subject="3", **ADDRESS).username not in {"lea", "twin"}


def test_linking_by_address_can_be_switched_off(lea, settings):
    settings.OIDC_LINK_BY_EMAIL = False
    assert come(**ADDRESS) != lea


def test_who_is_shut_out_gets_neither_in_nor_linked(lea):
    User.objects.filter(pk=lea.pk).update(is_active=False)
    assert arrive(replace(NORA, **ADDRESS)) == (None, Refusal.SHUT_OUT)
    assert not SocialAccount.objects.exists()


def test_another_issuer_has_other_people(settings):
    first = come()
    settings.OIDC_ISSUER = "https://id.other.example"
    assert come() != first


def test_names_follow_and_an_address_only_if_it_is_verified():
    come()
    nora = come(last_name="Berg", username="nora.berg", email="nora@acme.example")
    assert (nora.username, User.objects.get().last_name, User.objects.get().email) == (
        "nora",
        "Berg",
        "",
    )
    come(first_name="a" * 151, email="no address", email_verified=True)
    come(email="nora@acme.example", email_verified=True)
    assert User.objects.get().email == "nora@acme.example"


def test_the_last_admin_stays_one():
    user, other = (User.objects.create_user(name) for name in ("nora", "otto"))
    follow_groups(user, ["/admins"])
    follow_groups(user, [])
    assert user.platform_roles.exists()
    follow_groups(other, ["/admins"])
    follow_groups(user, [])
    assert not user.platform_roles.exists()


def test_following_twice_writes_nothing():
    user = come(groups=frozenset({"/g", "/admins"}))
    count = AuditEntry.objects.count()
    come(groups=frozenset({"/g", "/admins"}))
    assert AuditEntry.objects.count() == count
    assert user.memberships.get().by_group


# ---- the page of groups ----------------------------------------------------------------------


def test_an_admin_says_what_groups_give(ada, ia, signed_in):
    browser, path = signed_in(ada), reverse("groups")
    GroupGrant.objects.all().delete()
    assert "No group gives anything yet" in browser.get(path).text
    for gives in ("ia:lead", "finance"):
        assert browser.post(path, {"group": "/new", "gives": gives}).status_code == 302
    for wrong in ({"group": "", "gives": "finance"}, {"group": "/new", "gives": "root"}):
        assert browser.post(path, wrong).status_code == 422
    for again in ("finance", "ia:member"):
        refused = browser.post(path, {"group": "/new", "gives": again})
        assert refused.status_code == 422
        assert "gives something there already" in refused.text
    assert "2 rules say what groups give" in browser.get(path).text
    for grant in GroupGrant.objects.all():
        browser.post(reverse("group-remove"), {"key": grant.pk})
    assert not GroupGrant.objects.exists()
    assert browser.post(reverse("group-remove"), {"key": "7"}).status_code == 404
    written = AuditEntry.objects.filter(subject="/new").values_list("action", "team", "actor_name")
    assert sorted(written) == [
        ("group_grant.added", "", "ada"),
        ("group_grant.added", "ia", "ada"),
        ("group_grant.removed", "", "ada"),
        ("group_grant.removed", "ia", "ada"),
    ]


def test_others_do_not(cast, signed_in):
    for user in (cast.lea, cast.fin, cast.aud, cast.eve):
        assert signed_in(user).get(reverse("groups")).status_code == 403
