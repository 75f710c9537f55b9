"""Waiting work that is not to be looked at before an instant: evicted, or without a budget.

Until then it is kept out as by the rows (``Workload.blocked``). Source: ``admission.md`` K54.
"""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import replace

from scheduling.engine.snapshot import Workload
from scheduling.engine.terms import BlockerCode

_RESTS = BlockerCode.BACKOFF.value
_ENDS_BY_TIME = frozenset({_RESTS, BlockerCode.BUDGET_BLOCK.value})


class Rests:
    """When who may be looked at again. Cost of a change: O(log n)."""

    def __init__(self) -> None:
        self._alarms: list[tuple[float, str]] = []

    def enter(self, workload: Workload, now: float) -> Workload:
        """Return waiting work kept out until its time has come, and let in once it has."""
        at = workload.not_before
        if at is None or workload.admission is not None:
            return workload
        if at > now:
            heapq.heappush(self._alarms, (at, workload.key))
            return workload if workload.blocked else replace(workload, blocked=_RESTS)
        return replace(workload, blocked="") if workload.blocked in _ENDS_BY_TIME else workload

    def due(self, now: float, known: Mapping[str, Workload]) -> Iterator[Workload]:
        """Yield the known work whose rest is over, once each."""
        while self._alarms and self._alarms[0][0] <= now:
            key = heapq.heappop(self._alarms)[1]
            if key in known:
                yield known[key]


def rest_of(workload: Workload) -> float | None:
    """Return until when nothing but time keeps waiting work out; None where it does not."""
    return workload.not_before if workload.blocked in _ENDS_BY_TIME else None
