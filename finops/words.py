"""What lines, buckets, units and policies of a bill are called."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

KINDS: dict[str, str | Promise] = {
    "gpu_direct": _("GPU-hours within nominal"),
    "gpu_borrowed": _("GPU-hours borrowed"),
    "unmanaged": _("GPU-hours outside every queue"),
    "idle": _("Idle GPUs, charged to no team"),
    "idle_share": _("Share of idle GPUs"),
    "idle_owned": _("Own nominal quota that stayed unused"),
    "idle_unattributed": _("Idle GPUs of a pool that nobody used"),
    "loan_income": _("Lent quota, paid by its borrowers"),
    "over_allocation": _("Use beyond the capacity that was there"),
}
BUCKETS: dict[str, str | Promise] = {
    "idle": _("idle"),
    "idle_unattributed": _("idle that nobody used"),
    "over_allocation": _("use beyond capacity"),
    "platform": _("the platform"),
    "unallocated_label": _("namespace without an owner"),
    "unallocated_queue": _("queue without a team"),
    "unknown_team": _("unknown team"),
}
SHARE_RULES: dict[str, str | Promise] = {
    "separate": _("idle is a row of its own, charged to no team"),
    "proportional": _("in proportion to the direct cost of each team"),
    "even": _("in equal parts for all teams"),
    "owner": _("each team pays what stayed unused of its nominal quota"),
    "owner_net": _("each team pays what stayed unused of its nominal quota, less what it lent"),
    "hidden": _("idle is charged to no team and not shown to teams"),
}
UNITS: dict[str, str | Promise] = {
    "gpu_hour": _("GPU-hour"),
    "cpu_hour": _("CPU-hour"),
    "gib_hour": _("GiB-hour of memory"),
    "storage_gb_hour": _("GB-hour of storage"),
    "input_million": _("million input tokens"),
    "output_million": _("million output tokens"),
}
USE_KINDS = frozenset({"gpu_direct", "gpu_borrowed", "unmanaged"})
IDLE_KINDS = frozenset({"idle", "idle_share", "idle_owned", "idle_unattributed"})
