"""How a month is closed: who did which step, what was issued, what was frozen, what came late.

Once a month is closed its rows here and its bills never change again: ``finops.guards``.
"""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from finops.models.bills import Bill, BillingPeriod
from gpuplatform.common import clock
from queues.models import Team


class Step(models.TextChoices):
    """A step of a month; ``finops.closing.steps`` says from where to where each leads."""

    PUT_FORWARD = "put_forward", _("put forward")
    REVIEWED = "reviewed", _("reviewed")
    SENT_BACK = "sent_back", _("sent back")
    CLOSED = "closed", _("closed")


class Signed(models.Model):
    """Something that somebody did, with the reason they gave; None is the system itself."""

    at = models.DateTimeField(default=clock.now)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    by_name = models.CharField(max_length=150)
    reason = models.TextField(blank=True)

    class Meta:
        abstract = True


class PeriodStep(Signed):
    """One step of a month; ``digest`` is of the lines as they stood then."""

    period = models.ForeignKey(BillingPeriod, models.CASCADE, related_name="steps")
    step = models.CharField(max_length=16, choices=Step)
    digest = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ("period", "id")
        constraints = [
            models.UniqueConstraint(
                fields=["period"], condition=Q(step="closed"), name="closed_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.period} {self.step} by {self.by_name}"


class Acknowledgement(Signed):
    """Somebody knows of a finding and lets the month be closed all the same.

    It holds for the numbers it was given for: a finding that has grown asks again.
    """

    period = models.ForeignKey(BillingPeriod, models.CASCADE, related_name="acknowledgements")
    code = models.CharField(max_length=48)
    subject = models.CharField(max_length=255, blank=True)
    numbers = models.JSONField(default=dict)

    class Meta:
        ordering = ("period", "code", "subject")
        constraints = [
            models.UniqueConstraint(
                fields=["period", "code", "subject"], name="one_acknowledgement_each"
            )
        ]

    def __str__(self) -> str:
        return f"{self.period} {self.code} {self.subject}"


class NumberSeries(models.Model):
    """The last number given in a series, like ``GPU-2026``; its row is the lock."""

    name = models.CharField(max_length=32, primary_key=True)
    last = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name} {self.last}"


class IssuedBill(models.Model):
    """A bill as it was issued when its month was closed: names, mode, number, posting.

    Only a bill that is charged has a number and moves its amount from ``debit`` to ``credit``;
    the rest is retained by the platform. Charged and retained together are the month's total.
    """

    bill = models.OneToOneField(Bill, models.CASCADE, related_name="issued")
    period = models.ForeignKey(BillingPeriod, models.CASCADE, related_name="issued")
    mode = models.CharField(max_length=16)  # chargeback, showback, central
    team_name = models.CharField(max_length=100, blank=True)
    cost_center = models.CharField(max_length=64, blank=True)
    series = models.CharField(max_length=32, blank=True)
    sequence = models.PositiveIntegerField(null=True)
    number = models.CharField(max_length=48, null=True, unique=True)
    debit = models.CharField(max_length=64, blank=True)
    credit = models.CharField(max_length=64, blank=True)
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)
    sha256 = models.CharField(max_length=64)  # of the bill's lines
    issued_at = models.DateTimeField()

    class Meta:
        ordering = ("period", "bill")
        constraints = [
            models.UniqueConstraint(fields=["series", "sequence"], name="one_bill_per_number"),
            models.CheckConstraint(
                condition=Q(number=None, sequence=None, debit="", credit="")
                | (Q(number__isnull=False, sequence__isnull=False) & ~Q(debit="") & ~Q(credit="")),
                name="charged_bill_is_posted",
            ),
        ]

    def __str__(self) -> str:
        return self.number or f"{self.bill} {self.mode}"


class Freeze(models.Model):
    """What a closed month rests on, kept with its hashes.

    ``facts`` are the rates, owners, policy and source readings; ``columns`` are those of a line
    that ``lines_sha256`` is of, so that the hash can be checked when lines have more.
    """

    period = models.OneToOneField(BillingPeriod, models.CASCADE, related_name="freeze")
    facts = models.JSONField()
    facts_sha256 = models.CharField(max_length=64)
    columns = models.JSONField()
    lines_sha256 = models.CharField(max_length=64)
    code_version = models.CharField(max_length=64)
    frozen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.period} {self.lines_sha256[:12]}"


class AdjustmentKind(models.TextChoices):
    """Where an adjustment comes from."""

    LATE = "late", _("late data")
    MANUAL = "manual", _("by hand")


class Adjustment(Signed):
    """A line of an open month that corrects a closed one; ``team`` None is the central account.

    Late ones are made anew until the month they stand in is reviewed; ``original_line`` names the
    line of the closed month whose amount would be another today.
    """

    period = models.ForeignKey(BillingPeriod, models.CASCADE, related_name="adjustments")
    kind = models.CharField(max_length=8, choices=AdjustmentKind)
    team = models.ForeignKey(
        Team, models.PROTECT, null=True, blank=True, related_name="adjustments"
    )
    original = models.ForeignKey(
        BillingPeriod, models.PROTECT, null=True, blank=True, related_name="corrections"
    )
    original_line = models.CharField(max_length=255, blank=True)
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)

    class Meta:
        ordering = ("period", "team", "original", "original_line", "id")
        constraints = [
            models.CheckConstraint(condition=~Q(amount=0), name="adjustment_is_not_zero"),
            models.CheckConstraint(
                condition=Q(kind__in=AdjustmentKind.values), name="adjustment_kind_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.period} {self.amount} {self.original_line}"
