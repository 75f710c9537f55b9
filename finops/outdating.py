"""What a change of prices or mappings does to drafts: they are out of date, and made anew."""

import logging
from datetime import datetime
from functools import partial
from typing import cast

from celery import current_app
from django.db import transaction
from django.db.models import F, Max

from finops.models import BillingPeriod
from finops.models.bills import DRAFTED, PeriodStatus
from finops.staleness import open_periods_touched
from gpuplatform.common import clock
from gpuplatform.common.models import Lease

REBUILD_TASK = "finops.rebuild_drafts"
logger = logging.getLogger(__name__)


def closed_until() -> datetime | None:
    """Return the end of the last closed month; nothing before it changes any more."""
    closed = BillingPeriod.objects.filter(status="closed").aggregate(until=Max("ends_at"))
    return cast("datetime | None", closed["until"])


def hold_guard(name: str) -> None:
    """Let one writer of a kind go at a time, on both databases: it holds a row to the end."""
    Lease.objects.get_or_create(name=name)
    Lease.objects.filter(name=name).update(fence=F("fence") + 1)


def outdate_drafts(start: datetime, end: datetime | None, *, ask: bool = True) -> None:
    """Call the drafts of every open month in ``[start, end)`` out of date; ask for new ones.

    In the transaction of the change: a rebuild that runs at the same time holds the same row, so
    it either sees the change or is undone here. A lost message costs one beat; without ``ask``
    the caller makes them anew. A reviewed month is not made anew: it keeps what was reviewed, and
    its board says that it is out of date.
    """
    if start > clock.now():
        return  # nothing that is billed so far
    touched = open_periods_touched(start, end, (*DRAFTED, PeriodStatus.REVIEWED.value))
    months = list(touched.values_list("name", flat=True))
    touched.order_by().update(rebuilt_at=None)
    if ask:
        transaction.on_commit(partial(_request_rebuild, months), robust=True)


def _request_rebuild(months: list[str]) -> None:
    if not months:
        return
    wanted = {"months": months}
    try:
        current_app.send_task(
            REBUILD_TASK, kwargs=wanted, ignore_result=True, retry=False, expires=600
        )
    except OSError as error:  # the broker is away: the next beat rebuilds
        logger.warning("rebuild.lost", extra={"error": str(error)})
