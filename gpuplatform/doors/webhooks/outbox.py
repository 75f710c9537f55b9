"""From events to deliveries: one row for each webhook that wants an event and may know of it."""

import json
from datetime import UTC, datetime

from django.db import transaction

from gpuplatform.common import clock
from gpuplatform.doors.models import Delivery, FeedMark, Webhook
from gpuplatform.doors.webhooks.events import FEEDS, Event, newest


def collect(now: datetime | None = None) -> None:
    """Write the deliveries of what happened since the last time.

    Two at once do no harm: an event is delivered once to a webhook, by the key of its row.
    """
    now = now or clock.now()
    hooks = list(Webhook.objects.filter(is_active=True))
    for feed in FEEDS:
        _read(feed, hooks, now)


@transaction.atomic
def _read(feed: str, hooks: list[Webhook], now: datetime) -> None:
    """Read one feed up to its end, and note how far."""
    beginning = {"number": newest(feed), "at": now}
    FeedMark.objects.get_or_create(feed=feed, defaults=beginning)
    mark = FeedMark.objects.select_for_update().get(feed=feed)
    if not hooks:  # what happens while nobody listens is told to nobody
        FeedMark.objects.filter(feed=feed, number__lt=beginning["number"]).update(**beginning)
        return
    read, _model = FEEDS[feed]
    wanted = [
        delivery_of(hook, event, now)
        for event in read(mark, now)
        for hook in hooks
        if may_be_told(hook, event)
    ]
    Delivery.objects.bulk_create(wanted, ignore_conflicts=True)
    mark.at = now
    mark.save()


def may_be_told(hook: Webhook, event: Event) -> bool:
    """Return whether a webhook wants an event that is new to it, and its owners may know of it."""
    if event.type not in hook.events or event.at < hook.since:
        return False
    return hook.team_id is None or event.open_to_all or event.team_id == hook.team_id


def delivery_of(hook: Webhook, event: Event, now: datetime) -> Delivery:
    """Return the row, not yet written; its body is what will be sent, byte by byte."""
    row = Delivery(webhook=hook, event=event.type, key=event.key, created_at=now, due_at=now)
    told = {
        "id": str(row.uid),
        "type": event.type,
        "at": event.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "webhook": hook.name,
        "data": event.data,
    }
    row.body = json.dumps(told, separators=(",", ":"), sort_keys=True)
    return row
