"""What a gateway lets its teams spend, as it said last: to compare, never to bill."""

from django.db import models

from finops.models.sources import Source
from gpuplatform.common import clock


class GatewayLimit(models.Model):
    """LiteLLM's own limit of one of its teams; null is no limit."""

    source = models.ForeignKey(Source, models.CASCADE, related_name="limits")
    team_id = models.CharField(max_length=255)
    alias = models.CharField(max_length=255, blank=True)
    hard = models.DecimalField(max_digits=20, decimal_places=6, null=True, blank=True)
    soft = models.DecimalField(max_digits=20, decimal_places=6, null=True, blank=True)
    duration = models.CharField(max_length=32, blank=True)
    reset_at = models.DateTimeField(null=True, blank=True)
    read_at = models.DateTimeField(default=clock.now)

    class Meta:
        ordering = ("source", "team_id")
        constraints = [
            models.UniqueConstraint(fields=["source", "team_id"], name="one_limit_per_team")
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.team_id}"
