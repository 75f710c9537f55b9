"""Numbers of issued bills: ``GPU-2026-000123``, without a gap and never twice.

The row of a series is locked until the closing is committed, so a closing that is undone gives
its numbers back; a sequence of the database would leave a gap (finops.md 4.6).
"""

from collections.abc import Iterator

from finops.models import NumberSeries

BILL, CREDIT_NOTE = "", "-CN"


def series_of(prefix: str, year: int, *, is_credit: bool) -> str:
    """Return the name of the series: one a year, and credit notes have their own."""
    return f"{prefix}{CREDIT_NOTE if is_credit else BILL}-{year}"


def numbers(series: str, count: int) -> Iterator[tuple[int, str]]:
    """Take the next ``count`` numbers of a series, in the caller's transaction."""
    if not count:
        return
    NumberSeries.objects.get_or_create(name=series)
    row = NumberSeries.objects.select_for_update().get(name=series)
    first = row.last + 1
    row.last += count
    row.save(update_fields=["last"])
    for sequence in range(first, row.last + 1):
        yield sequence, f"{series}-{sequence:06d}"
