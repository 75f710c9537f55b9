"""What team leads ask of quota, who decided, and until when it was given."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from gpuplatform.common import clock
from queues.models.teams import Team


class RequestState(models.TextChoices):
    """Where a request stands. ``queues.services.requests`` is the only writer."""

    OPEN = "open", _("open")
    APPROVED = "approved", _("approved")
    DECLINED = "declined", _("declined")
    WITHDRAWN = "withdrawn", _("withdrawn")
    ENDED = "ended", _("ended")


class QuotaRequest(models.Model):
    """Other amounts for queues of one team, asked with a reason and decided with one.

    ``cells``: what is asked for, each with what it was then. ``until``: it is given back by itself
    at that instant; null: it stays. ``given``: what the approval changed, so that the end can
    take back that and no more; ``lender``: the queue whose quota it was.
    """

    team = models.ForeignKey(Team, models.CASCADE, related_name="quota_requests")
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    asked_name = models.CharField(max_length=150)
    asked_at = models.DateTimeField(default=clock.now)
    reason = models.TextField()
    cells = models.JSONField(default=list)
    until = models.DateTimeField(null=True, blank=True)
    state = models.CharField(max_length=9, choices=RequestState, default=RequestState.OPEN.value)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    decided_name = models.CharField(max_length=150, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    note = models.TextField(blank=True)
    lender = models.CharField(max_length=253, blank=True)
    given = models.JSONField(default=list)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=RequestState.values), name="quota_request_state_known"
            ),
            models.CheckConstraint(
                condition=~Q(state="ended") | Q(until__isnull=False),
                name="only_a_loan_ends_by_itself",
            ),
        ]
        indexes = [
            models.Index(fields=["until"], condition=Q(state="approved"), name="loans_by_end")
        ]

    def __str__(self) -> str:
        return f"#{self.pk} of {self.team}"

    @property
    def is_open(self) -> bool:
        """Return whether nobody has decided yet."""
        return self.state == RequestState.OPEN
