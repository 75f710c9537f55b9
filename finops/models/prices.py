"""What a unit costs, and since when."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from gpuplatform.common import clock
from queues.models.fields import NameField


class PriceUnit(models.TextChoices):
    """What one unit of a priced thing is."""

    GPU_HOUR = "gpu_hour", _("GPU-hour of a flavor")
    CPU_HOUR = "cpu_hour", _("CPU-hour")
    GIB_HOUR = "gib_hour", _("GiB-hour of memory")
    STORAGE_GB_HOUR = "storage_gb_hour", _("GB-hour of storage")
    INPUT_MILLION = "input_million", _("million input tokens of a model")
    OUTPUT_MILLION = "output_million", _("million output tokens of a model")


# Units that bills are made from.
BILLED_UNITS = frozenset({PriceUnit.GPU_HOUR, PriceUnit.INPUT_MILLION, PriceUnit.OUTPUT_MILLION})


class Price(models.Model):
    """A price in force over a window. A used price is never edited; a new one follows it.

    ``subject`` is the flavor or the model; "*" is every flavor without a price of its own.
    """

    unit = models.CharField(max_length=16, choices=PriceUnit)
    subject = NameField()
    amount = models.DecimalField(max_digits=18, decimal_places=8)
    currency = models.CharField(max_length=3, default="EUR")
    valid_from = models.DateTimeField()
    valid_to = models.DateTimeField(null=True, blank=True)
    source = models.CharField(max_length=64, default="declared")  # declared, opencost, litellm ...
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(default=clock.now)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )

    class Meta:
        ordering = ("unit", "subject", "valid_from")
        constraints = [
            models.CheckConstraint(condition=Q(amount__gte=0), name="price_not_negative"),
            models.CheckConstraint(
                condition=Q(valid_to=None) | Q(valid_to__gt=F("valid_from")),
                name="price_ends_after_it_began",
            ),
            models.UniqueConstraint(
                fields=["unit", "subject", "valid_from"], name="one_price_per_start"
            ),
            models.UniqueConstraint(
                fields=["unit", "subject"],
                condition=Q(valid_to=None),
                name="one_price_in_force",
            ),
            models.CheckConstraint(
                condition=Q(unit__in=PriceUnit.values), name="price_unit_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency} per {self.unit} of {self.subject}"
