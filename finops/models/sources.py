"""Where cost and usage come from, and what has been loaded of each day."""

from decimal import Decimal

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from gpuplatform.common import clock, reasons
from gpuplatform.common.money import plain
from queues.models.fields import NameField, Versioned


class SourceKind(models.TextChoices):
    """Which other system it is, and by which way it is read."""

    OPENCOST = "opencost", _("OpenCost")
    LITELLM_DATABASE = "litellm_database", _("LiteLLM, its database")
    LITELLM_API = "litellm_api", _("LiteLLM, its API")
    PROMETHEUS = "prometheus", _("Prometheus")


class Plane(models.TextChoices):
    """What a source knows of; of each place one source may tell it, else it counted twice."""

    IRON = "iron", _("cost of machines")
    TOKENS = "tokens", _("tokens")
    UTILISATION = "utilisation", _("utilisation of GPUs")


PLANES = {
    SourceKind.OPENCOST: Plane.IRON,
    SourceKind.LITELLM_DATABASE: Plane.TOKENS,
    SourceKind.LITELLM_API: Plane.TOKENS,
    SourceKind.PROMETHEUS: Plane.UTILISATION,
}


MEASURES = {
    "gpu_hours": _("GPU-hours"),
    "cost": _("cost"),
    "capacity_gpu_hours": _("GPU-hours of capacity"),
    "requests": _("requests"),
    "tokens": _("tokens"),
    "spend": _("spend"),
    "sampled_gpu_hours": _("GPU-hours sampled"),
}


class Source(Versioned):
    """Another system that is read, and how; its secret stands in the environment only.

    ``cluster`` is the cluster, or for LiteLLM the gateway, that it tells about. ``time_zone`` is
    that of its days and never changes: days of two zones would overlap. ``options`` are
    those of its kind (``finops.specs``).
    """

    name = NameField(max_length=63, unique=True)
    kind = models.CharField(max_length=24, choices=SourceKind)
    plane = models.CharField(max_length=16, choices=Plane, editable=False)
    url = models.CharField(max_length=500, blank=True)
    cluster = NameField(blank=True)
    currency = models.CharField(max_length=3)  # declared: whatever the source says, usually USD
    time_zone = models.CharField(max_length=64)
    options = models.JSONField(default=dict)
    first_day = models.DateField()  # nothing before it is loaded by itself
    enabled = models.BooleanField(default=True)
    tested_at = models.DateTimeField(null=True, blank=True)
    test_code = models.CharField(max_length=48, blank=True)  # "" went well
    test_numbers = models.JSONField(default=dict)

    class Meta:
        ordering = ("name",)
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=SourceKind.values), name="source_kind_known"
            ),
            models.UniqueConstraint(
                fields=["plane", "cluster"],
                condition=Q(enabled=True),
                name="one_source_counts_once",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def shown_options(self) -> list[tuple[str, str]]:
        """Its options as texts; lists with commas."""
        return [
            (name, ", ".join(value) if isinstance(value, list) else str(value))
            for name, value in self.options.items()
        ]

    @property
    def test_sentence(self) -> str:
        """Why the last test failed, or ""."""
        return reasons.sentence(self.test_code, self.test_numbers) if self.test_code else ""


class Payload(models.Model):
    """What a source answered, compressed; equal answers are kept once.

    The bytes are ``finops.sources.recording``; ``sha256`` is of what was asked and answered.
    """

    sha256 = models.CharField(max_length=64, unique=True)
    body = models.BinaryField()
    size = models.PositiveBigIntegerField()  # bytes before they were compressed
    kept_at = models.DateTimeField(default=clock.now)

    def __str__(self) -> str:
        return self.sha256[:12]


class Outcome(models.TextChoices):
    """What became of one attempt to load a day."""

    APPLIED = "applied", _("applied")
    UNCHANGED = "unchanged", _("unchanged")
    FAILED = "failed", _("failed")
    QUARANTINED = "quarantined", _("quarantined")
    ACCEPTED = "accepted", _("accepted")  # was quarantined
    REJECTED = "rejected", _("rejected")  # was quarantined
    SUPERSEDED = "superseded", _("superseded")  # was quarantined; a later load was whole


class Fetch(models.Model):
    """One attempt to load a day: what came, how much it was, what became of it.

    ``measures`` are the amounts by which two readings of a day are compared, as texts.
    """

    source = models.ForeignKey(Source, models.CASCADE, related_name="fetches")
    day = models.DateField()
    at = models.DateTimeField(default=clock.now)
    outcome = models.CharField(max_length=16, choices=Outcome)
    code = models.CharField(max_length=48, blank=True)
    numbers = models.JSONField(default=dict)
    notes = models.JSONField(default=list)  # [code, numbers] of each
    rows = models.PositiveIntegerField(default=0)
    measures = models.JSONField(default=dict)
    payload = models.ForeignKey(
        Payload, models.SET_NULL, null=True, blank=True, related_name="fetches"
    )
    sha256 = models.CharField(max_length=64, blank=True)  # outlives the payload

    class Meta:
        ordering = ("-id",)
        indexes = [models.Index(fields=["source", "day", "-id"], name="fetch_by_day")]

    def __str__(self) -> str:
        return f"{self.source} {self.day} {self.outcome}"

    @property
    def sentence(self) -> str:
        """Why it did not go well, or ""."""
        return reasons.sentence(self.code, self.numbers) if self.code else ""

    @property
    def shown_measures(self) -> list[tuple[str, str]]:
        """How much it was: what is measured, in words, and the amount."""
        return [
            (str(MEASURES.get(name, name)), plain(Decimal(amount), 0, 6))
            for name, amount in self.measures.items()
        ]

    @property
    def note_sentences(self) -> list[str]:
        """What is said about rows that were used all the same."""
        return [reasons.sentence(code, numbers) for code, numbers in self.notes]


class Stored(models.TextChoices):
    """What is stored of a day."""

    LOADED = "loaded", _("loaded")
    PARTIAL = "partial", _("partly loaded")
    MISSING = "missing", _("missing")


class Coverage(models.Model):
    """What is stored of one day of a source, and what waits for somebody's judgement.

    A missing day has no rows and is never a zero. ``quarantined`` is a reading that was not
    applied; the rows of the reading before it, if any, still stand.
    """

    source = models.ForeignKey(Source, models.CASCADE, related_name="days")
    day = models.DateField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    stored = models.CharField(max_length=8, choices=Stored, default=Stored.MISSING)
    applied = models.ForeignKey(Fetch, models.SET_NULL, null=True, blank=True, related_name="+")
    quarantined = models.ForeignKey(
        Fetch, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    last = models.ForeignKey(Fetch, models.SET_NULL, null=True, blank=True, related_name="+")
    # Part of the capacity that the source saw, 0 to 1; None where there is nothing to compare.
    ratio = models.DecimalField(max_digits=7, decimal_places=6, null=True, blank=True)
    tried_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("source", "day")
        constraints = [
            models.UniqueConstraint(fields=["source", "day"], name="one_coverage_per_day"),
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("starts_at")), name="coverage_ends_after_it_began"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.day} {self.state}"

    @property
    def state(self) -> str:
        """``quarantined`` where somebody must judge, else what is stored."""
        return "quarantined" if self.quarantined_id else self.stored

    @property
    def percent(self) -> str:
        """The part of the capacity that the source saw, in percent."""
        return "" if self.ratio is None else plain(100 * self.ratio, 0, 1)
