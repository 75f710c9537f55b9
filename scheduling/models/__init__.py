"""Tables of what runs."""

from scheduling.models.cycles import Cycle
from scheduling.models.intervals import CapacityInterval, QuotaInterval, UsageInterval
from scheduling.models.nodes import Node
from scheduling.models.placements import Admission, Placement
from scheduling.models.workloads import PodSet, Workload, WorkloadEvent

__all__ = [
    "Admission",
    "CapacityInterval",
    "Cycle",
    "Node",
    "Placement",
    "PodSet",
    "QuotaInterval",
    "UsageInterval",
    "Workload",
    "WorkloadEvent",
]
