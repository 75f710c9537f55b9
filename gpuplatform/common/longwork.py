"""How long work is taken and finished by workers of which any may die at any instant.

It is taken by a guarded update, and whoever does it says so now and then. What has been silent
for too long waits again, or fails where that has happened too often.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db.models import F, QuerySet

from gpuplatform.common import clock
from gpuplatform.common.models import LongWork, WorkState

MOST_ATTEMPTS = 3
Work = TypeVar("Work", bound=LongWork)


def take_oldest(
    rows: QuerySet[Work], now: datetime, *, silent: timedelta, lost: Mapping[str, Any]
) -> Work | None:
    """Take the oldest of ``rows`` that waits; None where none does, or one is being done.

    Args:
        rows: work of one kind.
        now: the instant.
        silent: after which whoever does it is taken for lost.
        lost: what is written where that has happened ``MOST_ATTEMPTS`` times.
    """
    quiet = rows.filter(state=WorkState.RUNNING, changed_at__lt=now - silent)
    quiet.filter(attempts__gte=MOST_ATTEMPTS).update(**lost)
    quiet.update(state=WorkState.WAITING, changed_at=now)
    running = rows.filter(state=WorkState.RUNNING)
    waiting = rows.filter(state=WorkState.WAITING).order_by("asked_at", "uid")
    row = None if running.exists() else waiting.first()
    if row is None:
        return None
    taken = rows.filter(pk=row.pk, state=WorkState.WAITING).update(
        state=WorkState.RUNNING,
        attempts=F("attempts") + 1,
        started_at=now,
        changed_at=now,
        come=0,
        whole=0,
    )
    if taken:
        row.refresh_from_db()
    return row if taken else None


def over(state: WorkState, problem: Any = None) -> dict[str, Any]:
    """Return what is written of work that has ended."""
    now = clock.now()
    return {"state": state, "problem": problem, "finished_at": now, "changed_at": now}
