"""What may be spent, of what and in which windows, and how far each is gone."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from gpuplatform.common import clock
from queues.models import Team
from queues.models.fields import NameField, Versioned


class BudgetScope(models.TextChoices):
    """Whose spending a budget is about."""

    TEAM = "team", _("team")
    KEY = "key", _("key of LiteLLM")
    MODEL = "model", _("model")
    TAG = "tag", _("tag")


class BudgetMeasure(models.TextChoices):
    """What is counted."""

    MONEY = "money", _("money")
    TOKENS = "tokens", _("tokens")
    GPU_HOURS = "gpu_hours", _("GPU-hours")


def usual_thresholds() -> list[int]:
    """Return the percentages at which somebody is told (finops.md 6)."""
    return [50, 80, 100, 120]


class Budget(Versioned):
    """A limit for each window of ``duration`` (``finops.budgets.windows``).

    ``subject`` is the team's name, the key's alias or hash, the model group, or the tag. A hard
    one keeps new work of the team from starting, a soft one only tells.
    """

    name = NameField(max_length=63, unique=True)
    scope = models.CharField(max_length=8, choices=BudgetScope)
    subject = models.CharField(max_length=255)
    team = models.ForeignKey(Team, models.CASCADE, null=True, blank=True, related_name="budgets")
    measure = models.CharField(max_length=10, choices=BudgetMeasure)
    limit = models.DecimalField(max_digits=20, decimal_places=6)
    duration = models.CharField(max_length=16, default="1mo")
    first_day = models.DateField()
    is_hard = models.BooleanField(default=False)
    thresholds = models.JSONField(default=usual_thresholds)
    note = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ("name",)
        constraints = [
            models.CheckConstraint(
                condition=Q(scope__in=BudgetScope.values), name="budget_scope_known"
            ),
            models.CheckConstraint(
                condition=Q(measure__in=BudgetMeasure.values), name="budget_measure_known"
            ),
            models.CheckConstraint(condition=Q(limit__gte=0), name="budget_not_negative"),
            models.CheckConstraint(
                condition=Q(scope="team", team__isnull=False) | (~Q(scope="team") & Q(team=None)),
                name="budget_of_a_team_has_one",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class BudgetState(models.Model):
    """How far a budget is gone in its window: made from the ledger, replaced each time."""

    budget = models.OneToOneField(Budget, models.CASCADE, related_name="state")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    spent = models.DecimalField(max_digits=20, decimal_places=6)
    level = models.PositiveIntegerField(default=0)  # the highest threshold reached, in percent
    expected = models.DecimalField(max_digits=20, decimal_places=6, null=True)
    low = models.DecimalField(max_digits=20, decimal_places=6, null=True)
    high = models.DecimalField(max_digits=20, decimal_places=6, null=True)
    measured_at = models.DateTimeField(default=clock.now)

    def __str__(self) -> str:
        return f"{self.budget} {self.spent}"
