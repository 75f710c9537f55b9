"""A team's share of the cluster, and the doors to it."""

from django.db import models
from django.db.models import Q

from queues.choices import (
    AdmissionOrder,
    BorrowWithinCohort,
    FlavorPreference,
    FlavorSearch,
    QueueingStrategy,
    ReclaimWithinCohort,
    StopPolicy,
    Undeclared,
    WithinClusterQueue,
)
from queues.models.cohorts import Cohort
from queues.models.fields import NameField, Versioned
from queues.models.teams import Team


class ClusterQueue(Versioned):
    """A team's share of the cluster. Kueue: ClusterQueue; Volcano: Queue."""

    name = NameField(unique=True)
    team = models.ForeignKey(
        Team, models.PROTECT, null=True, blank=True, related_name="cluster_queues"
    )
    cohort = models.ForeignKey(
        Cohort, models.PROTECT, null=True, blank=True, related_name="cluster_queues"
    )
    queueing_strategy = models.CharField(
        max_length=16,
        choices=QueueingStrategy,
        default=QueueingStrategy.BEST_EFFORT_FIFO,
    )
    stop_policy = models.CharField(max_length=16, choices=StopPolicy, default=StopPolicy.NONE)
    fair_weight = models.DecimalField(max_digits=12, decimal_places=6, default=1)
    # A JSON label selector; None admits no namespace, {} admits all (Kueue's rule).
    namespace_selector = models.JSONField(null=True, blank=True)
    within_cluster_queue = models.CharField(
        max_length=32, choices=WithinClusterQueue, default=WithinClusterQueue.NEVER
    )
    reclaim_within_cohort = models.CharField(
        max_length=16, choices=ReclaimWithinCohort, default=ReclaimWithinCohort.NEVER
    )
    borrow_within_cohort = models.CharField(
        max_length=16, choices=BorrowWithinCohort, default=BorrowWithinCohort.NEVER
    )
    max_priority_threshold = models.IntegerField(null=True, blank=True)
    reclaimable = models.BooleanField(
        default=True
    )  # false: others never take back what it borrows
    undeclared = models.CharField(max_length=20, choices=Undeclared, default=Undeclared.BLOCK)
    when_can_borrow = models.CharField(
        max_length=16, choices=FlavorSearch, default=FlavorSearch.MAY_STOP_SEARCH
    )
    when_can_preempt = models.CharField(
        max_length=16, choices=FlavorSearch, default=FlavorSearch.TRY_NEXT_FLAVOR
    )
    flavor_preference = models.CharField(
        max_length=24,
        choices=FlavorPreference,
        default=FlavorPreference.BORROWING_OVER_PREEMPTION,
    )
    minimum_runtime_s = models.PositiveIntegerField(default=0)
    yields_to_own = models.BooleanField(default=False)  # to higher priority, before that time
    admission_order = models.CharField(
        max_length=8, choices=AdmissionOrder, default=AdmissionOrder.PRIORITY
    )
    priority_first = models.BooleanField(default=False)
    # What a manifest said that has no column of its own; exported unchanged.
    carried = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ("name",)
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="queue_has_a_name"),
            models.CheckConstraint(condition=Q(fair_weight__gte=0), name="queue_weight_not_neg"),
            models.CheckConstraint(
                condition=Q(queueing_strategy__in=QueueingStrategy.values),
                name="queue_strategy_known",
            ),
            models.CheckConstraint(
                condition=Q(stop_policy__in=StopPolicy.values),
                name="queue_stop_policy_known",
            ),
            models.CheckConstraint(
                condition=Q(within_cluster_queue__in=WithinClusterQueue.values),
                name="queue_within_known",
            ),
            models.CheckConstraint(
                condition=Q(reclaim_within_cohort__in=ReclaimWithinCohort.values),
                name="queue_reclaim_known",
            ),
            models.CheckConstraint(
                condition=Q(borrow_within_cohort=BorrowWithinCohort.NEVER)
                | ~Q(reclaim_within_cohort=ReclaimWithinCohort.NEVER),
                name="queue_borrow_preemption_needs_reclaim",
            ),
            models.CheckConstraint(
                condition=Q(when_can_borrow__in=FlavorSearch.values)
                & Q(when_can_preempt__in=FlavorSearch.values)
                & Q(flavor_preference__in=FlavorPreference.values),
                name="queue_flavor_search_known",
            ),
            models.CheckConstraint(
                condition=Q(flavor_preference=FlavorPreference.BORROWING_OVER_PREEMPTION)
                | Q(
                    when_can_borrow=FlavorSearch.TRY_NEXT_FLAVOR,
                    when_can_preempt=FlavorSearch.TRY_NEXT_FLAVOR,
                ),
                name="queue_preference_needs_search",
            ),
            models.CheckConstraint(
                condition=Q(admission_order__in=AdmissionOrder.values),
                name="queue_admission_order_known",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class LocalQueue(Versioned):
    """A namespace's door to a ClusterQueue, named so that it may be declared before it."""

    namespace = NameField()
    name = NameField()
    cluster_queue = NameField()
    stop_policy = models.CharField(max_length=16, choices=StopPolicy, default=StopPolicy.NONE)
    fair_weight = models.DecimalField(max_digits=12, decimal_places=6, default=1)

    class Meta:
        ordering = ("namespace", "name")
        constraints = [
            models.UniqueConstraint(fields=["namespace", "name"], name="one_local_queue_per_name"),
            models.CheckConstraint(
                condition=~Q(name="") & ~Q(namespace="") & ~Q(cluster_queue=""),
                name="local_queue_is_named",
            ),
            models.CheckConstraint(
                condition=Q(stop_policy__in=StopPolicy.values),
                name="local_stop_policy_known",
            ),
        ]
        indexes = [models.Index(fields=["cluster_queue"], name="local_queue_by_target")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
