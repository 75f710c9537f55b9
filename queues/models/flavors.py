"""Kinds of nodes, and how near nodes are to one another."""

from django.db import models

from queues.choices import PlacementPolicy
from queues.models.fields import NameField, Versioned


class ResourceFlavor(Versioned):
    """A kind of node: those that carry all of ``node_labels``. Kueue: ResourceFlavor."""

    name = NameField(unique=True)
    node_labels = models.JSONField(default=dict, blank=True)
    node_taints = models.JSONField(default=list, blank=True)  # [{key, value, effect}]
    tolerations = models.JSONField(default=list, blank=True)  # [{key, operator, value, effect}]
    topology = NameField(blank=True)  # by name: the topology may be declared later
    policy = models.CharField(
        max_length=16, choices=PlacementPolicy, default=PlacementPolicy.FRAGMENTATION
    )

    class Meta:
        ordering = ("name",)
        constraints = [
            models.CheckConstraint(condition=~models.Q(name=""), name="flavor_has_a_name"),
            models.CheckConstraint(
                condition=models.Q(policy__in=PlacementPolicy.values), name="flavor_policy_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Topology(Versioned):
    """Named levels of nearness. Kueue: Topology; Volcano: HyperNode tiers."""

    name = NameField(unique=True)

    class Meta:
        ordering = ("name",)
        verbose_name_plural = "topologies"
        constraints = [
            models.CheckConstraint(condition=~models.Q(name=""), name="topology_has_a_name")
        ]

    def __str__(self) -> str:
        return self.name


class TopologyLevel(models.Model):
    """One level of a topology, outermost first."""

    topology = models.ForeignKey(Topology, models.CASCADE, related_name="levels")
    position = models.PositiveSmallIntegerField()
    node_label = models.CharField(max_length=317)  # prefix/name of a Kubernetes label key

    class Meta:
        ordering = ("topology", "position")
        constraints = [
            models.UniqueConstraint(
                fields=["topology", "position"], name="one_level_per_position"
            ),
            models.UniqueConstraint(fields=["topology", "node_label"], name="one_level_per_label"),
        ]

    def __str__(self) -> str:
        return self.node_label
