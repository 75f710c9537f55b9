"""What an admitted workload holds: quota and nodes."""

from django.db import models
from django.db.models import Q

from queues.models.fields import NameField
from scheduling.models.workloads import Workload


class Admission(models.Model):
    """Quota and nodes held by a workload, from its admission until the backend released them.

    ``evicted_at`` set and ``released_at`` not: the pods are being stopped and still hold both.
    ``is_part``: pods that were taken from a gang that runs on, until they have left.
    ``is_reserved``: quota and nodes are kept for it, and admission checks are still to say yes:
    nothing may start. ``attempt``: which run of its members is on; ``begun_at``: since when that
    may start; null: since the admission. ``unready_since``: all were ready and no longer are.
    ``lost``: stretches whose progress was thrown away, each ``{"from", "to", "gpus"}``; ``gpus``
    null: all that was held then.
    """

    workload = models.ForeignKey(Workload, models.CASCADE, related_name="admissions")
    cluster_queue = NameField(blank=True)  # "" outside every queue
    admitted_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    evicted_at = models.DateTimeField(null=True, blank=True)
    eviction_reason = models.CharField(max_length=40, blank=True)
    is_part = models.BooleanField(default=False)
    is_reserved = models.BooleanField(default=False)
    attempt = models.PositiveIntegerField(default=1)
    begun_at = models.DateTimeField(null=True, blank=True)
    unready_since = models.DateTimeField(null=True, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    lost = models.JSONField(default=list, blank=True)

    class Meta:
        ordering = ("workload", "admitted_at")
        constraints = [
            models.UniqueConstraint(
                fields=["workload"],
                condition=Q(released_at=None, is_part=False),
                name="one_open_admission_per_workload",
            ),
            models.CheckConstraint(
                condition=Q(is_part=False) | Q(evicted_at__isnull=False),
                name="only_leaving_pods_are_a_part",
            ),
            models.CheckConstraint(
                condition=Q(released_at=None) | Q(released_at__gte=models.F("admitted_at")),
                name="admission_ends_after_it_began",
            ),
        ]
        indexes = [
            models.Index(
                fields=["cluster_queue"],
                condition=Q(released_at=None),
                name="open_admissions_by_queue",
            ),
            models.Index(
                fields=["id"], condition=Q(released_at=None), name="open_admissions_by_number"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workload} in {self.cluster_queue}"


class Placement(models.Model):
    """Pods of one pod set on one node. ``node`` "" where the flavor has no nodes (quota only)."""

    admission = models.ForeignKey(  # found by ``one_placement_per_node``
        Admission, models.CASCADE, related_name="placements", db_index=False
    )
    pod_set = NameField()
    node = NameField(blank=True)
    count = models.PositiveIntegerField()
    flavors = models.JSONField(default=dict)  # resource -> flavor
    requests = models.JSONField(default=dict)  # of one pod, as they were at admission
    charges = models.JSONField(null=True, blank=True)  # of one pod in quota; null: its requests
    devices = models.JSONField(default=list, blank=True)  # of each pod, where they are told apart

    class Meta:
        ordering = ("admission", "pod_set", "node")
        constraints = [
            models.UniqueConstraint(
                fields=["admission", "pod_set", "node"], name="one_placement_per_node"
            ),
            models.CheckConstraint(condition=Q(count__gte=1), name="placement_has_pods"),
        ]
        indexes = [models.Index(fields=["node"], name="placement_by_node")]

    def __str__(self) -> str:
        return f"{self.count} x {self.pod_set} on {self.node}"
