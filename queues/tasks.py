"""What happens to promises by itself."""

import logging

from celery import shared_task

from gpuplatform.common import clock
from queues.services.requests import end_loans

logger = logging.getLogger(__name__)


@shared_task(name="queues.end_loans", ignore_result=True)
def end_due_loans() -> None:
    """Take back the loans of quota whose day has come; twice is harmless."""
    if ended := end_loans(clock.now()):
        logger.info("loans.ended", extra={"requests": ended})
