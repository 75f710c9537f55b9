"""Who may not even stand in line, and why: stopped, missing and inactive queues, gates, rests."""

import math
from collections.abc import Collection

from scheduling.engine.plan import Blocker
from scheduling.engine.snapshot import ClusterQueue, Snapshot, Workload
from scheduling.engine.terms import BlockerCode, PendingReason, StopPolicy

Why = tuple[PendingReason, tuple[Blocker, ...]]

_REASONS = {
    BlockerCode.QUEUE_STOPPED: PendingReason.ON_HOLD,
    BlockerCode.GATED: PendingReason.ADMISSION_GATED,
    BlockerCode.BACKOFF: PendingReason.BACKING_OFF,
    BlockerCode.BUDGET_BLOCK: PendingReason.BACKING_OFF,
}
_UNTIL = frozenset({BlockerCode.BACKOFF, BlockerCode.BUDGET_BLOCK})
_CODES = frozenset(code.value for code in BlockerCode)


def blocked(workload: Workload) -> Why:
    """Return why the rows keep this workload out (its ``blocked`` is set)."""
    where = workload.queue or ""
    if workload.blocked not in _CODES:
        blocker = Blocker(
            BlockerCode.QUEUE_INACTIVE, where=where, facts={"cause": workload.blocked}
        )
        return PendingReason.ON_HOLD, (blocker,)
    return resting(workload.blocked, where, workload.not_before)


def resting(word: str, where: str, until: float | None) -> Why:
    """Return why a known code keeps work out of a queue; ``until``: seconds of the clock."""
    code = BlockerCode(word)
    facts: dict[str, str | int] = {}
    if code in _UNTIL and until is not None:
        facts["until"] = math.ceil(until)
    return _REASONS.get(code, PendingReason.MISCONFIGURED), (
        Blocker(code, where=where, facts=facts),
    )


def shut(platform: Snapshot, circular: Collection[str], name: str) -> Why | None:
    """Return why the queue lets nobody in; None if it is open."""
    queue = platform.cluster_queues.get(name)
    if queue is None:
        return PendingReason.MISCONFIGURED, (Blocker(BlockerCode.QUEUE_MISSING, where=name),)
    if queue.stop_policy is not StopPolicy.NONE:
        facts = {"stop_policy": queue.stop_policy.value}
        blocker = Blocker(BlockerCode.QUEUE_STOPPED, where=queue.name, facts=facts)
        return PendingReason.ON_HOLD, (blocker,)
    return _inactive(circular, queue)


def _inactive(circular: Collection[str], queue: ClusterQueue) -> Why | None:
    cause = queue.inactive or ("CohortCycle" if queue.cohort in circular else "")
    if not cause:
        return None
    blocker = Blocker(BlockerCode.QUEUE_INACTIVE, where=queue.name, facts={"cause": cause})
    return PendingReason.MISCONFIGURED, (blocker,)
