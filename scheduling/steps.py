"""The table of a workload's life: from which state which event leads where. Pure.

Printed in ``docs/concepts/life-of-a-workload.md``; ``scheduling.lifecycle`` is the one writer.
"""

from collections.abc import Mapping
from typing import NamedTuple

from scheduling.engine.terms import Status

P, A, R = Status.PENDING, Status.ADMITTED, Status.RUNNING
F, N = Status.FINISHED, Status.INACTIVE


class Step(NamedTuple):
    """One way from a state to the next; None before it was submitted."""

    source: Status
    event: str
    to: Status


# Each with what it is about. A cancelled end has its own word.
MEANINGS: dict[Step, str] = {
    Step(P, "quota_reserved", P): "a cycle keeps quota and nodes; admission checks must agree",
    Step(P, "reservation_dropped", P): "its queue was stopped or is gone before they had agreed",
    Step(P, "evicted", P): "what was reserved is taken back: preempted, or a check says later",
    Step(P, "admitted", A): "a cycle gives quota and nodes to the whole gang; no check is open",
    Step(A, "started", R): "all its pods are ready",
    Step(A, "restarted", A): "a member failed before all were ready; all start anew in place",
    Step(R, "restarted", A): "a member failed; all start anew on the same quota and nodes",
    Step(R, "finished", F): "it ended by itself, or a policy ended it",
    Step(A, "finished", F): "it was over before anybody saw it start",
    Step(P, "finished", F): "its pods had ended before the eviction reached them",
    Step(A, "evicted", P): "it gives back what it holds, once its pods are gone, and waits again",
    Step(R, "evicted", P): "it gives back what it holds, once its pods are gone, and waits again",
    Step(P, "deactivated", N): "by request, or a limit is reached; nothing is tried any more",
    Step(A, "deactivated", N): "by request, or a limit is reached; its pods are stopped",
    Step(R, "deactivated", N): "by request, or a limit is reached; its pods are stopped",
    Step(N, "reactivated", P): "by request; its counters begin anew",
    Step(P, "cancelled", F): "by request",
    Step(A, "cancelled", F): "by request; its pods are stopped",
    Step(R, "cancelled", F): "by request; its pods are stopped",
    Step(N, "cancelled", F): "by request",
}
STEPS = frozenset(MEANINGS)
# The event of a move where nobody names one. What keeps the state always names its event.
FIRST: Mapping[tuple[Status, Status], str] = {
    (step.source, step.to): step.event
    for step in reversed(list(MEANINGS))
    if step.source is not step.to and step.event != "cancelled"
}


def steps_table() -> str:
    """Return the table as Markdown, in its own order."""
    rows = (
        f"| {step.source} | {step.event} | {step.to} | {meaning} |\n"
        for step, meaning in MEANINGS.items()
    )
    return "| from | event | to | what it is |\n|---|---|---|---|\n" + "".join(rows)
