"""Reservations: room kept for the first blocked gang of a tree and a pool of nodes.

What a gang is going to take of its nodes is charged to ``soon`` whole, also where running work
still stands: nobody gets there who is bound by it. Of quota, what is free now is charged. Bound
is everybody of no higher priority; but where a time was promised, not who ends before it
(backfill), nor who is older and has waited very long, nor who stays within what its own queue was
promised while the gang would need more than that. Source: ``decisions.md`` 4.10,
``placement.md`` 1.9.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from itertools import repeat

from scheduling.engine.books import Charge
from scheduling.engine.ordering import urgency
from scheduling.engine.patience import Patience
from scheduling.engine.snapshot import (
    Assignment,
    Memory,
    Reservation,
    Workload,
)
from scheduling.engine.tree import QuotaKey
from scheduling.engine.usage import is_gpu, paired
from scheduling.engine.ways import Ways

Turn = tuple[QuotaKey, str]  # a cohort tree and a flavor with nodes: one gang at a time


def size(workload: Workload) -> int:
    """Return how large a gang is: its GPUs, or its pods where it asks for none."""
    gpus = sum(
        amount * pod_set.count
        for pod_set in workload.pod_sets
        for resource, amount in pod_set.requests.items()
        if is_gpu(resource)
    )
    return gpus or sum(pod_set.count for pod_set in workload.pod_sets)


def starves_at(patience: Patience, workload: Workload) -> float | None:
    """Return from when nodes that empty are held for the workload; None: never."""
    if patience.after_s is None or size(workload) < patience.minimum:
        return None
    return workload.created_at + patience.after_s


def elder_from(patience: Patience, workload: Workload) -> float:
    """Return from when the workload lets no younger gang go first."""
    return workload.created_at + patience.elders_after_s


_NOTHING_ASIDE = nullcontext()


def idle_gpu_hours(one: Reservation, now: float) -> float:
    """Return how much a reservation has held idle up to ``now``: a cost of its gang's team."""
    more = one.idle_gpus * max(0.0, now - one.counted_at)
    return (one.idle_gpu_seconds + more) / 3600.0


class Reservations:
    """The reservations in force, charged to the ``soon`` account.

    ``workloads`` is the live table of all work by key; ``asking`` says for which pods a workload
    needs room.
    """

    def __init__(
        self,
        ways: Ways,
        workloads: Mapping[str, Workload],
        asking: Callable[[Workload], Workload],
    ) -> None:
        self._ways, self._books = ways, ways.books
        self._workloads, self._asking = workloads, asking
        self._table: dict[str, Reservation] = {}
        self.any_aside = False  # for somebody whom they do not bind
        self._quota: dict[str, Charge] = {}  # what of it is charged, by workload
        self._relied: dict[str, frozenset[str]] = {}  # on whose ends a promise of quota rests

    def __contains__(self, key: str) -> bool:
        return key in self._table

    def __iter__(self) -> Iterator[str]:
        """Yield the gangs for which room is reserved, sorted."""
        return iter(sorted(self._table))

    def __getitem__(self, key: str) -> Reservation:
        return self._table[key]

    def __bool__(self) -> bool:
        return bool(self._table)

    def restore(self, memory: Memory) -> None:
        """Take over what an earlier cycle remembered; what no longer holds ends at once."""
        for reservation in sorted(memory.reservations, key=lambda one: one.workload):
            self.keep(reservation)

    def standing(self) -> tuple[Reservation, ...]:
        """Return the reservations for the next cycle."""
        return tuple(one for _, one in sorted(self._table.items()))

    def charged(self) -> tuple[tuple[str, tuple[Assignment, ...], Charge], ...]:
        """Return what is kept for whom, of nodes and of quota."""
        return tuple((k, one.assignments, self._quota[k]) for k, one in self._table.items())

    def waiting_in(self, queue: str) -> list[str]:
        """Return the gangs of one queue for which room is reserved, sorted."""
        return sorted(key for key in self._table if self._workloads[key].queue == queue)

    def keep(self, reservation: Reservation, relied: frozenset[str] | None = None) -> bool:
        """Put a reservation on the books, unless its gang started, changed or may not start.

        ``relied``: on whose ends a promise of it rests; None: as before.
        """
        workload = self._workloads.get(reservation.workload)
        if workload is None or not self._may_wait(workload, reservation):
            return False
        books, queue = self._books, self._books.queue(workload)
        assert queue is not None
        charge = books.charge(workload, reservation.assignments)
        ledger = books.soon.ledger
        most = dict(books.charge(workload, self._usable(workload, reservation)))
        free = [
            (fr, min(most.get(fr, 0), max(0, ledger.available(queue, fr)))) for fr, _ in charge
        ]
        for fr, amount in free:
            ledger.reserve(queue, fr, amount)
        books.soon.room.stand(workload, reservation.assignments)
        self._table[workload.key], self._quota[workload.key] = reservation, tuple(free)
        if relied is not None:
            self._relied[workload.key] = relied if tuple(free) != charge else frozenset()
        return True

    def _usable(self, workload: Workload, one: Reservation) -> tuple[Assignment, ...]:
        """Return the pods for which quota is kept: where it is promised, all of them.

        Else nodes are held as they empty, and quota with them, for the pods that have room on
        them by now: more of it would stand idle for as long as nodes take to empty.
        """
        if one.promised:
            return one.assignments
        room, found = self._books.now.room, []
        for pod_set, assignment in paired(workload, one.assignments):
            there = ((n, p) for n, p in assignment.nodes.items() if n in room.ground.numbers)
            fits = (min(p, room.fitting(n, pod_set)) for n, p in there)
            pods = sum(map(max, fits, repeat(0))) if assignment.nodes else assignment.count
            found.append(replace(assignment, count=pods))
        return tuple(found)

    def lift(self, key: str) -> Reservation | None:
        """Take a reservation off the books, so that its own gang can use what it keeps."""
        reservation = self._table.pop(key, None)
        if reservation is not None:
            workload = self._workloads[key]
            queue = self._books.queue(workload)
            assert queue is not None
            for fr, amount in self._quota.pop(key):
                self._books.soon.ledger.release(queue, fr, amount)
            self._books.soon.room.stand(workload, reservation.assignments, sign=-1)
        return reservation

    def _may_wait(self, workload: Workload, reservation: Reservation) -> bool:
        if workload.admission is not None:
            return False
        return self._books.may_get(workload, reservation.assignments, self._asking(workload))

    # -- who is bound ---------------------------------------------------------------------

    def binding(self, workload: Workload, now: float) -> tuple[str, ...]:
        """Return whose room the workload may not take if it starts now, sorted.

        A claim goes before: what it keeps was no longer free when room was reserved.
        """
        if not self._table:
            return ()
        others = (key for key in self._table if key != workload.key)
        return tuple(sorted(key for key in others if self._binds(key, workload, now)))

    def spared(self, workload: Workload, now: float) -> tuple[str, ...]:
        """Return whose room the workload may take only because its queue owns the quota, sorted.

        It does so where it finds no other.
        """
        others = (key for key in self._table if key != workload.key)
        return tuple(
            sorted(
                k for k in others if self._is_behind(k, workload, now) and self._owns(k, workload)
            )
        )

    def _binds(self, key: str, workload: Workload, now: float) -> bool:
        return self._is_behind(key, workload, now) and not self._owns(key, workload)

    def _is_behind(self, key: str, workload: Workload, now: float) -> bool:
        """Return whether the gang goes first by priority, age and time."""
        reservation, gang = self._table[key], self._workloads[key]
        if urgency(workload) < urgency(gang):
            higher = workload.priority > gang.priority
            if higher or now >= elder_from(self._books.snapshot.patience, workload):
                return False
        ends = None if workload.duration_s is None else now + workload.duration_s
        return not (reservation.promised and ends is not None and ends <= reservation.starts_at)

    def _owns(self, key: str, workload: Workload) -> bool:
        """Return whether the workload takes what its queue was promised, and the gang needs more.

        Told as work runs now, of the flavors of the gang. Work of the gang's own queue takes from
        the gang's quota.
        """
        gang, books, made = self._workloads[key], self._books, self._table[key].assignments
        queue, other = books.queue(workload), books.queue(gang)
        if queue is None or other is None or queue == other:
            return False
        if all(books.staying.fits_in(other, fr, n) for fr, n in books.charge(gang, made)):
            return False
        flavors = {flavor for a in made for flavor in a.flavors.values()}
        ways = self._ways.of(self._asking(workload), queue)
        asked = [(fr, n) for way in ways for fr, n in way.usage.items() if fr.flavor in flavors]
        return bool(asked) and all(books.staying.fits_in(queue, fr, n) for fr, n in asked)

    def relied_on(self, bound: Iterable[str]) -> frozenset[str]:
        """Return whom those who are bound may not evict: a promise rests on their ends."""
        found: frozenset[str] = frozenset()
        for key in bound:
            found |= self._relied.get(key, frozenset())
        return found

    def aside(self, bound: Collection[str]) -> AbstractContextManager[None]:
        """Look at the books with the reservations of ``bound`` alone.

        The others are back afterwards; where quota was taken meanwhile, with what is left of it.
        """
        return self._without(bound) if self._table else _NOTHING_ASIDE

    @contextmanager
    def _without(self, bound: Collection[str]) -> Iterator[None]:
        loose = [key for key in self if key not in bound]
        lifted = [one for one in map(self.lift, loose) if one is not None]
        self.any_aside = bool(lifted)
        yield
        self.any_aside = False
        for reservation in lifted:
            self.keep(reservation)

    @contextmanager
    def lifted(self, keys: Iterable[str]) -> Iterator[None]:
        """Look at the books without these reservations; they are back afterwards."""
        with self._books.trial():
            for key in keys:
                workload = self._workloads[key]
                queue = self._books.queue(workload)
                assert queue is not None
                for fr, amount in self._quota[key]:
                    self._books.soon.ledger.release(queue, fr, amount)
                self._books.soon.room.stand(workload, self._table[key].assignments, sign=-1)
            yield

    # -- turns and costs ------------------------------------------------------------------

    def turns_of(self, key: str) -> set[Turn]:
        """Return in which trees and pools a gang has the turn."""
        return self.turns(self._workloads[key], self._table[key].assignments)

    def rivals(self, workload: Workload, assignments: tuple[Assignment, ...]) -> list[str]:
        """Return who has the turn in a tree and a pool in which the workload wants it, sorted."""
        wanted = self.turns(workload, assignments)
        return sorted(k for k in self._table if k != workload.key and wanted & self.turns_of(k))

    def turns(self, workload: Workload, assignments: Iterable[Assignment]) -> set[Turn]:
        """Return in which trees and pools a gang that stands so has the turn."""
        queue = self._books.queue(workload)
        if queue is None:
            return set()
        root = self._books.soon.ledger.root(queue)
        placed = (a for a in assignments if a.nodes)
        nodes_of = self._books.atlas.nodes_of
        return {(root, f) for a in placed for f in a.flavors.values() if nodes_of(f)}

    def count(self, now: float) -> None:
        """Add up what has been held idle, and note what is held idle from now on."""
        for key, one in self._table.items():
            self._table[key] = replace(self._counted(one, now), idle_gpus=self._idle(one))

    def _counted(self, one: Reservation, now: float) -> Reservation:
        more = one.idle_gpus * max(0.0, now - one.counted_at)
        return replace(one, idle_gpu_seconds=one.idle_gpu_seconds + more, counted_at=now)

    def _idle(self, one: Reservation) -> int:
        """Return how many GPUs are free on the gang's nodes, of those that it is going to take."""
        room, workload = self._books.now.room, self._workloads[one.workload]
        total = 0
        for pod_set, assignment in paired(workload, one.assignments):
            for resource, each in pod_set.requests.items():
                if is_gpu(resource) and each:
                    total += sum(
                        min(pods * each, max(0, room.free(node, resource)))
                        for node, pods in assignment.nodes.items()
                    )
        return total
