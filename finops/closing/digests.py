"""Hashes of what was billed: equal lines have equal hashes, whatever wrote them."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from finops.models import BillingPeriod, BillLine
from gpuplatform.common.pages import PlainEncoder

ACCOUNT = "bill__team__name"
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


def digest_of(period: BillingPeriod, columns: Iterable[str] | None = None) -> Digest:
    """Return the hashes of the lines of a month as they stand in the database."""
    names = tuple(columns or line_columns())
    rows = BillLine.objects.filter(bill__period=period).order_by(ACCOUNT, "number")
    by_bill: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for bill, *cells in rows.values_list("bill", ACCOUNT, *names):
        by_bill[bill].append(tuple(cells))
    every = sorted((row for rows in by_bill.values() for row in rows), key=_in_order)
    found = {bill: hash_of(rows) for bill, rows in by_bill.items()}
    return Digest(names, hash_of(every), found)


def hash_of(value: Any) -> str:
    """Return the SHA-256 of a value in one spelling."""
    spelled = json.dumps(value, cls=PlainEncoder, sort_keys=True, separators=(",", ":"))
    return sha256(spelled.encode()).hexdigest()


def _in_order(row: tuple[Any, ...]) -> tuple[str, Any]:
    """The central account is last, wherever a database sorts a missing name."""
    return (row[0] or "\uffff", row[1])
