"""Rows of shared costs to facts of a bill: a month's amount by the hours of its month."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import cast

from finops.allocation.facts import Period, SharedItem, SharingMethod, instant, moment
from finops.allocation.money import exact
from finops.models import SharedCost
from finops.price_facts import end_of
from gpuplatform.common.periods import Month, months_between


def shared_facts(window: Period, rows: Iterable[SharedCost]) -> tuple[SharedItem, ...]:
    """Return what teams share in a window, by name; what follows another names its day.

    ``rows``: those in the window's currency, by name and day: others are never added to it. An
    amount is of a whole calendar
    month, so that any window, also of a month that is going on, bears its hours of it and no
    more; the arithmetic counts from the window's length.
    """
    found, seen = [], Counter[str]()
    for row in rows:
        for item in _items(row, window):
            seen[row.name] += 1
            follows = f"@{moment(item.start or window.start):%Y-%m-%d}"
            name = f"{row.name}{follows if seen[row.name] > 1 else ''}"
            found.append(replace(item, id=name))
    return tuple(found)


def _items(row: SharedCost, window: Period) -> Iterator[SharedItem]:
    """Yield a namespace as it is, and an amount month by month."""
    percentages = {team: exact(text) for team, text in row.percentages.items()}
    method = cast("SharingMethod", row.method)
    begins, ends = instant(row.valid_from), end_of(row.valid_to)
    if row.amount is None:
        yield SharedItem(
            row.name,
            method,
            namespace=row.namespace,
            cluster=row.cluster or None,
            percentages=percentages,
            currency=row.currency,
            start=begins,
            end=ends,
        )
        return
    months = months_between(moment(window.start), moment(window.end - 1), window.time_zone)
    for month in months:
        first = max(begins, instant(month.starts_at))
        last = min(instant(month.ends_at), window.end if ends is None else ends)
        if max(first, window.start) < min(last, window.end):
            amount = exact(row.amount) * _share(window, month)
            yield SharedItem(
                row.name,
                method,
                amount,
                percentages=percentages,
                currency=row.currency,
                start=first,
                end=last,
            )


def _share(window: Period, month: Month) -> Fraction:
    """Return the window's length by the month's: the arithmetic divides by the former."""
    length = instant(month.ends_at) - instant(month.starts_at)
    return Fraction(window.end - window.start, length)
