"""Tokens: shown once, stored hashed, narrow, short-lived, revocable; and the commands for them."""

from datetime import timedelta
from io import StringIO

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gpuplatform.common.models import AuditEntry
from queues import services
from queues.choices import Role
from queues.models import ApiToken, Membership, PlatformRole, User

pytestmark = [pytest.mark.django_db, pytest.mark.urls("queues.api_urls")]


def ask(client, secret, path="/teams/"):
    return client.get(path, headers={"Authorization": f"Bearer {secret}"})


@pytest.fixture
def issued(lea):
    return services.issue_token(lea, "laptop", ["read"], actor=lea)


def test_a_token_opens_what_its_owner_sees(client, issued):
    response = ask(client, issued[1])
    assert response.status_code == 200
    assert [row["name"] for row in response.json()["results"]] == ["datos"]


def test_the_secret_is_stored_nowhere(issued):
    token, secret = issued
    row = ApiToken.objects.filter(pk=token.pk).values().get()
    assert secret.startswith("gpt_")
    assert secret not in str(row)
    assert secret not in str(list(AuditEntry.objects.values()))


def test_issuing_and_revoking_are_audited(issued, lea, client):
    token, secret = issued
    services.revoke_token(token, actor=lea, reason="lost, and why so")
    actions = AuditEntry.objects.order_by("id").values_list("action", "actor_name", "reason")
    assert list(actions) == [
        ("token.issued", "lea", ""),
        ("token.revoked", "lea", "lost, and why so"),
    ]
    assert ask(client, secret).status_code == 401


def test_an_expired_token_is_refused_and_kept(client, issued):
    with time_machine.travel(timezone.now() + timedelta(days=91), tick=False):
        assert ask(client, issued[1]).status_code == 401
    assert ApiToken.objects.exists()


def test_an_inactive_owner_is_refused(client, issued, lea):
    User.objects.filter(pk=lea.pk).update(is_active=False)
    assert ask(client, issued[1]).status_code == 401


@pytest.mark.parametrize("secret", ["", "nonsense", "a b", "gpt_" + "0" * 64, "é", "\x7f"])
def test_what_is_no_token_is_refused(client, issued, secret):
    response = ask(client, secret)
    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer")


def test_its_last_use_is_kept_to_the_minute(client, issued):
    start = timezone.now()
    seen = []
    for seconds in (0, 30, 61):
        with time_machine.travel(start + timedelta(seconds=seconds), tick=False):
            ask(client, issued[1])
        seen.append((ApiToken.objects.get().last_used_at - start).total_seconds())
    assert seen == [0, 0, 61]


def test_a_token_is_read_with_its_owner_and_their_roles_at_once(client, issued, lea, ia):
    Membership.objects.create(user=lea, team=ia)
    PlatformRole.objects.create(user=lea, role=Role.AUDITOR.value)
    PlatformRole.objects.create(user=lea, role=Role.FINANCE.value)
    ask(client, issued[1])  # notes its use, once a minute
    with CaptureQueriesContext(connection) as asked:
        seen = ask(client, issued[1]).json()["results"]
    assert [row["name"] for row in seen] == ["datos", "ia"]
    of_rights = [one["sql"] for one in asked if "queues_platformrole" in one["sql"]]
    assert len(of_rights) == 1
    assert "queues_apitoken" in of_rights[0]


@pytest.mark.parametrize("kind", [PlatformRole, Membership])
def test_a_role_that_is_taken_away_counts_no_more_at_the_next_request(client, lea, kind):
    if kind is PlatformRole:
        Membership.objects.filter(user=lea).delete()
        PlatformRole.objects.create(user=lea, role=Role.ADMIN.value)
    secret = services.issue_token(lea, "laptop", ["read"], actor=lea)[1]
    assert ask(client, secret).json()["results"]
    kind.objects.filter(user=lea).delete()
    assert ask(client, secret).json()["results"] == []


def test_a_token_without_the_scope_is_forbidden(client, lea):
    _, secret = services.issue_token(lea, "ci", ["workloads:submit"], actor=lea)
    assert ask(client, secret).status_code == 403


# ---- commands --------------------------------------------------------------------------------
def test_the_first_admin_gets_the_password_from_the_environment(monkeypatch):
    monkeypatch.setenv("GPUPLATFORM_ADMIN_PASSWORD", "a long and rare phrase")
    call_command("first_admin", username="root", email="root@example.org", stdout=StringIO())
    person = User.objects.get()
    assert person.check_password("a long and rare phrase")
    assert PlatformRole.objects.get(user=person).role == "admin"
    with pytest.raises(CommandError, match="there already"):
        call_command("first_admin", username="root")


def test_the_first_admin_gets_the_password_from_input(monkeypatch):
    monkeypatch.delenv("GPUPLATFORM_ADMIN_PASSWORD", raising=False)
    monkeypatch.setattr("sys.stdin", StringIO("another rare phrase\n"))
    call_command("first_admin", username="root", stdout=StringIO())
    assert User.objects.get().check_password("another rare phrase")


def test_a_weak_password_makes_no_admin(monkeypatch):
    monkeypatch.setenv("GPUPLATFORM_ADMIN_PASSWORD", "short")
    with pytest.raises(CommandError):
        call_command("first_admin", username="root")
    assert not User.objects.exists()


def test_a_token_is_issued_from_the_command_line(client, lea, datos):
    out = StringIO()
    scopes = ["--scope", "read", "--scope", "workloads:submit"]
    call_command("issue_token", "lea", "--name", "ci", *scopes, "--team", "datos", stdout=out)
    assert ask(client, out.getvalue().strip()).status_code == 200
    token = ApiToken.objects.get()
    assert (token.scopes, token.team) == (["read", "workloads:submit"], datos)


@pytest.mark.parametrize(
    "arguments", [["nobody"], ["lea", "--team", "none"], ["lea", "--days", "9999999999"]]
)
def test_a_token_for_nobody_is_refused(lea, arguments):
    with pytest.raises(CommandError):
        call_command("issue_token", *arguments, "--name", "x", "--scope", "read")
