"""Surplus: what gangs ask for above their minima, added once nobody's minimum fits any more.

Piece by piece, in the order in which the fairness of each tree, priority and age put the gangs;
it must fit beside everybody and every claim, and evicts nobody. A gang that has only just
started in this cycle is put down anew where its larger form does not fit around the smaller.
Source: ``placement.md`` 1.1 (not-ready before ready, surplus never starves), 6 (12, 38).
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from scheduling.engine.contest import Contest
from scheduling.engine.desk import Desk
from scheduling.engine.gangs import (
    Counts,
    counted,
    next_steps,
    wanted,
    with_counts,
)
from scheduling.engine.gates import shut
from scheduling.engine.growth import beside
from scheduling.engine.parts import leaving_key
from scheduling.engine.shapes import form_of
from scheduling.engine.snapshot import Assignment, Workload
from scheduling.engine.state import State

MAX_PIECES = 100_000  # pieces tried in one cycle


def add_surplus(desk: Desk) -> None:
    """Let gangs have more of the pods that they ask for, as far as there is room.

    Cost: a placement for each piece; a gang that nobody competes with is filled in
    O(log pieces) placements.
    """
    lines = line_up(desk)
    if not lines:
        return
    heads = Contest(desk.state)
    waiting = sum(map(len, lines.values()))
    passed: set[str | None] = set()  # queues whose first gang found nothing
    asks: dict[str, Workload] = {}
    for line in lines.values():
        _offer(desk, heads, line, asks)
    while (ask := heads.pop()) is not None and desk.work["pieces"] < MAX_PIECES:
        gang = asks.pop(ask.key)
        line = lines[gang.queue or ""]
        served = _add(desk, gang, alone=waiting == 1)
        if not served and gang.queue not in passed:
            served = _wait(desk, gang)
        if not served:
            passed.add(gang.queue)
        if not served or not lacks(desk, gang):
            line.popleft()
            waiting -= 1
        heads.stir(desk.stirred())
        _offer(desk, heads, line, asks)


def next_piece(state: State, gang: Workload, held: tuple[Assignment, ...]) -> Workload:
    """Return the piece that is added next to a gang that stands on ``held``, as waiting work."""
    name, pods = next_steps(gang, counted(held))[0]
    return _piece(state, gang, held, {name: pods})


def line_up(desk: Desk) -> dict[str, deque[Workload]]:
    """Return the gangs that lack pods by queue, in order, where something has changed."""
    state, lines = desk.state, dict[str, deque[Workload]]()
    touched = {None, *state.wards.touched()}
    works = (state.workloads[key] for key in {*state.lacking, *desk.started()})
    gangs = [w for w in works if state.may_lack(w) and w.queue in touched and lacks(desk, w)]
    for gang in sorted(gangs, key=lambda gang: _precedence(state, gang)):
        if _may_grow(state, gang) and _is_calm(desk, gang):
            lines.setdefault(gang.queue or "", deque()).append(gang)
    return lines


def _precedence(state: State, gang: Workload) -> tuple[tuple[float, ...], float, str]:
    return state.doors.precedence(form_of(gang)), gang.created_at, gang.key


def _may_grow(state: State, gang: Workload) -> bool:
    """Return whether the queue lets its work have more: it is open, and no strict head waits."""
    if gang.blocked:  # its local queue gives nothing new
        return False
    if gang.queue is None:
        return True
    queue = gang.queue
    head = state.workloads.get(state.strict.get(queue, ""))
    if head is not None and head.admission is None and head.priority >= gang.priority:
        return False
    return shut(state.platform, state.circular, queue) is None


def _is_calm(desk: Desk, gang: Workload) -> bool:
    """Return whether nothing of the gang has been lost, leaves, or is about to be replaced."""
    state, keys = desk.state, {gang.key, leaving_key(gang.key)}
    leaves = not keys.isdisjoint(state.releasing)
    return not leaves and gang.key not in state.replaced and gang.key not in state.losses


def lacks(desk: Desk, gang: Workload) -> bool:
    """Return whether a gang has fewer pods than it asks for, those counted that it waits for."""
    return counted(desk.having(gang)) != wanted(gang)


def _offer(desk: Desk, heads: Contest, line: deque[Workload], asks: dict[str, Workload]) -> None:
    if line:
        gang = line[0]
        ask = next_piece(desk.state, gang, desk.having(gang))
        asks[ask.key] = gang
        heads.offer(ask)


def _wait(desk: Desk, gang: Workload) -> bool:
    """Keep for it what is being left already, where the tree levels.

    Else others, who hold more, would take a part of what was taken for this one again and again.
    """
    state, queue = desk.state, desk.state.books.queue(gang)
    if queue is None or not state.releasing or not state.regime.levels(queue):
        return False
    piece = next_piece(state, gang, desk.having(gang))
    found = state.assigner.assign(piece, state.books.coming)
    if found is not None:
        desk.await_(gang, piece, found)
    return found is not None


def _add(desk: Desk, gang: Workload, *, alone: bool) -> bool:
    """Add what fits next; with nobody else waiting as much as fits. Returns whether any did."""
    held = desk.holding(gang)
    if gang.key in desk.awaited:
        return False
    if alone:
        return _add_most(desk, gang, held)
    for name, pods in next_steps(gang, counted(held)):
        if _add_counts(desk, gang, held, {name: pods}):
            return True
    return False


def _add_most(desk: Desk, gang: Workload, held: tuple[Assignment, ...]) -> bool:
    """Add the longest run of pieces that fits; it is assumed that fewer fit where more do."""
    runs = list(_runs(gang, counted(held)))
    tried: dict[int, bool] = {}

    def too_many(index: int) -> bool:
        with desk.state.books.trial():
            tried[index] = _place(desk, gang, held, runs[index]) is not None
        return not tried[index]

    most = bisect_left(range(len(runs)), True, key=too_many)
    if most and _add_counts(desk, gang, held, runs[most - 1]):
        return True
    steps = next_steps(gang, counted(held))[1:]
    return any(_add_counts(desk, gang, held, {name: pods}) for name, pods in steps)


def _runs(gang: Workload, there: Counts) -> Iterator[Counts]:
    """Yield what has been added after one piece, two, three, and so on."""
    before = dict(there)
    while steps := next_steps(gang, there):
        name, pods = steps[0]
        there = {**there, name: there.get(name, 0) + pods}
        yield {n: there[n] - before.get(n, 0) for n in there if there[n] > before.get(n, 0)}


def _add_counts(
    desk: Desk, gang: Workload, held: tuple[Assignment, ...], more: Mapping[str, int]
) -> bool:
    found = _place(desk, gang, held, more)
    if found is None:
        return False
    desk.add(gang, *found)
    return True


def _place(
    desk: Desk, gang: Workload, held: tuple[Assignment, ...], more: Mapping[str, int]
) -> tuple[tuple[Assignment, ...], tuple[Assignment, ...]] | None:
    """Return what leaves and what comes; a gang that starts only now may be put down anew."""
    state = desk.state
    desk.work["pieces"] += 1
    piece = _piece(state, gang, held, more)
    added = state.assigner.assign(piece, state.books.both)
    if added is not None:
        return (), added
    if gang.key not in desk.started():
        return None
    has = counted(held)
    counts = {name: has.get(name, 0) + more.get(name, 0) for name in wanted(gang)}
    whole = state.intern(with_counts(gang, counts))
    with state.books.trial():
        state.books.leave(gang, held)
        state.books.drop(gang, held, (state.books.now,))
        anew = state.assigner.assign(whole, state.books.both)
    return None if anew is None else (held, anew)


def _piece(
    state: State, gang: Workload, held: Iterable[Assignment], more: Mapping[str, int]
) -> Workload:
    """Return further pods of a gang as waiting work."""
    return state.intern(beside(gang, {one.pod_set: one for one in held}, more, state.atlas))
