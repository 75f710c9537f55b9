"""What an admin should look at: raised when it begins to hold, cleared when it ends."""

from django.conf import settings
from django.db import models

from gpuplatform.common import clock
from queues.models import Team


class Alert(models.Model):
    """One finding of the platform about itself, from ``raised_at`` to ``cleared_at``.

    ``facts`` holds the numbers of its sentence as they are now. At most one stands for a code,
    a subject and a ``key`` (a resource, or ""). ``team``: whose leads it concerns, if any's.
    """

    code = models.CharField(max_length=40)
    subject = models.CharField(max_length=320)
    key = models.CharField(max_length=320, blank=True)
    facts = models.JSONField(default=dict, blank=True)
    team = models.ForeignKey(Team, models.SET_NULL, null=True, blank=True, related_name="+")
    raised_at = models.DateTimeField(default=clock.now)
    cleared_at = models.DateTimeField(null=True, blank=True, db_index=True)
    addressed_at = models.DateTimeField(null=True, blank=True)  # when its letters were written

    class Meta:
        ordering = ("-raised_at", "-id")
        constraints = [
            models.UniqueConstraint(
                fields=["code", "subject", "key"],
                condition=models.Q(cleared_at=None),
                name="an_alert_stands_once",
            )
        ]
        indexes = [
            models.Index(
                fields=["raised_at"],
                condition=models.Q(addressed_at=None),
                name="alerts_to_address",
            )
        ]

    def __str__(self) -> str:
        return f"{self.code} {self.subject}"


class Letter(models.Model):
    """That somebody is to be told of an alert by mail; ``sent_at`` None: not yet.

    ``due_at``: when it is tried next, after ``tries`` in vain; ``error`` says why the last failed.
    """

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="letters")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    due_at = models.DateTimeField(default=clock.now)
    tries = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=200, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("alert", "user")
        constraints = [
            models.UniqueConstraint(fields=["alert", "user"], name="one_letter_each"),
        ]
        indexes = [
            models.Index(
                fields=["due_at"], condition=models.Q(sent_at=None), name="letters_to_send"
            )
        ]

    def __str__(self) -> str:
        return f"{self.alert} to {self.user}"
