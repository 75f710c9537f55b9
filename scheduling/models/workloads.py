"""What people want to run, and the story of each."""

import uuid
from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from gpuplatform.common import clock
from queues.models import Team
from queues.models.fields import NameField
from scheduling.engine.terms import DeviceLocality, Outcome, Status, TopologyMode

STATUS_LABELS = [
    (Status.PENDING.value, _("Pending")),
    (Status.ADMITTED.value, _("Admitted")),
    (Status.RUNNING.value, _("Running")),
    (Status.FINISHED.value, _("Finished")),
    (Status.INACTIVE.value, _("Inactive")),
]
OUTCOME_LABELS = [
    (Outcome.SUCCEEDED.value, _("Succeeded")),
    (Outcome.FAILED.value, _("Failed")),
    (Outcome.CANCELLED.value, _("Cancelled")),
]


class KeptManager(models.Manager["Workload"]):
    """The workloads that are still to be seen: not those that were archived."""

    def get_queryset(self) -> models.QuerySet["Workload"]:
        """Return the rows that were not archived."""
        return super().get_queryset().filter(archived_at=None)


class EveryManager(models.Manager["Workload"]):
    """All workloads, the archived ones too."""


# Who has no place in its line yet is taken for one of the first three: it may be the first.
PLACE = Coalesce("position", 3)


class Workload(models.Model):
    """The unit of admission: a gang that starts whole or not at all.

    ``status`` has one writer, ``scheduling.lifecycle``. ``version`` grows with every change
    that a running decision must notice.
    """

    uid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    namespace = NameField()
    name = NameField()
    kind = models.CharField(max_length=64, default="Workload")  # of the submitted document
    queue_name = NameField(blank=True)  # LocalQueue in ``namespace``; "" runs outside every queue
    ceiling_queue = NameField(blank=True)  # a ClusterQueue that only bounds the size
    team = models.ForeignKey(  # found by ``workload_by_team``
        Team, models.SET_NULL, null=True, blank=True, related_name="workloads", db_index=False
    )
    submitted_by = models.ForeignKey(  # nobody is looked up by it
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
    )
    priority = models.IntegerField(default=0)
    priority_class = NameField(blank=True)
    labels = models.JSONField(default=dict, blank=True)
    annotations = models.JSONField(default=dict, blank=True)
    min_member = models.PositiveIntegerField(null=True, blank=True)
    role_minima = models.JSONField(default=dict, blank=True)
    elastic = models.BooleanField(default=False)
    preemptible = models.BooleanField(default=True)
    stateless = models.BooleanField(default=False)
    expected_duration_s = models.PositiveIntegerField(null=True, blank=True)
    max_execution_time_s = models.PositiveIntegerField(null=True, blank=True)
    checkpoint_interval_s = models.PositiveIntegerField(null=True, blank=True)
    on_failure = models.CharField(max_length=8, default="restart")
    max_retries = models.PositiveIntegerField(null=True, blank=True)
    # What else becomes of it when a member ends: rows of ``verdicts.Policy``, Volcano's policies.
    policies = models.JSONField(default=list, blank=True)
    min_success = models.PositiveIntegerField(null=True, blank=True)  # so many pods are enough
    on_node_loss = models.CharField(max_length=8, default="replace")
    grace_s = models.PositiveIntegerField(default=30)  # its pods may take so long to stop
    ttl_s = models.PositiveIntegerField(null=True, blank=True)  # kept so long once it has ended
    gates = models.JSONField(default=list, blank=True)  # names; it waits until none is left
    template = models.JSONField(null=True, blank=True)  # the submitted document, whole
    warnings = models.JSONField(default=list, blank=True)  # coded, as answered at submission

    status = models.CharField(max_length=8, choices=STATUS_LABELS, default=Status.PENDING.value)
    outcome = models.CharField(max_length=9, choices=OUTCOME_LABELS, blank=True)
    pending_reason = models.CharField(max_length=40, blank=True)
    blockers = models.JSONField(default=list, blank=True)  # ordered; engine.plan.Blocker as JSON
    position = models.PositiveIntegerField(null=True, blank=True)  # in its ClusterQueue, from 1
    # For lists and sums: what is held; of the whole gang while nothing is.
    gpus = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=clock.now)
    waiting_since = models.DateTimeField(null=True, blank=True)  # since its last eviction
    # Its place among its equals, where that is not its age; and no cycle looks at it before.
    queued_at = models.DateTimeField(null=True, blank=True)
    requeue_at = models.DateTimeField(null=True, blank=True)
    requeues = models.PositiveIntegerField(default=0)  # evictions since it was never ready
    retries = models.PositiveIntegerField(default=0)  # restarts since a member failed
    executed_s = models.FloatField(default=0.0)  # in admissions that are over
    inactive_reason = models.CharField(max_length=40, blank=True)
    admitted_at = models.DateTimeField(null=True, blank=True)  # of the admission now held
    started_at = models.DateTimeField(null=True, blank=True)  # of the run now on
    finished_at = models.DateTimeField(null=True, blank=True)
    last_checkpoint_at = models.DateTimeField(null=True, blank=True)  # up to here it is safe
    resized_at = models.DateTimeField(null=True, blank=True)  # holds less since, in place
    # Why a running one that asks for more pods waits for them: reason, blockers, position.
    growth = models.JSONField(default=dict, blank=True)
    version = models.PositiveIntegerField(default=1)
    # Ended long ago: what bills rest on stays, everything else is gone (``scheduling.retention``).
    archived_at = models.DateTimeField(null=True, blank=True)

    objects = KeptManager()
    everything = EveryManager()

    class Meta:
        ordering = ("-created_at", "uid")
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=[s.value for s in Status]),
                name="workload_status_known",
            ),
            models.CheckConstraint(
                condition=Q(status=Status.FINISHED.value, outcome__in=[o.value for o in Outcome])
                | (~Q(status=Status.FINISHED.value) & Q(outcome="")),
                name="workload_outcome_when_finished",
            ),
            models.CheckConstraint(
                condition=~Q(name="") & ~Q(namespace=""), name="workload_is_named"
            ),
            models.UniqueConstraint(
                fields=["namespace", "kind", "name"],
                condition=~Q(status=Status.FINISHED.value),
                name="one_live_workload_per_name",
            ),
        ]
        indexes = [
            models.Index(fields=["status", "-created_at"], name="workload_by_status"),
            models.Index(fields=["team", "-created_at"], name="workload_by_team"),
            models.Index(
                fields=["-created_at", "uid"],
                condition=Q(archived_at=None),
                name="workload_by_age",
            ),
            models.Index(
                Coalesce("waiting_since", "created_at"),
                "uid",
                condition=Q(status=Status.PENDING.value),
                name="workload_by_wait",
            ),
            models.Index(
                fields=["queue_name", "position", "created_at"],
                condition=Q(status=Status.PENDING.value),
                name="workload_by_line",
            ),
            models.Index(
                PLACE,
                "created_at",
                condition=Q(status=Status.PENDING.value),
                name="workload_by_place",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def waits_since(self) -> datetime:
        """Return since when it waits: its last eviction, else its submission."""
        return self.waiting_since or self.created_at


class PodSet(models.Model):
    """Identical pods of a workload. ``requests`` is what ONE pod asks for."""

    workload = models.ForeignKey(Workload, models.CASCADE, related_name="pod_sets")
    position = models.PositiveSmallIntegerField()
    name = NameField()
    count = models.PositiveIntegerField()
    min_count = models.PositiveIntegerField(null=True, blank=True)
    wanted = models.PositiveIntegerField(null=True, blank=True)  # a running one grows to this
    finished = models.PositiveIntegerField(default=0)  # pods of this run that are over for good
    requests = models.JSONField(default=dict)
    node_selector = models.JSONField(default=dict, blank=True)
    tolerations = models.JSONField(default=list, blank=True)
    affinity = models.JSONField(default=list, blank=True)  # terms of expressions, as in the spec
    topology_mode = models.CharField(
        max_length=16, blank=True, choices=[(m.value, m.value) for m in TopologyMode]
    )
    topology_level = models.CharField(max_length=317, blank=True)  # a node label
    # Slices of so many pods in one domain of a level, outer ones first: {"level", "size"}.
    slices = models.JSONField(default=list, blank=True)
    group = models.CharField(max_length=63, blank=True)  # pod sets that share a domain
    subgroup_size = models.PositiveIntegerField(null=True, blank=True)
    min_subgroups = models.PositiveIntegerField(null=True, blank=True)
    device_locality = models.CharField(
        max_length=16, default="any", choices=[(m.value, m.value) for m in DeviceLocality]
    )
    device_memory_mib = models.PositiveIntegerField(default=0)  # of each whole GPU

    class Meta:
        ordering = ("workload", "position")
        constraints = [
            models.UniqueConstraint(fields=["workload", "name"], name="one_pod_set_per_name"),
            models.CheckConstraint(condition=Q(count__gte=1), name="pod_set_has_pods"),
            models.CheckConstraint(
                condition=Q(min_count=None)
                | Q(min_count__gte=1, min_count__lte=models.F("count")),
                name="pod_set_min_within_count",
            ),
            models.CheckConstraint(
                condition=Q(wanted=None) | Q(wanted__gt=models.F("count")),
                name="pod_set_wants_more",
            ),
            models.CheckConstraint(
                condition=Q(finished__lte=models.F("count")),
                name="pod_set_finished_within_count",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} x {self.count}"


class WorkloadEvent(models.Model):
    """One line of a workload's story. Append-only.

    ``kind``: submitted, admitted, started, evicted, released, requeued, loan_opened,
    loan_changed, loan_closed, finished, cancelled ... ``facts`` holds the numbers of its sentence.
    """

    workload = models.ForeignKey(Workload, models.CASCADE, related_name="events")
    at = models.DateTimeField(default=clock.now)
    kind = models.CharField(max_length=24)
    reason = models.CharField(max_length=40, blank=True)
    facts = models.JSONField(default=dict, blank=True)
    other = models.ForeignKey(  # the preemptor of a victim, or the victim of a preemptor
        Workload, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )

    class Meta:
        ordering = ("workload", "id")
        indexes = [
            models.Index(
                fields=["other"], condition=Q(other__isnull=False), name="event_about_another"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.reason}"
