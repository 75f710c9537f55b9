"""The shapes of months on their way to being closed, and of their checks."""

from finops.choosing import NUMBERS, WORDS
from finops.closing_words import NEXT
from finops.models.bills import PeriodStatus
from finops.models.periods import AdjustmentKind, Step
from finops.reconciling import CRITICAL, INFO, OK, UNKNOWN, WARNING
from finops.shapes.bills import BILL_STATUS, COLUMNS, MODE_OF_ALL, TEAM
from gpuplatform.common.rest_shapes import (
    COUNT,
    CURRENCY,
    DAY,
    DECIMAL,
    GPU_HOURS,
    INSTANT,
    MONEY,
    MONTH,
    NUMBERS_TOLD,
    SHA256,
    TEXT,
    TRUTH,
    WHOLE,
    choice,
    or_none,
    record,
    rows_of,
    said,
    values_of,
)

STATUS = choice(PeriodStatus.values, "Where the month stands.")
PERIODS = rows_of(record("Period", {"period": MONTH, "status": STATUS, "currency": CURRENCY}))
STEP = record(
    "PeriodStep",
    {
        "step": choice(Step.values),
        "at": INSTANT,
        "by": TEXT,
        "reason": TEXT,
        "lines_sha256": said(SHA256, "The hash of the lines that the step was taken for."),
    },
)
OBSTACLE = record(
    "Obstacle",
    {
        "code": TEXT,
        "subject": TEXT,
        "numbers": NUMBERS_TOLD,
        "sentence": TEXT,
        "blocks": said(TRUTH, "Whether the month cannot be closed because of it."),
        "may_be_acknowledged": TRUTH,
        "acknowledged": or_none(record("", {"by": TEXT, "at": INSTANT, "reason": TEXT})),
    },
)
ADJUSTMENT = record(
    "AdjustmentRow",
    {
        "id": COUNT,
        "kind": choice(AdjustmentKind.values),
        "team": said(TEXT, "Empty: the central account."),
        "original": said(TEXT, "The month that it corrects, or empty."),
        "original_line": TEXT,
        "amount": MONEY,
        "reason": TEXT,
        "by": TEXT,
    },
)
ISSUED = record(
    "IssuedBill",
    {
        "team": or_none(TEXT),
        "team_name": TEXT,
        "accounting_mode": MODE_OF_ALL,
        "invoice_number": or_none(TEXT),
        "cost_center": TEXT,
        "debit": TEXT,
        "credit": TEXT,
        "amount": MONEY,
        "currency": CURRENCY,
        "lines_sha256": SHA256,
    },
)
FREEZE = record(
    "Freeze",
    {
        "frozen_at": INSTANT,
        "code_version": TEXT,
        "lines_sha256": SHA256,
        "facts_sha256": SHA256,
        "facts": record(
            "",
            {
                "rules": values_of({}, "Rates, owners and choices, as FORMAT.md spells facts."),
                "rows": values_of(
                    record("", {"rows": COUNT, "sha256": SHA256}), "Usage, by kind of row."
                ),
                "sources": rows_of(
                    record(
                        "",
                        {"source": TEXT, "day": DAY, "stored": TEXT, "sha256": SHA256},
                    )
                ),
            },
        ),
    },
)
BOARD = record(
    "CloseBoard",
    {
        "period": MONTH,
        "status": STATUS,
        "currency": CURRENCY,
        "total": MONEY,
        "adjustments": said(MONEY, "The sum of the adjustments."),
        "lines_sha256": said(SHA256, "What a step may send back as ``seen``."),
        "next": rows_of(choice(one for steps in NEXT.values() for one in steps)),
        "steps": rows_of(STEP),
        "obstacles": rows_of(OBSTACLE),
        "adjustment_lines": rows_of(ADJUSTMENT),
        "issued": rows_of(ISSUED),
        "freeze": or_none(FREEZE),
    },
)
AMOUNTS = COLUMNS | dict.fromkeys(("total", "charged", "retained"), MONEY)
SUMMARY = record(
    "MonthSummary",
    {
        "period": MONTH,
        "status": BILL_STATUS,
        "currency": CURRENCY,
        "rows": rows_of(
            record(
                "SummaryRow",
                {
                    "team": TEAM,
                    "team_name": TEXT,
                    "accounting_mode": MODE_OF_ALL,
                    "cost_center": TEXT,
                    "invoice_number": TEXT,
                    "status": BILL_STATUS,
                    "currency": CURRENCY,
                    "gpu_hours": GPU_HOURS,
                    **AMOUNTS,
                    "guaranteed": or_none(said(MONEY, "What the month's nominal quota costs.")),
                    "ceiling": or_none(said(MONEY, "What nominal quota and all loans cost.")),
                    "tokens_served": or_none(said(WHOLE, "Tokens.")),
                    "iron_direct": or_none(said(MONEY, "What the machines of its models cost.")),
                    "per_million": or_none(said(MONEY, "Of a million tokens.")),
                    "per_million_with_idle": or_none(said(MONEY, "Of a million tokens.")),
                    "open_gpus": said(DECIMAL, "GPUs that it has on loan at the end."),
                    "forward_cost": or_none(
                        said(MONEY, "Of those loans; null: the month is over.")
                    ),
                },
            )
        ),
        "sums": record("", AMOUNTS | {"forward_cost": MONEY}),
    },
)
CHECKS = rows_of(
    record(
        "DriftCheck",
        {
            "period": MONTH,
            "check": said(TEXT, "Which one: R1 to R8."),
            "subject": TEXT,
            "a": or_none(DECIMAL),
            "b": or_none(DECIMAL),
            "difference": or_none(said(DECIMAL, "``a`` less ``b``.")),
            "status": choice((OK, INFO, WARNING, CRITICAL, UNKNOWN)),
            "cause": TEXT,
            "wanted_price": or_none(said(DECIMAL, "Of a million tokens.")),
            "load_percent": or_none(said(DECIMAL, "Percent.")),
        },
    )
)
POLICY = record(
    "MonthPolicy",
    {
        "policy": record(
            "",
            {name: choice(found) for name, found in WORDS.items()}
            | dict.fromkeys(NUMBERS, said(DECIMAL, "A factor.")),
        ),
        "words": values_of(rows_of(TEXT), "What each choice takes."),
        "version": COUNT,
    },
)
