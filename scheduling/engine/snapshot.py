"""The world as one frozen value: all that a decision may depend on.

Amounts are integers in canonical units (``cpu`` in millicores, ``memory`` in bytes, anything
else in whole units). Instants are seconds since the epoch. Every mapping is keyed by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduling.engine.decay import Consumed, Decayed, UsageDecay
from scheduling.engine.lobby import EMPTY_LOBBY, Lobby
from scheduling.engine.machines import WHOLE, Amounts, Flavor, Node, Toleration, Topology
from scheduling.engine.moving import Moving
from scheduling.engine.patience import PATIENT, Patience
from scheduling.engine.queue_rules import (
    KUEUE_SEARCH,
    UNPROTECTED,
    Fungibility,
    LocalQueue,
    MinimumRuntime,
)
from scheduling.engine.terms import (
    BorrowWithinCohort,
    DeviceLocality,
    Fairness,
    FairStrategy,
    Operator,
    QueueingStrategy,
    ReclaimTo,
    ReclaimWithinCohort,
    StopPolicy,
    TopologyMode,
    Undeclared,
    WithinClusterQueue,
)

HALF_LIFE_S = 7 * 86400.0  # of past use, where history orders the queues


class FlavorResource(NamedTuple):
    """One column of the quota table, e.g. ``("h100-sxm", "nvidia.com/gpu")``."""

    flavor: str
    resource: str


@dataclass(frozen=True, slots=True)
class Quota:
    """What one node of the quota tree is promised of one flavor-resource."""

    nominal: int
    borrowing_limit: int | None = None  # None: may borrow whatever the cohort has free
    lending_limit: int | None = None  # None: may lend all that is unused


NOTHING = Quota(nominal=0)


@dataclass(frozen=True, slots=True)
class Cohort:
    """Queues that lend to each other, a tree by ``parent``.

    ``fairness`` and ``reclaim_to`` count at its root.
    """

    name: str
    parent: str | None = None
    quotas: Mapping[FlavorResource, Quota] = field(default_factory=dict)
    fair_weight: float = 1.0
    fairness: Fairness = Fairness.NONE
    reclaim_to: ReclaimTo = ReclaimTo.QUOTA


@dataclass(frozen=True, slots=True)
class FlavorQuotas:
    """One flavor of a resource group with its quota for each covered resource."""

    flavor: str
    quotas: Mapping[str, Quota]


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """Resources that come from one flavor together; flavors in order of preference."""

    resources: tuple[str, ...]
    flavors: tuple[FlavorQuotas, ...]


@dataclass(frozen=True, slots=True)
class Preemption:
    """A queue's rights to evict. Kueue's defaults."""

    within_cluster_queue: WithinClusterQueue = WithinClusterQueue.NEVER
    reclaim_within_cohort: ReclaimWithinCohort = ReclaimWithinCohort.NEVER
    borrow_within_cohort: BorrowWithinCohort = BorrowWithinCohort.NEVER
    max_priority_threshold: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterQueue:
    """A team's share of the cluster.

    ``inactive`` holds the code of why the queue cannot admit (``FlavorNotFound`` ...), or "".
    ``reclaimable`` false: what it borrows is not taken back by others (Volcano).
    ``usage_based``: its local queues with the smaller decayed usage go first; with
    ``priority_first``, only among work of one priority.
    """

    name: str
    cohort: str | None
    groups: tuple[ResourceGroup, ...]
    preemption: Preemption = Preemption()
    queueing_strategy: QueueingStrategy = QueueingStrategy.BEST_EFFORT_FIFO
    stop_policy: StopPolicy = StopPolicy.NONE
    undeclared: Undeclared = Undeclared.BLOCK
    reclaimable: bool = True
    inactive: str = ""
    fair_weight: float = 1.0
    fungibility: Fungibility = KUEUE_SEARCH
    usage_based: bool = False
    priority_first: bool = False
    minimum_runtime: MinimumRuntime = UNPROTECTED

    @property
    def quotas(self) -> dict[FlavorResource, Quota]:
        """Return the quota of each flavor-resource that the queue lists."""
        return {
            FlavorResource(flavor.flavor, resource): quota
            for group in self.groups
            for flavor in group.flavors
            for resource, quota in flavor.quotas.items()
        }


class SliceLayer(NamedTuple):
    """``size`` pods that must share a domain of ``level``, a node label."""

    level: str
    size: int


@dataclass(frozen=True, slots=True)
class TopologyRequest:
    """Where the pods of a pod set must or should stand together.

    ``level`` is a node label of the topology; None with ``unconstrained``. A slice is
    ``slice_size`` pods that must share a domain of ``slice_level``; pod sets of one ``group``
    are placed together, the smaller one as leader. ``slices``: slices made of slices, outer
    ones first, in place of the two fields for a single one. ``preferred_slice``: one that should
    share a domain and need not; it counts where no slices are required.
    """

    mode: TopologyMode
    level: str | None = None
    slice_level: str | None = None
    slice_size: int = 1
    group: str = ""
    slices: tuple[SliceLayer, ...] = ()
    preferred_slice: SliceLayer | None = None

    @property
    def layers(self) -> tuple[SliceLayer, ...]:
        """Return the slices that are asked for, outer ones first."""
        if self.slices or self.slice_level is None:
            return self.slices
        return (SliceLayer(self.slice_level, self.slice_size),)


@dataclass(frozen=True, slots=True)
class Expression:
    """One condition on a label; ``values`` is empty for Exists and DoesNotExist."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """What one pod asks of each of ``count`` devices of its node.

    ``share``: thousandths of the device's time; ``WHOLE`` is a whole GPU, and one turn where
    devices are shared in turns; 0: as much as its memory is of the device's. ``memory``: MiB of
    it. ``alone``: nobody else on the device, even where it is shared in turns.
    """

    count: int
    share: int = WHOLE
    memory: int = 0
    locality: DeviceLocality = DeviceLocality.ANY
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Subgroups:
    """A role in parts of ``size`` pods, ``minimum`` of them whole to start; each whole or none."""

    size: int
    minimum: int


@dataclass(frozen=True, slots=True)
class PodSet:
    """Identical pods of a workload. ``requests`` is what ONE pod asks for.

    ``min_count``: with how many pods it is content (partial admission); None: with all only.
    ``affinity``: terms of which one must hold, each a set of expressions that hold together;
    none: any node. ``charges``: what one pod is charged in quota where resource
    transformations make it differ from what it takes of a node; None: its requests.
    ``flavors``: those that it must get, by resource; None: any. ``role_minimum``: how many of
    these pods must stand for the gang to count as running; None: as the gang's minimum leaves
    it. ``device``: what it asks of single devices; None: whole ones, any of the node.
    ``beside``: others of these pods that stand already, by node; these join them.
    """

    name: str
    count: int
    requests: Amounts
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    topology: TopologyRequest | None = None
    min_count: int | None = None
    affinity: tuple[tuple[Expression, ...], ...] = ()
    charges: Amounts | None = None
    flavors: Mapping[str, str] | None = None
    role_minimum: int | None = None
    subgroups: Subgroups | None = None
    device: DeviceRequest | None = None
    beside: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Assignment:
    """What an admitted pod set got: a flavor for each resource, and pods on each node.

    ``nodes`` is empty where the flavors have no nodes (quota only). Under ``Profile.kueue()``
    it names lowest domains: nodes, or paths joined by ``/`` where a topology ends above them.
    ``devices``: for each node whose devices are told apart, the indices that each pod got.
    """

    pod_set: str
    count: int
    flavors: Mapping[str, str]
    nodes: Mapping[str, int] = field(default_factory=dict)
    devices: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Admission:
    """Quota and nodes that a workload holds since ``admitted_at``."""

    admitted_at: float
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class Workload:
    """The unit of admission: a gang that starts whole or not at all.

    ``queue`` None: outside every queue; placed without quota, never preempts nor is preempted.
    ``blocked`` is the code of a reason, known from the rows, that keeps it out of the cycle
    (missing queue, foreign namespace), or ""; running work gets no more then. ``not_before``: it
    is not to be looked at before this instant (:mod:`rests`).
    ``releasing``: evicted, but its pods still stand; quota and nodes are held.
    ``ceiling_queue``: a second queue whose ceiling also bounds the workload (``decisions.md`` 5).
    ``last_checkpoint_at``: up to when its progress is safe; None: since its start nothing is.
    ``reclaimable``: pods by pod set that have finished and give their quota back already.
    ``replaces``: the running workload that this one is a grown copy of; it asks for the
    difference only, and takes its place when it is admitted (``admission.md`` K37).
    ``min_member``: with how many pods the gang starts; what is above is surplus, which starts
    pod by pod as room allows, never evicts anybody and may be taken singly. None: all at once.
    ``duration_s``: how long one run takes, declared or estimated; None: nobody knows. ``part_of``:
    the running gang from which these pods were taken; "": own work.
    ``mends``: what it loses with a node is looked for elsewhere; else the whole gang waits again.
    ``stateless``, ``checkpoint_interval_s``: what it has to lose, and how often it saves it.
    """

    key: str
    name: str
    queue: str | None
    priority: int
    created_at: float
    pod_sets: tuple[PodSet, ...]
    admission: Admission | None = None
    releasing: bool = False
    preemptible: bool = True
    blocked: str = ""
    ceiling_queue: str | None = None
    version: int = 0
    local_queue: str = ""
    last_checkpoint_at: float | None = None
    reclaimable: Mapping[str, int] = field(default_factory=dict)
    replaces: str = ""
    min_member: int | None = None
    duration_s: float | None = None
    part_of: str = ""
    stateless: bool = False
    checkpoint_interval_s: float | None = None
    not_before: float | None = None
    mends: bool = True


@dataclass(frozen=True, slots=True)
class Claim:
    """Capacity freed for a preemptor and kept for it until ``expires_at``.

    ``assignments`` is where it is going to stand. A claim with its own workload among the
    ``victims`` is that of work that is being moved: it leaves, and comes back there.
    """

    workload: str
    assignments: tuple[Assignment, ...]
    victims: tuple[str, ...]
    expires_at: float


@dataclass(frozen=True, slots=True)
class Reservation:
    """Where and when the first blocked gang of a tree and a pool of nodes is going to start.

    ``promised``: running work has known ends, and nobody later may delay it beyond ``starts_at``.
    Else nodes that empty are held for it, and ``starts_at`` is an estimate. ``since``: when its
    turn came. ``idle_gpus`` are held and free since ``counted_at``; ``idle_gpu_seconds`` is what
    has been held idle up to then.
    """

    workload: str
    assignments: tuple[Assignment, ...]
    starts_at: float
    promised: bool
    since: float
    idle_gpus: int = 0
    idle_gpu_seconds: float = 0.0
    counted_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Memory:
    """What one cycle remembers for the next; stored with the cycle's decisions.

    ``evicted_by`` holds (victim, preemptor) pairs for as long as both are alive: nobody may
    evict the one that evicted it, however many steps the circle has (``decisions.md`` 4.7).
    ``history`` is the decayed use of each ClusterQueue, by name; ``consumption`` that of each
    LocalQueue behind which usage decides. ``held_less`` is how many pods of each pod set those
    workloads hold that hold fewer than they were admitted with. ``absent``: since when nodes on
    which work stands have been away. ``machines``: the flavors that have ever had nodes.
    """

    claims: tuple[Claim, ...] = ()
    evicted_by: tuple[tuple[str, str], ...] = ()
    lobby: Lobby = EMPTY_LOBBY  # of Profile.kueue() alone
    history: Mapping[str, Decayed] = field(default_factory=dict)
    consumption: Mapping[str, Consumed] = field(default_factory=dict)
    held_less: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    reservations: tuple[Reservation, ...] = ()
    absent: Mapping[str, float] = field(default_factory=dict)
    machines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recent:
    """How many pods like those of a pod set came lately; its name and count do not matter."""

    pod_set: PodSet
    pods: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything a cycle decides on. Equal snapshots give equal plans.

    ``fair_strategies``: fair sharing is on in every tree that does not say otherwise, with
    these; none: only where a root cohort says so. ``half_life_s``: of the past use of queues.
    ``usage_decay``: of the usage of local queues; None: as :attr:`LocalQueue.consumption` says.
    ``shapes``: the pods of the last 30 days, for the policy ``fragmentation``; none: what waits.
    ``gang_grace_s``: how long gangs that lost a node keep their place; negative: for ever.
    ``keeps_for_gpus``: pods that ask for no GPU get of a GPU node only what its free GPUs do not
    need; else they come to such nodes last. ``moving``: how much running work may be moved so
    that a blocked gang fits; None: none.
    """

    now: float
    flavors: Mapping[str, Flavor]
    topologies: Mapping[str, Topology]
    nodes: tuple[Node, ...]
    cohorts: Mapping[str, Cohort]
    cluster_queues: Mapping[str, ClusterQueue]
    workloads: tuple[Workload, ...]
    memory: Memory = Memory()
    local_queues: Mapping[str, LocalQueue] = field(default_factory=dict)
    fair_strategies: tuple[FairStrategy, ...] = ()
    half_life_s: float = HALF_LIFE_S
    usage_decay: UsageDecay | None = None
    gang_grace_s: float = 60.0
    patience: Patience = PATIENT
    shapes: tuple[Recent, ...] = ()
    keeps_for_gpus: bool = False
    moving: Moving | None = None
