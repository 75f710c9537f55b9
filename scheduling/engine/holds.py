"""Why everybody who waits is waiting, told from the state as a cycle left it.

Equal forms are explained once. Cost: O(waiting work), and one search for each form.
"""

from collections.abc import Iterator

from scheduling.engine.gates import Why, blocked, shut
from scheduling.engine.lines import Walk
from scheduling.engine.ordering import precedence, queue_order
from scheduling.engine.partial import smallest
from scheduling.engine.plan import Blocker, Hold
from scheduling.engine.shapes import Form, form_of
from scheduling.engine.snapshot import Workload
from scheduling.engine.state import State
from scheduling.engine.terms import BlockerCode, PendingReason


def holds(state: State) -> Iterator[Hold]:
    """Yield one decision for each waiting workload: blocked ones, unmanaged ones, lines."""
    for key in sorted(state.blocked):
        yield Hold(key, *blocked(state.workloads[key]))
    for workload in queue_order(state.workloads[key] for key in state.unmanaged):
        yield Hold(workload.key, *explain(state, workload))
    for queue in sorted(state.lines.queues()):
        yield from _line(state, queue)


def _line(state: State, queue: str) -> Iterator[Hold]:
    closed = shut(state.platform, state.circular, queue)
    known: dict[Form, Why] = {}
    strict: str | None = None
    for position, key in enumerate(walk(state, queue), start=1):
        workload = state.workloads[key]
        if closed is not None:
            yield Hold(key, *closed)
        elif strict is not None:
            yield Hold(key, *_behind(workload, strict, position - 1), position=position)
        elif key in state.waiting:
            yield Hold(key, *state.waiting[key], position=position)
        else:
            form = form_of(workload)
            if form not in known:
                known[form] = explain(state, workload)
            yield Hold(key, *known[form], position=position)
        strict = key if state.strict.get(queue) == key else strict


def walk(state: State, queue: str) -> Walk:
    """Return the walk along one queue's line, waiting preemptors first."""
    claimants = (state.workloads[key] for key in state.claims.keys())  # noqa: SIM118 - no dict
    mine = [workload for workload in claimants if workload.queue == queue]
    return Walk(state.lines.forms(queue), precedence, mine)


def _behind(workload: Workload, head: str, ahead: int) -> Why:
    facts: dict[str, str | int] = {"ahead": ahead, "head": head}
    blocker = Blocker(BlockerCode.BEHIND_IN_QUEUE, where=workload.queue or "", facts=facts)
    return PendingReason.PENDING_EVALUATION, (blocker,)


def explain(state: State, workload: Workload) -> Why:
    """Explain a refusal; name the claims if the workload would fit without them.

    What counts is the fewest pods with which it would start; of a grown copy, the difference.
    """
    workload = smallest(state.asking(workload))
    reason, blockers = state.explainer.why(workload)
    claimants = state.claims.keys() - {workload.key}
    if claimants and not any(b.code is BlockerCode.IMPOSSIBLE for b in blockers):
        with state.claims.lifted():
            fits = state.assigner.assign(workload, state.books.both) is not None
        if fits:
            facts: dict[str, str | int] = {"claimants": ", ".join(sorted(claimants))}
            blockers = (Blocker(BlockerCode.CLAIMED, facts=facts), *blockers)
    return reason, blockers
