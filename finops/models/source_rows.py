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


class TokenRow(Loaded):
    """A request as LiteLLM logged it; ``key`` stands for its request id, once per source."""

    request_id = models.CharField(max_length=255)
    at = models.DateTimeField()
    team_id = models.CharField(max_length=255, blank=True)
    team_alias = models.CharField(max_length=255, blank=True)
    key_hash = models.CharField(max_length=128, blank=True)
    key_alias = models.CharField(max_length=255, blank=True)
    model = models.CharField(max_length=255, blank=True)
    model_group = models.CharField(max_length=255, blank=True)
    model_id = models.CharField(max_length=255, blank=True)
    call_type = models.CharField(max_length=64, blank=True)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cache_read_tokens = models.PositiveBigIntegerField(default=0)
    spend = amount()
    breakdown_cost = amount(null=True, default=None)
    cache_hit = models.BooleanField(default=False)
    failed = models.BooleanField(default=False)
    is_internal = models.BooleanField(default=False)
    tags = models.JSONField(default=list)

    class Meta:
        ordering = ("source", "at", "key")
        constraints = [
            models.UniqueConstraint(fields=["source", "key"], name="one_row_per_request")
        ]
        indexes = [models.Index(fields=["source", "day"], name="tokens_by_day")]


class TeamDayRow(Loaded):
    """What LiteLLM added up itself for a UTC day, to compare with the requests."""

    team_id = models.CharField(max_length=255, blank=True)
    model_group = models.CharField(max_length=255, blank=True)
    model = models.CharField(max_length=255, blank=True)
    key_hash = models.CharField(max_length=128, blank=True)
    prompt_tokens = models.BigIntegerField(default=0)
    completion_tokens = models.BigIntegerField(default=0)
    requests = models.BigIntegerField(default=0)
    failures = models.BigIntegerField(default=0)
    spend = amount()

    class Meta:
        ordering = ("source", "day", "key")
        constraints = [
            models.UniqueConstraint(fields=["source", "day", "key"], name="one_team_day_per_key")
        ]


class GpuUseRow(Loaded):
    """How busy one GPU was in a day while a pod held it."""

    node = NameField(blank=True)
    gpu = models.CharField(max_length=128, blank=True)
    namespace = NameField(blank=True)
    pod = NameField(blank=True)
    sampled_gpu_hours = hours()
    busy_gpu_hours = hours()
    idle_gpu_hours = hours()

    class Meta:
        ordering = ("source", "day", "key")
        constraints = [
            models.UniqueConstraint(fields=["source", "day", "key"], name="one_use_per_gpu")
        ]


class NodePriceRow(Loaded):
    """What a GPU-hour of a node cost in a day, as its exporter resolved it."""

    node = NameField(blank=True)
    gpu_hour = amount()
    lowest = amount()
    highest = amount()

    class Meta:
        ordering = ("source", "day", "key")
        constraints = [
            models.UniqueConstraint(fields=["source", "day", "key"], name="one_price_per_node")
        ]
