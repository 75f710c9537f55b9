"""Who waits, and who of them may be next: questions that pages and loading ask alike."""

from typing import Any

from django.db.models import QuerySet

from scheduling.engine.terms import Status
from scheduling.models import Admission, Workload
from scheduling.models.workloads import PLACE


def waiting_work() -> QuerySet[Workload]:
    """Return pending work whose pods do not stand any more."""
    pending = Workload.objects.filter(status=Status.PENDING.value)
    return pending.exclude(pk__in=still_standing())


def still_standing() -> QuerySet[Admission, Any]:
    """Return the pending work whose pods still stand, few at any time: the open rows are short."""
    still = Admission.objects.filter(released_at=None, evicted_at__isnull=False)
    return still.filter(is_part=False).order_by().values("workload")


def first_in_line(first: int, most: int) -> QuerySet[Workload]:
    """Return who may be next in each queue: the ``first`` of every line, and who came since.

    Places are those that the last cycle gave; whoever came after it has none yet. ``most`` of
    them all, by place and age.
    """
    at_first = waiting_work().annotate(place=PLACE).filter(place__lte=first)
    return at_first.order_by("place", "created_at")[:most]
