"""Roles and the words of promises. Policies are spelled as Kueue does (``engine.terms``)."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Role(models.TextChoices):
    """What somebody may do on the whole platform."""

    ADMIN = "admin", _("platform admin")
    FINANCE = "finance", _("finance")
    AUDITOR = "auditor", _("auditor")


class TeamRole(models.TextChoices):
    """What somebody may do in one team."""

    LEAD = "lead", _("team lead")
    MEMBER = "member", _("member")


class AccountingMode(models.TextChoices):
    """Showback informs; chargeback moves money between cost centres."""

    SHOWBACK = "showback", _("showback (for information, not charged)")
    CHARGEBACK = "chargeback", _("chargeback")


class Fairness(models.TextChoices):
    """How queues of a cohort tree share what is lent; set at the tree's root."""

    NONE = "none", _("none: priority, then age")
    SHARE = "share", _("share: smallest dominant share first")
    HISTORY = "history", _("history: least decayed GPU-hours first")


class ReclaimTo(models.TextChoices):
    """How far running gangs take the surplus of others; set at the root of a tree that shares."""

    QUOTA = "quota", _("quota: only who starts takes pods from others")
    FAIR_SHARE = "fair_share", _("fair share: who runs takes others' surplus up to an equal share")


class QueueingStrategy(models.TextChoices):
    """What a head that does not fit does to those behind it."""

    STRICT_FIFO = "StrictFIFO", _("strict: the head blocks the queue")
    BEST_EFFORT_FIFO = "BestEffortFIFO", _("best effort: the next one may pass")


class StopPolicy(models.TextChoices):
    """Whether a queue takes new work, and what becomes of running work."""

    NONE = "None", _("open")
    HOLD = "Hold", _("hold: nothing new")
    HOLD_AND_DRAIN = "HoldAndDrain", _("hold and drain: running work is evicted")


class WithinClusterQueue(models.TextChoices):
    """Whom a workload may evict in its own queue."""

    NEVER = "Never", _("never")
    LOWER_PRIORITY = "LowerPriority", _("lower priority")
    LOWER_OR_NEWER_EQUAL = (
        "LowerOrNewerEqualPriority",
        _("lower, or newer of equal priority"),
    )


class ReclaimWithinCohort(models.TextChoices):
    """Whom an owner may evict to get lent quota back."""

    NEVER = "Never", _("never: wait until borrowers end")
    LOWER_PRIORITY = "LowerPriority", _("borrowers of lower priority")
    ANY = "Any", _("any borrower")


class BorrowWithinCohort(models.TextChoices):
    """Whether a workload may evict others while its queue borrows."""

    NEVER = "Never", _("never")
    LOWER_PRIORITY = "LowerPriority", _("lower priority")


class FlavorSearch(models.TextChoices):
    """Whether a flavor that serves only by borrowing or evicting ends the search."""

    MAY_STOP_SEARCH = "MayStopSearch", _("take it")
    TRY_NEXT_FLAVOR = "TryNextFlavor", _("look at the next flavor first")


class FlavorPreference(models.TextChoices):
    """Which of two imperfect flavors is better."""

    BORROWING_OVER_PREEMPTION = "BorrowingOverPreemption", _("borrow rather than evict")
    PREEMPTION_OVER_BORROWING = "PreemptionOverBorrowing", _("evict rather than borrow")


class PlacementPolicy(models.TextChoices):
    """Which of the nodes that fit a pod it takes; spelled as the engine does (``terms``)."""

    FRAGMENTATION = (
        "fragmentation",
        _("where least becomes useless"),
    )
    BINPACK = "binpack", _("the fullest node first")
    SPREAD = "spread", _("the emptiest node first")


class AdmissionOrder(models.TextChoices):
    """In which order a queue looks at the work that waits in it."""

    PRIORITY = "priority", _("priority, then age")
    USAGE = "usage", _("the local queue that used least goes first")


class Undeclared(models.TextChoices):
    """What a queue does with a requested resource that it does not list."""

    BLOCK = "BlockUndeclared", _("block")
    IGNORE = "IgnoreUndeclared", _("ignore")


class QuotaSource(models.TextChoices):
    """Where a cohort's own quota comes from."""

    DECLARED = "declared", _("declared")
    RESIDUAL = "residual", _("healthy capacity less the promises of its queues")


class PriorityKind(models.TextChoices):
    """Workload priority classes (Kueue) and pod priority classes (Kubernetes)."""

    WORKLOAD = "workload", _("workload")
    POD = "pod", _("pod")


# What a token may do; ``admin`` includes all others. Source: ``product.md`` 2, Auth;
# ``cluster:agent`` drives machines and opens nothing else.
SCOPES = (
    "read",
    "workloads:submit",
    "workloads:admin",
    "quota:write",
    "cost:read",
    "cost:close",
    "audit:read",
    "webhooks",
    "cluster:agent",
    "admin",
)
