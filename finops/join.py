"""The nightly join: what sources say, and our own metering, become the drafts of bills.

It looks at the rows only: days that are due are loaded, each in a transaction of its own, and a
day that was loaded takes ``rebuilt_at`` off the drafts it touches in that same transaction.
Whatever is out of date is then made anew. So it may die at any point and be run again, by
anybody, twice at a time: the bills are those of a run that nobody disturbed.
"""

import logging
from dataclasses import dataclass

from finops import billing
from finops.ingest import nightly
from finops.models import Fetch
from finops.models.sources import Outcome

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Joined:
    """What one run did: days by what became of them, and the months made anew."""

    days: dict[str, int]
    months: tuple[str, ...]


def join(budget_s: float = nightly.BUDGET_S) -> Joined:
    """Load the days that are due within a time budget, then make outdated drafts anew."""
    fetched = nightly.load_due(budget_s)
    nightly.forget_old_answers()
    rebuilt = tuple(one.name for one in billing.rebuild_months(billing.outdated_months()))
    found = Joined(_counted(fetched), rebuilt)
    logger.info("join.done", extra={"days": found.days, "months": list(found.months)})
    return found


def _counted(fetched: list[Fetch]) -> dict[str, int]:
    outcomes = [fetch.outcome for fetch in fetched]
    return {str(one): outcomes.count(one) for one in Outcome if one in outcomes}
