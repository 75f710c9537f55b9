"""What happens to money by itself."""

import logging

from celery import shared_task

from finops import billing

logger = logging.getLogger(__name__)


@shared_task(name="finops.rebuild_drafts", ignore_result=True)
def rebuild_drafts(months: list[str] | None = None) -> list[str]:
    """Bring the drafts of ``months`` up to date, or of all that is due; twice is harmless."""
    found = billing.rebuild_open() if months is None else billing.rebuild_months(months)
    names = [period.name for period in found]
    logger.info("bills.rebuilt", extra={"periods": names})
    return names
