"""Past work replayed under other quotas: what was asked, how far it is, and what came out."""

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from gpuplatform.common.models import OPEN, LongWork
from gpuplatform.common.models import WorkState as ReplayState

__all__ = ["OPEN", "QuotaReplay", "ReplayStage", "ReplayState"]


class ReplayStage(models.TextChoices):
    """What a running replay is at."""

    READING = "reading", _("reading what was")
    BEFORE = "before", _("playing it under the standing quotas")
    AFTER = "after", _("playing it under the edited quotas")
    COST = "cost", _("working out the cost")


class QuotaReplay(LongWork):
    """One question: how would the work of a window have fared under these quotas?

    ``cells`` are the edited amounts, each with what it was. ``site`` and ``promised`` are the
    platform when it was asked, without and with the edit, so that a later edit changes nothing;
    both are dropped with the end. ``come`` of ``whole`` workloads have been played; ``problem`` is
    the code and the numbers of what broke it off.
    """

    note = models.CharField(max_length=200, blank=True)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    cells = models.JSONField(default=list)
    site = models.JSONField(null=True)
    promised = models.JSONField(null=True)
    stage = models.CharField(max_length=8, choices=ReplayStage, blank=True)
    result = models.JSONField(null=True, blank=True)  # ``finops.replaying.telling``

    class Meta:
        ordering = ("-asked_at", "uid")
        constraints = [
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("starts_at")), name="replay_ends_after_it_began"
            ),
            models.CheckConstraint(
                condition=Q(state__in=ReplayState.values), name="replay_state_known"
            ),
            models.CheckConstraint(
                condition=~Q(state="done") | Q(result__isnull=False),
                name="a_replay_says_something",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.starts_at:%Y-%m-%d} - {self.ends_at:%Y-%m-%d} by {self.asked_name}"

    @property
    def percent(self) -> int:
        """Return how much of it is done, in whole percent."""
        return min(100, 100 * self.come // self.whole) if self.whole else 0
