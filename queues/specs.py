"""What a promise should be, as plain data: every door builds one of these. Pure.

Amounts are integers in canonical units. ``version`` of an edit is not part of a spec: it is
what the caller saw, not what the caller wants.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class TeamSpec:
    """The desired state of one team."""

    name: str
    display_name: str = ""
    cost_center: str = ""
    accounting_mode: str = "showback"
    description: str = ""


@dataclass(frozen=True, slots=True)
class NamespaceSpec:
    """The desired state of one namespace. ``team`` None leaves the owner as it is."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    team: str | None = None


@dataclass(frozen=True, slots=True)
class TaintSpec:
    """A mark on nodes that keeps pods away."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class TolerationSpec:
    """Permission to use tainted nodes."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None


@dataclass(frozen=True, slots=True)
class FlavorSpec:
    """The desired state of one ResourceFlavor; ``policy``: which of its nodes a pod takes."""

    name: str
    node_labels: Mapping[str, str] = field(default_factory=dict)
    node_taints: tuple[TaintSpec, ...] = ()
    tolerations: tuple[TolerationSpec, ...] = ()
    topology: str = ""
    policy: str = "fragmentation"


@dataclass(frozen=True, slots=True)
class TopologySpec:
    """The desired state of one Topology; levels are node labels, outermost first."""

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuotaSpec:
    """Quota of one resource of one flavor."""

    resource: str
    nominal: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True)
class CellSpec:
    """Another amount in one cell of a queue's quota table; a limit of None is no limit."""

    queue: str
    flavor: str
    resource: str
    nominal: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None

    @property
    def place(self) -> tuple[str, str, str]:
        """Return which cell it is: queue, flavor, resource."""
        return self.queue, self.flavor, self.resource


@dataclass(frozen=True, slots=True)
class CellsSpec:
    """Other amounts in the quota tables of several queues, as one edit."""

    cells: tuple[CellSpec, ...]


@dataclass(frozen=True, slots=True)
class FlavorQuotasSpec:
    """One flavor of a resource group, with a quota for each covered resource."""

    flavor: str
    quotas: tuple[QuotaSpec, ...]


@dataclass(frozen=True, slots=True)
class ResourceGroupSpec:
    """Resources that come from one flavor together; flavors in order of preference."""

    resources: tuple[str, ...]
    flavors: tuple[FlavorQuotasSpec, ...]


@dataclass(frozen=True, slots=True)
class PersonSpec:
    """The desired state of one person. ``roles`` are those on the whole platform, in order."""

    username: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    is_active: bool = True
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CohortSpec:
    """The desired state of one Cohort."""

    name: str
    parent: str | None = None
    groups: tuple[ResourceGroupSpec, ...] = ()
    fair_weight: Decimal = Decimal(1)
    fairness: str = "none"
    reclaim_to: str = "quota"
    quota_source: str = "declared"


@dataclass(frozen=True, slots=True)
class PreemptionSpec:
    """A queue's rights to evict; Kueue's defaults."""

    within_cluster_queue: str = "Never"
    reclaim_within_cohort: str = "Never"
    borrow_within_cohort: str = "Never"
    max_priority_threshold: int | None = None


@dataclass(frozen=True, slots=True)
class FungibilitySpec:
    """How a queue searches its flavors (``admission.md`` K33); Kueue's defaults."""

    when_can_borrow: str = "MayStopSearch"
    when_can_preempt: str = "TryNextFlavor"
    preference: str = "BorrowingOverPreemption"


@dataclass(frozen=True, slots=True)
class ClusterQueueSpec:
    """The desired state of one ClusterQueue.

    ``team`` None leaves the owner as it is (a manifest does not name one).
    ``namespace_selector`` None admits no namespace; ``{}`` admits all.
    ``minimum_runtime_s``: for how long its admitted work is safe from preemption;
    ``yields_to_own``: except from higher priority of the queue itself.
    ``admission_order`` ``usage``: the local queue that used least goes first;
    ``priority_first``: only among work of one priority.
    """

    name: str
    groups: tuple[ResourceGroupSpec, ...] = ()
    team: str | None = None
    cohort: str | None = None
    queueing_strategy: str = "BestEffortFIFO"
    stop_policy: str = "None"
    fair_weight: Decimal = Decimal(1)
    namespace_selector: Mapping[str, object] | None = None
    preemption: PreemptionSpec = PreemptionSpec()
    reclaimable: bool = True
    undeclared: str = "BlockUndeclared"
    fungibility: FungibilitySpec = FungibilitySpec()
    minimum_runtime_s: int = 0
    yields_to_own: bool = False
    admission_order: str = "priority"
    priority_first: bool = False
    carried: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LocalQueueSpec:
    """The desired state of one LocalQueue."""

    namespace: str
    name: str
    cluster_queue: str
    stop_policy: str = "None"
    fair_weight: Decimal = Decimal(1)


@dataclass(frozen=True, slots=True)
class PriorityClassSpec:
    """The desired state of one priority class. ``kind``: ``workload`` or ``pod``."""

    kind: str
    name: str
    value: int
    global_default: bool = False
    description: str = ""
