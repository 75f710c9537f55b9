"""The shapes of cost by group, of GPU-hours and of prices of tokens."""

from finops import words
from finops.models.sources import Plane, SourceKind
from finops.shapes.bills import IDLE_POLICY
from gpuplatform.common.rest_shapes import (
    COUNT,
    CURRENCY,
    DECIMAL,
    GPU_HOURS,
    INSTANT,
    MONEY,
    TEXT,
    WHOLE,
    choice,
    or_none,
    record,
    rows_of,
    said,
    values_of,
)
from scheduling.counters import NAMES

WINDOW = record("", {"from": INSTANT, "to": said(INSTANT, "Exclusive.")})
COST = record(
    "CostByGroup",
    {
        "window": WINDOW,
        "group": choice(words.DIMENSIONS, "What the cost is shown by."),
        "key": said(TEXT, "Of labels, annotations and tags; empty: of others."),
        "idle_policy": IDLE_POLICY,
        "currency": CURRENCY,
        "total": MONEY,
        "gpu_hours": GPU_HOURS,
        "idle_gpu_hours": GPU_HOURS,
        "rests_on": rows_of(
            record(
                "SourceShare",
                {
                    "name": TEXT,
                    "kind": choice(SourceKind.values),
                    "plane": choice(Plane.values),
                    "days": said(COUNT, "Days of the window, of which so many are:"),
                    "there": COUNT,
                    "loaded": COUNT,
                    "partial": COUNT,
                    "missing": COUNT,
                },
            )
        ),
        "rows": rows_of(
            record(
                "CostRow",
                {
                    "group": choice(
                        ("group", "remainder", "overlap"),
                        "A group, what belongs to none, or what was counted more than once.",
                    ),
                    "name": TEXT,
                    "label": said(TEXT, "What people call it."),
                    "amount": MONEY,
                    "share": said(DECIMAL, "Of the total: 1 is all of it."),
                    "gpu_hours": GPU_HOURS,
                    "idle_gpu_hours": GPU_HOURS,
                    "tokens": said(WHOLE, "Tokens."),
                    "token_cost": MONEY,
                },
            )
        ),
    },
)
HOURS_ROW = record(
    "GpuHours",
    {
        "group": said(TEXT, "Its name; empty: all of them."),
        **{f"{name}_gpu_hours": or_none(GPU_HOURS) for name in NAMES},
    },
)
HOURS = record(
    "GpuHoursByGroup",
    {
        "window": WINDOW,
        "group": choice(("team", "queue", "workload")),
        "sources": values_of(TEXT, "Who measured each counter."),
        "total": HOURS_ROW,
        "rows": rows_of(HOURS_ROW),
    },
)
PER_MILLION = or_none(said(DECIMAL, "Money of a million tokens; null: not known."))
TOKEN_PRICES = rows_of(
    record(
        "TokenPrice",
        {
            "model": TEXT,
            "namespace": TEXT,
            "flavor": TEXT,
            "tokens_per_second": or_none(said(DECIMAL, "Measured at full load.")),
            "gpus": or_none(said(DECIMAL, "GPUs that serve it.")),
            "full_load": PER_MILLION,
            "charged": PER_MILLION,
            "declared_input": PER_MILLION,
            "declared_output": PER_MILLION,
            "real": PER_MILLION,
            "with_idle": PER_MILLION,
            "drift": or_none(said(DECIMAL, "A part of the price at full load.")),
            "level": choice(("ok", "warning", "critical", ""), "Empty: not known."),
            "per_token": said(TEXT, "Of one token at full load; empty: not known."),
            "litellm": said(TEXT, "Lines for LiteLLM's configuration."),
        },
    )
)
