"""The engine's words: states, reasons and policies. Models and doors reuse them."""

from enum import StrEnum


class Status(StrEnum):
    """Where a workload stands. Evicted is an event that leads back to Pending or to Inactive."""

    PENDING = "pending"
    ADMITTED = "admitted"
    RUNNING = "running"
    FINISHED = "finished"
    INACTIVE = "inactive"


class Outcome(StrEnum):
    """How a finished workload ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class PendingReason(StrEnum):
    """One summary word for why a workload waits. Source: ``admission.md`` K82."""

    PENDING_EVALUATION = "PendingEvaluation"
    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    TOPOLOGY_PLACEMENT_FAILED = "TopologyPlacementFailed"
    WAITING_FOR_PREEMPTED_WORKLOADS = "WaitingForPreemptedWorkloads"
    MISCONFIGURED = "Misconfigured"
    ON_HOLD = "OnHold"  # its queue is stopped, too: Kueue's Suspended, as if its owner did it
    ADMISSION_GATED = "AdmissionGated"
    UNSATISFIED_CHECKS = "UnsatisfiedAdmissionChecks"  # quota is reserved for it
    BACKING_OFF = "BackingOff"  # ours: evicted, and to be tried again later


class BlockerCode(StrEnum):
    """What exactly stands in the way. Source: ``product.md`` 1.3, the why-pending card."""

    QUEUE_STOPPED = "QUEUE_STOPPED"
    QUEUE_MISSING = "QUEUE_MISSING"
    QUEUE_INACTIVE = "QUEUE_INACTIVE"
    NAMESPACE_NOT_ALLOWED = "NAMESPACE_NOT_ALLOWED"
    BEHIND_IN_QUEUE = "BEHIND_IN_QUEUE"
    QUOTA_NOMINAL = "QUOTA_NOMINAL"
    BORROW_LIMIT = "BORROW_LIMIT"
    LENDER_BUSY = "LENDER_BUSY"
    COHORT_EXHAUSTED = "COHORT_EXHAUSTED"
    NOMINAL_FIRST = "NOMINAL_FIRST"
    LARGER_SHARE = "LARGER_SHARE"
    USED_MORE = "USED_MORE"
    FLAVOR_MISMATCH = "FLAVOR_MISMATCH"
    FLAVOR_TOO_SMALL = "FLAVOR_TOO_SMALL"
    TAINT = "TAINT"
    GANG_NO_FIT = "GANG_NO_FIT"
    TOPOLOGY_NO_DOMAIN = "TOPOLOGY_NO_DOMAIN"
    FRAGMENTED = "FRAGMENTED"
    IMPOSSIBLE = "IMPOSSIBLE"
    WAITING_PREEMPTION = "WAITING_PREEMPTION"
    CLAIMED = "CLAIMED"
    MINIMUM_RUNTIME = "MINIMUM_RUNTIME"
    RESERVED = "RESERVED"
    HELD = "HELD"
    PROMISED = "PROMISED"
    GATHERING = "GATHERING"
    GATED = "GATED"
    BACKING_OFF = "BACKING_OFF"
    BUDGET_BLOCK = "BUDGET_BLOCK"
    ADMISSION_CHECK = "ADMISSION_CHECK"  # quota and nodes are kept for it


class EvictionReason(StrEnum):
    """Why a workload lost its admission. Source: ``admission.md`` 2.3."""

    PREEMPTED = "Preempted"
    PODS_READY_TIMEOUT = "PodsReadyTimeout"
    ADMISSION_CHECK = "AdmissionCheck"
    NODE_FAILURES = "NodeFailures"
    CLUSTER_QUEUE_STOPPED = "ClusterQueueStopped"
    LOCAL_QUEUE_STOPPED = "LocalQueueStopped"
    DEACTIVATED = "Deactivated"
    CONSOLIDATED = (
        "Consolidated"  # it moves so that a gang fits, and its new nodes are kept (ours)
    )
    OUTGROWN = "Outgrown"  # it took back what it had given back, and that is gone (T5, ours)


class CheckVerdict(StrEnum):
    """What an admission check says of a workload (``admission.md`` K48)."""

    PENDING = "Pending"
    READY = "Ready"
    RETRY = "Retry"
    REJECTED = "Rejected"


class PreemptionReason(StrEnum):
    """By which right a preemptor takes a victim. Source: ``admission.md`` 2.1."""

    IN_CLUSTER_QUEUE = "InClusterQueue"
    IN_COHORT_RECLAMATION = "InCohortReclamation"
    IN_COHORT_FAIR_SHARING = "InCohortFairSharing"
    IN_COHORT_RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"


class QueueingStrategy(StrEnum):
    """StrictFIFO: the head blocks the queue. BestEffortFIFO: the next one may pass."""

    STRICT_FIFO = "StrictFIFO"
    BEST_EFFORT_FIFO = "BestEffortFIFO"


class WithinClusterQueue(StrEnum):
    """Whom a workload may evict in its own queue."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    LOWER_OR_NEWER_EQUAL_PRIORITY = "LowerOrNewerEqualPriority"


class ReclaimWithinCohort(StrEnum):
    """Whom an owner may evict to get lent quota back."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    ANY = "Any"


class BorrowWithinCohort(StrEnum):
    """Whether a workload may evict others while its queue borrows."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"


class FlavorSearch(StrEnum):
    """Whether the search goes on behind a flavor that serves only by borrowing or evicting."""

    MAY_STOP_SEARCH = "MayStopSearch"
    TRY_NEXT_FLAVOR = "TryNextFlavor"


class FlavorPreference(StrEnum):
    """Which of two imperfect flavors is better (``admission.md`` K33)."""

    BORROWING_OVER_PREEMPTION = "BorrowingOverPreemption"
    PREEMPTION_OVER_BORROWING = "PreemptionOverBorrowing"


class Fairness(StrEnum):
    """What the queues of a cohort tree share by, set at its root (``decisions.md`` 5).

    none: classic order and rights. share: dominant share of what is borrowed now. history: the
    order of admission looks at decayed GPU-hours instead; evictions still go by share.
    """

    NONE = "none"
    SHARE = "share"
    HISTORY = "history"


class ReclaimTo(StrEnum):
    """How far a gang takes the surplus of others in a tree that shares (``placement.md`` 6, 27).

    quota: not at all; only who starts takes. fair_share: until it holds as much as they do.
    """

    QUOTA = "quota"
    FAIR_SHARE = "fair_share"


class FairStrategy(StrEnum):
    """When a fair share lets a preemptor take a victim (``FORMAT.md`` 8.3)."""

    FINAL_SHARE = "LessThanOrEqualToFinalShare"
    INITIAL_SHARE = "LessThanInitialShare"


class StopPolicy(StrEnum):
    """None: open. Hold: nothing new. HoldAndDrain: nothing new, running work is evicted."""

    NONE = "None"
    HOLD = "Hold"
    HOLD_AND_DRAIN = "HoldAndDrain"


class Undeclared(StrEnum):
    """What a queue does with a requested resource that it does not list (``admission.md`` K19)."""

    BLOCK = "BlockUndeclared"
    IGNORE = "IgnoreUndeclared"


class Operator(StrEnum):
    """How a node affinity expression compares a label (Kubernetes)."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


class TopologyMode(StrEnum):
    """How strictly the pods of a pod set stay together."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    UNCONSTRAINED = "unconstrained"


class PlacementPolicy(StrEnum):
    """Which of the nodes that fit a pod it takes (``placement.md`` 1.10, 4.1).

    fragmentation: where least of what is free becomes useless to the shapes that usually come.
    binpack: the fullest node. spread: the emptiest.
    """

    FRAGMENTATION = "fragmentation"
    BINPACK = "binpack"
    SPREAD = "spread"


class DeviceLocality(StrEnum):
    """Whether the devices of one pod share an island: NUMA node or NVLink (``placement.md`` 5).

    any: wherever they are free. prefer-island: nodes where they lie in fewer islands go first.
    restricted: only nodes where they lie in as few islands as on the empty node.
    require-island: in one. They are Volcano's none, best-effort, restricted, single-numa-node.
    """

    ANY = "any"
    PREFER = "prefer-island"
    RESTRICTED = "restricted"
    REQUIRE = "require-island"


class Holding(StrEnum):
    """On which ground GPUs are held: own nominal quota, a loan, or outside every queue."""

    NOMINAL = "nominal"
    BORROWED = "borrowed"
    UNMANAGED = "unmanaged"


class DiagnosticCode(StrEnum):
    """What can never work, or promises too much. Source: ``placement.md`` 3, samples README."""

    NEVER_FITS_QUEUE = "NEVER_FITS_QUEUE"
    NEVER_FITS_CLUSTER = "NEVER_FITS_CLUSTER"
    NEVER_FITS_TOPOLOGY = "NEVER_FITS_TOPOLOGY"
    NEVER_FITS_NODE = "NEVER_FITS_NODE"
    NEVER_FITS_ISLAND = "NEVER_FITS_ISLAND"
    NEEDS_WHOLE_CLUSTER = "NEEDS_WHOLE_CLUSTER"
    FLAVOR_MISMATCH = "FLAVOR_MISMATCH"
    TAINT_NOT_TOLERATED = "TAINT_NOT_TOLERATED"
    GUARANTEES_EXCEED_CAPACITY = "GUARANTEES_EXCEED_CAPACITY"
    STRANDED_CAPACITY = "STRANDED_CAPACITY"
    LENDER_CANNOT_RECLAIM = "LENDER_CANNOT_RECLAIM"
