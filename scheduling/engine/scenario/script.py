"""A scenario as values: the platform, its work, and what happens to it later."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from scheduling.engine.machines import Flavor, Node, Topology
from scheduling.engine.patience import PATIENT, Patience
from scheduling.engine.snapshot import (
    HALF_LIFE_S,
    NOTHING,
    ClusterQueue,
    Cohort,
    FlavorResource,
    Quota,
    Workload,
)
from scheduling.engine.terms import FairStrategy, StopPolicy


class EventKind(StrEnum):
    """What may happen between two cycles."""

    FINISH = "finish"
    DELETE = "delete"
    SUBMIT = "submit"
    SET_PRIORITY = "set_priority"
    SET_QUOTA = "set_quota"
    SET_STOP_POLICY = "set_stop_policy"
    SET_NODE = "set_node"
    ADVANCE_CLOCK = "advance_clock"
    CHECKPOINT = "checkpoint"
    RECLAIM_PODS = "reclaim_pods"
    SCALE = "scale"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happens before a cycle; the fields of its kind are filled."""

    at_cycle: int = 1
    kind: EventKind = EventKind.ADVANCE_CLOCK
    name: str = ""  # of a workload, cluster queue or cohort
    workload: Workload | None = None
    priority: int = 0
    of_cohort: bool = False
    column: FlavorResource | None = None
    quota: Quota = NOTHING
    stop_policy: StopPolicy = StopPolicy.NONE
    node: Node | None = None
    seconds: float = 0.0  # to advance, or the instant of a checkpoint
    pods: Mapping[str, int] = field(default_factory=dict)  # finished ones, or the new counts


@dataclass(frozen=True, slots=True)
class Door:
    """A local queue: weight and starting consumption in canonical units."""

    name: str
    cluster_queue: str
    fair_weight: float
    consumed: dict[str, float]


@dataclass(frozen=True, slots=True)
class Decay:
    """How usage is remembered (``FORMAT.md`` 9)."""

    half_life_seconds: float
    sampling_seconds: float
    weights: dict[str, float]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A platform, its work, what happens later, and what is expected (None: nothing).

    ``durations``: after how many seconds of running a workload ends by itself, by name.
    """

    id: str
    strategies: tuple[FairStrategy, ...]
    decay: Decay | None
    start_at: float
    cycle_seconds: float
    max_cycles: int
    topologies: tuple[Topology, ...]
    nodes: tuple[Node, ...]
    flavors: tuple[Flavor, ...]
    cohorts: tuple[Cohort, ...]
    queues: tuple[ClusterQueue, ...]
    doors: tuple[Door, ...]
    workloads: tuple[Workload, ...]
    events: tuple[Event, ...]
    durations: Mapping[str, float] = field(default_factory=dict)
    patience: Patience = PATIENT
    half_life_s: float = HALF_LIFE_S
    expected: Any = None
