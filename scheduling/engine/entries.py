"""How one workload gets in: at once, once those who leave have left, or once victims have.

At once also means: if those who were admitted in this cycle stand elsewhere. Victims are the last
resort: where it is allowed, running work that can start again elsewhere moves first.

The whole workload comes first in each of these ways, evictions included; only then are fewer
pods looked at, where some pod set is content with fewer: the largest number with which any of
the ways is open (``FORMAT.md`` 5.7). Nothing is changed here.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from scheduling.engine import partial
from scheduling.engine.books import within
from scheduling.engine.candidates import Candidate
from scheduling.engine.consolidation import Relocation
from scheduling.engine.movers import movable
from scheduling.engine.snapshot import Assignment, Claim, Workload
from scheduling.engine.state import State
from scheduling.engine.ways import Way


@dataclass(frozen=True, slots=True)
class Entry:
    """Where the workload is going to stand. ``ready``: now; else once others have left.

    ``moved``: where newcomers of this cycle must stand instead, by key. ``relocated``: where
    running work starts again that leaves for its sake.
    """

    assignments: tuple[Assignment, ...]
    ready: bool = False
    victims: tuple[Candidate, ...] = ()
    moved: Mapping[str, tuple[Assignment, ...]] = field(default_factory=dict)
    relocated: Mapping[str, tuple[Assignment, ...]] = field(default_factory=dict)

    @property
    def frees(self) -> bool:
        """Return whether somebody leaves for its sake."""
        return bool(self.victims or self.relocated)


def find_entry(
    state: State, asking: Workload, claim: Claim | None, protected: Collection[str]
) -> Entry | None:
    """Return the best way in, or None.

    Args:
        state: left as it was found.
        asking: what is asked for; of a grown copy, the further pods alone.
        claim: what is being kept for it, if anything; off the books meanwhile.
        protected: nobody of these may be evicted.

    Cost: where fewer pods do, one attempt for each doubling of those that may be missing.
    """

    def of_size(sized: Workload) -> Entry | None:
        sized = state.intern(sized)
        if over_ceiling(state, sized):
            return None
        way = state.chooser.choose(sized, protected)
        entry = _at_once(state, sized, None, way) or _closer(state, sized, way)
        return entry or _later(state, sized, protected, way)

    if claim is None and out_of_reach(state, asking):
        return None
    whole = state.intern(partial.reduced(asking, 0))
    if over_ceiling(state, whole):
        entry = _claimed(state, asking, claim)
    else:
        way = state.chooser.choose(whole, protected)
        entry = _at_once(state, whole, claim, way) or _claimed(state, asking, claim)
        entry = entry or _closer(state, whole, way) or _later(state, whole, protected, way)
    if entry is not None or not partial.reducible(asking):
        return entry
    if not of_size(partial.smallest(asking)):
        return None
    return partial.search(asking, of_size, in_slices=True)


def out_of_reach(state: State, asking: Workload) -> bool:
    """Return whether quota alone refuses, with all victims that there may be: the cheap answer.

    Never said of what fewer pods might get.
    """
    books, preemptor = state.books, state.preemptor
    queue = books.queue(asking)
    if queue is None or partial.reducible(asking):
        return False
    sides = books.coming if state.releasing else books.both
    for way in preemptor.ways.of(asking, queue):
        if within(sides, queue, way.usage) or preemptor.prospects.may_help(asking, queue, way):
            return False
    return True


def reach(state: State, asking: Workload) -> tuple[int, int] | None:
    """Return all that :func:`out_of_reach` depends on for work of one queue; None: it is not."""
    queue = state.books.queue(asking)
    if queue is None or partial.reducible(asking):
        return None
    return asking.priority, state.preemptor.ways.charge(asking, queue)


def over_ceiling(state: State, asking: Workload) -> bool:
    """Return whether the second queue that bounds the workload can never hold it."""
    if asking.ceiling_queue is None:
        return False
    never = state.explainer.impossible(asking)
    return any(blocker.facts.get("queue") == asking.ceiling_queue for blocker in never)


def _at_once(state: State, whole: Workload, claim: Claim | None, way: Way | None) -> Entry | None:
    """Stand where the claim is, if it is for all the pods; else wherever there is room."""
    books = state.books
    if claim is not None and books.can_stand(whole, claim.assignments, books.both):
        return Entry(claim.assignments, ready=True)
    assignments = state.assigner.assign(whole, books.both, way.pinned if way else None)
    return None if assignments is None else Entry(assignments, ready=True)


def _closer(state: State, whole: Workload, way: Way | None) -> Entry | None:
    """Stand where there would be room if newcomers of this cycle moved closer together.

    Not while reservations are aside: they may bind one of the newcomers.
    """
    if state.reservations.any_aside:
        return None
    seating = state.newcomers.make_room(whole, way.pinned if way else None)
    if seating is None:
        return None
    return Entry(seating.assignments, ready=True, moved=seating.moved)


def _claimed(state: State, asking: Workload, claim: Claim | None) -> Entry | None:
    """Stand on the claim, now or once its victims have left; with fewer pods, if it is so."""
    books = state.books
    if claim is None or not books.can_stand(asking, claim.assignments, books.coming):
        return None
    ready = books.can_stand(asking, claim.assignments, books.both)
    return Entry(claim.assignments, ready=ready)


def _later(
    state: State, whole: Workload, protected: Collection[str], way: Way | None
) -> Entry | None:
    """Wait for those who are leaving anyway; if they are too few, move others, or evict them."""
    if state.releasing:
        pinned = way.pinned if way else None
        assignments = state.assigner.assign(whole, state.books.coming, pinned)
        if assignments is not None:
            return Entry(assignments)
    relocation = _relocation(state, whole, protected, way)
    if relocation is not None:
        return Entry(relocation.assignments, relocated=relocation.moved)
    rescue = state.preemptor.find(whole, protected, ways=(way,) if way else None)
    return None if rescue is None else Entry(rescue.assignments, victims=rescue.victims)


def _relocation(
    state: State, whole: Workload, protected: Collection[str], way: Way | None
) -> Relocation | None:
    """Return whom to move so that it fits; like :func:`_closer` not with reservations aside."""
    queue = state.books.queue(whole)
    if state.platform.moving is None or queue is None or state.reservations.any_aside:
        return None
    every = (way,) if way else state.preemptor.ways.of(whole, queue)
    ways = state.consolidator.hopeful(whole, every)
    if not ways:
        return None
    return state.consolidator.find(whole, movable(state, whole, protected), ways, state.now)


def never(state: State, workload: Workload) -> bool:
    """Return whether no departure of others can ever let the workload start."""
    return state.explainer.never(state.intern(partial.smallest(state.asking(workload))))
