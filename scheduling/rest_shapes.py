"""The shapes of what REST answers about work and machines beside what serializers write."""

from gpuplatform.common.reason import ERROR, INFO, WARNING
from gpuplatform.common.rest_shapes import (
    COUNT,
    CURRENCY,
    DECIMAL,
    FACT,
    FINDINGS,
    FLOAT,
    GPU_HOURS,
    INSTANT,
    MONEY,
    NUMBERS_TOLD,
    TEXT,
    TRUTH,
    WHOLE,
    Shape,
    choice,
    or_none,
    record,
    rows_of,
    said,
    values_of,
)
from queues.choices import Fairness
from scheduling.counters import NAMES
from scheduling.engine.fragments import Stranded
from scheduling.engine.terms import BlockerCode
from scheduling.specs import SLICE_MODES

TEXTS = values_of(TEXT)
GPUS = said(FLOAT, "GPUs; parts of a device that is shared are decimals.")
RESOURCES = values_of(
    WHOLE, "By resource: CPU in thousandths, memory in bytes, else in whole ones."
)
TOLERATIONS = rows_of(values_of(FACT, "As Kubernetes spells it."))
TAINTS = rows_of(values_of(TEXT, "As Kubernetes spells it."))
SLICES = rows_of(record("", {"level": TEXT, "size": COUNT}, {"mode": choice(SLICE_MODES)}))
POLICIES = rows_of(
    values_of({"anyOf": [FACT, rows_of(FACT)]}, "A policy of Volcano, as it was read.")
)
DEVICES = rows_of({"anyOf": [FACT, rows_of(FACT)]})
FLAVORS = values_of(TEXT, "By resource.")
SEVERITY = choice((ERROR, WARNING, INFO))
BLOCKER = record(
    "Blocker",
    {
        "code": choice(BlockerCode, "What stands in the way; docs/reasons.md."),
        "severity": SEVERITY,
        "sentence": TEXT,
        "next_step": said(TEXT, "What would help; empty: nothing general is known."),
    },
    {
        "resource": TEXT,
        "needed": or_none(said(WHOLE, "Of ``resource``, in its canonical unit.")),
        "available": or_none(said(WHOLE, "Of ``resource``, in its canonical unit.")),
        "where": TEXT,
        "facts": NUMBERS_TOLD,
    },
)
BLOCKERS = rows_of(BLOCKER)
GROWTH = or_none(
    record("Growth", {"since": or_none(INSTANT), "blockers": BLOCKERS}),
)
PODS = record("Pods", {"wanted": COUNT, "standing": COUNT, "minimum": COUNT})
RESERVATION = or_none(
    record(
        "Reservation",
        {
            "starts_at": INSTANT,
            "promised": said(TRUTH, "Whether what it waits for has told when it ends."),
            "since": INSTANT,
            "nodes": rows_of(TEXT),
            "idle_gpus": said(WHOLE, "GPUs that wait unused for it now."),
            "idle_gpu_hours": said(FLOAT, "GPU-hours."),
            "cost": or_none(record("", {"amount": MONEY, "currency": CURRENCY})),
        },
    )
)
INACTIVE = or_none(
    record(
        "Inactive",
        dict.fromkeys(("code", "sentence", "next_step", "check", "message", "by"), TEXT),
    )
)
COUNTERS = record(
    "Counters",
    {
        "pending_s": said(COUNT, "Seconds."),
        **{f"{name}_gpu_hours": or_none(GPU_HOURS) for name in NAMES},
        "sources": values_of(TEXT, "Who measured each counter."),
    },
)
ACCEPTED = record(
    "AcceptedWorkload",
    {"name": TEXT, "namespace": TEXT},
    {
        "uid": {"type": "string", "format": "uuid"},
        "status": TEXT,
        "gpus": said(COUNT, "GPUs."),
        "url": TEXT,
    },
)
PROBLEM: Shape = {"$ref": "#/components/schemas/Problem"}
ALERT_ROW = FINDINGS["items"]
ALERT = ALERT_ROW | {
    "title": "Alert",
    "required": [*ALERT_ROW["properties"], "raised_at", "cleared_at"],
    "properties": {
        **ALERT_ROW["properties"],
        "raised_at": or_none(said(INSTANT, "Null: just found.")),
        "cleared_at": or_none(said(INSTANT, "Null: it stands.")),
    },
}
GANGS = values_of(
    values_of(COUNT, "Pods, by level of the topology."), "By GPUs of a pod: 1, 2, 4, 8."
)
AMOUNT = said(WHOLE, "Of ``resource``, in its canonical unit.")
AVAILABILITY = record(
    "Availability",
    {
        "queue": TEXT,
        "cohort": or_none(TEXT),
        "team": or_none(TEXT),
        "state": TEXT,
        "flavor": TEXT,
        "resource": TEXT,
        **dict.fromkeys(("nominal", "used", "borrowed", "lent", "pending"), AMOUNT),
        **dict.fromkeys(("in_quota_now", "borrowable_now"), AMOUNT),
        "free_on_nodes": or_none(said(WHOLE, "Null: the flavor has no nodes.")),
        "largest_gangs": GANGS,
    },
)
FRAGMENTS = record(
    "Fragments",
    {
        "flavor": TEXT,
        "resource": TEXT,
        "nodes": COUNT,
        "empty_nodes": COUNT,
        "gpus": GPUS,
        "free": GPUS,
        "usable": said(FLOAT, "GPUs that pods which usually come can use."),
        "fragment_ratio": or_none(said(FLOAT, "Part of what is free that nobody usual can use.")),
        "stranded": record("", {cause.value: GPUS for cause in Stranded}),
        "largest_gangs": GANGS,
    },
)
LOAN = record(
    "Loan",
    {
        "borrower": TEXT,
        "borrower_team": said(TEXT, "Empty: none, or not to be seen."),
        "lender": TEXT,
        "flavor": TEXT,
        "gpus": said(COUNT, "GPUs."),
        "from": INSTANT,
        "to": or_none(said(INSTANT, "Null: it is on loan now.")),
        "gpu_hours": GPU_HOURS,
        "worth": or_none(said(MONEY, "At the prices in force; null: unpriced, or not yours.")),
        "currency": said(TEXT, "Empty where ``worth`` is null."),
        "workload": TEXT,
        "ended_by": TEXT,
    },
)
EVICTION = record(
    "Eviction",
    {
        "at": INSTANT,
        "workload": TEXT,
        "team": TEXT,
        "what": said(TEXT, "The kind of the event."),
        "reason": TEXT,
        "gpus": said(COUNT, "GPUs."),
        "lost_gpu_hours": said(DECIMAL, "GPU-hours since its last checkpoint, or its start."),
        "worth": or_none(said(MONEY, "At the prices in force; null: unpriced, or not yours.")),
        "currency": said(TEXT, "Empty where ``worth`` is null."),
        "for_workload": TEXT,
        "for_team": TEXT,
    },
)
PERCENT = said(FLOAT, "Percent.")
FAIR_SHARE = record(
    "FairShare",
    {
        "tree": TEXT,
        "fairness": choice(Fairness.values),
        "half_life_days": or_none(FLOAT),
        "cohort": TEXT,
        "name": TEXT,
        "kind": choice(("queue", "cohort")),
        "turn": or_none(said(COUNT, "1 is next; null: nothing of it waits.")),
        "waiting": COUNT,
        "weight": FLOAT,
        "weight_percent": PERCENT,
        "promised_gpus": said(WHOLE, "GPUs."),
        "held_gpus": said(WHOLE, "GPUs."),
        "borrows": TRUTH,
        "gpu_hours_of_late": said(FLOAT, "GPU-hours, older ones counting less."),
        "gpu_hours_per_gpu_and_weight": or_none(FLOAT),
        "share_percent": or_none(PERCENT),
        "would_borrow": TRUTH,
    },
)
