"""What happens to money by itself."""

import logging

from celery import shared_task

from finops import billing, join
from finops.budgets import measuring
from finops.closing import late, steps

logger = logging.getLogger(__name__)


@shared_task(name="finops.rebuild_drafts", ignore_result=True)
def rebuild_drafts(months: list[str] | None = None) -> list[str]:
    """Bring the drafts of ``months`` up to date, or of all that is due; twice is harmless.

    Where all are due, months that ended a day ago are put forward as well.
    """
    found = billing.rebuild_open() if months is None else billing.rebuild_months(months)
    if months is None:
        steps.put_forward_ended()
    names = [period.name for period in found]
    logger.info("bills.rebuilt", extra={"periods": names})
    return names


@shared_task(name="finops.load_sources", ignore_result=True)
def load_sources() -> int:
    """Load the days of sources that are due and bill them; twice at a time is harmless."""
    return sum(join.join().days.values())


@shared_task(name="finops.close_up", ignore_result=True)
def close_up() -> list[str]:
    """Book what came late for closed months; twice is harmless."""
    corrected = late.book_late_data()
    logger.info("months.closed_up", extra={"corrected": corrected})
    return corrected


@shared_task(name="finops.measure_budgets", ignore_result=True)
def measure_budgets() -> int:
    """Measure every budget in its window; twice is harmless."""
    return len(measuring.measure_budgets())
