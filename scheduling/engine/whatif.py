"""What an edit changes: the next cycles of two snapshots that differ by it, compared."""

from collections.abc import Iterable
from dataclasses import dataclass

from scheduling.engine.cycle import advance
from scheduling.engine.plan import Admit, Evict, Move
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
    """Who goes by the edit, for whom ("": for nobody), and the GPU-hours that are thrown away."""

    workload: str
    preemptor: str
    lost_gpu_hours: float


@dataclass(frozen=True, slots=True)
class Difference:
    """What the next cycle does otherwise because of the edit. Workloads by key, sorted.

    ``starts`` would not have started without it, ``waits`` would have. ``evicted`` would have
    stayed without it, ``spared`` would have been evicted. ``loans``: who borrows more or less
    once both cycles are through, by queue and column. ``evictions``: more of ``evicted``.
    """

    starts: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()
    loans: tuple[LoanChange, ...] = ()
    evictions: tuple[Eviction, ...] = ()


def what_if(before: Snapshot, after: Snapshot) -> Difference:
    """Return what the next cycle does otherwise in ``after`` than in ``before``.

    Costs two cycles; changes nothing.
    """
    first, then = State(before), State(after)
    without, edited = advance(first, before.now).moves, advance(then, after.now).moves
    started, starts = (_keys(moves, Admit) for moves in (without, edited))
    left, leaves = (_keys(moves, Evict) for moves in (without, edited))
    return Difference(
        starts=tuple(sorted(starts - started)),
        waits=tuple(sorted(started - starts)),
        evicted=tuple(sorted(leaves - left)),
        spared=tuple(sorted(left - leaves)),
        loans=tuple(_loans(first, then)),
        evictions=tuple(
            Eviction(move.workload, move.preemptor or "", move.lost_gpu_hours)
            for move in sorted(edited, key=lambda move: move.workload)
            if isinstance(move, Evict) and move.workload not in left
        ),
    )


def _keys(moves: Iterable[Move], kind: type[Admit] | type[Evict]) -> set[str]:
    return {move.workload for move in moves if isinstance(move, kind)}


def _loans(first: State, then: State) -> Iterable[LoanChange]:
    columns = first.books.staying.columns() | then.books.staying.columns()
    names = first.platform.cluster_queues.keys() | then.platform.cluster_queues.keys()
    for name in sorted(names):
        for column in sorted(columns):
            before, after = _borrowed(first, name, column), _borrowed(then, name, column)
            if before != after:
                yield LoanChange(name, column, before, after)


def _borrowed(state: State, name: str, column: FlavorResource) -> int:
    """Return what work that stays holds above the queue's own quota; a queue alone owes nobody."""
    ledger, key = state.books.staying, queue_key(name)
    node = ledger.nodes.get(key)
    return 0 if node is None or node.parent is None else ledger.borrowed(key, column)
