"""What all teams carry together: a monthly amount, or a namespace; dated, never edited."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from gpuplatform.common import clock
from queues.models.fields import NameField


class SharingMethod(models.TextChoices):
    """How it is given out among the teams of a month (FORMAT.md 3.4)."""

    EVEN = "even", _("in equal parts")
    WEIGHTED = "weighted", _("by what each cost itself")
    FIXED = "fixed", _("by fixed percentages")


class SharedCost(models.Model):
    """One cost that teams share over ``[valid_from, valid_to)``.

    ``amount`` is of a whole month; ``namespace`` passes on what landed there. One of the two.
    ``percentages``: of each team, as texts, where they are fixed.
    """

    name = NameField()
    method = models.CharField(max_length=8, choices=SharingMethod)
    amount = models.DecimalField(max_digits=14, decimal_places=2, null=True, blank=True)
    namespace = NameField(blank=True)
    cluster = NameField(blank=True)
    percentages = models.JSONField(default=dict, blank=True)
    currency = models.CharField(max_length=3)
    valid_from = models.DateTimeField()
    valid_to = models.DateTimeField(null=True, blank=True)
    note = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(default=clock.now)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ("name", "valid_from")
        constraints = [
            models.CheckConstraint(
                condition=Q(valid_to=None) | Q(valid_to__gt=F("valid_from")),
                name="shared_cost_ends_after_it_began",
            ),
            models.CheckConstraint(
                condition=Q(amount=None, namespace__gt="") | Q(amount__isnull=False, namespace=""),
                name="shared_cost_is_an_amount_or_a_namespace",
            ),
            models.CheckConstraint(
                condition=Q(method__in=SharingMethod.values), name="shared_cost_method_known"
            ),
            models.UniqueConstraint(
                fields=["name"], condition=Q(valid_to=None), name="one_shared_cost_in_force"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.method}"

    @property
    def parts(self) -> list[tuple[str, str]]:
        """Return the fixed percentages by team; a database keeps no order of them."""
        return sorted(self.percentages.items())
