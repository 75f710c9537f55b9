"""One scheduling cycle as a pure function. Read :func:`decide` first: it is the product."""

from scheduling.engine.contest import Contest
from scheduling.engine.desk import Desk
from scheduling.engine.entries import Entry, find_entry, never, out_of_reach, reach
from scheduling.engine.gates import shut
from scheduling.engine.holds import Holds
from scheduling.engine.levelling import level_surplus
from scheduling.engine.lines import Walk
from scheduling.engine.mending import Mending
from scheduling.engine.ordering import queue_order
from scheduling.engine.plan import Blocker, Plan
from scheduling.engine.regrowth import has_room
from scheduling.engine.reserving import MAX_FORECASTS, give_turn, refresh
from scheduling.engine.shapes import form_of
from scheduling.engine.snapshot import Claim, Snapshot, Workload
from scheduling.engine.state import State
from scheduling.engine.surplus import add_surplus
from scheduling.engine.terms import (
    BlockerCode,
    EvictionReason,
    PendingReason,
    QueueingStrategy,
    StopPolicy,
)

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
    holds = Holds(state, desk.moves)
    decisions, work = (*desk.moves, *holds), dict(sorted(desk.work.items()))
    return Plan(decisions, state.memory(), work, min(holds.instants, default=None))


def advance(state: State, now: float) -> Desk:
    """Run one cycle on a state, which is as decided afterwards.

    Only queues that something has changed for are looked at; for the others nothing can be
    decided that was not decided before.
    """
    state.pass_time(now)  # 1. claims expire, and work loses its protection
    state.expected.settle()  # and room is kept for what is expected now
    desk = Desk(state)
    refresh(state)
    _drain_stopped_queues(desk)  # 2. queues on HoldAndDrain lose their running work
    _evict_outgrown(desk)  # 3. who takes back what is no longer there leaves as well
    mending = Mending(desk)  # (gangs that lost a node come before others of their priority)
    _place_unmanaged(desk, mending)  # 4. pods outside every queue need nodes but no quota
    _drain(desk, _line_up(state), mending)  # 5. head by head, until nobody fits any more
    mending.finish()
    add_surplus(desk)  # 6. gangs get what they ask for above their minima
    level_surplus(desk)  # 7. or take it from others, where their tree says so
    desk.close()  # 8. let the books be as decided
    return desk


def _drain_stopped_queues(desk: Desk) -> None:
    state = desk.state
    leavers = (state.workloads[key] for key in state.draining)
    for workload in sorted(leavers, key=lambda w: (w.queue or "", w.key)):
        queue = state.platform.cluster_queues.get(workload.queue or "")
        if queue is not None and queue.stop_policy is StopPolicy.HOLD_AND_DRAIN:
            desk.evict(workload, EvictionReason.CLUSTER_QUEUE_STOPPED)
        else:  # its LocalQueue drains, whatever else its queue does
            desk.evict(workload, EvictionReason.LOCAL_QUEUE_STOPPED)


def _evict_outgrown(desk: Desk) -> None:
    state = desk.state
    for workload in state.yields.regrown():
        before = state.yields.before[workload.key]
        leaves = workload.key in state.releasing
        if not leaves and not has_room(state.books, workload, before):
            desk.evict(workload, EvictionReason.OUTGROWN)


def _place_unmanaged(desk: Desk, mending: Mending) -> None:
    state = desk.state
    for workload in queue_order(state.workloads[key] for key in state.unmanaged):
        mending.before(workload)
        with state.reservations.aside(state.reservations.binding(workload, state.now)):
            entry = find_entry(state, state.asking(workload), None, ())
            if entry is not None and entry.ready:
                desk.move(entry.moved)
                desk.admit(workload, entry.assignments)


def _line_up(state: State) -> dict[str, Walk]:
    """Return the touched lines in which somebody may start, and forget why they waited."""
    lines: dict[str, Walk] = {}
    touched = state.touched()
    for queue in touched:
        state.strict.pop(queue, None)
        if shut(state.platform, state.circular, queue) is None:
            lines[queue] = state.walk(queue)
    for key in [key for key in state.waiting if state.workloads[key].queue in lines]:
        del state.waiting[key]
    return lines


def _drain(desk: Desk, lines: dict[str, Walk], mending: Mending) -> None:
    """Look at the best head of all queues again and again; its queue then offers the next."""
    state = desk.state
    heads = Contest(state)
    strict = {name for name in lines if _is_strict(state, name)}
    for name, line in lines.items():
        _offer(desk, heads, line, strict=name in strict)
    parked: set[object] = set()
    while (workload := heads.pop()) is not None:
        assert workload.queue is not None
        mending.before(workload)
        desk.work["heads"] += 1
        line = lines[workload.queue]
        moves_on = _consider(desk, workload, line, parked)
        heads.stir(desk.stirred())
        blocks = workload.queue in strict and not moves_on
        if blocks or desk.work["heads"] >= MAX_HEADS:
            state.strict[workload.queue] = workload.key
        else:
            _offer(desk, heads, line, strict=workload.queue in strict)
    desk.work["footings"] += heads.played


def _is_strict(state: State, queue: str) -> bool:
    strategy = state.platform.cluster_queues[queue].queueing_strategy
    return strategy is QueueingStrategy.STRICT_FIFO


def _offer(desk: Desk, heads: Contest, line: Walk, *, strict: bool) -> None:
    """Let the next one stand for its queue, but not in vain: most who wait are out of reach.

    Room only shrinks within a cycle, but for what victims leave to their preemptors.
    """
    state, refused = desk.state, set[object]()
    for key in line:
        workload = state.workloads[key]
        if strict or state.favoured(key):
            heads.offer(workload)
            return
        asking, bound = state.asking(workload), state.reservations.binding(workload, state.now)
        same = reach(state, asking), bound
        if same not in refused and not _out_of_reach(state, asking, bound):
            heads.offer(workload)
            return
        refused.add(same)  # others that differ in their places alone are refused with it
        desk.work["passed"] += 1
        _reserve_for(desk, workload)
        line.park(line.form)


def _out_of_reach(state: State, asking: Workload, bound: tuple[str, ...]) -> bool:
    if not state.reservations:
        return out_of_reach(state, asking)
    with state.reservations.aside(bound):
        return out_of_reach(state, asking)


def _reserve_for(desk: Desk, workload: Workload) -> None:
    """Let a gang that cannot start have its turn, for a bounded number of gangs of each tree."""
    if not desk.state.atlas.nodes:  # a turn is a turn on nodes
        return
    queue = desk.state.books.queue(workload)
    assert queue is not None
    root = desk.state.books.now.ledger.root(queue)
    if desk.forecasts.get(root, 0) >= MAX_FORECASTS:
        return
    if give_turn(desk.state, workload, desk.newly_running, timed=desk.timed):
        desk.forecasts[root] += 1


def _consider(desk: Desk, workload: Workload, line: Walk, parked: set[object]) -> bool:
    """Decide on one head. Returns whether even a strict queue goes on behind it.

    It does when the head was admitted, and when the head can never be: what cannot start must
    not keep others from starting.

    What did not fit in this cycle does not fit a second time in the same form: nothing is freed
    within a cycle. So ten thousand equal gangs cost one search.
    """
    state, form = desk.state, form_of(workload)
    claim, reserved = state.claims.lift(workload.key), state.reservations.lift(workload.key)
    bound = () if claim else state.reservations.binding(workload, state.now)
    entry = None if claim else _beside(state, workload, bound)
    if entry is not None:
        _take(desk, workload, claim, entry, waits=reserved is not None)
    else:
        with state.reservations.aside(bound):
            entry = _look_for(desk, workload, claim, bound, line=line, parked=parked)
            if entry is not None:
                _take(desk, workload, claim, entry, waits=reserved is not None)
    if reserved is not None and not (entry and (entry.ready or entry.frees)):
        state.reservations.keep(reserved)
    elif entry is None and claim is None:
        _reserve_for(desk, workload)
    if entry is not None:
        return entry.ready
    return _is_strict(state, form.queue) and never(state, workload)


def _beside(state: State, workload: Workload, bound: tuple[str, ...]) -> Entry | None:
    """Return room for an owner beside what is kept for gangs that it need not wait for."""
    spared = state.reservations.spared(workload, state.now)
    if not spared:
        return None
    with state.reservations.aside({*bound, *spared}):
        entry = find_entry(state, state.asking(workload), None, ())
    return entry if entry is not None and entry.ready else None


def _look_for(
    desk: Desk,
    workload: Workload,
    claim: Claim | None,
    bound: tuple[str, ...],
    *,
    line: Walk,
    parked: set[object],
) -> Entry | None:
    """Return how the workload gets in; None where it does not, or none of its equals did."""
    state, form = desk.state, form_of(workload)
    protected = state.claims.protected_from(workload.key) | desk.shielded
    if bound:
        protected |= state.reservations.relied_on(bound)
    refusal = form, protected, bound
    if claim is None and refusal in parked:
        return None
    asking = state.asking(workload)
    state.preemptor.spared.clear()
    entry = find_entry(state, asking, claim, protected)
    if entry is None and claim is not None:
        state.claims.keep(claim)  # a node or quota that is missing now may come back in time
    elif entry is None:
        parked.add(refusal)
        # Nobody of this form finds a victim if this one spared nobody, or spared in vain.
        if not state.preemptor.spared or find_entry(state, asking, None, ()) is None:
            line.park(form)
    return entry


def _take(
    desk: Desk, workload: Workload, claim: Claim | None, entry: Entry, *, waits: bool
) -> None:
    """Start the workload, or keep for it what others leave.

    ``waits``: room is reserved for it anyway, which is as good as keeping it for this cycle.
    """
    claims = desk.state.claims
    if entry.ready:
        desk.move(entry.moved)
        desk.admit(workload, entry.assignments)
        return
    victims = desk.make_room(workload, entry.victims)
    victims |= desk.relocate(workload, entry.relocated)
    if victims:
        desk.shield(workload)
        victims.update(claim.victims if claim else ())
        claims.make(workload, entry.assignments, victims, desk.state.now)
    elif claim:
        claims.keep(claim, entry.assignments)
    elif not waits:
        desk.reserve(workload, entry.assignments)  # for this cycle only
    _hold_for_leavers(desk, workload)


def _hold_for_leavers(desk: Desk, workload: Workload) -> None:
    releasing = ", ".join(sorted(desk.state.releasing))
    blocker = Blocker(
        BlockerCode.WAITING_PREEMPTION, where=workload.queue or "", facts={"releasing": releasing}
    )
    desk.hold(workload, PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS, blocker)
