"""Let the platform live for a while: reconcile and decide until nothing moves any more."""

from datetime import timedelta
from typing import Any

from scheduling.cycle import run_cycle
from scheduling.models import Admission, Workload
from scheduling.reconciler import reconcile


def settle() -> int:
    """Look and decide until nothing moves; returns how often something did."""
    for rounds in range(20):
        looked, decided = reconcile(), run_cycle()
        assert not decided.refused, decided.refused
        if not (looked.moved or decided.moved):
            return rounds
    raise AssertionError("it never comes to rest")


def after(clock: Any, seconds: float) -> None:
    """Let time pass, and whatever is due happen."""
    clock.shift(timedelta(seconds=seconds))
    settle()


def last(workload: Workload) -> Admission:
    return workload.admissions.filter(is_part=False).latest("admitted_at", "id")


def reasons(workload: Workload) -> list[tuple[str, str]]:
    """Return what happened and why, without the lines of loans."""
    return list(workload.events.order_by("id").values_list("kind", "reason"))
