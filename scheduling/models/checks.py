"""What else must say yes before a workload starts, beside quota and nodes."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from gpuplatform.common import clock
from queues.models.fields import NameField, Versioned
from scheduling.engine.terms import CheckVerdict
from scheduling.models.workloads import Workload

CHECK_LABELS = [
    (CheckVerdict.PENDING.value, _("Waiting")),
    (CheckVerdict.READY.value, _("Agreed")),
    (CheckVerdict.RETRY.value, _("Try again later")),
    (CheckVerdict.REJECTED.value, _("Rejected")),
]


class AdmissionCheck(Versioned):
    """A question that is asked of work of some queues once quota is reserved for it.

    ``kind`` names who answers (``scheduling.checks``); ``queues`` are names of ClusterQueues, or
    ``*`` alone for all of them.
    """

    name = NameField(unique=True)
    kind = models.CharField(max_length=32)
    queues = models.JSONField(default=list, blank=True)
    parameters = models.JSONField(default=dict, blank=True)
    description = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ("name",)
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(name="") & ~models.Q(kind=""), name="check_is_named"
            )
        ]

    def __str__(self) -> str:
        return self.name


class CheckState(models.Model):
    """What a check says of one workload. ``retries`` counts how often it said: later."""

    workload = models.ForeignKey(Workload, models.CASCADE, related_name="checks")
    check_name = NameField()
    state = models.CharField(
        max_length=8, choices=CHECK_LABELS, default=CheckVerdict.PENDING.value
    )
    message = models.CharField(max_length=500, blank=True)
    by = models.CharField(max_length=150, blank=True)  # who answered, if it was a person
    at = models.DateTimeField(default=clock.now)
    retry_after_s = models.PositiveIntegerField(null=True, blank=True)
    retries = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("workload", "check_name")
        constraints = [
            models.UniqueConstraint(
                fields=["workload", "check_name"], name="one_state_per_workload_and_check"
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=[s.value for s in CheckVerdict]),
                name="check_state_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.check_name}: {self.state}"
