"""The shapes of budgets, limits of LiteLLM, mappings, shared costs and replays."""

from finops.budgets.limits import DIFFERS, LATE, NO_BUDGET, NO_LIMIT, SAME
from finops.models.budgets import BudgetMeasure, BudgetScope
from finops.models.mappings import BillingMode, MappingKind
from finops.models.replays import ReplayStage
from finops.models.shared_costs import SharingMethod
from finops.replaying.telling import SIDES
from finops.shapes.bills import IDLE_POLICY
from gpuplatform.common.models import WorkState
from gpuplatform.common.rest_shapes import (
    COUNT,
    CURRENCY,
    DAY,
    DECIMAL,
    FLOAT,
    GPU_HOURS,
    INSTANT,
    MONEY,
    MONTH,
    NUMBERS_TOLD,
    TEXT,
    TRUTH,
    UID,
    WHOLE,
    choice,
    or_none,
    record,
    rows_of,
    said,
    shape_of,
    values_of,
)
from scheduling.replay.figures import Use, Waits

AMOUNT = said(DECIMAL, "Money, tokens or GPU-hours, as ``measure`` says.")
KIND = choice(("hard", "soft"), "A hard one stops work, a soft one warns.")
DURATION = said(TEXT, "1mo is a calendar month; also 7d, 24h.")
BUDGET = record(
    "BudgetState",
    {
        "name": TEXT,
        "scope": choice(BudgetScope.values),
        "subject": TEXT,
        "measure": choice(BudgetMeasure.values),
        "limit": AMOUNT,
        "duration": DURATION,
        "kind": KIND,
        "starts_at": or_none(INSTANT),
        "ends_at": or_none(INSTANT),
        "spent": or_none(AMOUNT),
        "level": or_none(said(COUNT, "The highest threshold that was reached, in percent.")),
        "expected": or_none(AMOUNT),
        "low": or_none(AMOUNT),
        "high": or_none(AMOUNT),
        "measured_at": or_none(INSTANT),
        "percent": or_none(said(DECIMAL, "Of the limit.")),
        "thresholds": rows_of(said(COUNT, "Percent of the limit.")),
        "first_day": DAY,
        "version": COUNT,
        "note": TEXT,
    },
)
LIMIT = record(
    "GatewayLimit",
    {
        "id": COUNT,
        "source": TEXT,
        "litellm_team": TEXT,
        "alias": TEXT,
        "team": said(TEXT, "Empty: no team of ours."),
        "budget": said(TEXT, "Empty: no budget of ours."),
        "verdict": choice((SAME, DIFFERS, NO_LIMIT, NO_BUDGET, LATE)),
        "hard": or_none(MONEY),
        "soft": or_none(MONEY),
        "duration": TEXT,
        "reset_at": or_none(INSTANT),
        "budget_limit": or_none(MONEY),
        "budget_kind": choice((*KIND["enum"], "")),
        "budget_duration": TEXT,
        "read_at": INSTANT,
    },
)
GATEWAYS = values_of(
    record("GatewayTold", {}, {"teams": COUNT, "code": TEXT, "detail": TEXT}),
    "By name of the gateway: of how many teams it told, or why it did not.",
)
PUSHED = record(
    "PushedLimit",
    {"dry_run": TRUTH, "limit": LIMIT},
    {"sent": or_none(values_of(TEXT, "What LiteLLM would be sent; null: nothing."))},
)
MAPPING_FIELDS = {
    "id": COUNT,
    "kind": choice(MappingKind.values),
    "cluster": TEXT,
    "key": TEXT,
    "value": TEXT,
    "team": TEXT,
    "mode": choice((*BillingMode.values, "")),
    "namespace": TEXT,
    "tokens_per_second": or_none(DECIMAL),
    "gpus": or_none(DECIMAL),
    "valid_from": INSTANT,
    "valid_to": or_none(INSTANT),
    "note": TEXT,
}
MAPPING = record("MappingState", MAPPING_FIELDS)
MAPPINGS = rows_of(
    record("MappingRow", MAPPING_FIELDS | {"state": choice(("coming", "in_force", "past"))})
)
UNMATCHED = record(
    "UnmatchedCost",
    {
        "period": or_none(MONTH),
        "unmatched": rows_of(
            record(
                "Unmatched",
                {
                    "bucket": TEXT,
                    "kind": choice((*MappingKind.values, ""), "Of the mapping that it lacks."),
                    "cluster": TEXT,
                    "value": TEXT,
                    "amount": MONEY,
                    "gpu_hours": or_none(GPU_HOURS),
                    "tokens": or_none(WHOLE),
                },
            )
        ),
    },
)
SHARED_COST = record(
    "SharedCostState",
    {
        "name": TEXT,
        "method": choice(SharingMethod.values),
        "amount": or_none(said(MONEY, "Of a month.")),
        "namespace": TEXT,
        "cluster": TEXT,
        "percentages": values_of(said(DECIMAL, "Percent."), "By team, where they are fixed."),
        "currency": CURRENCY,
        "valid_from": INSTANT,
        "valid_to": or_none(INSTANT),
        "note": TEXT,
        "version": said(COUNT, "Another one is in force, another version."),
    },
)
WAITS = said(shape_of(Waits), "Seconds.")
USE = said(shape_of(Use), "GPU-hours, in virtual time.")
PLAYED = record(
    "Played",
    {
        "waits": WAITS,
        "teams": values_of(WAITS),
        "queues": values_of(USE),
        "use": USE,
        "utilisation": or_none(said(FLOAT, "1 is all GPUs all of the time.")),
        "held_idle_gpu_hours": FLOAT,
        "most_waiting": COUNT,
        "unfinished": COUNT,
    },
)
LIMITS = {
    "nominal": WHOLE,
    "borrowing_limit": or_none(WHOLE),
    "lending_limit": or_none(WHOLE),
}
RESULT = record(
    "ReplayResult",
    {
        "workloads": COUNT,
        "left_out": values_of(COUNT, "How many were not played, by reason."),
        "was": record("", {"waits": WAITS, "teams": values_of(WAITS)}),
        "before": PLAYED,
        "after": PLAYED,
    },
    {
        "cost": record(
            "",
            {
                "currency": CURRENCY,
                "idle_policy": IDLE_POLICY,
                "unpriced": rows_of(TEXT),
                "teams": values_of(
                    record("", dict.fromkeys(SIDES, MONEY)), "Empty: what no team pays."
                ),
            },
        )
    },
)
REPLAY_FIELDS = {
    "uid": UID,
    "from": INSTANT,
    "to": said(INSTANT, "Exclusive."),
    "note": TEXT,
    "asked_by": TEXT,
    "asked_at": INSTANT,
    "state": choice(WorkState.values),
    "stage": or_none(choice(ReplayStage.values)),
    "progress": record("", {"done": COUNT, "of": COUNT}),
    "finished_at": or_none(INSTANT),
    "cells": rows_of(
        record(
            "ReplayCell",
            {"queue": TEXT, "flavor": TEXT, "resource": TEXT, **LIMITS}
            | {"was": record("", LIMITS)},
        )
    ),
    "problem": or_none(record("", {"code": TEXT, "detail": TEXT, "numbers": NUMBERS_TOLD})),
}
REPLAY_ROW = record("ReplayRow", REPLAY_FIELDS)
REPLAY = record("ReplayState", REPLAY_FIELDS | {"result": or_none(RESULT)})
