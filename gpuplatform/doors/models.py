"""Webhooks: who is told what and where, what was sent, and up to where events were read."""

import uuid

from django.db import models
from django.db.models import Q

from gpuplatform.common import clock
from queues.models import Team, User


class Webhook(models.Model):
    """An address that is told of events; of a team what its lead may see, of none all there is.

    Its secret is no row: it is derived from the platform's secret and ``salt``. Nothing that
    happened before ``since`` is sent. ``held_until``: it is not well, and is left alone;
    ``failures`` in a row since ``failing_since``.
    """

    uid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=64)
    url = models.CharField(max_length=500)
    team = models.ForeignKey(Team, models.CASCADE, null=True, blank=True, related_name="+")
    events = models.JSONField(default=list)  # words of ``webhooks.events.TYPES``
    is_active = models.BooleanField(default=True)
    salt = models.CharField(max_length=64)
    since = models.DateTimeField(default=clock.now)
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True, blank=True)
    held_until = models.DateTimeField(null=True, blank=True)
    disabled_because = models.CharField(max_length=200, blank=True)  # by the platform itself
    created_at = models.DateTimeField(default=clock.now)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    version = models.PositiveIntegerField(default=1)  # of what people set, not of how it fares

    class Meta:
        ordering = ("name", "uid")

    def __str__(self) -> str:
        return self.name


class DeliveryState(models.TextChoices):
    """What has become of a delivery."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"  # given up


class Delivery(models.Model):
    """One event for one webhook: a row before it is sent, tried until it is taken or too old.

    ``key`` names the event, so that it is written once however often it is read. ``code`` is the
    HTTP status of the last answer, None where there was none. Sent in the order of ids.
    """

    uid = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=40)
    key = models.CharField(max_length=64)
    body = models.TextField()  # exactly what is sent and signed
    state = models.CharField(
        max_length=9, choices=DeliveryState, default=DeliveryState.WAITING.value
    )
    created_at = models.DateTimeField(default=clock.now, db_index=True)
    due_at = models.DateTimeField(default=clock.now)
    tries = models.PositiveIntegerField(default=0)
    tried_at = models.DateTimeField(null=True, blank=True)
    code = models.PositiveSmallIntegerField(null=True, blank=True)
    error = models.CharField(max_length=200, blank=True)
    took_ms = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(fields=["webhook", "key"], name="one_delivery_of_an_event")
        ]
        indexes = [
            models.Index(
                fields=["due_at"], condition=Q(state="waiting"), name="deliveries_to_send"
            ),
            models.Index(fields=["webhook", "-id"], name="deliveries_of_a_webhook"),
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook_id}"


class FeedMark(models.Model):
    """Up to which row, and when, a sequence of events was read for webhooks."""

    feed = models.CharField(max_length=32, primary_key=True)
    number = models.BigIntegerField(default=0)
    at = models.DateTimeField(default=clock.now)

    def __str__(self) -> str:
        return f"{self.feed} {self.number}"
