"""Consolidation: running work moves, so that a blocked gang fits, and nobody is pushed out.

For a gang within its own quota that finds no nodes though enough is free, running gangs of no
higher priority leave where they stand, and the nodes on which they start again are found in the
same plan: all of them or nobody moves. Source: ``placement.md`` 1.6 (Consolidation), 6 (22).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from scheduling.engine.books import Books, within
from scheduling.engine.domain_victims import keys_by_domain
from scheduling.engine.flavors import Assigner, Option
from scheduling.engine.moving import Moving
from scheduling.engine.reseating import Reseating, Seats
from scheduling.engine.snapshot import Assignment, PodSet, Workload
from scheduling.engine.stage import SoonStage
from scheduling.engine.standing import standing
from scheduling.engine.tenure import gpus_held, lost_gpu_hours
from scheduling.engine.tree import QuotaKey
from scheduling.engine.usage import is_gpu
from scheduling.engine.ways import Way

MAX_SEARCHES = 8  # gangs of one tree for which movers are looked for in one cycle
MAX_WAYS = 4  # flavor combinations looked at for one gang
MAX_SEATINGS = 512  # placements tried for one gang


@dataclass(frozen=True, slots=True)
class Relocation:
    """Where the gang is going to stand, and where those start again that move for it."""

    assignments: tuple[Assignment, ...]
    moved: Seats


class Consolidator:
    """Looks for gangs to move, in the ``soon`` account; leaves the books as it found them."""

    def __init__(self, books: Books, assigner: Assigner, reseating: Reseating) -> None:
        self._books, self._assigner, self._reseating = books, assigner, reseating
        self._stage, self._ledger = SoonStage(books), books.soon.ledger
        self._searches: Counter[QuotaKey] = Counter()  # by root, in this cycle
        self._seatings = 0
        self.searched = 0

    def open(self) -> None:
        """Begin a cycle."""
        self._searches.clear()

    def hopeful(self, gang: Workload, ways: Iterable[Way]) -> list[Way]:
        """Return the ways for which movers may be looked for; to ask for some counts as a search.

        None where fewer GPUs are free than the gang asks for: everybody keeps what it has. None
        for a grown copy either: what it takes over would have to stay.
        """
        queue = self._books.queue(gang)
        if self._books.snapshot.moving is None or queue is None or gang.replaces:
            return []
        if not 0 < _gpus_of(gang) <= self._free_gpus(gang):
            return []
        entitled = [way for way in ways if self._is_entitled(queue, way)]
        root = self._ledger.root(queue)
        self._searches[root] += 1 if entitled else 0
        return entitled[:MAX_WAYS] if self._searches[root] <= MAX_SEARCHES else []

    def find(
        self, gang: Workload, movable: Sequence[Workload], ways: Iterable[Way], now: float
    ) -> Relocation | None:
        """Return whom to move, the cheapest of the first of ``ways`` that can be; or None.

        ``movable``: running work that may be moved for the gang; ``ways``: the hopeful ones.
        Cost: at most ``MAX_SEATINGS`` placements for each way, and one for each mover.
        """
        moving = self._books.snapshot.moving
        assert moving is not None
        for way in ways:
            search = _Search(self, gang, way.pinned, _Budget.of(moving, gang, now))
            found = [one for works in search.groups(movable) if (one := search.run(works))]
            if found:
                return min(found, key=lambda one: search.price(one.moved))
        return None

    def _is_entitled(self, queue: QuotaKey, way: Way) -> bool:
        """Return whether the gang fits in quota, and in that of its queue or of a subtree."""
        ledger = self._ledger
        if not within(self._books.coming, queue, way.usage):
            return False
        top = ledger.height(ledger.root(queue))
        found = (ledger.borrow_level(queue, fr, amount) for fr, amount in way.usage.items())
        return all(level == 0 or level < top for level in found)

    def _free_gpus(self, gang: Workload) -> int:
        room = self._books.soon.room
        names = {name for p in gang.pod_sets for name in p.requests if is_gpu(name)}
        return sum(max(0, room.free(node, r)) for node in self._books.atlas.nodes for r in names)

    # -- for one search -------------------------------------------------------------------

    def place(self, gang: Workload, pinned: Mapping[str, Option]) -> tuple[Assignment, ...] | None:
        """Return where the gang fits as the books stand."""
        return self._assigner.assign(gang, self._books.coming, pinned)

    def seats(
        self, gang: Workload, alone: tuple[Assignment, ...], movers: Iterable[Workload]
    ) -> Seats | None:
        """Return where all stand together once these are off the books."""
        flavors = {gang.key: alone, **{work.key: standing(work) for work in movers}}
        guests = [gang, *(replace(work, admission=None) for work in movers)]
        coming = self._books.coming
        return self._reseating.seat_all(guests, flavors, coming, self._afford)

    def _afford(self, seatings: int) -> bool:
        self._seatings += seatings
        self.searched += seatings
        return self._seatings <= MAX_SEATINGS

    def afresh(self) -> None:
        """Begin to count what one search costs."""
        self._seatings = 0

    @property
    def books(self) -> Books:
        """Return the books on which movers are tried out."""
        return self._books

    @property
    def stage(self) -> SoonStage:
        """Return where movers are taken away and put back."""
        return self._stage


@dataclass(frozen=True, slots=True)
class _Budget:
    """How much may be moved for one gang."""

    gangs: int
    gpus: int
    lost_gpu_hours: float | None
    now: float

    @classmethod
    def of(cls, moving: Moving, gang: Workload, now: float) -> "_Budget":
        return cls(moving.gangs, moving.times * _gpus_of(gang), moving.lost_gpu_hours, now)

    def allows(self, works: Sequence[Workload]) -> bool:
        """Return whether these may be moved together."""
        if len(works) > self.gangs or sum(map(gpus_held, works)) > self.gpus:
            return False
        limit = self.lost_gpu_hours
        return limit is None or sum(lost_gpu_hours(work, self.now) for work in works) <= limit


class _Search:
    """One gang on certain flavors, and whom to move for it."""

    def __init__(
        self,
        desk: Consolidator,
        gang: Workload,
        pinned: Mapping[str, Option],
        budget: _Budget,
    ) -> None:
        self._desk, self._gang, self._pinned, self._budget = desk, gang, pinned, budget
        self._works: dict[str, Workload] = {}
        desk.afresh()

    def groups(self, movable: Sequence[Workload]) -> Iterator[list[Workload]]:
        """Yield those to try: all, or those in one domain of a level that is required."""
        if not self._possible(movable):
            return
        order = self._in_order(movable)
        self._works = {work.key: work for work in order}
        first = max(self._gang.pod_sets, key=_gpus_each)
        desk, option = self._desk, self._pinned[first.name]
        domains = keys_by_domain(desk.books.atlas, first, option, order)
        for keys in domains:
            yield [work for work in order if work.key in keys]
        yield order

    def _possible(self, movable: Iterable[Workload]) -> bool:
        """Return whether the gang would fit with all of them gone: cheap way out."""
        with self._desk.stage.trial():
            for work in movable:
                self._desk.stage.remove(work)
            return self._desk.place(self._gang, self._pinned) is not None

    def run(self, works: Iterable[Workload]) -> Relocation | None:
        """Take one after the other away until the gang fits, and all of them find a place."""
        taken: list[Workload] = []
        with self._desk.stage.trial():
            for work in works:
                if not self._budget.allows([*taken, work]):
                    continue
                self._desk.stage.remove(work)
                taken.append(work)
                seats = self._seats(taken)
                if seats is not None:
                    found = self._trimmed(taken, seats)
                    return found if found.moved else None
        return None

    def _seats(self, taken: Sequence[Workload]) -> Seats | None:
        alone = self._desk.place(self._gang, self._pinned)
        return None if alone is None else self._desk.seats(self._gang, alone, taken)

    def _trimmed(self, taken: Sequence[Workload], seats: Seats) -> Relocation:
        """Let everybody stay who can, the last one first; those are off the books."""
        going, stage = list(taken), self._desk.stage
        for work in reversed(taken):
            with stage.trial() as attempt:
                stage.put_back(work)
                others = [one for one in going if one is not work]
                fewer = self._seats(others)
                if fewer is not None:
                    going, seats = others, fewer
                    attempt.keep()
        moved = {w.key: seats[w.key] for w in going if seats[w.key] != standing(w)}
        return Relocation(seats[self._gang.key], moved)

    def _in_order(self, movable: Iterable[Workload]) -> list[Workload]:
        """Return them in the order in which they are tried: where moving brings most for least."""
        by_node: dict[str, list[Workload]] = {}
        for work in sorted(movable, key=self._cost):
            for node in sorted({node for one in standing(work) for node in one.nodes}):
                by_node.setdefault(node, []).append(work)
        gains = self._gains(by_node)

        def turn(node: str) -> tuple[float, float, str]:
            gpus, lost, _ = zip(*map(self._cost, by_node[node]), strict=True)
            return sum(gpus) / gains[node], sum(lost) / gains[node], node

        useful = sorted((node for node in by_node if gains[node]), key=turn)
        found = {work.key: work for node in useful for work in by_node[node]}
        rest = {work.key: work for works in by_node.values() for work in works}
        return list({**found, **rest}.values())

    def _cost(self, work: Workload) -> tuple[int, float, str]:
        return gpus_held(work), lost_gpu_hours(work, self._budget.now), work.key

    def _gains(self, by_node: Mapping[str, Sequence[Workload]]) -> dict[str, int]:
        """Return how many more pods of the largest kind each node takes without its movers."""
        stage, room = self._desk.stage, self._desk.books.soon.room
        largest = max(self._gang.pod_sets, key=_gpus_each)
        before = {node: max(0, room.fitting(node, largest)) for node in by_node}
        with stage.trial():
            for work in {w.key: w for works in by_node.values() for w in works}.values():
                stage.remove(work)
            return {n: max(0, room.fitting(n, largest)) - before[n] for n in by_node}

    def price(self, moved: Seats) -> tuple[int, float, list[str]]:
        """Return what moving these costs: GPUs, progress, and at last their keys."""
        works = [self._works[key] for key in moved]
        lost = sum(lost_gpu_hours(work, self._budget.now) for work in works)
        return sum(map(gpus_held, works)), lost, sorted(moved)


def _gpus_each(pod_set: PodSet) -> int:
    return sum(amount for name, amount in pod_set.requests.items() if is_gpu(name))


def _gpus_of(gang: Workload) -> int:
    return sum(_gpus_each(pod_set) * pod_set.count for pod_set in gang.pod_sets)
