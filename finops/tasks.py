"""What happens to money by itself."""

import logging

from celery import shared_task

from finops import billing

logger = logging.getLogger(__name__)


@shared_task(name="finops.rebuild_drafts", ignore_result=True)
def rebuild_drafts() -> list[str]:
    """Bring the drafts of this month and the last one up to date; doing it twice is harmless."""
    names = [period.name for period in billing.rebuild_open()]
    logger.info("bills.rebuilt", extra={"periods": names})
    return names
