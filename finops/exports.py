"""Bills as files and answers: finance's CSV contract (finops.md 6) and JSON, from one view.

Profiles: ``machine`` (UTF-8, comma, decimal point, no totals) for programs, ``excel-es`` and
``excel-de`` (UTF-8 with BOM, semicolon, decimal comma, TOTAL rows at the end) for people.
Same rows, same order, same bytes for the same figures.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.http import JsonResponse
from django.utils.translation import gettext as _

from finops import words
from finops.models import BillingPeriod, BillLine
from finops.models.bills import IdlePolicy
from finops.selectors.bills import BillView, MonthView
from finops.selectors.figures import cost_parts
from finops.selectors.forecasts import month_end, month_end_json
from gpuplatform.common.money import digits

COLUMNS = (
    "invoice_number",
    "revision",
    "status",
    "period_start",
    "period_end",
    "timezone",
    "currency",
    "team_id",
    "team_name",
    "cost_center",
    "line_no",
    "line_type",
    "plane",
    "description",
    "quantity",
    "unit",
    "unit_price",
    "amount",
    "policy",
    "source_run",
    "original_line",
    "note",
)
UNITS = {
    "gpu_hours": "GPU-hour",
    "cpu_hours": "CPU-hour",
    "gib_hours": "GiB-hour",
    "tokens": "token",
}
PLACES = {"quantity": 6, "unit_price": 8, "amount": 2}  # typed columns: never guarded as text
# What a spreadsheet may take for a formula, full-width forms too.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Profile:
    """How one kind of reader wants the same rows."""

    separator: str
    decimal_mark: str
    bom: bool
    totals: bool


MACHINE = "machine"
PROFILES = {
    MACHINE: Profile(",", ".", bom=False, totals=False),
    "excel-es": Profile(";", ",", bom=True, totals=True),
    "excel-de": Profile(";", ",", bom=True, totals=True),
}


# ---- rows --------------------------------------------------------------------------------------
def bill_rows(lines: Iterable[tuple[BillView, BillLine]]) -> Iterator[Row]:
    """Yield the lines of bills as rows of the contract; the period's end is exclusive."""
    return (_row(view, line) for view, line in lines)


def _row(view: BillView, line: BillLine) -> Row:
    return {
        "invoice_number": view.number,
        "revision": revision(view.status),
        "status": view.status,
        "period_start": view.month.first_day.isoformat(),
        "period_end": (view.month.last_day + timedelta(days=1)).isoformat(),
        "timezone": view.period.time_zone,
        "currency": line.currency,
        "team_id": view.scope,
        "team_name": _team_name(view),
        "cost_center": view.cost_center,
        "line_no": line.number,
        "line_type": line.kind,
        "plane": "tokens" if line.unit == "tokens" else "iron",
        "description": describe(line),
        "quantity": line.quantity,
        "unit": UNITS.get(line.unit, ""),
        "unit_price": line.unit_price,
        "amount": line.amount,
        "policy": line.policy,
        "source_run": "own-metering",
        "original_line": line.original_line,
        "note": _note(view, line),
    }


def revision(status: str) -> int:
    """Return the revision of a file: 0 is a draft, the issue of a closed month is 1."""
    return 1 if status == "closed" else 0


def _note(view: BillView, line: BillLine) -> str:
    parts = [
        _("DRAFT, figures may change") if view.is_draft else "",
        _("for information, not charged") if view.team and not view.is_charged else "",
        line.note,
    ]
    return "; ".join(str(part) for part in parts if part)


def _team_name(view: BillView) -> str:
    return view.team_name or _("central account")


def describe(line: BillLine) -> str:
    """Return a line in words: what, of which flavor, borrowed from whom, in which bucket."""
    parts = [str(words.KINDS.get(line.kind, line.kind))]
    named = (line.cluster, line.namespace, line.cluster_queue, line.model_group, line.ref)
    parts += filter(None, named)
    if line.flavor:
        parts.append(line.flavor)
    if line.lender:
        parts.append(_("lender {queue}").format(queue=line.lender))
    elif line.kind == "gpu_borrowed":
        parts.append(_("beyond every quota"))
    if line.counterparty:
        whose = words.BUCKETS.get(line.counterparty, line.counterparty)
        parts.append(_("with {whose}").format(whose=whose))
    if line.bucket and line.bucket != line.kind:
        parts.append(str(words.BUCKETS.get(line.bucket, line.bucket)))
    if line.kind in {"idle_share", "idle_owned"}:
        parts.append(str(words.SHARE_RULES[line.policy or IdlePolicy.PROPORTIONAL]))
    return ", ".join(parts)


# ---- CSV ---------------------------------------------------------------------------------------
def write_csv(rows: Iterable[Row], profile_name: str = "machine") -> bytes:
    """Return rows as the bytes of a file, RFC 4180 with CRLF.

    Raises:
        KeyError: an unknown profile.
    """
    return b"".join(csv_lines(rows, profile_name))


def csv_lines(rows: Iterable[Row], profile_name: str = "machine") -> Iterator[bytes]:
    """Yield the same file line by line; of the rows only their sums are kept."""
    profile = PROFILES[profile_name]
    sums: dict[str, Decimal] = defaultdict(lambda: Decimal("0.00"))
    head = _line(COLUMNS, profile)
    yield head.encode("utf-8-sig" if profile.bom else "utf-8")
    for row in rows:
        sums[row["currency"]] += row["amount"]
        yield _line(_cells(row, profile), profile).encode()
    if profile.totals:
        for total in _totals(sums):
            yield _line(_cells(total, profile), profile).encode()


def _line(cells: Iterable[str], profile: Profile) -> str:
    return profile.separator.join(cells) + "\r\n"


def _totals(sums: Mapping[str, Decimal]) -> Iterator[Row]:
    for currency, amount in sorted(sums.items()):
        yield {"description": "TOTAL", "currency": currency, "amount": amount}


def _cells(row: Row, profile: Profile) -> list[str]:
    return [_cell(column, row.get(column), profile) for column in COLUMNS]


def _cell(column: str, value: Any, profile: Profile) -> str:
    if value is None:
        return ""
    if column in PLACES:
        return f"{value:.{PLACES[column]}f}".replace(".", profile.decimal_mark)
    if isinstance(value, int):
        return str(value)
    return guarded(str(value), profile.separator)


def guarded(text: str, separator: str = ",") -> str:
    """Return a text cell that no spreadsheet takes for a formula, quoted where it must be."""
    text = text.replace("\0", "")
    is_formula = text.startswith(FORMULA)
    if is_formula:
        text = f"'{text}"
    if is_formula or any(mark in text for mark in (separator, '"', "\r", "\n")):
        doubled = text.replace('"', '""')
        return f'"{doubled}"'
    return text


def file_name(
    month: str, scope: str, status: str, extension: str, profile_name: str = MACHINE
) -> str:
    """Return ``gpu-chargeback_2026-06_datos_draft_r0.csv``: period, scope, state, revision.

    A profile for people stands at the end, so that two downloads never have one name.
    """
    safe = re.sub(r"[^A-Za-z0-9._-]", "-", scope)
    profile = "" if profile_name == MACHINE else f"_{profile_name}"
    return f"gpu-chargeback_{month}_{safe}_{status}_r{revision(status)}{profile}.{extension}"


# ---- JSON --------------------------------------------------------------------------------------
def bill_json(view: BillView) -> dict[str, Any]:
    """Return a bill as REST and ``?format=json`` answer it; money and hours are texts."""
    return {
        **_period_json(view.period.name, view),
        "team": view.scope,
        "team_name": _team_name(view),
        "cost_center": view.cost_center,
        "accounting_mode": view.mode if view.team else None,
        "invoice_number": view.number or None,
        "gpu_hours": f"{view.figures.gpu_hours:.6f}",
        "total": digits(view.total),
        "month_end": month_end_json(month_end([view])),
        "lines": [_line_json(line) for line in view.lines],
        "by_day": view.bill.by_day,
    }


def month_json(view: MonthView) -> dict[str, Any]:
    """Return a month: its bills without lines, and their sums."""
    return {
        **_period_json(view.period.name, view),
        "bills": [
            {
                "team": one.scope,
                "team_name": _team_name(one),
                "gpu_hours": f"{one.figures.gpu_hours:.6f}",
                **{name: digits(cost) for name, cost in one.figures.columns.items()},
                "total": digits(one.total),
            }
            for one in view.bills
        ],
        "total": digits(view.figures.total),
        "capacity_cost": digits(view.period.capacity_cost) if view.is_whole else None,
        "adds_up_from": _sources(view.period) if view.is_whole else None,
        "findings": [
            {
                "code": finding.code,
                "severity": finding.severity,
                "subject": finding.subject,
                "numbers": finding.numbers,
            }
            for finding in view.findings
        ],
    }


def _sources(period: BillingPeriod) -> dict[str, str]:
    return {name: digits(cost) for name, cost in cost_parts(period)}


def json_response(answer: Any, name: str) -> JsonResponse:
    """Return an answer as a JSON file."""
    response = JsonResponse(answer, safe=False, json_dumps_params={"ensure_ascii": False})
    response["Content-Disposition"] = f'inline; filename="{name}"'
    return response


def _period_json(name: str, view: BillView | MonthView) -> dict[str, Any]:
    rebuilt = view.period.rebuilt_at
    return {
        "period": name,
        "status": view.status,
        "period_start": _instant(view.period.starts_at),
        "period_end": _instant(view.period.ends_at),
        "time_zone": view.period.time_zone,
        "currency": view.period.currency,
        "idle_policy": view.period.idle_policy,
        "rests_on": "own metering",
        "rebuilt_at": _instant(rebuilt) if rebuilt else None,
    }


def _instant(value: Any) -> str:
    return f"{value:%Y-%m-%dT%H:%M:%SZ}"


def _line_json(line: BillLine) -> dict[str, Any]:
    return {
        "number": line.number,
        "kind": line.kind,
        "bucket": line.bucket or None,
        "description": describe(line),
        "flavor": line.flavor or None,
        "lender": line.lender or None,
        "quantity": None if line.quantity is None else f"{line.quantity:.6f}",
        "unit": words.unit_of(line.unit) if line.quantity is not None else None,
        "unit_price": None if line.unit_price is None else f"{line.unit_price:.8f}",
        "amount": digits(line.amount),
        "currency": line.currency,
        "policy": line.policy,
        "original_line": line.original_line or None,
    }
