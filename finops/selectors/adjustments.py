"""Adjustments as lines of any window, beside what the arithmetic of money says of it.

One falls on the day it was made; in a month that was over, on its last (``finops.corrections``).
So windows that follow each other without a gap have each once, and a whole month has its own.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction

from finops.allocation import places
from finops.allocation.bill import Outcome
from finops.allocation.facts import moment
from finops.allocation.ledger import LineKey
from finops.allocation.lines import Line
from finops.allocation.money import ZERO
from finops.allocation.places import Account
from finops.corrections import KIND
from finops.models import Adjustment

INSTANT = timedelta(microseconds=1)
CENTRAL = Account(is_bucket=True, name="platform")


def with_adjustments(outcome: Outcome) -> Outcome:
    """Return what a window comes to with the adjustments that fall into it."""
    period = outcome.facts.period
    window = moment(period.start), moment(period.end)
    return replace(outcome, lines=(*outcome.lines, *_lines(*window, period.currency)))


def _lines(start: datetime, end: datetime, currency: str) -> Iterator[Line]:
    rows = Adjustment.objects.filter(
        period__starts_at__lt=end, period__ends_at__gt=start, currency=currency
    )
    for row in rows.select_related("team", "period").order_by("pk"):
        if start <= _falls_on(row) < end:
            account = places.team(row.team.name) if row.team else CENTRAL
            key = LineKey(KIND, ref=str(row.pk))
            yield Line(account, "adjustment", key, ZERO, row.amount, Fraction(row.amount))


def _falls_on(row: Adjustment) -> datetime:
    """Return the instant at which an adjustment counts, always inside its month."""
    return max(row.period.starts_at, min(row.at, row.period.ends_at - INSTANT))
