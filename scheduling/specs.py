"""What somebody wants to run, and on what, as plain data: every door builds one of these. Pure.

Amounts are integers in canonical units and belong to ONE pod.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

ON_FAILURE = ("restart", "fail", "keep")
REQUEUE = "requeue"  # on the loss of a node: the whole gang waits again
ON_NODE_LOSS = ("replace", REQUEUE)
SLICE_MODES = ("required", "preferred")
MOST_GRACE_S = 86_400  # a pod may take a day to stop


@dataclass(frozen=True, slots=True)
class TopologySpec:
    """Where the pods of a pod set stand together. ``level``: a node label or its last part."""

    mode: str  # required | preferred | unconstrained
    level: str | None = None


@dataclass(frozen=True, slots=True)
class SliceSpec:
    """Groups of ``size`` pods, each inside one domain of ``level``, or there as far as can be."""

    level: str
    size: int
    mode: str = SLICE_MODES[0]

    @property
    def is_required(self) -> bool:
        """Return whether pods wait rather than stand in several domains."""
        return self.mode == SLICE_MODES[0]


@dataclass(frozen=True, slots=True)
class SubgroupSpec:
    """Subgroups of ``size`` pods, of which at least ``min_subgroups`` start together."""

    size: int
    min_subgroups: int


@dataclass(frozen=True, slots=True)
class PodSetSpec:
    """Identical pods of a workload.

    ``affinity``: terms of which one must hold; a term is expressions that hold together, each
    ``{"key", "operator", "values"}``. ``slices``: outer ones first, each made of the next.
    Pod sets of one ``group`` share a domain and flavors. ``device_memory_mib``: what each of a
    pod's whole GPUs must have for it.
    """

    name: str
    count: int
    requests: Mapping[str, int]
    min_count: int | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, str], ...] = ()
    affinity: tuple[tuple[Mapping[str, Any], ...], ...] = ()
    topology: TopologySpec | None = None
    slices: tuple[SliceSpec, ...] = ()
    group: str = ""
    subgroup: SubgroupSpec | None = None
    device_locality: str = "any"
    device_memory_mib: int = 0


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """What somebody wants to run (``decisions.md`` 9).

    ``queue`` "" runs outside every queue. ``ceiling_queue`` is a ClusterQueue that only bounds
    the size. ``priority`` is used where no ``priority_class`` is named. ``template`` is the
    submitted document, stored whole and exported unchanged. ``policies``: what becomes of it when
    a member ends, as ``verdicts.Policy`` stores it. ``grace_s``: how long its pods may take to
    stop. ``gates``: names; it waits until none is left. ``active`` false: it waits until somebody
    lets it in.
    """

    namespace: str
    name: str
    pod_sets: tuple[PodSetSpec, ...]
    queue: str = ""
    kind: str = "Workload"
    priority_class: str = ""
    priority: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    ceiling_queue: str = ""
    min_member: int | None = None
    role_minima: Mapping[str, int] = field(default_factory=dict)
    elastic: bool = False
    preemptible: bool = True
    stateless: bool = False
    expected_duration_s: int | None = None
    max_execution_time_s: int | None = None
    checkpoint_interval_s: int | None = None
    on_failure: str = "restart"
    max_retries: int | None = None
    policies: tuple[Mapping[str, Any], ...] = ()
    min_success: int | None = None
    on_node_loss: str = ON_NODE_LOSS[0]
    grace_s: int | None = None
    ttl_s: int | None = None
    gates: tuple[str, ...] = ()
    active: bool = True
    template: object = None


def subject_of(spec: WorkloadSpec) -> str:
    """Return how findings name the workload: ``Kind/namespace/name``."""
    return f"{spec.kind}/{spec.namespace}/{spec.name}"


@dataclass(frozen=True, slots=True)
class PodSetChange:
    """How many pods a live pod set is to have, and how many of them are over; None: as it is."""

    name: str
    count: int | None = None
    finished: int | None = None


@dataclass(frozen=True, slots=True)
class WorkloadChange:
    """What changes of a live workload. ``last_checkpoint_at``: up to there nothing is lost.

    ``active``: whether it may run at all; ``gates``: those that are left. None: as it is.
    """

    pod_sets: tuple[PodSetChange, ...] = ()
    last_checkpoint_at: datetime | None = None
    active: bool | None = None
    gates: tuple[str, ...] | None = None
    priority: int | None = None
    reason: str = ""

    @property
    def resizes(self) -> bool:
        """Return whether it is about size or progress."""
        return bool(self.pod_sets) or self.last_checkpoint_at is not None


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """An admission check: who answers, and work of which ClusterQueues it is asked about."""

    name: str
    kind: str
    queues: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A machine as its cluster reports it; of its annotations, ours alone."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    capacity: Mapping[str, int] = field(default_factory=dict)
    allocatable: Mapping[str, int] = field(default_factory=dict)
    ready: bool = True
    schedulable: bool = True


@dataclass(frozen=True, slots=True)
class NodeRemoval:
    """That a node should be forgotten."""

    name: str


@dataclass(frozen=True, slots=True)
class NodeDrain:
    """That a node should take no more pods, and that what stands there should go elsewhere."""

    name: str


@dataclass(frozen=True, slots=True)
class NodeChange:
    """Whether new pods may come to a node, whether the others are to go, and why."""

    schedulable: bool
    reason: str = ""
    drain: bool = False
