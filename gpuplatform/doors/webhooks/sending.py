"""Deliveries that are due: sent once or more, noted after each try, given up after a day.

What was not taken is tried again after 30 s, 1, 2, 4 ... minutes, an hour at most. A receiver that
does not answer, or answers that it is not well (5xx, 408, 425, 429), is left alone as a whole for
as long; other answers (a 404, a redirect) put off this one delivery. A worker that dies between
sending and noting sends once more under the same id: at least once, never lost. One that nothing
was delivered to for a day, in so many tries, is switched off, as is one that answers 410.
"""

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from gpuplatform.common import audit, clock, leases
from gpuplatform.doors.models import Delivery, DeliveryState, Webhook
from gpuplatform.doors.webhooks import wire

LEASE, LEASE_S = "webhooks", 240  # one process sends at a time
AT_ONCE, SPAN_S = 8, 50.0  # receivers at a time; of one call, the others wait for the next
FIRST_S, MOST_S = 30, 3600  # until the second try, and between two tries at most
TRIED_FOR = timedelta(hours=24)
DISABLED_AFTER = 20  # failures in a row, if they last as long as that
KEPT = timedelta(days=30)  # the log
ILL = frozenset({408, 425, 429, *range(500, 600)})
GONE = 410
logger = logging.getLogger(__name__)


def send(now: datetime | None = None) -> int:
    """Send what is due, one delivery for each receiver at a time; return how many were taken."""
    now = now or clock.now()
    if not _due(now).exists():
        return 0
    held = leases.acquire(LEASE, leases.unique_holder(), LEASE_S)
    if held is None:
        return 0
    try:
        return _send_all(now)
    finally:
        leases.release(held)


def forget(now: datetime | None = None) -> int:
    """Delete what the log no longer keeps; what still waits stays."""
    old = Delivery.objects.filter(created_at__lt=(now or clock.now()) - KEPT)
    return old.exclude(state=DeliveryState.WAITING).delete()[0]


def _due(now: datetime) -> QuerySet[Delivery]:
    well = Q(webhook__held_until=None) | Q(webhook__held_until__lte=now)
    return Delivery.objects.filter(
        well, state=DeliveryState.WAITING, due_at__lte=now, webhook__is_active=True
    )


def _send_all(now: datetime) -> int:
    taken, until = 0, time.monotonic() + SPAN_S
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while first := _first_of_each(now):
            for start in range(0, len(first), AT_ONCE):
                some = first[start : start + AT_ONCE]
                if time.monotonic() > until:
                    return taken
                for delivery, answer in zip(some, pool.map(_call, some), strict=True):
                    taken += answer.is_taken
                    note(delivery, answer, now)
    return taken


def _first_of_each(now: datetime) -> list[Delivery]:
    """Return the oldest due delivery of every webhook that has one."""
    due = _due(now)
    hooks = Webhook.objects.filter(Exists(due.filter(webhook=OuterRef("pk"))))
    found = (
        due.filter(webhook=hook).select_related("webhook__team").order_by("id").first()
        for hook in hooks
    )
    return [delivery for delivery in found if delivery is not None]


def _call(delivery: Delivery) -> wire.Answer:
    """Make the call; it runs beside others and touches no row."""
    hook, body = delivery.webhook, delivery.body.encode()
    headers = wire.headers_of(str(delivery.uid), int(time.time()), body, hook.salt)
    return wire.post(hook.url, body, headers)


# ---- what becomes of it ------------------------------------------------------------------------
@transaction.atomic
def note(delivery: Delivery, answer: wire.Answer, now: datetime) -> None:
    """Write down what came of a try, for the delivery and for its webhook."""
    locked = Webhook.objects.select_for_update(of=("self",)).select_related("team")
    hook = locked.filter(pk=delivery.webhook_id).first()
    if hook is None:  # it was deleted meanwhile, with its log
        return
    delivery.tries += 1
    delivery.tried_at, delivery.code, delivery.took_ms = now, answer.code, answer.took_ms
    delivery.error = "" if answer.is_taken else answer.error or f"HTTP {answer.code}"
    if answer.is_taken:
        delivery.state = DeliveryState.DELIVERED
        hook.failures, hook.failing_since, hook.held_until = 0, None, None
    else:
        _put_off(delivery, now, is_active=hook.is_active)
        hook.failures, hook.failing_since = hook.failures + 1, hook.failing_since or now
        is_ill = answer.code is None or answer.code in ILL
        hook.held_until = now + wait_after(hook.failures) if is_ill else hook.held_until
    delivery.save()
    hook.save(update_fields=["failures", "failing_since", "held_until"])
    if why := _why_disabled(hook, answer, now):
        disable(hook, why)


def wait_after(failures: int) -> timedelta:
    """Return how long is waited after so many failures in a row, from one on."""
    return timedelta(seconds=min(FIRST_S * 2 ** min(failures - 1, 20), MOST_S))


def _put_off(delivery: Delivery, now: datetime, *, is_active: bool) -> None:
    delivery.due_at = now + wait_after(delivery.tries)
    if delivery.due_at > delivery.created_at + TRIED_FOR or not is_active:
        delivery.state = DeliveryState.FAILED


def _why_disabled(hook: Webhook, answer: wire.Answer, now: datetime) -> str:
    if answer.code == GONE:
        return "the receiver answers that it is gone (410)"
    since = hook.failing_since
    if since and hook.failures >= DISABLED_AFTER and now - since >= TRIED_FOR:
        return f"{hook.failures} tries in a row failed since {since:%Y-%m-%d %H:%M} UTC"
    return ""


def disable(hook: Webhook, why: str) -> None:
    """Switch a webhook off, because ``why``; what waits for it is given up."""
    hook.is_active, hook.disabled_because, hook.version = False, why, hook.version + 1
    hook.save(update_fields=["is_active", "disabled_because", "version"])
    give_up(hook, "the webhook was switched off")
    logger.warning("webhook.disabled %s: %s", hook.pk, why)
    audit.record(
        None,
        "webhook.disabled",
        ("Webhook", hook.name),
        before={"is_active": True},
        after={"is_active": False},
        reason=why,
        team=hook.team.name if hook.team else "",
    )


def give_up(hook: Webhook, why: str) -> None:
    """Let nothing wait for a webhook any more."""
    waiting = hook.deliveries.filter(state=DeliveryState.WAITING)
    waiting.update(state=DeliveryState.FAILED, error=why)


def deliveries_of(hook: Webhook, most: int) -> Sequence[Delivery]:
    """Return the newest lines of the log of a webhook."""
    return list(hook.deliveries.order_by("-id")[:most])
