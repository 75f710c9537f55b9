"""What failed by itself: background tasks, kept where people look; a log is easily lost."""

import logging
from datetime import timedelta

from django.db import DatabaseError, transaction
from django.db.models import F

from gpuplatform.common import clock
from gpuplatform.common.models import TaskFailure

logger = logging.getLogger(__name__)
KEPT = timedelta(days=30)
MOST = 200  # kinds of failures that are kept
ERROR_LENGTH = 300


def note_failure(task: str, error: BaseException) -> None:
    """Count a failure of a task. It has been logged already: a dead database is no news here."""
    said = f"{type(error).__name__}: {error}"[:ERROR_LENGTH]
    now = clock.now()
    try:
        with transaction.atomic():
            same = TaskFailure.objects.filter(task=task, error=said)
            if not same.update(count=F("count") + 1, last_at=now):
                TaskFailure.objects.create(task=task, error=said, first_at=now, last_at=now)
    except DatabaseError:
        logger.warning("the failure of %s could not be kept", task)


def forget_failures() -> None:
    """Drop what has not come again for a month, and the oldest kinds beyond ``MOST``."""
    TaskFailure.objects.filter(last_at__lt=clock.now() - KEPT).delete()
    kept = TaskFailure.objects.order_by("-last_at", "-pk").values("pk")[:MOST]
    TaskFailure.objects.exclude(pk__in=list(kept.values_list("pk", flat=True))).delete()
