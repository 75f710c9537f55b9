"""What lines, buckets, units and policies of a bill are called."""

from collections.abc import Callable
from decimal import Decimal

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from finops.allocation.idle_hours import CAPACITY_TYPES, IDLE_TYPES

KINDS: dict[str, str | Promise] = {
    "gpu_direct": _("GPU-hours within nominal"),
    "gpu_borrowed": _("GPU-hours borrowed"),
    "unmanaged": _("GPU-hours outside every queue"),
    "gpu_preempted": _("GPU-hours of work that was evicted"),
    "cpu": _("CPUs"),
    "memory": _("Memory"),
    "serving_share": _("Part of models that others serve"),
    "idle": _("Idle GPUs, charged to no team"),
    "idle_share": _("Share of idle GPUs"),
    "idle_owned": _("Own nominal quota that stayed unused"),
    "idle_unattributed": _("Idle GPUs of a pool that nobody used"),
    "loan_income": _("Lent quota, paid by its borrowers"),
    "over_allocation": _("Use beyond the capacity that was there"),
    "unmeasured": _("Capacity of time whose use was not loaded"),
    "storage": _("Storage"),
    "network": _("Network"),
    "load_balancer": _("Load balancers"),
    "tokens_external": _("Tokens of external models"),
    "tokens_transfer": _("Tokens of models that another team serves"),
    "loan_surcharge": _("Surcharge on borrowed GPU-hours"),
    "lender_credit": _("Credit for GPU-hours lent"),
    "shared": _("Shared cost"),
    "adjustment": _("Adjustment"),
}
BUCKETS: dict[str, str | Promise] = {
    "idle": _("idle"),
    "idle_unattributed": _("idle that nobody used"),
    "over_allocation": _("use beyond capacity"),
    "unmeasured": _("time that was not loaded"),
    "platform": _("the platform"),
    "preempted_work": _("evicted work that nobody pays"),
    "unallocated_namespace": _("namespace without an owner"),
    "unallocated_label": _("use without queue, namespace or owner"),
    "unallocated_queue": _("queue without a team"),
    "unmounted_storage": _("storage that no pod mounts"),
    "unallocated_tokens": _("tokens without a team"),
    "unknown_team": _("unknown team"),
}
# What a policy does, as the sentence that stands beside its name (``IdlePolicy.label``).
SHARE_RULES: dict[str, str | Promise] = {
    "separate": _("idle is a row of its own, charged to no team"),
    "proportional": _("in proportion to the direct cost of each team"),
    "even": _("in equal parts for all teams"),
    "owner": _("each team pays what stayed unused of its nominal quota"),
    "owner_net": _("each team pays what stayed unused of its nominal quota, less what it lent"),
    "hidden": _("idle is charged to no team and not shown to teams"),
}
# The same at length, for the one who chooses: who pays, what stays central, what teams see.
POLICY_RULES: dict[str, str | Promise] = {
    "separate": _(
        "The central account keeps all idle, a row for each flavor. A team's bill shows the idle "
        "of the whole platform as a memo and charges none of it."
    ),
    "proportional": _(
        "All idle of the cluster is shared by the cost of what each team used, over all flavors "
        "together. It follows use, not who left GPUs idle: the busiest team pays most. Use that "
        "no team owns bears its share in the central account."
    ),
    "even": _(
        "All idle of the cluster is shared in equal parts among the teams that used a GPU or had "
        "a quota, however much they used."
    ),
    "owner": _(
        "A team pays what stayed unused of its nominal quota, lent or not. What it lent is paid "
        "by the borrower as well, so the central account gives that back as a negative line. The "
        "central account keeps GPUs that are in nobody's quota, and is below zero where more was "
        "lent than that."
    ),
    "owner_net": _(
        "A team pays what stayed unused of its nominal quota and was not lent either; the "
        "borrower pays for what was. The central account keeps GPUs that are in nobody's quota."
    ),
    "hidden": _(
        "The same amounts as separate, but team bills show no idle at all: only the central "
        "account does."
    ),
}
UNITS: dict[str, str | Promise] = {
    "gpu_hour": _("GPU-hour"),
    "cpu_hour": _("CPU-hour"),
    "gib_hour": _("GiB-hour of memory"),
    "storage_gb_hour": _("GB-hour of storage"),
    "input_million": _("million input tokens"),
    "output_million": _("million output tokens"),
}
# What cost is shown by.
DIMENSIONS: dict[str, str | Promise] = {
    "team": _("team"),
    "namespace": _("namespace"),
    "queue": _("cluster queue"),
    "flavor": _("flavor"),
    "type": _("kind of line"),
    "pod": _("workload"),
    "controller": _("controller"),
    "label": _("label"),
    "annotation": _("annotation"),
    "model": _("model"),
    "key": _("API key"),
    "tag": _("tag"),
}
WINDOWS: dict[str, str | Promise] = {
    "today": _("today"),
    "yesterday": _("yesterday"),
    "7d": _("last 7 days"),
    "30d": _("last 30 days"),
    "month": _("this month"),
    "lastmonth": _("last month"),
}
USE_KINDS = frozenset({"gpu_direct", "gpu_borrowed", "unmanaged", "gpu_preempted"})
IDLE_KINDS = IDLE_TYPES
# What lenders pay of their idle quota and get back from its borrowers is no idle.
IDLE_COLUMN = IDLE_KINDS | {"loan_income"}
# What stands for capacity that nobody used, was used beyond it, or was not measured.
CAPACITY_KINDS = CAPACITY_TYPES
# Of a line's ``unit``: what files call it, in the singular as prices are per unit.
LINE_UNITS = {
    "gpu_hours": "GPU-hour",
    "cpu_hours": "CPU-hour",
    "gib_hours": "GiB-hour",
    "tokens": "token",
}
TOKEN_KINDS = frozenset({"tokens_external", "tokens_transfer"})
# The columns of every list of costs: what they hold adds up to the row's total.
COLUMNS = ("own", "borrowed", "idle", "tokens", "adjustments", "other")
# What a month adds up from: the five costs of ``BillingPeriod``, in this order.
SOURCES: dict[str, str | Promise] = {
    "capacity": _("capacity"),
    "other": _("CPU, memory, storage and network"),
    "external": _("external tokens"),
    "fixed": _("shared amounts"),
    "adjustment": _("adjustments"),
}
Shown = Callable[[Decimal], str]


def column_of(kind: str) -> str:
    """Return the column of ``COLUMNS`` that a line of a kind belongs to."""
    if kind == "gpu_borrowed":
        return "borrowed"
    if kind in USE_KINDS:
        return "own"
    if kind in IDLE_COLUMN:
        return "idle"
    if kind in TOKEN_KINDS:
        return "tokens"
    return "adjustments" if kind == "adjustment" else "other"


def unit_of(unit: str) -> str:
    """Return what files call the unit of a line."""
    return LINE_UNITS.get(unit, unit)


def plane_of(kind: str) -> str:
    """Return which plane a kind of line belongs to: iron, idle, tokens or adjustment."""
    if kind in TOKEN_KINDS:
        return "tokens"
    if kind in CAPACITY_KINDS:
        return "idle"
    return "adjustment" if kind == "adjustment" else "iron"
