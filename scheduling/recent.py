"""Which pods came lately, from the rows: what the policy ``fragmentation`` keeps room for."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Sum

from scheduling.engine.snapshot import PodSet, Recent
from scheduling.engine.terms import Status
from scheduling.models import PodSet as Row
from scheduling.readers import affinity_of, tolerations_of

WINDOW = timedelta(days=30)  # placement.md 4.1
ASKED = ("requests", "node_selector", "tolerations", "affinity")  # all that makes a shape


def recent(now: datetime) -> tuple[Recent, ...]:
    """Return how many pods of each shape were submitted in the last 30 days. 1 query.

    Sorted by what they ask, so that the order of rows says nothing.
    """
    rows = (
        Row.objects.order_by()
        .filter(  # every status is named so that the index by status and age serves
            workload__status__in=[status.value for status in Status],
            workload__created_at__gt=now - WINDOW,
            workload__created_at__lte=now,
        )
        .values_list(*ASKED)
        .annotate(pods=Sum("count"))
    )
    return tuple(_recent(rows))


def _recent(rows: Iterable[tuple[Any, ...]]) -> Iterable[Recent]:
    for requests, selector, tolerations, affinity, pods in sorted(rows, key=repr):
        pod_set = PodSet(
            "",
            1,
            requests,
            node_selector=selector,
            tolerations=tolerations_of(tolerations),
            affinity=affinity_of(affinity),
        )
        yield Recent(pod_set, pods)
