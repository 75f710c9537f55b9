"""Gangs that have lost pods with a node get them back before anybody of their priority.

What still runs stays where it is, and the whole gang keeps its quota, for a grace. Lost surplus
is given up at once. Where what is lost finds no room within the grace the gang leaves whole, and
waits again as old as it is; so does, at once, who wants no part of it replaced
(``Workload.mends``). Source: ``placement.md`` 1.1 (OURS), 6 (3), 6.1 T5.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from scheduling.engine.desk import Desk
from scheduling.engine.gangs import (
    Counts,
    counted,
    joined,
    minima,
    slice_size,
    stands,
    whole_parts,
    without,
)
from scheduling.engine.growth import beside
from scheduling.engine.ordering import queue_order
from scheduling.engine.parts import with_pods
from scheduling.engine.snapshot import Assignment, Workload
from scheduling.engine.terms import EvictionReason


class Mending:
    """The broken gangs of one cycle, the most urgent first."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._state = desk, desk.state
        broken = (self._state.workloads[key] for key in self._state.losses.works())
        self._line = deque(queue_order(work for work in broken if not self._is_shut(work)))

    def _is_shut(self, work: Workload) -> bool:
        """Return whether nothing may be decided in the queue of this work."""
        queue = self._state.platform.cluster_queues.get(work.queue or "")
        return queue is not None and bool(queue.inactive)

    def before(self, head: Workload) -> None:
        """Look at those that come before ``head``: of its priority, or of a higher one."""
        while self._line and self._line[0].priority >= head.priority:
            self._mend(self._line.popleft())

    def finish(self) -> None:
        """Look at the others."""
        while self._line:
            self._mend(self._line.popleft())

    def _mend(self, gang: Workload) -> None:
        state, desk = self._state, self._desk
        lost = state.losses.lost(gang, state.now)
        if not lost or gang.key in state.releasing or gang.key in state.replaced:
            return
        left = without(desk.holding(gang), lost)
        torn = _torn(gang, left)
        desk.work["broken"] += 1
        if not left or not gang.mends:
            desk.evict(gang, EvictionReason.NODE_FAILURES)
        elif stands(gang, counted(without(left, torn))):
            desk.lose(gang, joined(gang, lost, torn))
        else:
            with state.reservations.aside(self._more_urgent(gang)):
                self._bring_back(gang, lost, left)

    def _more_urgent(self, gang: Workload) -> list[str]:
        """Return for whom room is reserved that a broken gang may not take."""
        state = self._state
        return [k for k in state.reservations if state.workloads[k].priority > gang.priority]

    def _bring_back(
        self, gang: Workload, lost: tuple[Assignment, ...], left: tuple[Assignment, ...]
    ) -> None:
        """Let the gang have what it lost, or wait for it, or leave whole."""
        if self._refill(gang, lost, left):
            return
        if self._state.now >= self._state.losses.leaves_at(gang):
            self._desk.evict(gang, EvictionReason.NODE_FAILURES)
        else:
            self._keep_room(gang, lost, left)

    def _refill(
        self, gang: Workload, lost: tuple[Assignment, ...], left: tuple[Assignment, ...]
    ) -> bool:
        """Give back all that was lost, or at least what the gang needs to run."""
        everything, has = counted(self._desk.holding(gang)), counted(left)
        for counts in (everything, _needed(gang, everything, has)):
            more = {name: pods - has.get(name, 0) for name, pods in counts.items()}
            added = self._placed(gang, lost, left, more)
            if added is not None:
                self._desk.refill(gang, lost, left, added)
                return True
        return False

    def _placed(
        self,
        gang: Workload,
        lost: tuple[Assignment, ...],
        left: tuple[Assignment, ...],
        more: Counts,
    ) -> tuple[Assignment, ...] | None:
        """Return where further pods find room once those that are lost hold no quota."""
        state, piece = self._state, self._piece(gang, lost, left, more)
        with state.books.trial():
            state.books.leave(gang, lost)
            state.books.drop(gang, lost, (state.books.now,))
            return state.assigner.assign(piece, state.books.both)

    def _piece(
        self,
        gang: Workload,
        lost: Iterable[Assignment],
        left: Iterable[Assignment],
        more: Counts,
    ) -> Workload:
        gone = (replace(one, nodes={}) for one in lost)  # their domain binds nobody any more
        held = {**_by_role(gone), **_by_role(left)}
        piece = beside(gang, held, more, self._state.atlas)
        return self._state.intern(piece)

    def _keep_room(
        self, gang: Workload, lost: tuple[Assignment, ...], left: tuple[Assignment, ...]
    ) -> None:
        """Keep what room there is for it, for this cycle: nobody of its priority may take it."""
        state, sliced = self._state, {p.name for p in gang.pod_sets if slice_size(p) > 1}
        for one in lost:
            pods = one.count if one.pod_set in sliced else 1  # a slice is whole or is none
            piece = self._piece(gang, lost, left, {one.pod_set: pods})
            for _ in range(one.count // pods):
                with state.books.trial():
                    state.books.leave(gang, lost)
                    kept = state.assigner.assign(piece, state.books.coming)
                if kept is None:
                    break
                self._desk.keep_free(piece, kept)


def _by_role(assignments: Iterable[Assignment]) -> dict[str, Assignment]:
    return {assignment.pod_set: assignment for assignment in assignments}


def _torn(gang: Workload, left: Iterable[Assignment]) -> tuple[Assignment, ...]:
    """Return what is left of subgroups that are no longer whole."""
    sets = {p.name: p for p in gang.pod_sets if p.subgroups is not None}
    torn = []
    for one in left:
        parts = sets[one.pod_set].subgroups if one.pod_set in sets else None
        whole = parts is None or whole_parts(sets[one.pod_set], one.count) == one.count
        if parts is not None and not whole:
            torn.append(with_pods(one, one.count % parts.size))
    return tuple(torn)


def _needed(gang: Workload, everything: Counts, left: Counts) -> Counts:
    """Return with how many pods of each role the gang runs again; what is left of it stays."""
    least = minima(gang, everything)
    return {
        p.name: min(
            everything.get(p.name, 0),
            whole_parts(p, max(least[p.name], left.get(p.name, 0))),
        )
        for p in gang.pod_sets
    }
