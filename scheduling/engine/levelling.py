"""Surplus of others, up to the fair share: where a tree says ``reclaim_to: fair_share``.

Once nothing more fits, a gang that lacks pods takes surplus from queues of its tree that would not
hold less than its own then: piece by piece, who holds least first. What it took comes free later,
and goes to whoever holds least then, which is that gang. Nothing is claimed, for a gang that runs
waits for nothing; those who start come before it. Source: ``placement.md`` 6 (27), 6.1 T4.
"""

from collections.abc import Sequence

from scheduling.engine.contest import Contest
from scheduling.engine.desk import Desk
from scheduling.engine.snapshot import Workload
from scheduling.engine.surplus import lacks, line_up, next_piece

MAX_PIECES = 1_000  # pieces for which surplus is looked for in one cycle


def level_surplus(desk: Desk) -> None:
    """Let gangs take surplus of others, where their tree levels.

    Cost: a search for victims for each piece.
    """
    state = desk.state
    queues = state.platform.cluster_queues
    lines = {q: line for q, line in line_up(desk).items() if q in queues and _levels(desk, line)}
    if lines:
        _Levelling(desk).run({queue: list(line) for queue, line in lines.items()})


def _levels(desk: Desk, line: Sequence[Workload]) -> bool:
    queue = desk.state.books.queue(line[0])
    return queue is not None and desk.state.regime.levels(queue)


class _Levelling:
    """The gangs of one cycle that take surplus, with what they are going to have."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._heads = desk, Contest(desk.state)
        self._asks: dict[str, Workload] = {}

    def run(self, lines: dict[str, list[Workload]]) -> None:
        """Go on until nobody finds a piece any more."""
        for line in lines.values():
            self._offer(line)
        work = self._desk.work
        while (ask := self._heads.pop()) is not None and work["levelled"] < MAX_PIECES:
            work["levelled"] += 1
            gang = self._asks.pop(ask.key)
            line = lines[gang.queue or ""]
            if not self._take(gang, ask):
                line.clear()  # those behind it would take what then comes back to others
            elif not lacks(self._desk, gang):
                line.pop(0)
            self._heads.stir(self._desk.stirred())
            self._offer(line)

    def _offer(self, line: list[Workload]) -> None:
        if line:
            ask = next_piece(self._desk.state, line[0], self._desk.having(line[0]))
            self._asks[ask.key] = line[0]
            self._heads.offer(ask)

    def _take(self, gang: Workload, piece: Workload) -> bool:
        """Keep for the rest of the cycle what is leaving anyway; only else take from others."""
        state = self._desk.state
        found = state.assigner.assign(piece, state.books.coming)
        if found is None:
            protected = state.claims.protected_from(gang.key) | self._desk.shielded
            rescue = state.preemptor.level(piece, protected)
            if rescue is None:
                return False
            self._desk.make_room(gang, rescue.victims)
            found = rescue.assignments
        self._desk.await_(gang, piece, found)
        return True
