"""Who may not even stand in line, and why: stopped, missing and inactive queues."""

from collections.abc import Collection

from scheduling.engine.plan import Blocker
from scheduling.engine.snapshot import ClusterQueue, Snapshot, Workload
from scheduling.engine.terms import BlockerCode, PendingReason, StopPolicy

Why = tuple[PendingReason, tuple[Blocker, ...]]

_CODES = frozenset(code.value for code in BlockerCode)


def blocked(workload: Workload) -> Why:
    """Return why the rows keep this workload out (its ``blocked`` is set)."""
    where = workload.queue or ""
    if workload.blocked not in _CODES:
        blocker = Blocker(
            BlockerCode.QUEUE_INACTIVE, where=where, facts={"cause": workload.blocked}
        )
        return PendingReason.ON_HOLD, (blocker,)
    code = BlockerCode(workload.blocked)
    stopped = code is BlockerCode.QUEUE_STOPPED
    reason = PendingReason.SUSPENDED if stopped else PendingReason.MISCONFIGURED
    return reason, (Blocker(code, where=where),)


def shut(platform: Snapshot, circular: Collection[str], name: str) -> Why | None:
    """Return why the queue lets nobody in; None if it is open."""
    queue = platform.cluster_queues.get(name)
    if queue is None:
        return PendingReason.MISCONFIGURED, (Blocker(BlockerCode.QUEUE_MISSING, where=name),)
    if queue.stop_policy is not StopPolicy.NONE:
        facts = {"stop_policy": queue.stop_policy.value}
        blocker = Blocker(BlockerCode.QUEUE_STOPPED, where=queue.name, facts=facts)
        return PendingReason.SUSPENDED, (blocker,)
    return _inactive(circular, queue)


def _inactive(circular: Collection[str], queue: ClusterQueue) -> Why | None:
    cause = queue.inactive or ("CohortCycle" if queue.cohort in circular else "")
    if not cause:
        return None
    blocker = Blocker(BlockerCode.QUEUE_INACTIVE, where=queue.name, facts={"cause": cause})
    return PendingReason.MISCONFIGURED, (blocker,)
