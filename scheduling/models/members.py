"""Pods of a gang that were over before the gang was asked to stop."""

from django.db import models

from queues.models.fields import NameField
from scheduling.members import End
from scheduling.models.placements import Admission


class MemberEnd(models.Model):
    """One pod of one attempt that is over, as its cluster told. Append-only."""

    admission = models.ForeignKey(Admission, models.CASCADE, related_name="ends")
    attempt = models.PositiveIntegerField()
    pod_set = NameField()
    node = NameField(blank=True)
    slot = models.PositiveIntegerField()
    end = models.CharField(max_length=8, choices=[(e.value, e.value) for e in End])
    at = models.DateTimeField()
    exit_code = models.IntegerField(null=True, blank=True)
    why = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ("admission", "at", "id")
        constraints = [
            models.UniqueConstraint(
                fields=["admission", "attempt", "pod_set", "node", "slot"],
                name="a_member_ends_once_in_an_attempt",
            )
        ]

    def __str__(self) -> str:
        return f"{self.pod_set} {self.slot} on {self.node} {self.end}"
