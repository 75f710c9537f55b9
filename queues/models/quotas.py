"""What a queue or a cohort is promised of each resource of each flavor."""

from django.db import models
from django.db.models import F, Q

from queues.models.cohorts import Cohort
from queues.models.fields import NameField
from queues.models.queues import ClusterQueue


class FlavorQuota(models.Model):
    """One cell of the quota table, of a ClusterQueue or of a Cohort.

    Amounts are in canonical units (GPU: devices, CPU: millicores, memory: bytes). ``group``,
    ``flavor_position`` and ``resource_position`` keep the order in which groups, flavors and
    resources were declared: it is the order of preference.

    ``queues.rules`` explains a bad value to the user; the constraints below only make sure
    that no code path can store one.
    """

    cluster_queue = models.ForeignKey(
        ClusterQueue, models.CASCADE, null=True, blank=True, related_name="quotas"
    )
    cohort = models.ForeignKey(
        Cohort, models.CASCADE, null=True, blank=True, related_name="quotas"
    )
    group = models.PositiveSmallIntegerField(default=0)
    flavor_position = models.PositiveSmallIntegerField(default=0)
    resource_position = models.PositiveSmallIntegerField(default=0)
    flavor = NameField()  # by name: the flavor may be declared later
    resource = models.CharField(max_length=317)
    nominal = models.BigIntegerField()
    borrowing_limit = models.BigIntegerField(null=True, blank=True)
    lending_limit = models.BigIntegerField(null=True, blank=True)

    class Meta:
        ordering = ("group", "flavor_position", "resource_position")
        constraints = [
            models.CheckConstraint(
                condition=Q(cluster_queue=None) ^ Q(cohort=None),
                name="quota_has_one_owner",
            ),
            models.UniqueConstraint(
                fields=["cluster_queue", "flavor", "resource"],
                name="one_quota_per_queue_column",
            ),
            models.UniqueConstraint(
                fields=["cohort", "flavor", "resource"],
                name="one_quota_per_cohort_column",
            ),
            models.CheckConstraint(condition=Q(nominal__gte=0), name="nominal_not_negative"),
            models.CheckConstraint(
                condition=Q(borrowing_limit=None) | Q(borrowing_limit__gte=0),
                name="borrowing_limit_not_negative",
            ),
            models.CheckConstraint(
                condition=Q(lending_limit=None) | Q(lending_limit__gte=0),
                name="lending_limit_not_negative",
            ),
            # A cohort may lend more than its own nominal: its limit covers the subtree.
            models.CheckConstraint(
                condition=Q(cluster_queue=None)
                | Q(lending_limit=None)
                | Q(lending_limit__lte=F("nominal")),
                name="lending_within_nominal",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.nominal} {self.resource} of {self.flavor}"
