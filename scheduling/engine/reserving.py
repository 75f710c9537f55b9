"""To whom room is promised, where and when: the earliest that the ends of running work allow.

An end is known where a duration is declared or estimated. Who is late by some time is expected
to be late by as much again. Without known ends, once a gang has starved, work is expected to run
on for as long as it has run: so nodes are held as they empty, whichever they are, besides those
from which the youngest work stands in the way; never a fixed set. All of it is worked out anew
in each cycle. Source: ``decisions.md`` 4.10, ``placement.md`` 1.9, ``performance.md`` 5 (P11).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from scheduling.engine.books import within
from scheduling.engine.ordering import urgency
from scheduling.engine.outlook import Outlook, Start, known_end
from scheduling.engine.partial import smallest
from scheduling.engine.reservations import size, starves_at
from scheduling.engine.snapshot import Assignment, Reservation, Workload
from scheduling.engine.standing import standing
from scheduling.engine.state import State

MAX_ENDS = 4096  # running workloads whose ends are looked at: the first to end
SOONEST_S = 60.0  # nobody is guessed to end sooner
MAX_FORECASTS = 8  # gangs of one tree for which an earliest start is looked for in one cycle
Ends = Sequence[tuple[float, Workload]]
Works = Sequence[Workload]


class Forecast(NamedTuple):
    """A reservation to be made, and on whose ends what it promises rests."""

    reservation: Reservation
    relied: frozenset[str]


def end_of(work: Workload, now: float, *, guess: bool) -> float | None:
    """Return when running work is expected to end, never before ``now``; None: nobody knows.

    ``guess``: what has no known end runs on for as long as it has run.
    """
    assert work.admission is not None
    end = known_end(work)
    if end is None:
        return now + max(SOONEST_S, now - work.admission.admitted_at) if guess else None
    return end if end > now else now + (now - end)


def ends_of(works: Iterable[Workload], now: float, *, guess: bool) -> Ends:
    """Return the expected ends that there are, the first first; ties by key."""
    found = ((end_of(work, now, guess=guess), work) for work in works)
    known = ((end, work) for end, work in found if end is not None)
    return sorted(known, key=lambda pair: (pair[0], pair[1].key))[:MAX_ENDS]


def refresh(state: State) -> None:
    """Work out every reservation anew, the most urgent gang first; a ward that changes is due.

    Cost: for each, what :func:`forecast` costs.
    """
    table = state.reservations
    before = [one for one in map(table.lift, list(table)) if one is not None]
    before.sort(key=lambda one: urgency(state.workloads[one.workload]))
    for last in before:
        gang = state.workloads[last.workload]
        found = forecast(state, gang, last)
        kept = found is not None and _keep(state, gang, found)
        if found is None or not kept or _place(found.reservation) != _place(last):
            state.wards.touch(gang.queue)


def _keep(state: State, gang: Workload, found: "Forecast") -> bool:
    table, one = state.reservations, found.reservation
    return not table.rivals(gang, one.assignments) and table.keep(one, found.relied)


def _place(one: Reservation) -> tuple[object, ...]:
    return one.assignments, one.starts_at, one.promised


def give_turn(
    state: State, gang: Workload, started: Callable[[], Iterable[Workload]], *, timed: bool
) -> bool:
    """Reserve room for a gang that cannot start, if it is the first in its tree and pools.

    Whoever less urgent had the turn there loses it. ``started`` says who was admitted by now,
    ``timed`` whether the end of any of these is known.
    Returns whether an earliest start had to be looked for.
    """
    table = state.reservations
    if gang.key in table or not (timed or _is_time(state, gang)):
        return False
    if not _worth_it(state, gang) or _is_behind(state, gang):
        return False
    loose = [k for k in table if urgency(gang) < urgency(state.workloads[k])]
    lifted = [one for one in map(table.lift, loose) if one is not None]
    found = forecast(state, gang, None, started())
    if found is not None:
        _keep(state, gang, found)
    for one in lifted:
        if gang.key not in table.rivals(state.workloads[one.workload], one.assignments):
            table.keep(one)
    return True


def _worth_it(state: State, gang: Workload) -> bool:
    """Return whether there may be a reservation at all: a gang, large enough, quota willing."""
    patience, queue = state.platform.patience, state.books.queue(gang)
    if queue is None or gang.replaces or size(gang) < patience.minimum:
        return False
    return _quota_suffices(state, gang)


def _is_time(state: State, gang: Workload) -> bool:
    """Return whether some end is known, or the gang has starved."""
    starves = starves_at(state.platform.patience, gang)
    return state.running.timed > 0 or (starves is not None and starves <= state.now)


def _quota_suffices(state: State, gang: Workload) -> bool:
    """Return whether quota is no obstacle by itself: its queue's own, or to be had by borrowing.

    What the queue's own work uses may be waited for.
    """
    books, queue = state.books, state.books.queue(gang)
    assert queue is not None
    ledger, own = books.soon.ledger, state.running.total(queue.name)
    return any(
        all(
            n <= max(ledger.promised(queue, fr), ledger.available(queue, fr) + own[fr])
            for fr, n in way.usage.items()
        )
        for way in state.preemptor.ways.of(_smallest(state, gang), queue)
    )


def _is_behind(state: State, gang: Workload) -> bool:
    """Return whether somebody more urgent has the turn in every pool that the gang could use."""
    table, queue = state.reservations, state.books.queue(gang)
    assert queue is not None
    first = [k for k in table if urgency(state.workloads[k]) < urgency(gang)]
    taken = {t for k in first for t in table.turns_of(k)}
    if not taken:
        return False
    root = state.books.soon.ledger.root(queue)
    ways = state.preemptor.ways.of(_smallest(state, gang), queue)
    return all(any((root, fr.flavor) in taken for fr in way.usage) for way in ways)


def _smallest(state: State, gang: Workload) -> Workload:
    return state.intern(smallest(state.asking(gang)))


def forecast(
    state: State, gang: Workload, last: Reservation | None, started: Iterable[Workload] = ()
) -> Forecast | None:
    """Return the earliest start of a gang that waits; None: there is none.

    ``last``: what was reserved for it up to now, off the books meanwhile; a promise is kept as
    long as it can be. Cost: twice the running work of its ward, and a placement for each halving
    of it.
    """
    if not _worth_it(state, gang):
        return None
    asked, now = _smallest(state, gang), state.now
    near = state.wards.beside(gang.queue)
    works = [*state.running_near(gang), *(work for work in started if work.queue in near)]
    found = None if last is None else _remembered(state, gang, asked, works)
    if found is None:
        found = _search(state, gang, asked, works, last)
        if last is not None:
            _remember(state, gang, asked, works, found)
    if found is None or not any(assignment.nodes for assignment in found[0].assignments):
        return None
    start, promised = found
    last = last or Reservation(gang.key, (), now, promised, since=now, counted_at=now)
    made = replace(last, assignments=start.assignments, starts_at=start.at, promised=promised)
    ends = ((known_end(work), work.key) for work in works) if promised else ()
    return Forecast(made, frozenset(k for end, k in ends if end is not None and end <= start.at))


def _search(
    state: State, gang: Workload, asked: Workload, works: Works, last: Reservation | None
) -> tuple[Start, bool] | None:
    """Return the earliest start, and whether it can be promised; None: there is none."""
    known = ends_of(works, state.now, guess=False)
    start = _earliest(state, asked, known)
    if last is not None and last.promised and (start is None or start.at > last.starts_at):
        start = _still(state, asked, last, known) or start
    if start is not None:
        return start, True
    starves = starves_at(state.platform.patience, gang)
    if starves is None or state.now < starves:
        return None
    start = _earliest(state, asked, ends_of(works, state.now, guess=True))
    return None if start is None else (start, False)


def _remember(
    state: State,
    gang: Workload,
    asked: Workload,
    works: Works,
    found: tuple[Start, bool] | None,
) -> None:
    """Keep what was found if the order of the ends before it can only change with the work."""
    if found is None or found[0].after is None or not _in_order(state, works, found[1]):
        return
    start, promised = found
    assert start.after is not None
    assert start.after.admission is not None
    if promised or start.after.admission.admitted_at + SOONEST_S < state.now:
        outlook = Outlook(asked, _around(state), start, state.atlas.ground, promised=promised)
        state.running.outlooks[gang.key] = outlook


def _remembered(
    state: State, gang: Workload, asked: Workload, works: Works
) -> tuple[Start, bool] | None:
    """Return what a search would find again; None: that is not known."""
    outlook = state.running.outlooks.pop(gang.key, None)
    if outlook is None or not outlook.holds or outlook.pod_sets is not asked.pod_sets:
        return None
    same = outlook.around == _around(state)
    if not same or not _in_order(state, works, outlook.promised):
        return None
    state.running.outlooks[gang.key] = outlook
    start = outlook.start
    assert start.after is not None
    at = end_of(start.after, state.now, guess=not outlook.promised)
    assert at is not None
    return start._replace(at=at), outlook.promised


def _in_order(state: State, works: Works, promised: bool) -> bool:
    """Return whether time alone cannot change the order in which the work is expected to end."""
    if len(works) > MAX_ENDS:
        return False
    if not promised:
        return state.running.timed == 0
    return all(end is None or end > state.now for end in map(known_end, works))


def _around(state: State) -> tuple[object, ...]:
    """Return what else a search depends on: what is kept for others, and how nodes are rated."""
    views = state.atlas.views
    return state.claims.standing(), state.reservations.charged(), views.popularity


def _earliest(state: State, asked: Workload, ends: Ends) -> Start | None:
    """Return when and where the gang first fits, as work leaves in the order of ``ends``."""
    state.forecasts += 1
    place = _place_now(state, asked)
    if place is not None:
        return Start(state.now, place)
    if not ends:
        return None
    with state.books.trial():
        _leave(state, ends)
        if _place_now(state, asked) is None:
            return None
    return _halve(state, asked, ends)


def _halve(state: State, asked: Workload, ends: Ends) -> Start | None:
    """Return the first of ``ends`` with which the gang fits; it does once all have left."""
    middle = (len(ends) + 1) // 2
    with state.books.trial():
        quota = len(ends) == 1 and _has_quota(state, asked)
        _leave(state, ends[:middle])
        place = _place_now(state, asked)
        if place is not None and len(ends) == 1:
            holes = tuple(state.books.soon.room.holes) if quota else ()
            return Start(ends[0][0], place, ends[0][1], holes)
        if place is None:
            return _halve(state, asked, ends[middle:]) if ends[middle:] else None
    return _halve(state, asked, ends[:middle])


def _has_quota(state: State, asked: Workload) -> bool:
    books, queue = state.books, state.books.queue(asked)
    assert queue is not None
    ways = state.preemptor.ways.of(asked, queue)
    return any(within(books.coming, queue, way.usage) for way in ways)


def _still(state: State, asked: Workload, last: Reservation, ends: Ends) -> Start | None:
    """Return what was promised, if it still holds."""
    with state.books.trial():
        _leave(state, [pair for pair in ends if pair[0] <= last.starts_at])
        holds = state.books.can_stand(asked, last.assignments, state.books.coming)
    return Start(last.starts_at, last.assignments) if holds else None


def _leave(state: State, ends: Ends) -> None:
    for _, work in ends:
        state.books.drop(work, standing(work), state.books.coming)


def _place_now(state: State, asked: Workload) -> tuple[Assignment, ...] | None:
    return state.assigner.assign(asked, state.books.coming)
