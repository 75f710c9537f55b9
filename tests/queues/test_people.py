"""Who belongs where, and what a token may be."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from gpuplatform.common.problems import Rejected
from queues import services
from queues.models import Membership, PlatformRole, User
from queues.specs import ClusterQueueSpec, CohortSpec, PersonSpec, TeamSpec
from tests.queues.test_services import codes, entries

pytestmark = pytest.mark.django_db


def test_membership_is_set_changed_and_taken_away(ada, datos, eve):
    services.set_membership(datos, eve, "member", ada)
    services.set_membership(datos, eve, "member", ada)
    services.set_membership(datos, eve, "lead", ada, reason="promoted, and why so")
    assert Membership.objects.get().role == "lead"
    services.set_membership(datos, eve, None, ada)
    services.set_membership(datos, eve, None, ada)
    assert not Membership.objects.exists()
    expected = ["membership.set", "membership.set", "membership.removed"]
    assert entries(subject="datos", team="datos") == expected
    with pytest.raises(Rejected):
        services.set_membership(datos, eve, "king", ada)


def test_a_lead_cannot_leave_the_team_without_another_one_agreeing(ada, datos, lea, eve):
    for role in (None, "member"):
        with pytest.raises(Rejected) as caught:
            services.set_membership(datos, lea, role, lea)
        assert codes(caught) == [("role", "own_lead")]
    services.set_membership(datos, eve, "lead", lea)
    services.set_membership(datos, lea, None, eve)
    assert [m.user.username for m in Membership.objects.filter(role="lead")] == ["eve"]


def test_platform_roles_are_granted_and_revoked_once(ada, eve):
    for granted in (True, True, False, False):
        services.set_platform_role(eve, "auditor", granted, actor=ada)
    assert entries(subject="eve") == ["platform_role.granted", "platform_role.revoked"]
    assert not PlatformRole.objects.filter(user=eve).exists()
    with pytest.raises(Rejected):
        services.set_platform_role(eve, "king", True, actor=ada)


def test_a_person_has_a_name_of_their_own(ada):
    robot = services.create_person("robot", actor=ada)
    assert not robot.has_usable_password()
    with pytest.raises(Rejected) as caught:
        services.create_person("robot", actor=ada)
    assert codes(caught) == [("username", "duplicate")]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": " "}, ("name", "required")),
        ({"name": "x" * 65}, ("name", "too_long")),
        ({"scopes": []}, ("scopes", "required")),
        ({"scopes": ["read", "fly"]}, ("scopes[1]", "unknown_choice")),
        ({"ttl": timedelta(0)}, ("ttl", "out_of_range")),
        ({"ttl": timedelta(days=400)}, ("ttl", "out_of_range")),
    ],
)
def test_a_token_has_a_name_known_scopes_and_an_end(ada, changes, expected):
    wanted = {"name": "laptop", "scopes": ["read"], "ttl": timedelta(days=1), **changes}
    with pytest.raises(Rejected) as caught:
        services.issue_token(ada, actor=ada, **wanted)
    assert codes(caught) == [expected]


# ---- names that pages need, and the last admin -------------------------------------------------
@pytest.mark.parametrize(
    ("save", "spec", "path"),
    [
        (services.save_team, TeamSpec("new", "New"), "name"),
        (services.save_cohort, CohortSpec("new"), "name"),
        (services.save_cohort, CohortSpec("inner", parent="new"), "parent"),
        (services.save_cluster_queue, ClusterQueueSpec("new"), "name"),
        (services.save_cluster_queue, ClusterQueueSpec("cq", cohort="new"), "cohort"),
        (services.add_person, PersonSpec("new"), "username"),
        (services.add_person, PersonSpec("system"), "username"),
    ],
)
def test_a_name_that_means_something_else_in_an_address_is_refused(ada, save, spec, path):
    with pytest.raises(Rejected) as caught:
        save(spec, actor=ada)
    assert codes(caught) == [(path, "reserved_name")]


def test_the_last_admin_cannot_be_revoked_by_any_door(ada, eve):
    with pytest.raises(Rejected) as caught:
        services.set_platform_role(ada, "admin", False, actor=ada)
    assert codes(caught) == [("roles", "last_admin")]
    services.set_platform_role(eve, "admin", True, actor=ada)
    services.set_platform_role(ada, "admin", False, actor=eve)


# ---- commands ----------------------------------------------------------------------------------
def test_a_person_is_made_from_the_command_line(datos, ia, monkeypatch, capsys):
    monkeypatch.setenv("GPUPLATFORM_PERSON_PASSWORD", "a rare long one")
    arguments = ["--name", "Lea Maria Ortiz", "--email", "lea@example.org", "--role", "finance"]
    call_command("add_person", "lea", *arguments, "--team", "datos:lead", "--team", "ia")
    lea = User.objects.get(username="lea")
    assert (lea.first_name, lea.last_name, lea.email) == ("Lea", "Maria Ortiz", "lea@example.org")
    assert lea.check_password("a rare long one")
    places = Membership.objects.filter(user=lea).values_list("team__name", "role")
    assert set(places) == {("datos", "lead"), ("ia", "member")}
    assert PlatformRole.objects.get().role == "finance"
    assert capsys.readouterr().out == "lea created\n"


@pytest.mark.parametrize(
    "arguments", [["lea", "--team", "nobody"], ["new"], ["lea", "--team", "datos:king"]]
)
def test_a_person_that_breaks_a_rule_is_not_made(datos, monkeypatch, arguments):
    monkeypatch.setenv("GPUPLATFORM_PERSON_PASSWORD", "a rare long one")
    with pytest.raises(CommandError):
        call_command("add_person", *arguments)
    assert not User.objects.exists()


def test_a_service_account_needs_no_password(db):
    call_command("add_person", "robot", "--tokens-only")
    assert not User.objects.get().has_usable_password()


def test_a_weak_password_is_refused_on_the_command_line(db, monkeypatch):
    monkeypatch.setenv("GPUPLATFORM_PERSON_PASSWORD", "short")
    with pytest.raises(CommandError, match="password"):
        call_command("add_person", "lea")
