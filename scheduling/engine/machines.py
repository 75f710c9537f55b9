"""Machines and their kinds: what there is to run on.

Amounts are integers in canonical units (``cpu`` in millicores, ``memory`` in bytes, anything
else in whole units).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduling.engine.terms import PlacementPolicy

CPU, MEMORY, PODS, GPU = "cpu", "memory", "pods", "nvidia.com/gpu"
# Parts of GPUs in Volcano's words: how many devices, MiB and per cent of each of them.
VGPU_NUMBER, VGPU_MEMORY = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"
VGPU_CORES = "volcano.sh/vgpu-cores"
PODS_PER_NODE = 110  # the kubelet's default, where a node does not say

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Taint:
    """A mark on nodes that keeps pods away unless they tolerate it."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's or flavor's permission to use tainted nodes. Empty effect: every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Return whether this toleration covers ``taint`` (Kubernetes' rule)."""
        if self.effect and self.effect != taint.effect:
            return False
        if not self.key:
            return self.operator == "Exists"
        if self.key != taint.key:
            return False
        return self.operator == "Exists" or self.value == taint.value


@dataclass(frozen=True, slots=True)
class Topology:
    """Named levels of nearness, outermost first; each level is a node label."""

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flavor:
    """A kind of node. Its nodes are those that carry all of ``node_labels``."""

    name: str
    node_labels: Mapping[str, str] = field(default_factory=dict)
    node_taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology: str | None = None
    policy: PlacementPolicy = PlacementPolicy.FRAGMENTATION


WHOLE = 1000  # thousandths of a device


@dataclass(frozen=True, slots=True)
class Devices:
    """The GPUs of a node, where a placement must tell them apart.

    ``memory``: of each device, in MiB; None: not declared. ``replicas``: how many pods may share
    one device in turns (time slicing); 1: each device is its pod's alone. ``islands``: indices
    of devices that are near each other; none: all of them are.
    """

    count: int
    memory: int | None = None
    replicas: int = 1
    islands: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A machine. ``unmanaged`` is what pods outside the platform already take of it.

    ``devices`` None: its GPUs are all alike and taken whole, so counting them is enough.
    """

    name: str
    labels: Mapping[str, str]
    allocatable: Amounts
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    schedulable: bool = True
    unmanaged: Amounts = field(default_factory=dict)
    devices: Devices | None = None

    @property
    def usable(self) -> bool:
        """Return whether new pods may be placed here."""
        return self.ready and self.schedulable
