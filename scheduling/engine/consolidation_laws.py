"""What consolidation must never do, in other words than those that decide.

Source: ``placement.md`` 1.6, 6 (22). Part of :mod:`scheduling.engine.invariants`.
"""

from collections.abc import Iterator, Mapping

from scheduling.engine.moving import Moving
from scheduling.engine.plan import Evict, Plan
from scheduling.engine.snapshot import Assignment, Claim, Snapshot, Workload
from scheduling.engine.standing import standing
from scheduling.engine.terms import EvictionReason
from scheduling.engine.usage import is_gpu, paired


def broken_moves(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Yield a sentence for each broken law."""
    work = {w.key: w for w in snapshot.workloads}
    claims = {claim.workload: claim for claim in plan.memory.claims}
    by_gang: dict[str, list[Evict]] = {}
    for move in plan.decisions:
        if isinstance(move, Evict) and move.reason is EvictionReason.CONSOLIDATED:
            by_gang.setdefault(move.preemptor or "", []).append(move)
            if move.workload in work:
                yield from _mover(move, work[move.workload], claims.get(move.workload))
    for key, moves in sorted(by_gang.items()):
        if key not in work or snapshot.moving is None:
            yield f"work moves for {key}, which may move nobody"
        else:
            yield from _bounds(snapshot, snapshot.moving, work, work[key], moves)


def _mover(move: Evict, mover: Workload, claim: Claim | None) -> Iterator[str]:
    """Who moves keeps every pod and its flavors, and its new nodes are kept for it."""
    if claim is None or claim.assignments != move.moves_to:
        yield f"{mover.key} moves, and its nodes are not kept"
    had, gets = (_granted(one) for one in (standing(mover), move.moves_to))
    if had != gets or any(a.count != sum(a.nodes.values()) for a in move.moves_to):
        yield f"{mover.key} moves, and not with all of its pods"


def _granted(assignments: tuple[Assignment, ...]) -> list[tuple[str, int, Mapping[str, str]]]:
    return [(one.pod_set, one.count, one.flavors) for one in assignments]


def _bounds(
    snapshot: Snapshot,
    moving: Moving,
    work: Mapping[str, Workload],
    gang: Workload,
    moves: list[Evict],
) -> Iterator[str]:
    movers = [work[move.workload] for move in moves if move.workload in work]
    asked = sum(
        amount * p.count
        for p in gang.pod_sets
        for name, amount in p.requests.items()
        if is_gpu(name)
    )
    if len(movers) > moving.gangs:
        yield f"{len(movers)} gangs move for {gang.key}"
    if sum(map(_gpus, movers)) > moving.times * asked:
        yield f"{sum(map(_gpus, movers))} GPUs move for the {asked} of {gang.key}"
    lost = sum(move.lost_gpu_hours for move in moves)
    if moving.lost_gpu_hours is not None and lost > moving.lost_gpu_hours + 1e-9:
        yield f"{lost} GPU-hours are lost for {gang.key}"
    for mover in movers:
        queue = snapshot.cluster_queues[mover.queue or ""]
        started = mover.admission.admitted_at if mover.admission else 0.0
        own = queue.minimum_runtime.yields_to_own and mover.queue == gang.queue
        young = snapshot.now - started < queue.minimum_runtime.seconds
        if young and not (own and gang.priority > mover.priority):
            yield f"{mover.key} has not run for long enough to be moved"
        if mover.priority > gang.priority or not mover.preemptible:
            yield f"{mover.key} may not be moved for {gang.key}"


def _gpus(work: Workload) -> int:
    return sum(
        amount * assignment.count
        for pod_set, assignment in paired(work, standing(work))
        for name, amount in pod_set.requests.items()
        if is_gpu(name)
    )
