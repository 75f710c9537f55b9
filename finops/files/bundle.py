"""A manifest with hashes of every file of a month, and an archive of files and manifest."""

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from finops.exports import PROFILES, bill_rows, csv_lines, file_name, revision
from finops.files.focus import VERSIONS, focus_lines
from finops.files.workbook import write_workbook
from finops.selectors.bill_files import lines_of
from finops.selectors.bills import BillView
from finops.version import code_version
from gpuplatform.common.money import digits

EPOCH = (1980, 1, 1, 0, 0, 0)  # of every entry: equal figures give equal bytes


@dataclass(frozen=True, slots=True)
class Named:
    """Whose bills of which month they are, and where the month stands: what names are made of."""

    month: str
    scope: str
    status: str

    def of(self, extension: str, profile: str = "machine") -> str:
        """Return the name of a file."""
        return file_name(self.month, self.scope, self.status, extension, profile)


def files_of(named: Named, heads: Sequence[BillView]) -> Iterator[tuple[str, bytes]]:
    """Yield every file of some bills with its name, one after the other."""
    for profile in PROFILES:
        rows = bill_rows(lines_of(heads))
        yield named.of("csv", profile), b"".join(csv_lines(rows, profile))
    for version in VERSIONS:
        name = named.of("csv", f"focus-{version}")
        yield name, b"".join(focus_lines(lines_of(heads), version))
    made_at = heads[0].period.rebuilt_at if heads else None
    yield named.of("xlsx"), write_workbook(bill_rows(lines_of(heads)), made_at)


def manifest(named: Named, heads: Sequence[BillView]) -> dict[str, Any]:
    """Return what a reader checks files by: rows, total and hash of each."""
    return _manifest(named, heads, files_of(named, heads))


def archive(named: Named, heads: Sequence[BillView]) -> bytes:
    """Return all files and ``manifest.json`` in one ZIP; equal figures give equal bytes."""
    target = io.BytesIO()
    files = list(files_of(named, heads))
    described = json.dumps(_manifest(named, heads, iter(files)), indent=1, sort_keys=True)
    with ZipFile(target, "w", ZIP_DEFLATED) as book:
        for name, content in (*files, ("manifest.json", described.encode())):
            entry = ZipInfo(name, EPOCH)
            entry.compress_type = ZIP_DEFLATED
            book.writestr(entry, content)
    return target.getvalue()


def _manifest(
    named: Named, heads: Sequence[BillView], files: Iterator[tuple[str, bytes]]
) -> dict[str, Any]:
    count, totals = _sums(heads)
    period = heads[0].period if heads else None
    made_at = period.rebuilt_at if period else None
    return {
        "period": named.month,
        "scope": named.scope,
        "status": named.status,
        "revision": revision(named.status),
        "period_start": f"{period.starts_at:%Y-%m-%dT%H:%M:%SZ}" if period else None,
        "period_end": f"{period.ends_at:%Y-%m-%dT%H:%M:%SZ}" if period else None,
        "time_zone": period.time_zone if period else None,
        "generated_at": f"{made_at:%Y-%m-%dT%H:%M:%SZ}" if made_at else None,
        "code_version": code_version(),
        "rows": count,
        "totals": totals,
        "files": [
            {"name": name, "bytes": len(content), "sha256": sha256(content).hexdigest()}
            for name, content in files
        ],
    }


def _sums(heads: Sequence[BillView]) -> tuple[int, dict[str, str]]:
    count, sums = 0, dict[str, Decimal]()
    for _view, line in lines_of(heads):
        count += 1
        sums[line.currency] = sums.get(line.currency, Decimal(0)) + line.amount
    return count, {currency: digits(amount) for currency, amount in sorted(sums.items())}
