"""What an edit changes: the next cycles of two snapshots that differ by it, compared."""

from collections.abc import Iterable
from dataclasses import dataclass

from scheduling.engine.cycle import advance
from scheduling.engine.plan import Admit, Evict, Move, Shrink
from scheduling.engine.snapshot import FlavorResource, Snapshot
from scheduling.engine.state import State
from scheduling.engine.tree import queue_key


@dataclass(frozen=True, slots=True)
class LoanChange:
    """What a queue holds above its own quota of one column, without the edit and with it."""

    queue: str
    column: FlavorResource
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Eviction:
    """Who goes by the edit, for whom ("": for nobody), and the GPU-hours that are thrown away.

    ``pods``: how many pods of surplus, where the gang runs on without them; 0: all of it goes.
    ``moves``: it starts again elsewhere at once.
    """

    workload: str
    preemptor: str
    lost_gpu_hours: float
    pods: int = 0
    moves: bool = False

    @property
    def is_whole(self) -> bool:
        """Return whether it loses its place, and waits again."""
        return not self.pods and not self.moves


@dataclass(frozen=True, slots=True)
class Difference:
    """What the next cycle does otherwise because of the edit. Workloads by key, sorted.

    ``starts`` would not have started without it, ``waits`` would have. ``evicted`` would have
    stayed without it, ``spared`` would have been evicted. ``loans``: who borrows more or less
    once both cycles are through, by queue and column. ``shrunk`` runs on, but loses surplus that
    it would have kept; ``moved`` starts again elsewhere. ``evictions``: more of those who lose
    anything.
    """

    starts: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()
    loans: tuple[LoanChange, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    shrunk: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()


def what_if(before: Snapshot, after: Snapshot) -> Difference:
    """Return what the next cycle does otherwise in ``after`` than in ``before``.

    Costs two cycles; changes nothing.
    """
    first, then = State(before), State(after)
    without, edited = advance(first, before.now).moves, advance(then, after.now).moves
    started, starts = (_started(moves) for moves in (without, edited))
    lost, loses = (_losers(moves) for moves in (without, edited))
    worse = [one for key, one in sorted(loses.items()) if _is_worse(one, lost.get(key))]
    gone = {key for key, one in loses.items() if one.is_whole}
    return Difference(
        starts=tuple(sorted(starts - started)),
        waits=tuple(sorted(started - starts)),
        evicted=tuple(one.workload for one in worse if one.is_whole),
        spared=tuple(sorted(k for k, one in lost.items() if one.is_whole and k not in gone)),
        loans=tuple(_loans(first, then)),
        evictions=tuple(worse),
        shrunk=tuple(one.workload for one in worse if one.pods),
        moved=tuple(one.workload for one in worse if one.moves),
    )


def _started(moves: Iterable[Move]) -> set[str]:
    return {move.workload for move in moves if isinstance(move, Admit)}


def _losers(moves: Iterable[Move]) -> dict[str, Eviction]:
    """Return who loses its place or some pods, by key; of surplus the sum, for whom at last."""
    found: dict[str, Eviction] = {}
    for move in sorted((m for m in moves if isinstance(m, Evict | Shrink)), key=_whole_last):
        lost, preemptor, key = move.lost_gpu_hours, move.preemptor or "", move.workload
        if isinstance(move, Evict):
            found[key] = Eviction(key, preemptor, lost, moves=bool(move.moves_to))
        else:
            pods = sum(one.count for one in move.pods)
            before = found.get(key, Eviction(key, "", 0.0))
            found[key] = Eviction(key, preemptor, before.lost_gpu_hours + lost, before.pods + pods)
    return found


def _whole_last(move: Evict | Shrink) -> bool:
    return isinstance(move, Evict)


def _is_worse(after: Eviction, before: Eviction | None) -> bool:
    """Return whether more is lost than would have been: the whole, a place, more pods."""
    if before is None:
        return True
    rank = after.is_whole, after.moves, after.pods
    return rank > (before.is_whole, before.moves, before.pods)


def _loans(first: State, then: State) -> Iterable[LoanChange]:
    columns = first.books.staying.columns() | then.books.staying.columns()
    names = first.platform.cluster_queues.keys() | then.platform.cluster_queues.keys()
    for name in sorted(names):
        for column in sorted(columns):
            before, after = _borrowed(first, name, column), _borrowed(then, name, column)
            if before != after and not _owes_nobody(then, name, column):
                yield LoanChange(name, column, before, after)


def _owes_nobody(state: State, name: str, column: FlavorResource) -> bool:
    """Return whether a queue alone holds more than its own: that is debt, no loan given back."""
    ledger, key = state.books.staying, queue_key(name)
    node = ledger.nodes.get(key)
    return node is not None and node.parent is None and ledger.borrowed(key, column) > 0


def _borrowed(state: State, name: str, column: FlavorResource) -> int:
    """Return what work that stays holds above the queue's own quota; a queue alone owes nobody."""
    ledger, key = state.books.staying, queue_key(name)
    node = ledger.nodes.get(key)
    return 0 if node is None or node.parent is None else ledger.borrowed(key, column)
