"""One scheduling cycle as a pure function. Read :func:`decide` first: it is the product."""

import math
from collections.abc import Iterator

from scheduling.engine.contest import Contest
from scheduling.engine.desk import Desk
from scheduling.engine.explain import Why
from scheduling.engine.ordering import queue_order
from scheduling.engine.plan import Blocker, Plan
from scheduling.engine.snapshot import Claim, ClusterQueue, Snapshot, Workload
from scheduling.engine.terms import (
    BlockerCode,
    EvictionReason,
    PendingReason,
    QueueingStrategy,
    StopPolicy,
)
from scheduling.engine.usage import shape

MAX_HEADS = 100_000  # bounded by counted work, never by the clock
_CODES = frozenset(code.value for code in BlockerCode)


def decide(snapshot: Snapshot) -> Plan:
    """Return what happens next to every workload. Equal snapshots give equal plans.

    The snapshot is not changed. Never raises for bad input; an ``AssertionError`` is a bug.
    """
    desk = Desk(snapshot)  # 1. open the books: who stands where, and which claims are kept
    _drain_stopped_queues(desk)  # 2. queues on HoldAndDrain lose their running work
    _place_unmanaged(desk)  # 3. pods outside every queue need nodes but no quota
    lines = _line_up(desk)  # 4. sort pending work into its queues; set aside who may not enter
    _drain(desk, lines)  # 5. admit, preempt or explain, head by head, until nobody is left
    return desk.plan()  # 6. every decision with its position, and what the next cycle must know


def _drain_stopped_queues(desk: Desk) -> None:
    for name, queue in sorted(desk.snapshot.cluster_queues.items()):
        drains = queue.stop_policy is StopPolicy.HOLD_AND_DRAIN
        for workload in desk.running.of(name):
            if drains:
                desk.evict_stopped(workload, EvictionReason.CLUSTER_QUEUE_STOPPED)
            elif workload.blocked == BlockerCode.QUEUE_STOPPED:  # its LocalQueue drains
                desk.evict_stopped(workload, EvictionReason.LOCAL_QUEUE_STOPPED)


def _place_unmanaged(desk: Desk) -> None:
    waiting = [w for w in desk.pending() if w.queue is None and not w.blocked]
    for workload in queue_order(waiting, ()):
        assignments = desk.assigner.assign(workload, desk.books.both)
        if assignments is not None:
            desk.admit(workload, assignments)
        else:
            desk.hold_because(workload, _why(desk, workload, frozenset()))


def _line_up(desk: Desk) -> dict[str, list[Workload]]:
    """Return the queues' pending work in order; hold what may not enter, and say why."""
    lines: dict[str, list[Workload]] = {}
    for workload in desk.pending():
        refusal = _refusal(desk, workload)
        if refusal is not None:
            desk.hold_because(workload, refusal)
        elif workload.queue is not None:
            lines.setdefault(workload.queue, []).append(workload)
    for queue, waiting in lines.items():
        lines[queue] = queue_order(waiting, desk.claims.keys())
        desk.line_up(queue, lines[queue])
    return lines


def _refusal(desk: Desk, workload: Workload) -> Why | None:
    """Return why the workload may not even stand in line."""
    if workload.blocked:
        return _blocked(workload)
    if workload.queue is None:
        return None
    queue = desk.snapshot.cluster_queues.get(workload.queue)
    if queue is None:
        blocker = Blocker(BlockerCode.QUEUE_MISSING, where=workload.queue)
        return PendingReason.MISCONFIGURED, (blocker,)
    if queue.stop_policy is not StopPolicy.NONE:
        facts = {"stop_policy": queue.stop_policy.value}
        blocker = Blocker(BlockerCode.QUEUE_STOPPED, where=queue.name, facts=facts)
        return PendingReason.SUSPENDED, (blocker,)
    return _inactive(desk, queue)


def _blocked(workload: Workload) -> Why:
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


def _inactive(desk: Desk, queue: ClusterQueue) -> Why | None:
    cause = queue.inactive or ("CohortCycle" if queue.cohort in desk.circular else "")
    if not cause:
        return None
    blocker = Blocker(BlockerCode.QUEUE_INACTIVE, where=queue.name, facts={"cause": cause})
    return PendingReason.MISCONFIGURED, (blocker,)


def _drain(desk: Desk, lines: dict[str, list[Workload]]) -> None:
    """Look at the best head of all queues again and again; its queue then offers the next."""
    heads = Contest(desk.books, desk.assigner, desk.regime, desk.claims.keys())
    waiting = {queue: iter(line) for queue, line in sorted(lines.items())}
    for line in waiting.values():
        heads.offer(next(line))
    parked: dict[object, Why] = {}
    while (workload := heads.pop()) is not None:
        assert workload.queue is not None
        desk.work["heads"] += 1
        moves_on = _consider(desk, workload, parked)
        heads.stir(desk.stirred())
        strict = desk.snapshot.cluster_queues[workload.queue].queueing_strategy
        blocks = strict is QueueingStrategy.STRICT_FIFO and not moves_on
        if blocks or desk.work["heads"] >= MAX_HEADS:
            _hold_rest(desk, workload, lines[workload.queue])
        elif (successor := next(waiting[workload.queue], None)) is not None:
            heads.offer(successor)
    desk.work["standings"] = heads.played


def _hold_rest(desk: Desk, head: Workload, line: list[Workload]) -> None:
    behind = line.index(head) + 1
    ahead = sum(1 for workload in line[:behind] if workload.key in desk.held)
    for offset, workload in enumerate(line[behind:]):
        facts: dict[str, str | int] = {"ahead": ahead + offset, "head": head.key}
        blocker = Blocker(BlockerCode.BEHIND_IN_QUEUE, where=head.queue or "", facts=facts)
        desk.hold(workload, PendingReason.PENDING_EVALUATION, blocker)


def _consider(desk: Desk, workload: Workload, parked: dict[object, Why]) -> bool:
    """Decide on one head. Returns whether even a strict queue goes on behind it.

    It does when the head was admitted, and when the head can never be: what cannot start must
    not keep others from starting.

    What did not fit in this cycle does not fit a second time in the same shape and queue:
    nothing is freed within a cycle. So ten thousand equal gangs cost one search.
    """
    claim = desk.claims.lift(workload.key)
    protected = desk.claims.protected_from(workload.key)
    shapes = tuple(shape(pod_set) for pod_set in workload.pod_sets)
    kind = (workload.queue, workload.ceiling_queue, workload.priority, protected, shapes)
    if claim is None and kind in parked:
        desk.hold_because(workload, parked[kind])
        return _is_impossible(parked[kind])
    if not _over_ceiling(desk, workload):
        if _admit(desk, workload, claim):
            return True
        if _await_leavers(desk, workload, claim) or _preempt(desk, workload, claim, protected):
            return False
    why = _why(desk, workload, protected)
    if claim is None:
        parked[kind] = why
    desk.hold_because(workload, why)
    return _is_impossible(why)


def _is_impossible(why: Why) -> bool:
    return any(blocker.code is BlockerCode.IMPOSSIBLE for blocker in why[1])


def _over_ceiling(desk: Desk, workload: Workload) -> bool:
    """Return whether the second queue that bounds the workload can never hold it."""
    if workload.ceiling_queue is None:
        return False
    never = desk.explainer.impossible(workload)
    return any(blocker.facts.get("queue") == workload.ceiling_queue for blocker in never)


def _admit(desk: Desk, workload: Workload, claim: Claim | None) -> bool:
    kept = claim.assignments if claim else ()
    if kept and desk.books.can_stand(workload, kept, desk.books.both):
        desk.admit(workload, kept)
        return True
    assignments = desk.assigner.assign(workload, desk.books.both)
    if assignments is not None:
        desk.admit(workload, assignments)
    return assignments is not None


def _await_leavers(desk: Desk, workload: Workload, claim: Claim | None) -> bool:
    """Wait without evicting anybody where those who are already leaving make enough room."""
    coming = desk.books.coming
    if claim and desk.books.can_stand(workload, claim.assignments, coming):
        desk.claims.renew(claim, claim.assignments)
    else:
        assignments = desk.assigner.assign(workload, coming)
        if assignments is None:
            return False
        if claim:
            desk.claims.renew(claim, assignments)
        else:
            desk.books.hold(workload, assignments, coming)  # for this cycle only
    _hold_for_leavers(desk, workload)
    return True


def _preempt(
    desk: Desk, workload: Workload, claim: Claim | None, protected: frozenset[str]
) -> bool:
    rescue = desk.preemptor.find(workload, protected)
    if rescue is None:
        return False
    for victim in rescue.victims:
        desk.evict_for(workload, victim)
    victims = {victim.workload.key for victim in rescue.victims}
    desk.claims.make(workload, rescue.assignments, victims.union(claim.victims if claim else ()))
    _hold_for_leavers(desk, workload)
    return True


def _hold_for_leavers(desk: Desk, workload: Workload) -> None:
    facts: dict[str, str | int] = {"releasing": ", ".join(sorted(desk.releasing))}
    blocker = Blocker(BlockerCode.WAITING_PREEMPTION, where=workload.queue or "", facts=facts)
    desk.hold(workload, PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS, blocker)


def _why(desk: Desk, workload: Workload, protected: frozenset[str]) -> Why:
    """Explain a refusal; first what only time can remove, if the workload fits without it."""
    reason, blockers = desk.explainer.why(workload)
    if not any(blocker.code is BlockerCode.IMPOSSIBLE for blocker in blockers):
        blockers = (*_claimed(desk, workload), *_sheltered(desk, workload, protected), *blockers)
    return reason, blockers


def _claimed(desk: Desk, workload: Workload) -> Iterator[Blocker]:
    """Name the claims if the workload would fit without them."""
    claimants = desk.claims.keys()
    if not claimants:
        return
    with desk.claims.lifted():
        fits = desk.assigner.assign(workload, desk.books.both) is not None
    if fits:
        facts: dict[str, str | int] = {"claimants": ", ".join(sorted(claimants))}
        yield Blocker(BlockerCode.CLAIMED, facts=facts)


def _sheltered(desk: Desk, workload: Workload, protected: frozenset[str]) -> Iterator[Blocker]:
    """Say how many could give way but for their minimum runtime, and look again at its end."""
    shelter = desk.preemptor.shelter(workload, protected)
    if shelter is None:
        return
    desk.look_again(shelter.until)
    victims, until = len(shelter.victims), math.ceil(shelter.until)
    facts: dict[str, str | int] = {"victims": victims, "until": until}
    yield Blocker(BlockerCode.MINIMUM_RUNTIME, where=workload.queue or "", facts=facts)
