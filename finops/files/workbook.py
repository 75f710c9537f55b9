"""Bills as a workbook: the same rows as the CSV, with numbers that are numbers."""

import io
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

import xlsxwriter

from finops.exports import COLUMNS, PLACES, Row

# A text is never read as a formula, a link or a number, whatever it begins with.
OPTIONS = {
    "constant_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
}
WIDE = {"description": 44, "team_name": 18, "invoice_number": 18, "note": 30}


def write_workbook(rows: Iterable[Row], made_at: datetime | None) -> bytes:
    """Return the bytes of an XLSX file; equal rows of one making give equal bytes."""
    target = io.BytesIO()
    book = xlsxwriter.Workbook(target, OPTIONS)
    book.set_properties({"title": "GPU chargeback", "created": _naive(made_at)})
    sheet = book.add_worksheet("Lines")
    sheet.freeze_panes(1, 0)
    bold = book.add_format({"bold": True})
    formats = {
        name: book.add_format({"num_format": "0." + "0" * places})
        for name, places in PLACES.items()
    }
    for position, name in enumerate(COLUMNS):
        sheet.set_column(position, position, WIDE.get(name, 12))
        sheet.write_string(0, position, name, bold)
    sums: dict[str, Decimal] = defaultdict(lambda: Decimal("0.00"))
    last = 0
    for last, row in enumerate(rows, 1):  # where the totals begin
        sums[row["currency"]] += row["amount"]
        _write(sheet, last, row, formats)
    for number, (currency, amount) in enumerate(sorted(sums.items()), last + 1):
        total = {"description": "TOTAL", "currency": currency, "amount": amount}
        _write(sheet, number, total, formats)
    book.close()
    return target.getvalue()


def _write(sheet: Any, number: int, row: Row, formats: dict[str, Any]) -> None:
    for position, name in enumerate(COLUMNS):
        value = row.get(name)
        if value is None or value == "":
            continue
        if name in PLACES:
            sheet.write_number(number, position, value, formats[name])
        elif isinstance(value, int):
            sheet.write_number(number, position, value)
        else:
            sheet.write_string(number, position, str(value).replace("\0", ""))


def _naive(made_at: datetime | None) -> datetime:
    """A workbook has no zones; one of a month that was never made has the first instant."""
    return made_at.replace(tzinfo=None, microsecond=0) if made_at else datetime(2000, 1, 1)  # noqa: DTZ001
