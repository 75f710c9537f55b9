"""Hashes of what was billed: equal lines have equal hashes, whatever wrote them."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from finops.models import Bill, BillingPeriod, BillLine
from gpuplatform.common.pages import PlainEncoder

LAST = "\uffff"  # the central account stands behind all teams
# What a line says; not which row of which table it is.
ROW_NUMBERS = frozenset({"id", "bill"})


@dataclass(frozen=True, slots=True)
class Digest:
    """Hashes of a month's lines: of all of them, and of each bill by its row number."""

    columns: tuple[str, ...]
    sha256: str
    by_bill: Mapping[int, str]


def line_columns() -> tuple[str, ...]:
    """Return the columns of a line that are hashed."""
    fields = BillLine._meta.concrete_fields  # noqa: SLF001  # Django's documented API
    return tuple(field.name for field in fields if field.name not in ROW_NUMBERS)


def digest_of(
    period: BillingPeriod,
    columns: Iterable[str] | None = None,
    bills: Iterable[Bill] | None = None,
) -> Digest:
    """Return the hashes of the lines of a month as they stand in the database.

    ``bills`` are those of the month with their lines, where somebody has read them already.
    """
    names = tuple(columns or line_columns())
    by_bill: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for bill in bills or period.bills.select_related("team").prefetch_related("lines"):
        account = bill.team.name if bill.team else ""
        for line in sorted(bill.lines.all(), key=lambda line: line.number):
            by_bill[bill.pk].append((account, *(getattr(line, name) for name in names)))
    every = [row for rows in by_bill.values() for row in rows]
    number = names.index("number")
    every.sort(key=lambda row: (row[0] or LAST, row[1 + number]))
    found = {bill: hash_of(rows) for bill, rows in by_bill.items()}
    return Digest(names, hash_of(every), found)


def hash_of(value: Any) -> str:
    """Return the SHA-256 of a value in one spelling."""
    spelled = json.dumps(value, cls=PlainEncoder, sort_keys=True, separators=(",", ":"))
    return sha256(spelled.encode()).hexdigest()
