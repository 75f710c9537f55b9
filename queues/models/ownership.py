"""Since when a queue or a namespace belongs to a team."""

from django.db import models

from gpuplatform.common import clock
from queues.models.fields import NameField
from queues.models.teams import Team


class OwnedKind(models.TextChoices):
    """What a team owns and may be given to another."""

    QUEUE = "queue"
    NAMESPACE = "namespace"


class Ownership(models.Model):
    """Whose a thing is from an instant on, until the next row of the same thing. Append-only.

    ``team`` None: nobody's. What is spent stays with whom it was when it was spent: a queue that
    goes to another team takes none of its past along.
    """

    kind = models.CharField(max_length=16, choices=OwnedKind)
    name = NameField()
    team = models.ForeignKey(Team, models.CASCADE, null=True, blank=True, related_name="owned")
    since = models.DateTimeField(default=clock.now)

    class Meta:
        ordering = ("kind", "name", "since", "id")
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=OwnedKind.values), name="owned_kind_known"
            )
        ]
        indexes = [models.Index(fields=["kind", "name", "since"], name="ownership_by_thing")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.team or 'nobody'} since {self.since}"
