"""Machines."""

from django.db import models

from queues.models.fields import NameField, Versioned


class Node(Versioned):
    """A machine, as its cluster last reported it. Amounts are in canonical units."""

    name = NameField(unique=True)
    labels = models.JSONField(default=dict, blank=True)
    annotations = models.JSONField(default=dict, blank=True)  # ours alone
    taints = models.JSONField(default=list, blank=True)
    capacity = models.JSONField(default=dict, blank=True)
    allocatable = models.JSONField(default=dict, blank=True)
    ready = models.BooleanField(default=True)
    schedulable = models.BooleanField(default=True)  # false: cordoned
    draining = models.BooleanField(default=False)  # what stands here is to go elsewhere
    unmanaged = models.JSONField(default=dict, blank=True)  # taken by pods outside the platform

    class Meta:
        ordering = ("name",)
        constraints = [
            models.CheckConstraint(condition=~models.Q(name=""), name="node_has_a_name")
        ]

    def __str__(self) -> str:
        return self.name
