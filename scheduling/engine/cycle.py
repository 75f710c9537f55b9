"""One scheduling cycle as a pure function. Read :func:`decide` first: it is the product."""

from collections.abc import Iterator

from scheduling.engine.contest import Contest
from scheduling.engine.desk import Desk
from scheduling.engine.gates import shut
from scheduling.engine.holds import Holds, walk
from scheduling.engine.lines import Walk
from scheduling.engine.ordering import queue_order
from scheduling.engine.plan import Blocker, Plan
from scheduling.engine.shapes import form_of
from scheduling.engine.snapshot import Claim, Snapshot, Workload
from scheduling.engine.state import State
from scheduling.engine.terms import BlockerCode, EvictionReason, PendingReason, QueueingStrategy

MAX_HEADS = 100_000  # bounded by counted work, never by the clock


def decide(snapshot: Snapshot) -> Plan:
    """Return what happens next to every workload. Equal snapshots give equal plans.

    The snapshot is not changed. Never raises for bad input; an ``AssertionError`` is a bug.
    """
    state = State(snapshot)
    desk = advance(state, snapshot.now)
    return plan(state, desk)


def plan(state: State, desk: Desk) -> Plan:
    """Return the moves of a closed desk, why everybody else waits, and the memory."""
    holds = Holds(state)
    decisions, work = (*desk.moves, *holds), dict(sorted(desk.work.items()))
    return Plan(decisions, state.memory(), work, min(holds.instants, default=None))


def advance(state: State, now: float) -> Desk:
    """Run one cycle on a state, which is as decided afterwards.

    Only queues that something has changed for are looked at; for the others nothing can be
    decided that was not decided before.
    """
    state.pass_time(now)  # 1. claims expire, and work loses its protection
    desk = Desk(state)
    _drain_stopped_queues(desk)  # 2. queues on HoldAndDrain lose their running work
    _place_unmanaged(desk)  # 3. pods outside every queue need nodes but no quota
    _drain(desk, _line_up(state))  # 4. head by head, until nobody fits any more
    desk.close()  # 5. let the books be as decided
    return desk


def _drain_stopped_queues(desk: Desk) -> None:
    state = desk.state
    leavers = (state.workloads[key] for key in state.draining)
    for workload in sorted(leavers, key=lambda w: (w.queue or "", w.key)):
        by_local_queue = workload.blocked == BlockerCode.QUEUE_STOPPED
        closed = shut(state.platform, (), workload.queue or "")
        if closed is None and by_local_queue:
            desk.evict_stopped(workload, EvictionReason.LOCAL_QUEUE_STOPPED)
        else:
            desk.evict_stopped(workload, EvictionReason.CLUSTER_QUEUE_STOPPED)


def _place_unmanaged(desk: Desk) -> None:
    state = desk.state
    for workload in queue_order(state.workloads[key] for key in state.unmanaged):
        assignments = state.assigner.assign(workload, state.books.both)
        if assignments is not None:
            desk.admit(workload, assignments)


def _line_up(state: State) -> dict[str, Walk]:
    """Return the touched lines in which somebody may start, and forget why they waited."""
    lines: dict[str, Walk] = {}
    touched = state.touched()
    for queue in touched:
        state.strict.pop(queue, None)
        if shut(state.platform, state.circular, queue) is None:
            lines[queue] = walk(state, queue)
    for key in [key for key in state.waiting if state.workloads[key].queue in lines]:
        del state.waiting[key]
    return lines


def _drain(desk: Desk, lines: dict[str, Walk]) -> None:
    """Look at the best head of all queues again and again; its queue then offers the next."""
    state = desk.state
    heads = Contest(state.books, state.assigner, state.regime, state.claims.keys())
    for line in lines.values():
        _offer(state, heads, line)
    parked: set[object] = set()
    while (workload := heads.pop()) is not None:
        assert workload.queue is not None
        desk.work["heads"] += 1
        line = lines[workload.queue]
        moves_on = _consider(desk, workload, line, parked)
        heads.stir(desk.stirred())
        queue = state.platform.cluster_queues[workload.queue]
        strict = queue.queueing_strategy is QueueingStrategy.STRICT_FIFO
        if (strict and not moves_on) or desk.work["heads"] >= MAX_HEADS:
            state.strict[workload.queue] = workload.key
        else:
            _offer(state, heads, line)
    desk.work["standings"] = heads.played


def _offer(state: State, heads: Contest, line: Iterator[str]) -> None:
    key = next(line, None)
    if key is not None:
        heads.offer(state.workloads[key])


def _consider(desk: Desk, workload: Workload, line: Walk, parked: set[object]) -> bool:
    """Decide on one head. Returns whether even a strict queue goes on behind it.

    It does when the head was admitted, and when the head can never be: what cannot start must
    not keep others from starting.

    What did not fit in this cycle does not fit a second time in the same form: nothing is freed
    within a cycle. So ten thousand equal gangs cost one search.
    """
    state = desk.state
    claim = state.claims.lift(workload.key)
    protected = state.claims.protected_from(workload.key)
    form = form_of(workload)
    if claim is not None or (form, protected) not in parked:
        if not _over_ceiling(state, workload):
            if _admit(desk, workload, claim):
                return True
            if _await_leavers(desk, workload, claim) or _preempt(desk, workload, claim, protected):
                return False
        if claim is None:
            parked.add((form, protected))
            if not protected:
                line.park(form)
    strict = state.platform.cluster_queues[form.queue].queueing_strategy
    return strict is QueueingStrategy.STRICT_FIFO and state.never(workload)


def _over_ceiling(state: State, workload: Workload) -> bool:
    """Return whether the second queue that bounds the workload can never hold it."""
    if workload.ceiling_queue is None:
        return False
    never = state.explainer.impossible(workload)
    return any(blocker.facts.get("queue") == workload.ceiling_queue for blocker in never)


def _admit(desk: Desk, workload: Workload, claim: Claim | None) -> bool:
    state = desk.state
    kept = claim.assignments if claim else ()
    if kept and state.books.can_stand(workload, kept, state.books.both):
        desk.admit(workload, kept)
        return True
    assignments = state.assigner.assign(workload, state.books.both)
    if assignments is not None:
        desk.admit(workload, assignments)
    return assignments is not None


def _await_leavers(desk: Desk, workload: Workload, claim: Claim | None) -> bool:
    """Wait without evicting anybody where those who are already leaving make enough room."""
    state, coming = desk.state, desk.state.books.coming
    if not state.releasing:
        return False
    if claim and state.books.can_stand(workload, claim.assignments, coming):
        state.claims.keep(claim)
    else:
        assignments = state.assigner.assign(workload, coming)
        if assignments is None:
            return False
        if claim:
            state.claims.keep(claim, assignments)
        else:
            desk.reserve(workload, assignments)  # for this cycle only
    _hold_for_leavers(desk, workload)
    return True


def _preempt(
    desk: Desk, workload: Workload, claim: Claim | None, protected: frozenset[str]
) -> bool:
    state = desk.state
    rescue = state.preemptor.find(workload, protected)
    if rescue is None:
        return False
    for victim in rescue.victims:
        desk.evict_for(workload, victim)
    victims = {victim.workload.key for victim in rescue.victims}
    victims.update(claim.victims if claim else ())
    state.claims.make(workload, rescue.assignments, victims, state.now)
    _hold_for_leavers(desk, workload)
    return True


def _hold_for_leavers(desk: Desk, workload: Workload) -> None:
    releasing = ", ".join(sorted(desk.state.releasing))
    blocker = Blocker(
        BlockerCode.WAITING_PREEMPTION, where=workload.queue or "", facts={"releasing": releasing}
    )
    desk.hold(workload, PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS, blocker)
