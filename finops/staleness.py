"""Which drafts of open months are older than what touches them."""

from collections.abc import Collection
from datetime import datetime

from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, Q, QuerySet

from finops.models import BillingPeriod, Mapping, Price
from finops.models.bills import DRAFTED
from finops.models.prices import BILLED_UNITS
from queues.models import Ownership


def staleness(period: str = "") -> "ExpressionWrapper[Q]":
    """Return whether an open month's draft is older than what touches it.

    That is a price, a mapping, or a queue or namespace that went to another team.

    One that is set or ended takes ``rebuilt_at`` away in its own transaction, and so does a day
    that is loaded; the time it was written is the net for drafts that it passed by all the
    same. ``period`` is the way to the period from the row that is asked about, like ``period__``.
    """
    touches = Q(valid_to=None) | Q(valid_to__gt=OuterRef(f"{period}starts_at"))
    newer = {
        "valid_from__lt": OuterRef(f"{period}ends_at"),
        "created_at__gt": OuterRef(f"{period}rebuilt_at"),
    }
    prices = Price.objects.filter(touches, unit__in=BILLED_UNITS, **newer)
    mappings = Mapping.objects.filter(touches, **newer)
    moved = _moved(OuterRef(f"{period}rebuilt_at"), OuterRef(f"{period}ends_at"))
    newer_facts = Q(Exists(prices)) | Q(Exists(mappings)) | Q(Exists(moved))
    is_old = Q(**{f"{period}rebuilt_at": None}) | newer_facts
    return ExpressionWrapper(
        Q(**{f"{period}status__in": DRAFTED}) & is_old, output_field=BooleanField()
    )


def _moved(rebuilt_at: OuterRef, ends_at: OuterRef) -> QuerySet[Ownership]:
    """Return what went to another team meanwhile, and touches a month that ended then.

    One after the month's end leaves it as it was, but for the first team of a thing: what was
    nobody's before is that team's.
    """
    thing = {"kind": OuterRef("kind"), "name": OuterRef("name")}
    before = Ownership.objects.filter(**thing, since__lt=OuterRef("since")).exclude(team=None)
    return Ownership.objects.filter(Q(since__lt=ends_at) | ~Exists(before), since__gt=rebuilt_at)


def stale_periods() -> QuerySet[BillingPeriod]:
    """Return the open months whose draft is out of date, oldest first."""
    return BillingPeriod.objects.filter(staleness()).order_by("name")


def open_periods_touched(
    start: datetime, end: datetime | None, statuses: Collection[str] = DRAFTED
) -> QuerySet[BillingPeriod]:
    """Return the months that have a part in ``[start, end)``, oldest first; the open ones."""
    touched = BillingPeriod.objects.filter(status__in=statuses, ends_at__gt=start)
    if end is not None:
        touched = touched.filter(starts_at__lt=end)
    return touched.order_by("name")
