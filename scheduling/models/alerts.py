"""What an admin should look at: raised when it begins to hold, cleared when it ends."""

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

    class Meta:
        ordering = ("-raised_at", "-id")
        constraints = [
            models.UniqueConstraint(
                fields=["code", "subject", "key"],
                condition=models.Q(cleared_at=None),
                name="an_alert_stands_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.code} {self.subject}"
