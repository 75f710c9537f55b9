"""Groups of queues that lend to each other."""

from django.db import models
from django.db.models import F, Q

from queues.choices import Fairness, QuotaSource, ReclaimTo
from queues.models.fields import NameField, Versioned


class Cohort(Versioned):
    """Queues, and cohorts, that lend to each other. Kueue: Cohort; Volcano: parent queue."""

    name = NameField(unique=True)
    parent = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="children"
    )
    fair_weight = models.DecimalField(max_digits=12, decimal_places=6, default=1)
    fairness = models.CharField(max_length=8, choices=Fairness, default=Fairness.NONE)
    reclaim_to = models.CharField(max_length=10, choices=ReclaimTo, default=ReclaimTo.QUOTA)
    implicit = models.BooleanField(default=False)  # only named by others, never declared
    quota_source = models.CharField(
        max_length=8, choices=QuotaSource, default=QuotaSource.DECLARED
    )

    class Meta:
        ordering = ("name",)
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="cohort_has_a_name"),
            models.CheckConstraint(condition=~Q(parent=F("id")), name="cohort_not_its_own_parent"),
            models.CheckConstraint(condition=Q(fair_weight__gte=0), name="cohort_weight_not_neg"),
            models.CheckConstraint(
                condition=Q(fairness__in=Fairness.values), name="cohort_fairness_known"
            ),
            models.CheckConstraint(
                condition=Q(reclaim_to__in=ReclaimTo.values), name="cohort_reclaim_to_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name
