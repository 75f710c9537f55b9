"""What happens is told once it is committed, until it is taken, and never lost."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from gpuplatform.common import clock
from gpuplatform.common.models import AuditEntry, Lease
from gpuplatform.common.problems import Rejected
from gpuplatform.doors.models import Delivery, Webhook
from gpuplatform.doors.tasks import forget_deliveries, tell_webhooks
from gpuplatform.doors.webhooks import outbox, sending, services, wire
from gpuplatform.doors.webhooks.events import TYPES
from queues.models import Team
from scheduling import alerting, lifecycle
from scheduling.models import WorkloadEvent
from tests.scheduling.loop.world import queue, work

from .conftest import Receiver, is_signed

pytestmark = pytest.mark.django_db
Make = Callable[..., Webhook]
MINUTE = timedelta(minutes=1)


def submitted(team: str = "datos", name: str = "job") -> Any:
    """Let a workload of a team be submitted."""
    if not Team.objects.filter(name=team, cluster_queues__isnull=False).exists():
        queue(team, 4)
    row = work(team, name, team=Team.objects.get(name=team))
    lifecycle.tell(row, "submitted", at=clock.now())
    return row


def told(receiver: Receiver) -> list[tuple[str, Any]]:
    bodies = [json.loads(body) for _headers, body in receiver.got]
    return [(body["type"], body["data"].get("name")) for body in bodies]


def states(hook: Webhook) -> list[str]:
    return list(hook.deliveries.order_by("id").values_list("state", flat=True))


def later(minutes: float) -> None:
    """Let time pass, and do what is then due."""
    now = clock.now() + minutes * MINUTE
    with clock.at(now):
        tell_webhooks()


# ---- what is told to whom ---------------------------------------------------------------------
def test_an_event_reaches_the_receiver_signed_and_once(receiver: Receiver, hook_of: Make) -> None:
    hook = hook_of()
    row = submitted()
    tell_webhooks()
    tell_webhooks()
    ((headers, body),) = receiver.got
    assert is_signed(wire.shown_secret(hook.salt), headers, body)
    event = json.loads(body)
    assert (event["type"], event["webhook"]) == ("workload.submitted", "chat")
    assert event["id"] == headers["webhook-id"]
    assert event["data"]["uid"] == str(row.pk)
    (delivery,) = Delivery.objects.all()
    assert (delivery.state, delivery.code, delivery.tries, delivery.error) == (
        "delivered",
        200,
        1,
        "",
    )


def test_nothing_that_was_before_the_webhook_is_told(receiver: Receiver, hook_of: Make) -> None:
    submitted(name="before")
    hook_of()
    submitted(name="after")
    tell_webhooks()
    assert told(receiver) == [("workload.submitted", "after")]


def test_what_is_not_wanted_is_not_told(receiver: Receiver, hook_of: Make) -> None:
    hook_of("workload.finished", "alert.raised")
    submitted()
    tell_webhooks()
    assert told(receiver) == []


def test_a_row_that_is_committed_late_is_told_all_the_same(
    receiver: Receiver, hook_of: Make
) -> None:
    hook_of()
    row = submitted(name="early")
    late = WorkloadEvent.objects.get()
    late.delete()
    lifecycle.tell(row, "finished", at=clock.now())
    tell_webhooks()
    late.save(force_insert=True)  # under its lower id
    tell_webhooks()
    assert [kind for kind, _name in told(receiver)] == ["workload.finished", "workload.submitted"]


def test_the_webhook_of_a_team_is_told_of_its_own_only(
    receiver: Receiver, hook_of: Make, datos: Any, ia: Any
) -> None:
    hook_of(*TYPES, team=datos)
    submitted("datos", "ours")
    submitted("ia", "theirs")
    tell_webhooks()
    assert told(receiver) == [("workload.submitted", "ours")]


@pytest.mark.parametrize(
    "case",
    [
        ("BUDGET_THRESHOLD", "datos", ["budget.raised", "budget.cleared"]),
        ("BUDGET_THRESHOLD", "ia", []),
        ("COST_DRIFT", "datos", []),  # for finance only
    ],
)
def test_alerts_begin_and_end_for_those_whom_they_concern(
    receiver: Receiver, hook_of: Make, ia: Any, datos: Any, case: tuple[str, str, list[str]]
) -> None:
    code, of_team, told_to_team = case
    hook_of(*TYPES, team=datos, name="team")
    hook_of(*TYPES, name="platform")
    now = clock.now()
    team = Team.objects.get(name=of_team)
    row = alerting.Alert.objects.create(code=code, subject="Budget/x", team=team, raised_at=now)
    tell_webhooks()
    row.cleared_at = clock.now()
    row.save()
    tell_webhooks()
    later(1)
    heard: dict[str, list[str]] = {"team": [], "platform": []}
    for _headers, body in receiver.got:
        heard[json.loads(body)["webhook"]].append(json.loads(body)["type"])
    family = "budget" if code.startswith("BUDGET") else "alert"
    assert heard["platform"] == [f"{family}.raised", f"{family}.cleared"]
    assert heard["team"] == told_to_team


# ---- receivers that fail ----------------------------------------------------------------------
def test_what_was_not_taken_is_tried_again_later_and_later(
    receiver: Receiver, hook_of: Make
) -> None:
    hook = hook_of()
    receiver.answer = 500
    begun = clock.now()
    with clock.at(begun):
        submitted()
        tell_webhooks()
    tried = []
    for seconds in range(0, 1200, 15):
        with clock.at(begun + timedelta(seconds=seconds)):
            before = len(receiver.got)
            tell_webhooks()
            tried += [seconds] if len(receiver.got) > before else []
    assert tried == [30, 90, 210, 450, 930]
    assert len(set(receiver.ids)) == 1
    (delivery,) = hook.deliveries.all()
    assert (delivery.state, delivery.code, delivery.error) == ("waiting", 500, "HTTP 500")
    receiver.answer = 204
    later(60)
    assert states(hook) == ["delivered"]
    hook.refresh_from_db()
    assert (hook.failures, hook.held_until) == (0, None)


@pytest.mark.parametrize("answer", [500, 503, 429, "down"])
def test_a_receiver_that_is_not_well_is_left_alone_as_a_whole(
    receiver: Receiver, hook_of: Make, answer: Any
) -> None:
    hook = hook_of(url="http://127.0.0.1:1/" if answer == "down" else "")
    receiver.answer = answer if answer != "down" else 200
    for number in range(3):
        submitted(name=f"job-{number}")
    tell_webhooks()
    tell_webhooks()
    assert list(hook.deliveries.order_by("id").values_list("tries", flat=True)) == [1, 0, 0]


@pytest.mark.parametrize("answer", [400, 404, 302])
def test_one_delivery_that_is_refused_holds_up_no_other(
    receiver: Receiver, hook_of: Make, answer: int
) -> None:
    hook = hook_of()
    submitted(name="odd")
    submitted(name="even")

    def judge(handler: Any) -> None:
        handler.send_response(answer if b'"odd"' in receiver.got[-1][1] else 200)
        handler.end_headers()

    receiver.answer = judge
    tell_webhooks()
    assert states(hook) == ["waiting", "delivered"]


def test_a_receiver_that_is_down_keeps_no_other_waiting(receiver: Receiver, hook_of: Make) -> None:
    hook_of(url="http://127.0.0.1:1/", name="down")
    hook_of(name="up")
    submitted()
    tell_webhooks()
    assert told(receiver) == [("workload.submitted", "job")]


def test_a_delivery_is_given_up_after_a_day_and_the_webhook_switched_off(
    receiver: Receiver, hook_of: Make, datos: Any
) -> None:
    hook = hook_of(team=datos)
    receiver.answer = 500
    begun = clock.now()
    with clock.at(begun):
        submitted(name="first")
    for hours in range(30):
        for minutes in (0, 10, 20, 30, 40, 50):
            with clock.at(begun + timedelta(hours=hours, minutes=minutes)):
                if (hours, minutes) == (20, 0):
                    submitted(name="second")
                tell_webhooks()
    hook.refresh_from_db()
    assert not hook.is_active
    assert "tries in a row failed since" in hook.disabled_because
    assert states(hook) == ["failed", "failed"]
    errors = list(hook.deliveries.order_by("id").values_list("error", flat=True))
    assert errors == ["HTTP 500", "the webhook was switched off"]
    entry = AuditEntry.objects.get(action="webhook.disabled")
    assert (entry.actor_name, entry.team) == ("system", "datos")
    before = len(receiver.got)
    with clock.at(begun + timedelta(hours=31)):
        submitted(name="while it is off")
        tell_webhooks()
    assert len(receiver.got) == before


def test_a_receiver_that_is_gone_is_believed_at_once(receiver: Receiver, hook_of: Make) -> None:
    hook = hook_of()
    receiver.answer = 410
    submitted(name="a")
    submitted(name="b")
    tell_webhooks()
    hook.refresh_from_db()
    assert (hook.is_active, states(hook)) == (False, ["failed", "failed"])


def test_what_happened_while_a_webhook_was_off_is_never_sent(
    receiver: Receiver, hook_of: Make
) -> None:
    hook = hook_of()
    spec = services.WebhookSpec(hook.name, hook.url, hook.events, None, is_active=False)
    submitted(name="waits")
    outbox.collect()
    services.change_webhook(hook, spec, None)
    submitted(name="unheard")
    tell_webhooks()
    services.change_webhook(hook, services.WebhookSpec(hook.name, hook.url, hook.events), None)
    submitted(name="heard")
    tell_webhooks()
    assert told(receiver) == [("workload.submitted", "heard")]


# ---- workers that die -------------------------------------------------------------------------
def test_a_worker_killed_between_sending_and_noting_sends_once_more_under_the_same_id(
    receiver: Receiver, hook_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = hook_of()
    submitted()
    with monkeypatch.context() as patched:
        patched.setattr(sending, "note", dies)
        with pytest.raises(SystemExit):
            tell_webhooks()
    assert states(hook) == ["waiting"]
    tell_webhooks()
    assert states(hook) == ["delivered"]
    assert len(receiver.ids) == 2
    assert len(set(receiver.ids)) == 1


def dies(*_args: Any, **_more: Any) -> None:
    raise SystemExit


def test_a_worker_killed_while_it_collects_loses_nothing(
    receiver: Receiver, hook_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook_of()
    submitted()
    with monkeypatch.context() as patched:
        patched.setattr(outbox.FeedMark, "save", dies)
        with pytest.raises(SystemExit):
            tell_webhooks()
    tell_webhooks()
    assert told(receiver) == [("workload.submitted", "job")]


def test_one_process_sends_at_a_time(receiver: Receiver, hook_of: Make) -> None:
    hook_of()
    submitted()
    Lease.objects.create(
        name=sending.LEASE, holder="another-machine:1:x", until=timezone.now() + MINUTE
    )
    tell_webhooks()
    assert receiver.got == []


# ---- by hand and in time ----------------------------------------------------------------------
def test_a_ping_shows_whether_it_works(receiver: Receiver, hook_of: Make, ada: Any) -> None:
    row = services.ping(hook_of("month.closed"), ada)
    tell_webhooks()
    assert json.loads(receiver.got[0][1])["data"] == {"by": "ada"}
    row.refresh_from_db()
    assert row.state == "delivered"


def test_a_delivery_is_sent_again_by_hand_under_its_id(
    receiver: Receiver, hook_of: Make, ada: Any
) -> None:
    hook = hook_of()
    submitted()
    outbox.collect()
    with pytest.raises(Rejected, match="waits_already"):
        services.send_again(hook.deliveries.get(), ada)
    tell_webhooks()
    services.send_again(hook.deliveries.get(), ada)
    tell_webhooks()
    assert (len(receiver.ids), len(set(receiver.ids))) == (2, 1)


def test_a_new_secret_signs_from_then_on(receiver: Receiver, hook_of: Make, ada: Any) -> None:
    hook = hook_of()
    old = wire.shown_secret(hook.salt)
    new = services.rotate_secret(hook, ada)
    submitted()
    tell_webhooks()
    ((headers, body),) = receiver.got
    assert (is_signed(new, headers, body), is_signed(old, headers, body)) == (True, False)
    everything = str(list(AuditEntry.objects.values())) + str(list(Webhook.objects.values()))
    assert new not in everything
    assert new.removeprefix("whsec_") not in everything


def test_the_log_is_kept_for_a_month(receiver: Receiver, hook_of: Make) -> None:
    hook = hook_of()
    submitted(name="old")
    tell_webhooks()
    submitted(name="waits")
    outbox.collect()
    with clock.at(clock.now() + timedelta(days=31)):
        forget_deliveries()
    assert states(hook) == ["waiting"]


# ---- what a webhook may be --------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changed", "path", "code"),
    [
        ({"name": " "}, "name", "required"),
        ({"name": "x" * 65}, "name", "too_long"),
        ({"events": []}, "events", "required"),
        ({"events": ["workload.exploded"]}, "events[0]", "unknown_choice"),
        ({"url": ""}, "url", "bad_address"),
        ({"url": "ftp://example.org/"}, "url", "bad_address"),
        ({"url": "https://"}, "url", "bad_address"),
        ({"url": "https://[::1"}, "url", "bad_address"),
        ({"url": "https://example.org:99999/"}, "url", "bad_address"),
        ({"url": "https://exa mple.org/"}, "url", "bad_address"),
        ({"url": "https://example.org/\n"}, "url", "bad_address"),
        ({"url": "https://me:pw@example.org/"}, "url", "bad_address"),
        ({"url": "https://example.org/#x"}, "url", "bad_address"),
        ({"url": "https://example.org/" + "x" * 500}, "url", "too_long"),
        ({"url": "http://example.org/"}, "url", "needs_tls"),
        ({"url": "https://169.254.169.254/latest"}, "url", "not_allowed"),
        ({"url": "https://[::ffff:127.0.0.1]/"}, "url", "not_allowed"),
    ],
)
def test_a_webhook_that_breaks_a_rule_is_refused_with_its_field(
    changed: dict[str, Any], path: str, code: str
) -> None:
    usual = {"name": "chat", "url": "https://example.org/", "events": ["month.closed"]}
    with pytest.raises(Rejected) as refused:
        services.create_webhook(services.WebhookSpec(**(usual | changed)), None)
    assert (path, code) in [(one.path, one.code) for one in refused.value.problems]
    assert not Webhook.objects.exists()
    assert not AuditEntry.objects.exists()


def test_a_team_has_so_many_webhooks_at_most(receiver: Receiver, hook_of: Make, ia: Any) -> None:
    for number in range(20):
        hook_of(team=ia, name=f"hook-{number}")
    hook_of()
    with pytest.raises(Rejected, match="too_many"):
        hook_of(team=ia)
