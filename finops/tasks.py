"""What happens to money by itself."""

import logging

from celery import shared_task

from finops import alarms, billing, join
from finops.budgets import limits, measuring
from finops.closing import late, steps
from finops.replaying import running

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


@shared_task(name="finops.read_limits", ignore_result=True)
def read_gateway_limits() -> list[str]:
    """Read LiteLLM's own limits, to compare them with budgets; twice is harmless."""
    told = limits.read_gateways()
    silent = sorted(name for name, said in told.items() if "code" in said)
    logger.info("limits.read", extra={"gateways": sorted(told), "silent": silent})
    return silent


@shared_task(name="finops.close_up", ignore_result=True)
def close_up() -> list[str]:
    """Book what came late for closed months; twice is harmless."""
    corrected = late.book_late_data()
    logger.info("months.closed_up", extra={"corrected": corrected})
    return corrected


@shared_task(name="finops.measure_budgets", ignore_result=True)
def measure_budgets() -> int:
    """Measure every budget in its window, and tell what is alarming; twice is harmless."""
    measured = len(measuring.measure_budgets())
    alarms.watch_cost()
    return measured


@shared_task(
    name="finops.replay_quotas", ignore_result=True, soft_time_limit=7200, time_limit=7260
)
def replay_quotas() -> None:
    """Play the replays that wait, one after another; twice at a time is harmless.

    It may take long, so it has limits of its own; what is lost is found by the next look.
    """
    while running.play_next() is not None:
        pass
