"""The door to all pure checks: of one workload, of all promises, and every queue's ceiling."""

from scheduling.engine.feasibility import (
    Checker,
    Finding,
    ceilings,
    check_workload,
    resource_ceilings,
)
from scheduling.engine.promises import check_promises

__all__ = [
    "Checker",
    "Finding",
    "ceilings",
    "check_promises",
    "check_workload",
    "resource_ceilings",
]
