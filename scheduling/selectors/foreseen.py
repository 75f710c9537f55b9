"""What checks are known to say of new work before a cycle has looked at it."""

from dataclasses import asdict
from datetime import datetime

from gpuplatform.common import clock
from queues.models import LocalQueue
from scheduling.checks import refusals
from scheduling.engine.gates import resting
from scheduling.engine.terms import PendingReason, Status
from scheduling.models import Workload


def refusal_of(queue: str | None, team_id: int | None, now: datetime) -> tuple[str, float | None]:
    """Return by which blocker a team's new work is kept out of a queue, and until when.

    ``("", None)``: by none. 1 query, and what the kinds of checks read where there are some.
    """
    found = refusals([queue or ""], now).get((queue or "", team_id or 0))
    return found or ("", None)


def foresee(row: Workload) -> Workload:
    """Return a workload as the next cycle will find it, where none has looked at it yet.

    The row is changed in memory alone. 2 queries of one that was just submitted, else none.
    """
    is_new = row.status == Status.PENDING and row.pending_reason in _UNSEEN
    if not is_new or row.blockers:
        return row
    door = LocalQueue.objects.filter(namespace=row.namespace, name=row.queue_name)
    queue = door.values_list("cluster_queue", flat=True).first() or row.queue_name
    code, until = refusal_of(queue, row.team_id, clock.now())
    if code:
        reason, blockers = resting(code, queue, until)
        row.pending_reason, row.blockers = reason.value, [asdict(one) for one in blockers]
    return row


_UNSEEN = ("", PendingReason.PENDING_EVALUATION.value)
