"""The end of admissions: quota and nodes are free again, each metered to its own instant."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from uuid import UUID

from scheduling import meter, moves, persist
from scheduling.engine.parts import leaving_key
from scheduling.engine.terms import Outcome, Status
from scheduling.holders import Holder
from scheduling.kept import Kept, trees_of
from scheduling.loader import Loaded, load
from scheduling.models import Admission
from scheduling.moves import Line, Move

logger = logging.getLogger(__name__)
MOST_LINES = 200  # of one instant, for the terminal
ALIVE = frozenset({Status.ADMITTED, Status.RUNNING, Status.PENDING})


def release(
    ends: Iterable[tuple[datetime, Holder, Outcome | None]], now: datetime, kept: Kept | None
) -> list[Holder]:
    """End admissions, one instant after the other, so that each is metered at its own.

    Returns:
        Those that have ended.
    """
    ends, released = list(ends), list[Holder]()
    if not ends:
        return released
    let_go = _from_kept(kept) if kept else _from_read(load(now, waiting=False))
    for instant, together in groupby(ends, key=itemgetter(0)):
        gone = _end([(row, outcome) for _, row, outcome in together], instant)
        let_go(gone, instant)
        released += gone
    return released


def _from_kept(kept: Kept) -> Callable[[Sequence[Holder], datetime], None]:
    """Return what meters the world after a release, where a kept one follows it."""

    def let_go(gone: Sequence[Holder], instant: datetime) -> None:
        kept.let_go(gone)
        left = {row.cluster_queue for row in gone}
        queues = {name for queue in left for name in kept.tree(queue)}
        held = kept.held_in({*queues, ""})
        meter.follow(kept.world, at=instant, snapshot=held, standing=kept.standing, within=queues)

    return let_go


def _from_read(world: Loaded) -> Callable[[Sequence[Holder], datetime], None]:
    """Return what meters the world after a release, where it was read for that."""
    trees, standing = trees_of(world.snapshot), meter.read_standing()

    def let_go(gone: Sequence[Holder], instant: datetime) -> None:
        nonlocal world
        world = _without(world, gone)
        queues = {name for row in gone for name in trees.get(row.cluster_queue, {""})}
        meter.follow(world, at=instant, standing=standing, within=queues)

    return let_go


def _end(ends: Iterable[tuple[Holder, Outcome | None]], instant: datetime) -> list[Holder]:
    """Give back quota and nodes, and write what this means for each workload.

    Returns:
        Those of which it was written; where the workload has changed meanwhile, the next look
        decides.
    """
    gone, over, told = list[Holder](), dict[UUID, tuple[Holder, Move]](), list[Line]()
    for row, outcome in ends:
        workload = row.workload
        if outcome and not row.is_part and workload.status in ALIVE:
            move = Move(workload, Status.FINISHED, instant, outcome=outcome)
            over[workload.uid] = row, move
            continue
        gone.append(row)
        if not row.is_reserved:
            why = row.eviction_reason
            told.append(Line(workload.uid, instant, _word_of(row, instant), why))
    for uid in moves.take([move for _, move in over.values()]):
        row, move = over[uid]
        row.workload.follow(move)
        gone.append(row)
    for row in gone[:MOST_LINES]:
        if row.workload.status == Status.FINISHED:
            logger.info("finished %s", row.workload)
    if len(gone) > MOST_LINES:
        logger.info("and %d more have left", len(gone) - MOST_LINES)
    moves.tell_all(told)
    ended = [(row.pk, max(instant, row.admitted_at)) for row in gone]
    persist.update(Admission, ("id",), ("released_at",), ended)
    return gone


def _word_of(row: Holder, instant: datetime) -> str:
    """Return what the end of an admission is in the story of work that is not over with it."""
    if row.is_part:
        return "surplus_left"
    workload = row.workload
    rests = workload.requeue_at is not None and workload.requeue_at > instant
    return "requeued" if workload.status == Status.PENDING and not rests else "released"


def _key(admission: Holder) -> str:
    key = str(admission.workload_id)
    return leaving_key(key) if admission.is_part else key


def _without(world: Loaded, released: Iterable[Holder]) -> Loaded:
    """Return the world after these admissions have been released."""
    gone = {_key(admission) for admission in released}
    snapshot = world.snapshot
    staying = tuple(w for w in snapshot.workloads if w.key not in gone)
    return replace(
        world,
        snapshot=replace(snapshot, workloads=staying),
        admissions={key: a for key, a in world.admissions.items() if key not in gone},
    )
