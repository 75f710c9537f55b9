"""Tables of what runs."""

from scheduling.models.agents import Agent, AgentNode, MemberState
from scheduling.models.alerts import Alert, Letter
from scheduling.models.checks import AdmissionCheck, CheckState
from scheduling.models.cycles import Cycle
from scheduling.models.intervals import CapacityInterval, QuotaInterval, UsageInterval
from scheduling.models.members import MemberEnd
from scheduling.models.nodes import Node
from scheduling.models.placements import Admission, Placement
from scheduling.models.workloads import PodSet, Workload, WorkloadEvent

__all__ = [
    "Admission",
    "AdmissionCheck",
    "Agent",
    "AgentNode",
    "Alert",
    "CapacityInterval",
    "CheckState",
    "Cycle",
    "Letter",
    "MemberEnd",
    "MemberState",
    "Node",
    "Placement",
    "PodSet",
    "QuotaInterval",
    "UsageInterval",
    "Workload",
    "WorkloadEvent",
]
