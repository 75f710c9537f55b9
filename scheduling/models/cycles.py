"""What the scheduler did, cycle by cycle."""

from django.db import models

from gpuplatform.common import clock


class Cycle(models.Model):
    """One run of the engine. ``memory`` is what the next one must know.

    ``snapshot`` and ``plan`` are kept where something was decided, so that the cycle can be
    decided again at the desk. ``faults``: for each tree that was left out because the engine
    found a fault of its own in it, what that was; under "" where nothing at all was written.
    """

    at = models.DateTimeField(default=clock.now, db_index=True)
    fence = models.PositiveBigIntegerField()
    holder = models.CharField(max_length=255)
    duration_ms = models.PositiveIntegerField(default=0)
    admitted = models.PositiveIntegerField(default=0)
    evicted = models.PositiveIntegerField(default=0)
    held = models.PositiveIntegerField(default=0)
    stale = models.PositiveIntegerField(default=0)
    last_change = models.PositiveBigIntegerField(default=0)  # id of the newest Change it saw
    memory = models.JSONField(default=dict)
    # The first instant at which time alone can change a decision, as the engine says.
    look_again_at = models.DateTimeField(null=True, blank=True)
    work = models.JSONField(default=dict)
    faults = models.JSONField(default=dict)
    snapshot = models.JSONField(null=True)
    plan = models.JSONField(null=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"cycle {self.pk}: {self.admitted} admitted, {self.evicted} evicted"
