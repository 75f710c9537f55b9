"""Named priorities."""

from django.db import models

from queues.choices import PriorityKind
from queues.models.fields import NameField, Versioned


class PriorityClass(Versioned):
    """A named priority: Kueue's WorkloadPriorityClass or Kubernetes' PriorityClass."""

    kind = models.CharField(max_length=8, choices=PriorityKind, default=PriorityKind.WORKLOAD)
    name = NameField()
    value = models.IntegerField()
    global_default = models.BooleanField(default=False)
    description = models.TextField(blank=True)

    class Meta:
        ordering = ("-value", "name")
        verbose_name_plural = "priority classes"
        constraints = [
            models.UniqueConstraint(fields=["kind", "name"], name="one_priority_class_per_name"),
            models.CheckConstraint(
                condition=models.Q(kind__in=PriorityKind.values),
                name="priority_kind_known",
            ),
        ]

    def __str__(self) -> str:
        return self.name
