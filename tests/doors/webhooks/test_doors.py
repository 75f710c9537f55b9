"""Webhooks over REST and on pages: admins set up any, leads those of their team, others none."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from gpuplatform.common.models import AnsweredRequest, AuditEntry
from gpuplatform.doors.models import Delivery, Webhook
from gpuplatform.doors.tasks import tell_webhooks
from gpuplatform.doors.webhooks import wire

from .conftest import Receiver

pytestmark = pytest.mark.django_db
BODY = {"name": "chat", "url": "https://example.org/x", "events": ["month.closed"]}
Ask = Callable[..., Any]


@pytest.fixture
def ask(cast: Any, token_of: Callable[..., str]) -> Ask:
    def send(who: str, method: str, path: str = "", body: Any = None, **more: str) -> Any:
        token = token_of(getattr(cast, who), "read", more.get("scope", "webhooks"))
        headers = {"Authorization": token, "Idempotency-Key": more.get("key", "")}
        headers |= {"If-Match": more.get("seen", '"v1"')} if method in ("put", "delete") else {}
        call = getattr(Client(), method)
        return call(f"/api/v1/webhooks/{path}", body, "application/json", headers=headers)

    return send


def test_the_secret_is_answered_once_and_never_again(ask: Ask) -> None:
    made = ask("ada", "post", body=BODY)
    assert made.status_code == 201
    hook = Webhook.objects.get()
    secret = made.json()["secret"]
    assert secret == wire.shown_secret(hook.salt)
    assert made["Location"].endswith(f"/api/v1/webhooks/{hook.pk}/")
    again = ask("ada", "get", f"{hook.pk}/")
    assert again.status_code == 200
    assert "secret" not in again.json()
    other = ask("ada", "post", f"{hook.pk}/secret/").json()["secret"]
    assert other.startswith("whsec_")
    assert other != secret
    assert secret not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize("path", ["", "{uid}/secret/"])
def test_a_secret_is_not_kept_for_a_request_that_is_sent_again(ask: Ask, path: str) -> None:
    uid = ask("ada", "post", body=BODY).json()["uid"]
    body, path = {**BODY, "name": "another"}, path.format(uid=uid)
    first = ask("ada", "post", path, body=body, key="k")
    assert first.json()["secret"].startswith("whsec_")
    again = ask("ada", "post", path, body=body, key="k")
    assert (again.status_code, again["Idempotency-Replayed"]) == (first.status_code, "true")
    assert again.json() == first.json() | {"secret": None}
    assert "whsec_" not in str(list(AnsweredRequest.objects.values()))


@pytest.mark.parametrize(
    ("who", "team", "code"),
    [
        ("ada", None, 201),
        ("ada", "datos", 201),
        ("lea", "datos", 201),
        ("lea", None, 403),
        ("lea", "ia", 422),  # not there for her
        ("ian", "ia", 403),  # a member
        ("fin", None, 403),
        ("aud", None, 403),
        ("eve", None, 403),
    ],
)
def test_who_may_set_up_what(ask: Ask, who: str, team: str | None, code: int) -> None:
    assert ask(who, "post", body=BODY | {"team": team}).status_code == code
    assert Webhook.objects.count() == (1 if code == 201 else 0)


def test_a_token_without_the_scope_sees_none_of_it(ask: Ask) -> None:
    assert ask("ada", "get", scope="workloads:submit").status_code == 403
    assert ask("ada", "get", scope="admin").status_code == 200


def test_a_lead_sees_the_webhooks_of_the_team_and_nobody_elses(ask: Ask) -> None:
    for team in (None, "ia", "datos"):
        ask("ada", "post", body=BODY | {"team": team, "name": str(team)})
    assert [row["name"] for row in ask("lea", "get").json()["results"]] == ["datos"]
    assert len(ask("ada", "get").json()["results"]) == 3
    foreign = Webhook.objects.get(name="ia").pk
    for method, path in (("get", ""), ("put", ""), ("delete", ""), ("post", "secret/")):
        body = None if method == "get" else BODY
        assert ask("lea", method, f"{foreign}/{path}", body).status_code == 404


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"evnts": []}, "evnts"),
        ({"events": ["workload.exploded"]}, "events"),
        ({"url": "https://127.0.0.1/"}, "url"),
        ({"name": ""}, "name"),
    ],
)
def test_a_bad_body_is_answered_with_its_field(ask: Ask, changed: Any, pointer: str) -> None:
    answer = ask("ada", "post", body=BODY | changed)
    assert answer.status_code in {400, 422}
    assert pointer in str(answer.json()["errors"])
    assert not Webhook.objects.exists()


def test_a_change_is_audited_and_a_repetition_is_none(ask: Ask) -> None:
    uid = ask("ada", "post", body=BODY).json()["uid"]
    for seen in ('"v1"', '"v2"'):
        answer = ask(
            "ada",
            "put",
            f"{uid}/?reason=Another%20host",
            BODY | {"url": "https://example.org/y"},
            seen=seen,
        )
        assert answer.json()["url"].endswith("/y")
    entry = AuditEntry.objects.get(action="webhook.updated")
    assert (entry.reason, entry.before["url"][-1], entry.after["url"][-1]) == (
        "Another host",
        "x",
        "y",
    )
    assert ask("ada", "delete", f"{uid}/").status_code == 412
    assert ask("ada", "delete", f"{uid}/", seen='"v2"').status_code == 204
    assert AuditEntry.objects.filter(action="webhook.deleted", subject="chat").exists()


def test_the_log_tells_of_each_try_and_a_delivery_is_sent_again(
    ask: Ask, receiver: Receiver
) -> None:
    uid = ask("ada", "post", body=BODY | {"url": receiver.url}).json()["uid"]
    receiver.answer = 404
    sent = ask("ada", "post", f"{uid}/test/")
    assert sent.status_code == 202
    tell_webhooks()
    (line,) = ask("ada", "get", f"{uid}/deliveries/").json()["results"]
    told = [line[name] for name in ("event", "state", "tries", "code")]
    assert told == ["ping", "waiting", 1, 404]
    assert line["next_try_at"]
    again = f"{uid}/deliveries/{line['uid']}/again/"
    assert ask("ada", "post", again).status_code == 422  # it waits already
    Delivery.objects.update(state="failed")
    receiver.answer = 200
    assert ask("ada", "post", again).status_code == 202
    tell_webhooks()
    (line,) = ask("ada", "get", f"{uid}/deliveries/").json()["results"]
    assert (line["state"], line["next_try_at"]) == ("delivered", None)


# ---- pages ---------------------------------------------------------------------------------
def test_a_lead_sets_up_tests_and_reads_the_log_in_the_browser(
    cast: Any, signed_in: Callable[[Any], Client], receiver: Receiver
) -> None:
    lea = signed_in(cast.lea)
    form = BODY | {"url": receiver.url, "team": "datos"}
    shown = lea.post("/webhooks/new/", form)
    assert re.search(r"whsec_[\w+/=]{44}", shown.text)
    assert "no-store" in shown["Cache-Control"]
    hook = Webhook.objects.get()
    lea.post(f"/webhooks/{hook.pk}/test/")
    tell_webhooks()
    page = lea.get(f"/webhooks/{hook.pk}/").text
    assert "delivered" in page
    assert "whsec_" not in page
    lea.post(f"/webhooks/{hook.pk}/edit/", BODY)  # without its tick: switched off
    assert "switched off" in lea.get("/webhooks/").text
    lea.post(f"/webhooks/{hook.pk}/delete/")
    assert "No webhook yet" in lea.get("/webhooks/").text


def test_a_form_that_is_refused_keeps_what_was_typed(
    cast: Any, signed_in: Callable[[Any], Client]
) -> None:
    ada = signed_in(cast.ada)
    answer = ada.post("/webhooks/new/", BODY | {"url": "https://127.0.0.1/mine"})
    assert answer.status_code == 422
    assert "127.0.0.1 is not a public address" in answer.text
    assert 'value="https://127.0.0.1/mine"' in answer.text


def test_a_lead_cannot_leave_the_team_away(cast: Any, signed_in: Callable[[Any], Client]) -> None:
    assert signed_in(cast.lea).post("/webhooks/new/", BODY).status_code == 403
    assert not Webhook.objects.exists()
