"""The shapes of bills and months of bills (``finops.exports``)."""

from finops import words
from finops.models.bills import IdlePolicy, PeriodStatus
from gpuplatform.common.rest_shapes import (
    COUNT,
    CURRENCY,
    DECIMAL,
    GPU_HOURS,
    INSTANT,
    MONEY,
    MONTH,
    NUMBERS_TOLD,
    SHA256,
    TEXT,
    Shape,
    choice,
    or_none,
    record,
    rows_of,
    said,
    values_of,
)
from queues.choices import AccountingMode

DRAFT = "draft"
BILL_STATUS = choice(
    (DRAFT, *(one for one in PeriodStatus.values if one != PeriodStatus.OPEN)),
    "Draft while the month is open.",
)
LINE_KIND = choice(words.KINDS, "What the line is for.")
SEVERITY = choice(("info", "warning", "critical"))
IDLE_POLICY = choice(IdlePolicy.values, "Who pays for idle GPUs.")
MODE = choice(AccountingMode.values, "Showback informs, chargeback is charged.")
MODE_OF_ALL = choice((*AccountingMode.values, "central"), "Central: what no team pays.")
TEAM = said(TEXT, "The team's name, or the account that no team pays.")
PERIOD: dict[str, Shape] = {
    "period": MONTH,
    "status": BILL_STATUS,
    "period_start": INSTANT,
    "period_end": said(INSTANT, "Exclusive."),
    "time_zone": said(TEXT, "In which days and months begin; of the IANA database."),
    "currency": CURRENCY,
    "idle_policy": IDLE_POLICY,
    "rests_on": TEXT,
    "rebuilt_at": or_none(INSTANT),
}
COLUMNS: dict[str, Shape] = dict.fromkeys(words.COLUMNS, MONEY)
FINDING = record(
    "Finding",
    {"code": TEXT, "severity": SEVERITY, "subject": TEXT, "numbers": NUMBERS_TOLD},
)
LINE = record(
    "BillLine",
    {
        "number": COUNT,
        "kind": LINE_KIND,
        "bucket": or_none(choice(words.BUCKETS, "Of cost that no team pays: why.")),
        "description": TEXT,
        "flavor": or_none(TEXT),
        "lender": or_none(said(TEXT, "The queue whose quota was used.")),
        "quantity": or_none(said(DECIMAL, "In units of ``unit``, with six decimals.")),
        "unit": or_none(TEXT),
        "unit_price": or_none(said(DECIMAL, "Of one ``unit``, with eight decimals.")),
        "amount": MONEY,
        "currency": CURRENCY,
        "policy": said(TEXT, "The idle policy that made the line; empty: none did."),
        "original_line": or_none(said(TEXT, "The line that an adjustment corrects.")),
    },
)
MONTH_END = record(
    "MonthEnd",
    {"expected": MONEY, "low": MONEY, "high": MONEY, "assumption": TEXT},
)
BILL = record(
    "Bill",
    PERIOD
    | {
        "team": TEAM,
        "team_name": TEXT,
        "cost_center": TEXT,
        "accounting_mode": or_none(MODE),
        "invoice_number": or_none(TEXT),
        "gpu_hours": GPU_HOURS,
        "total": MONEY,
        "month_end": or_none(MONTH_END),
        "lines": rows_of(LINE),
        "by_day": values_of(values_of(MONEY, "By kind of line."), "By local day."),
    },
)
BILLS = record(
    "MonthOfBills",
    PERIOD
    | {
        "bills": rows_of(
            record(
                "BillSum",
                {"team": TEAM, "team_name": TEXT, "gpu_hours": GPU_HOURS}
                | COLUMNS
                | {"total": said(MONEY, "The sum of the columns.")},
            )
        ),
        "total": MONEY,
        "capacity_cost": or_none(said(MONEY, "Null to those who see a part of the bills.")),
        "adds_up_from": or_none(values_of(MONEY, "The sources of the month's cost, by name.")),
        "findings": rows_of(FINDING),
    },
)
MANIFEST = record(
    "BillManifest",
    {
        "period": MONTH,
        "scope": said(TEXT, "A team, or all bills that the reader sees."),
        "status": BILL_STATUS,
        "revision": said(COUNT, "0 is a draft, 1 the issue of a closed month."),
        "period_start": or_none(INSTANT),
        "period_end": or_none(said(INSTANT, "Exclusive.")),
        "time_zone": or_none(TEXT),
        "generated_at": or_none(INSTANT),
        "code_version": TEXT,
        "rows": COUNT,
        "totals": values_of(MONEY, "By currency."),
        "files": rows_of(
            record("", {"name": TEXT, "bytes": said(COUNT, "Bytes."), "sha256": SHA256})
        ),
    },
)
