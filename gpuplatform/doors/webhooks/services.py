"""The writers of webhooks: each change audited, the secret told once."""

import secrets
import uuid
from typing import Any

from django.db import transaction

from gpuplatform.common import audit, clock
from gpuplatform.common.problems import Problem, Rejected, Stale
from gpuplatform.doors.models import Delivery, DeliveryState, Webhook
from gpuplatform.doors.webhooks import sending, wire
from gpuplatform.doors.webhooks.events import PING, Event
from gpuplatform.doors.webhooks.outbox import delivery_of
from gpuplatform.doors.webhooks.rules import WebhookSpec, check_room, check_webhook
from queues.models import User
from queues.services.writing import stale


@transaction.atomic
def create_webhook(spec: WebhookSpec, actor: User | None, reason: str = "") -> tuple[Webhook, str]:
    """Return a new webhook and its secret, which nobody can read again.

    Raises:
        Rejected: it breaks a rule.
    """
    _refuse([*check_webhook(spec), *check_room(spec.team)])
    hook = Webhook(salt=_new_salt(), team=spec.team, created_by=actor)
    _take(hook, spec)
    hook.save(force_insert=True)
    _note(actor, "webhook.created", hook, None, reason)
    return hook, wire.shown_secret(hook.salt)


@transaction.atomic
def change_webhook(
    hook: Webhook,
    spec: WebhookSpec,
    actor: User | None,
    reason: str = "",
    if_version: int | None = None,
) -> None:
    """Let a webhook be so; its team stays. What happened while it was off is never sent.

    Raises:
        Rejected: it breaks a rule.
        Stale: it changed since the caller saw it.
    """
    _hold(hook, if_version)
    _refuse(list(check_webhook(spec)))
    before, was_active = _told(hook), hook.is_active
    moved = hook.url != spec.url
    _take(hook, spec)
    if spec.is_active and not was_active:
        hook.since, hook.disabled_because = clock.now(), ""
    if moved or not was_active:
        hook.failures, hook.failing_since, hook.held_until = 0, None, None
    if _told(hook) == before:
        return
    hook.version += 1
    hook.save()
    if was_active and not spec.is_active:
        sending.give_up(hook, "the webhook was switched off")
    _note(actor, "webhook.updated", hook, before, reason)


@transaction.atomic
def rotate_secret(hook: Webhook, actor: User | None, reason: str = "") -> str:
    """Give a webhook another secret and return it; the old one signs nothing from now on."""
    hook.salt = _new_salt()
    hook.save(update_fields=["salt"])
    _note(actor, "webhook.secret_renewed", hook, _told(hook), reason)
    return wire.shown_secret(hook.salt)


@transaction.atomic
def delete_webhook(
    hook: Webhook, actor: User | None, reason: str = "", if_version: int | None = None
) -> None:
    """Forget a webhook with its log.

    Raises:
        Stale: it changed since the caller saw it.
    """
    _hold(hook, if_version)
    audit.record(
        actor,
        "webhook.deleted",
        ("Webhook", hook.name),
        before=_told(hook),
        reason=reason,
        team=_team(hook),
    )
    hook.delete()


def _hold(hook: Webhook, if_version: int | None) -> None:
    """Lock the row and read it anew; refuse one that is not what the caller saw."""
    now = Webhook.objects.select_for_update().filter(pk=hook.pk).first()
    if now is None or (if_version is not None and if_version != now.version):
        raise Stale([stale(now.version if now else 0)])
    hook.refresh_from_db()


def ping(hook: Webhook, actor: User | None) -> Delivery:
    """Let a webhook be told of nothing, so that somebody sees whether it works.

    Raises:
        Rejected: it is switched off.
    """
    _demand_active(hook)
    now = clock.now()
    by = actor.get_username() if actor else "system"
    row = delivery_of(hook, Event(f"ping-{uuid.uuid4()}", PING, now, {"by": by}), now)
    row.save(force_insert=True)
    return row


@transaction.atomic
def send_again(delivery: Delivery, actor: User | None) -> Delivery:
    """Let a delivery be sent once more, under the same id: a receiver that has it can tell.

    Raises:
        Rejected: its webhook is switched off, or it waits already.
    """
    del actor  # a repetition changes nothing of ours; the log tells of it
    row = (
        Delivery.objects.select_for_update(of=("self",))
        .select_related("webhook")
        .get(pk=delivery.pk)
    )
    _demand_active(row.webhook)
    if row.state == DeliveryState.WAITING:
        raise Rejected([Problem("state", "waits_already", "It waits to be sent already.")])
    row.state, row.due_at, row.tries = DeliveryState.WAITING, clock.now(), 0
    row.created_at = row.due_at  # it is tried for a day from now on
    row.save()
    return row


def _demand_active(hook: Webhook) -> None:
    if not hook.is_active:
        raise Rejected([Problem("is_active", "is_off", "The webhook is switched off.")])


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise Rejected(problems)


def _new_salt() -> str:
    return secrets.token_hex(16)


def _take(hook: Webhook, spec: WebhookSpec) -> None:
    hook.name, hook.url, hook.is_active = spec.name.strip(), spec.url, spec.is_active
    hook.events = sorted(set(spec.events))


def _told(hook: Webhook) -> dict[str, Any]:
    return {
        "url": hook.url,
        "events": list(hook.events),
        "team": _team(hook) or None,
        "is_active": hook.is_active,
        "name": hook.name,
    }


def _team(hook: Webhook) -> str:
    return hook.team.name if hook.team else ""


def _note(actor: User | None, action: str, hook: Webhook, before: Any, reason: str) -> None:
    audit.record(
        actor,
        action,
        ("Webhook", hook.name),
        before=before,
        after=_told(hook),
        reason=reason,
        team=_team(hook),
    )
