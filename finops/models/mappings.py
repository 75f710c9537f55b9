"""Whose things are, how namespaces are billed, and which namespace serves a model: all dated."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from gpuplatform.common import clock
from queues.models import Team
from queues.models.fields import NameField


class MappingKind(models.TextChoices):
    """What a mapping is about; ``value`` is the name of that thing."""

    NAMESPACE = "namespace", _("namespace")
    LABEL = "label", _("value of a label")
    ANNOTATION = "annotation", _("value of an annotation")
    LITELLM_TEAM = "litellm_team", _("team of LiteLLM")
    QUEUE = "queue", _("cluster queue")
    COST_CENTER = "cost_center", _("cost centre")
    MODE = "mode", _("billing mode of a namespace")
    DEPLOYMENT = "deployment", _("model and the namespace that serves it")


class BillingMode(models.TextChoices):
    """How a namespace is billed (finops.md 4.2)."""

    DIRECT = "direct", _("direct: its owner pays what it uses")
    SERVING_SHARED = "serving_shared", _("serving, shared: whoever asks its models pays a part")
    SERVING_PRICED = "serving_priced", _("serving, priced: its owner is paid for tokens")
    EXTERNAL = "external", _("external: its tokens are real money")


# Kinds that say whose something is.
OWNING = (
    MappingKind.NAMESPACE,
    MappingKind.LABEL,
    MappingKind.ANNOTATION,
    MappingKind.LITELLM_TEAM,
    MappingKind.QUEUE,
    MappingKind.COST_CENTER,
)
KEYED = (MappingKind.LABEL, MappingKind.ANNOTATION)


class Mapping(models.Model):
    """One thing and whose or what it is over ``[valid_from, valid_to)``.

    A mapping in force is never edited: another follows it, or it ends. ``identity`` is what may
    have one mapping at a time. ``cluster`` "" is every cluster.
    """

    kind = models.CharField(max_length=16, choices=MappingKind)
    identity = models.CharField(max_length=64, editable=False)
    cluster = NameField(blank=True)
    key = models.CharField(max_length=317, blank=True)  # of a label or an annotation
    value = models.CharField(max_length=255)  # of a deployment: the model group
    team = models.ForeignKey(
        Team, models.PROTECT, null=True, blank=True, related_name="cost_mappings"
    )
    mode = models.CharField(max_length=16, choices=BillingMode, blank=True)
    namespace = NameField(blank=True)  # that serves the model
    tokens_per_second = models.DecimalField(
        max_digits=14, decimal_places=4, null=True, blank=True
    )  # of the deployment at full load
    gpus = models.DecimalField(max_digits=10, decimal_places=4, null=True, blank=True)
    valid_from = models.DateTimeField()
    valid_to = models.DateTimeField(null=True, blank=True)
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(default=clock.now)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ("kind", "key", "value", "cluster", "valid_from")
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=MappingKind.values), name="mapping_kind_known"
            ),
            models.CheckConstraint(
                condition=Q(valid_to=None) | Q(valid_to__gt=F("valid_from")),
                name="mapping_ends_after_it_began",
            ),
            models.CheckConstraint(
                condition=Q(kind__in=[kind.value for kind in OWNING], team__isnull=False)
                | Q(kind=MappingKind.MODE.value, team=None, mode__in=BillingMode.values)
                | (Q(kind=MappingKind.DEPLOYMENT.value, team=None) & ~Q(namespace="")),
                name="mapping_says_something",
            ),
            models.UniqueConstraint(
                fields=["identity", "valid_from"], name="one_mapping_per_start"
            ),
            models.UniqueConstraint(
                fields=["identity"], condition=Q(valid_to=None), name="one_mapping_in_force"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"
