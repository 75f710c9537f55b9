"""Exact metering: who held what, what was there, and what was promised, from when to when.

All windows are half-open ``[started_at, ended_at)``; an open one has no end. Rows are closed
once and never changed afterwards.
"""

from django.db import models
from django.db.models import F, Q

from queues.models import Team
from queues.models.fields import NameField
from scheduling.engine.terms import Holding
from scheduling.models.placements import Admission
from scheduling.models.workloads import Workload


class Interval(models.Model):
    """The window of a metering row."""

    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True


def ends_after_it_began(name: str) -> models.CheckConstraint:
    """Return the constraint that a window does not run backwards."""
    return models.CheckConstraint(
        condition=Q(ended_at=None) | Q(ended_at__gte=F("started_at")), name=name
    )


class UsageInterval(Interval):
    """GPUs held by a workload on one ground: own quota, a loan of ``lender``, or no queue at all.

    Facts that a bill rests on are copied here, so that later edits do not rewrite the past.
    """

    admission = models.ForeignKey(Admission, models.CASCADE, related_name="usage")
    workload = models.ForeignKey(Workload, models.CASCADE, related_name="usage")
    team = models.ForeignKey(Team, models.PROTECT, null=True, blank=True, related_name="usage")
    cluster_queue = NameField(blank=True)
    namespace = NameField(blank=True)
    flavor = NameField(blank=True)
    resource = models.CharField(max_length=317)
    amount = models.PositiveBigIntegerField()
    holding = models.CharField(max_length=9, choices=[(h.value, h.value) for h in Holding])
    lender = NameField(blank=True)  # cluster queue or cohort

    class Meta:
        ordering = ("started_at", "id")
        constraints = [
            ends_after_it_began("usage_ends_after_it_began"),
            models.CheckConstraint(condition=Q(amount__gte=1), name="usage_is_some"),
            models.CheckConstraint(
                condition=Q(holding=Holding.BORROWED.value) | Q(lender=""),
                name="only_loans_have_lenders",
            ),
            models.UniqueConstraint(
                fields=["admission", "flavor", "resource", "holding", "lender"],
                condition=Q(ended_at=None),
                name="one_open_usage_per_ground",
            ),
        ]
        indexes = [
            models.Index(fields=["started_at", "ended_at"], name="usage_by_window"),
            models.Index(fields=["ended_at"], name="usage_by_end"),
            models.Index(
                fields=["cluster_queue"],
                condition=Q(ended_at=None),
                name="open_usage_by_queue",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} {self.resource} {self.holding}"


class CapacityInterval(Interval):
    """What one node offered of one resource. A node is billed to one flavor at a time."""

    node = NameField()
    flavor = NameField(blank=True)
    resource = models.CharField(max_length=317)
    amount = models.PositiveBigIntegerField()
    healthy = models.BooleanField(default=True)

    class Meta:
        ordering = ("node", "started_at")
        constraints = [
            ends_after_it_began("capacity_ends_after_it_began"),
            models.UniqueConstraint(
                fields=["node", "resource"],
                condition=Q(ended_at=None),
                name="one_open_capacity_per_node",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node}: {self.amount} {self.resource}"


class QuotaInterval(Interval):
    """What one queue was promised of one flavor and resource, and in which tree.

    ``root`` is the topmost cohort above it then: lenders are looked for below it, whatever became
    of the tree since.
    """

    cluster_queue = NameField()
    cohort = NameField(blank=True)
    root = NameField(blank=True)
    flavor = NameField()
    resource = models.CharField(max_length=317)
    nominal = models.PositiveBigIntegerField()
    borrowing_limit = models.PositiveBigIntegerField(null=True, blank=True)
    lending_limit = models.PositiveBigIntegerField(null=True, blank=True)

    class Meta:
        ordering = ("cluster_queue", "started_at")
        constraints = [
            ends_after_it_began("promise_ends_after_it_began"),
            models.UniqueConstraint(
                fields=["cluster_queue", "flavor", "resource"],
                condition=Q(ended_at=None),
                name="one_open_promise_per_column",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster_queue}: {self.nominal} {self.resource}"
