"""Ask for a scheduling cycle soon. A lost wake-up costs one beat tick, never correctness."""

import logging

from celery import current_app
from django.db import transaction

from gpuplatform.common.models import Change

CYCLE_TASK = "scheduling.run_cycle"
logger = logging.getLogger(__name__)


def request_cycle(topic: str, key: str = "") -> None:
    """Note the change in this transaction, and wake the cycle worker once it has committed."""
    Change.objects.create(topic=topic, key=key)
    transaction.on_commit(_wake, robust=True)


def _wake() -> None:
    try:
        current_app.send_task(CYCLE_TASK, ignore_result=True, retry=False, expires=60)
    except OSError as error:  # the broker is away: beat finds the work
        logger.warning("wakeup.lost", extra={"error": str(error)})
