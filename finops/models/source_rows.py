"""What was loaded, row by row. A row belongs to one day of a source and is replaced with it.

The fields are those of ``finops.sources.rows``; costs are in the source's declared currency.
"""

from typing import Any

from django.db import models

from finops.models.sources import Source
from queues.models.fields import NameField


def hours(**more: Any) -> "models.DecimalField[Any, Any]":
    """Return a column for hours."""
    return models.DecimalField(max_digits=20, decimal_places=6, **{"default": 0} | more)


def amount(**more: Any) -> "models.DecimalField[Any, Any]":
    """Return a column for raw cost, of either sign (finops.md 4.8)."""
    return models.DecimalField(max_digits=20, decimal_places=8, **{"default": 0} | more)


class Loaded(models.Model):
    """A row of one day of a source."""

    source = models.ForeignKey(Source, models.CASCADE, related_name="+")
    day = models.DateField()
    key = models.CharField(max_length=64)  # natural key within source and day

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.source_id} {self.day} {self.key[:12]}"


class CostRow(Loaded):
    """What a namespace, controller, label ... cost in a day, as OpenCost counts.

    ``[starts_at, ends_at)`` is the day that was asked for.
    """

    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    cluster = NameField(blank=True)
    node = NameField(blank=True)
    namespace = NameField(blank=True)
    controller_kind = models.CharField(max_length=63, blank=True)
    controller = NameField(blank=True)
    labels = models.JSONField(default=dict)
    annotations = models.JSONField(default=dict)
    gpu_hours = hours()
    cpu_hours = hours()
    gib_hours = hours()
    gpu_cost = amount()
    cpu_cost = amount()
    ram_cost = amount()
    pv_cost = amount()
    network_cost = amount()
    lb_cost = amount()
    other_cost = amount()
    gpu_efficiency = hours(null=True, default=None)

    class Meta:
        ordering = ("source", "day", "key")
        constraints = [
            models.UniqueConstraint(fields=["source", "day", "key"], name="one_cost_row_per_key")
        ]


class AssetRow(Loaded):
    """A node or a disk as OpenCost priced it for a day."""

    kind = models.CharField(max_length=32, blank=True)
    cluster = NameField(blank=True)
    name = NameField()
    gpu_hours = hours()
    cpu_hours = hours()
    gib_hours = hours()
    gpu_cost = amount()
    cpu_cost = amount()
    ram_cost = amount()
    total_cost = amount()

    class Meta:
        ordering = ("source", "day", "key")
        constraints = [
            models.UniqueConstraint(fields=["source", "day", "key"], name="one_asset_per_key")
        ]
