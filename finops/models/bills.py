"""A month, what each team owes for it, and what finance must look at."""

from decimal import Decimal

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from finops.finding_words import finding_sentence, subject_words
from gpuplatform.common import clock
from queues.models import Team
from queues.models.fields import NameField


class IdlePolicy(models.TextChoices):
    """What happens to paid and unused GPU-hours; its sentence stands in ``finops.words``."""

    SEPARATE = "separate", _("separate")
    PROPORTIONAL = "proportional", _("proportional")
    EVEN = "even", _("even")
    OWNER = "owner", _("owner")
    OWNER_NET = "owner_net", _("owner, net of loans")
    HIDDEN = "hidden", _("hidden")


class PeriodStatus(models.TextChoices):
    """Where a month stands; ``finops.closing.steps`` is the only writer (finops.md 4.6)."""

    OPEN = "open", _("open")
    PROVISIONAL = "provisional", _("provisional")  # over and put forward; late data still counts
    REVIEWED = "reviewed", _("reviewed")  # somebody has looked: nothing is made anew
    CLOSED = "closed", _("closed")  # by a second person; never changes again


# While a month is one of these its bills are drafts that are made anew.
DRAFTED = (PeriodStatus.OPEN.value, PeriodStatus.PROVISIONAL.value)


class UsageSource(models.TextChoices):
    """Whose hours are billed."""

    SCHEDULER = "scheduler", _("our own metering")
    OPENCOST = "opencost", _("OpenCost")


class BillingPeriod(models.Model):
    """A month in the billing time zone; half-open ``[starts_at, ends_at)``.

    ``policy`` holds the choices of ``finops.allocation.facts.Policy`` that differ from the
    defaults, but for idle and usage source, as texts. ``rests_on`` says source by source how
    many days are there. The five costs are what the lines add up to. ``memo`` is that of
    FORMAT.md 6, as JSON.
    """

    name = models.CharField(max_length=7, unique=True)  # "2026-06"
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    time_zone = models.CharField(max_length=64, default="UTC")
    currency = models.CharField(max_length=3, default="EUR")
    idle_policy = models.CharField(max_length=16, choices=IdlePolicy, default=IdlePolicy.SEPARATE)
    usage_source = models.CharField(
        max_length=12, choices=UsageSource, default=UsageSource.SCHEDULER
    )
    policy = models.JSONField(default=dict)
    policy_version = models.PositiveIntegerField(default=1)  # of policy, idle policy, usage source
    status = models.CharField(max_length=12, choices=PeriodStatus, default=PeriodStatus.OPEN)
    rebuilt_at = models.DateTimeField(null=True, blank=True)
    capacity_cost = models.DecimalField(max_digits=14, decimal_places=2, default=0)
    capacity_gpu_hours = models.DecimalField(max_digits=20, decimal_places=6, default=0)
    other_cost = models.DecimalField(max_digits=14, decimal_places=2, default=0)  # storage ...
    external_cost = models.DecimalField(max_digits=14, decimal_places=2, default=0)  # tokens
    fixed_cost = models.DecimalField(max_digits=14, decimal_places=2, default=0)
    adjustment_cost = models.DecimalField(max_digits=14, decimal_places=2, default=0)
    rests_on = models.JSONField(default=list)
    memo = models.JSONField(default=dict)

    class Meta:
        ordering = ("-name",)
        constraints = [
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("starts_at")),
                name="period_ends_after_it_began",
            ),
            models.CheckConstraint(
                condition=Q(idle_policy__in=IdlePolicy.values),
                name="period_idle_policy_known",
            ),
            models.CheckConstraint(
                condition=Q(status__in=PeriodStatus.values), name="period_status_known"
            ),
            models.CheckConstraint(
                condition=Q(usage_source__in=UsageSource.values),
                name="period_usage_source_known",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def total_cost(self) -> Decimal:
        """What everything cost: the sum of the five sources, and of all lines."""
        iron = self.capacity_cost + self.other_cost
        return iron + self.external_cost + self.fixed_cost + self.adjustment_cost


class Bill(models.Model):
    """What one team owes for one period; ``team`` None is the central account."""

    period = models.ForeignKey(BillingPeriod, models.CASCADE, related_name="bills")
    team = models.ForeignKey(Team, models.PROTECT, null=True, blank=True, related_name="bills")
    total = models.DecimalField(max_digits=14, decimal_places=2, default=0)
    # Day ("2026-06-01") -> kind of line -> amount as text; sums to the lines, for the chart.
    by_day = models.JSONField(default=dict)
    # ClusterQueue ("" = none) -> cost of use as text; sums to the lines of use.
    by_queue = models.JSONField(default=dict)

    class Meta:
        ordering = ("period", "team")
        constraints = [
            models.UniqueConstraint(fields=["period", "team"], name="one_bill_per_team"),
            models.UniqueConstraint(
                fields=["period"], condition=Q(team=None), name="one_central_account"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.team or 'central'} {self.period}"


LINE_UNITS = {
    "gpu_hours": _("GPU-h"),
    "cpu_hours": _("CPU-h"),
    "gib_hours": _("GiB-h"),
    "tokens": _("tokens"),
}


class BillLine(models.Model):
    """One row of a bill: quantity x unit price = amount, to the cent.

    ``origin``, ``kind`` (the line type) and the texts are those of FORMAT.md 6; "unmanaged" are
    GPU-hours outside every queue. Namespace and queue are named where nobody owns them.
    """

    bill = models.ForeignKey(Bill, models.CASCADE, related_name="lines")
    number = models.PositiveIntegerField()
    origin = models.CharField(max_length=16)  # direct, idle, other, external, transfer ...
    kind = models.CharField(max_length=24)  # gpu_direct, gpu_borrowed, idle_share, idle ...
    bucket = models.CharField(max_length=32, blank=True)  # of the central account: idle ...
    cluster = NameField(blank=True)
    namespace = NameField(blank=True)
    flavor = NameField(blank=True)
    cluster_queue = NameField(blank=True)
    lender = NameField(blank=True)
    model_group = models.CharField(max_length=255, blank=True)
    counterparty = models.CharField(max_length=64, blank=True)  # a team or a bucket
    ref = models.CharField(max_length=64, blank=True)  # a shared amount or an adjustment
    quantity = models.DecimalField(max_digits=20, decimal_places=6, null=True)
    unit = models.CharField(max_length=12, blank=True)  # gpu_hours, gib_hours, tokens ...
    unit_price = models.DecimalField(max_digits=18, decimal_places=8, null=True)
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)
    policy = models.CharField(max_length=16, blank=True)
    # Of an adjustment: the line of the closed month that it corrects, and why.
    original_line = models.CharField(max_length=255, blank=True)
    note = models.TextField(blank=True)
    hidden = models.BooleanField(default=False)  # not shown on bills of teams

    class Meta:
        ordering = ("bill", "number")
        constraints = [
            models.UniqueConstraint(fields=["bill", "number"], name="one_line_per_number")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.amount}"

    @property
    def unit_words(self) -> str:
        """What the quantity is in, in short."""
        return str(LINE_UNITS.get(self.unit, self.unit))


class Finding(models.Model):
    """Something that finance must look at before a period is closed."""

    period = models.ForeignKey(BillingPeriod, models.CASCADE, related_name="findings")
    code = models.CharField(max_length=48)
    severity = models.CharField(max_length=8)  # info, warning, critical
    subject = models.CharField(max_length=255, blank=True)
    numbers = models.JSONField(default=dict)
    found_at = models.DateTimeField(default=clock.now)

    class Meta:
        ordering = ("period", "severity", "code", "subject")

    def __str__(self) -> str:
        return f"{self.code} {self.subject}"

    @property
    def sentence(self) -> str:
        """Return the finding in the words of people."""
        return finding_sentence(self.code, self.numbers, self.period.currency)

    @property
    def about(self) -> str:
        """Return what it is about in the words of people, "" where it says so itself."""
        return subject_words(self.subject)
