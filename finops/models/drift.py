"""Since when the planes of a month differ: what tells a bad day from drift that stays."""

from django.db import models

from finops.models.bills import BillingPeriod


class DriftSeen(models.Model):
    """A check of a month that does not agree, and the first day on which it was seen so."""

    period = models.ForeignKey(BillingPeriod, models.CASCADE, related_name="+")
    check_id = models.CharField(max_length=8)
    subject = models.CharField(max_length=320)
    first_day = models.DateField()
    last_day = models.DateField()

    class Meta:
        ordering = ("period", "check_id", "subject")
        constraints = [
            models.UniqueConstraint(
                fields=["period", "check_id", "subject"], name="one_drift_per_subject"
            )
        ]

    def __str__(self) -> str:
        return f"{self.period} {self.check_id} {self.subject}"
