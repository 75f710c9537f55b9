"""One cycle at work on a state: the decisions taken so far, and the few moves that add one.

Opened and closed by :mod:`scheduling.engine.cycle`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from scheduling.engine.candidates import Candidate
from scheduling.engine.gangs import joined
from scheduling.engine.gates import Why
from scheduling.engine.growth import heir, merged
from scheduling.engine.parts import leaving_key
from scheduling.engine.plan import Admit, Blocker, Evict, Grow, Move, Shrink
from scheduling.engine.snapshot import Admission, Assignment, Workload
from scheduling.engine.standing import standing
from scheduling.engine.state import State
from scheduling.engine.tenure import lost_gpu_hours
from scheduling.engine.terms import EvictionReason, PendingReason
from scheduling.engine.tree import QuotaKey


class Desk:
    """Moves in the order in which they were taken; the state's books follow at once."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.moves: list[Move] = []
        self.work: Counter[str] = Counter()
        self._reserved: list[tuple[Workload, tuple[Assignment, ...]]] = []
        self._added: dict[str, tuple[Assignment, ...]] = {}  # by copy: its further pods
        self._started: dict[str, int] = {}  # key -> its move
        self._grown: dict[str, int] = {}
        self._kept_free: list[tuple[Workload, tuple[Assignment, ...]]] = []  # nodes alone
        self._stirred: set[QuotaKey] = set()
        self.awaited: dict[str, tuple[Assignment, ...]] = {}  # what comes free for running gangs
        self.forecasts: Counter[QuotaKey] = Counter()  # by root: earliest starts looked for
        self.timed = False  # whether somebody has started whose end is known
        self.shielded: frozenset[str] = frozenset()  # whom nobody may evict in this cycle
        state.newcomers.open()
        state.consolidator.open()
        self._before = self._counted()

    def admit(self, workload: Workload, assignments: tuple[Assignment, ...]) -> None:
        """Start the whole gang on what it was asking for; a grown copy replaces the other."""
        books, whole = self.state.books, assignments
        original = self.state.original(workload)
        if original is not None:
            whole = merged(workload, original, assignments)
            self._replace(workload, original, assignments)
        borrows = self._borrows(workload, assignments, whole)
        queue = books.queue(workload)
        if queue is not None:
            self._stirred.add(queue)
            self.state.regime.started(queue, books.charge(workload, assignments))
            self.state.doors.charge(workload, books.charge(workload, assignments))
        books.hold(workload, assignments, books.both)
        books.stay(workload, assignments)
        if original is None:
            self.state.newcomers.add(workload, assignments)
        replaces = original.key if original else ""
        if not replaces:
            self._started[workload.key] = len(self.moves)
            self.timed = self.timed or workload.duration_s is not None
        self.moves.append(Admit(workload.key, whole, borrows, replaces))

    def started(self) -> Collection[str]:
        """Return the keys of those that start in this cycle and are no copies."""
        return self._started.keys()

    def holding(self, gang: Workload) -> tuple[Assignment, ...]:
        """Return where a gang stands as decided so far, pods that have finished included."""
        place = self._started.get(gang.key, self._grown.get(gang.key))
        if place is not None:
            move = self.moves[place]
            assert isinstance(move, Admit | Grow)
            return move.assignments
        return standing(replace(gang, reclaimable={}))

    def add(
        self, gang: Workload, gone: tuple[Assignment, ...], added: tuple[Assignment, ...]
    ) -> None:
        """Give a gang that runs or has just started further pods; ``gone`` is put down anew."""
        books, queue, held = self.state.books, self.state.books.queue(gang), self.holding(gang)
        if gone:
            books.leave(gang, gone)
            books.drop(gang, gone, (books.now,))
        whole = joined(gang, () if gone else held, added)
        borrows = self._borrows(gang, added, whole)
        if queue is not None:
            self._stirred.add(queue)
            more = books.charge(gang, added) if not gone else ()
            self.state.regime.started(queue, more)
            self.state.doors.charge(gang, more)
        books.hold(gang, added, books.both)
        books.stay(gang, added)
        self._note_more(gang, whole, borrows)

    def refill(
        self,
        gang: Workload,
        lost: tuple[Assignment, ...],
        left: tuple[Assignment, ...],
        added: tuple[Assignment, ...],
    ) -> None:
        """Let pods of a broken gang stand elsewhere than on the nodes that are gone."""
        books = self.state.books
        self.state.sink(gang)  # nobody takes it in this cycle
        books.leave(gang, lost)
        books.drop(gang, lost, (books.now,))
        whole = joined(gang, left, added)
        borrows = self._borrows(gang, added, whole)
        books.hold(gang, added, books.both)
        books.stay(gang, added)
        self._note_more(gang, whole, borrows)

    def lose(self, gang: Workload, pods: tuple[Assignment, ...]) -> None:
        """Give up pods without which the gang runs on: their nodes are gone."""
        self.state.sink(gang)
        self.state.books.leave(gang, pods)
        self.moves.append(Shrink(gang.key, EvictionReason.NODE_FAILURES, pods))

    def keep_free(self, piece: Workload, nodes: tuple[Assignment, ...]) -> None:
        """Keep room on nodes for the rest of this cycle; its quota is held already."""
        self.state.books.soon.room.stand(piece, nodes)
        self._kept_free.append((piece, nodes))

    def _note_more(
        self, gang: Workload, whole: tuple[Assignment, ...], borrows: Mapping[str, int]
    ) -> None:
        if gang.key in self._started:
            self.moves[self._started[gang.key]] = Admit(gang.key, whole, borrows)
        elif gang.key in self._grown:
            self.moves[self._grown[gang.key]] = Grow(gang.key, whole, borrows)
        else:
            self._grown[gang.key] = len(self.moves)
            self.moves.append(Grow(gang.key, whole, borrows))

    def move(self, seats: Mapping[str, tuple[Assignment, ...]]) -> None:
        """Let newcomers of this cycle stand elsewhere, on the same flavors."""
        books, workloads = self.state.books, self.state.workloads
        for key, place in [(key, self._started[key]) for key in seats]:
            admit = self.moves[place]
            assert isinstance(admit, Admit)
            books.drop(workloads[key], admit.assignments, books.both)
            self.moves[place] = replace(admit, assignments=seats[key])
        for key, assignments in seats.items():
            books.hold(workloads[key], assignments, books.both)
            self.state.newcomers.add(workloads[key], assignments)

    def _replace(self, copy: Workload, original: Workload, more: tuple[Assignment, ...]) -> None:
        """Let nobody evict or replace it in this cycle; what it holds stays charged."""
        self.state.replaced.add(original.key)
        self.state.sink(original)
        self._added[copy.key] = more

    def shield(self, copy: Workload) -> None:
        """Let nobody evict the original of a copy for which others have been evicted already.

        What they leave is kept for the difference alone, and would be kept in vain.
        """
        if copy.replaces:
            self.shielded |= {copy.replaces}

    def hold(self, workload: Workload, reason: PendingReason, blocker: Blocker) -> None:
        """Note why a workload waits where that is known only now."""
        why: Why = reason, (blocker,)
        self.state.waiting[workload.key] = why

    def reserve(self, workload: Workload, assignments: tuple[Assignment, ...]) -> None:
        """Keep for the rest of this cycle what others are leaving anyway."""
        books = self.state.books
        books.hold(workload, assignments, books.coming)
        self._reserved.append((workload, assignments))

    def await_(self, gang: Workload, piece: Workload, pods: tuple[Assignment, ...]) -> None:
        """Let a running gang wait for further pods whose room is being left; it keeps no claim."""
        self.reserve(piece, pods)
        self.awaited[gang.key] = joined(gang, self.awaited.get(gang.key, ()), pods)

    def having(self, gang: Workload) -> tuple[Assignment, ...]:
        """Return where a gang stands, and where those pods will that it waits for."""
        held, more = self.holding(gang), self.awaited.get(gang.key)
        return joined(gang, held, more) if more else held

    def evict(self, workload: Workload, reason: EvictionReason) -> None:
        """Take an admitted workload out for nobody's sake: its queue is stopped, for instance."""
        lost = sum(lost_gpu_hours(one, self.state.now) for one in self._leave(workload))
        self.moves.append(Evict(workload.key, reason, lost_gpu_hours=lost))

    def make_room(self, preemptor: Workload, victims: Iterable[Candidate]) -> set[str]:
        """Evict victims in favour of ``preemptor``, which they may never evict in turn.

        Surplus leaves a gang that runs on, unless the whole gang goes. Returns the keys of what
        is then on its way out.
        """
        found, gone = {victim.workload.key: victim for victim in victims}, set[str]()
        surplus: dict[str, list[Candidate]] = {}
        for key, victim in found.items():
            gang = victim.workload.part_of
            if not gang:
                self._evict_for(preemptor, victim)
                gone.add(key)
            elif gang not in found:
                surplus.setdefault(gang, []).append(victim)
        for gang, pieces in surplus.items():
            self._shrink_for(preemptor, gang, pieces)
            gone.add(leaving_key(gang))
        return gone

    def _evict_for(self, preemptor: Workload, victim: Candidate) -> None:
        key = victim.workload.key
        lost = sum(lost_gpu_hours(one, self.state.now) for one in self._leave(victim.workload))
        self.state.claims.remember(key, preemptor.key)
        reason = EvictionReason.PREEMPTED
        self.moves.append(
            Evict(key, reason, preemptor.key, victim.right, lost, shares=victim.shares)
        )

    def relocate(self, gang: Workload, seats: Mapping[str, tuple[Assignment, ...]]) -> set[str]:
        """Let running work leave in favour of ``gang``, and keep for it where it starts again.

        Returns the keys of what is then on its way out.
        """
        state, going = self.state, set(seats)
        for key in sorted(seats):
            self._leave(state.workloads[key])
            state.workloads[key] = replace(state.workloads[key], releasing=True)
        for key, seat in sorted(seats.items()):
            work = state.workloads[key]
            state.claims.remember(key, gang.key)
            state.claims.make(work, seat, going, state.now)
            lost = lost_gpu_hours(work, state.now)
            reason = EvictionReason.CONSOLIDATED
            self.moves.append(Evict(key, reason, gang.key, None, lost, seat))
        return going

    def _shrink_for(self, preemptor: Workload, key: str, pieces: list[Candidate]) -> None:
        """Take surplus from a gang that runs on."""
        works = [piece.workload for piece in pieces]
        self.state.cutting.take(key, works)
        self._stirred.add(pieces[0].queue)
        self.state.claims.remember(key, preemptor.key)
        pods = joined(self.state.workloads[key], *map(standing, works))
        lost = sum(lost_gpu_hours(work, self.state.now) for work in works)
        self.state.releasing[leaving_key(key)] = works[0]
        reason, right = EvictionReason.PREEMPTED, pieces[0].right
        self.moves.append(Shrink(key, reason, pods, preemptor.key, right, lost))

    def _leave(self, workload: Workload) -> tuple[Workload, ...]:
        """The pods still stand (``now``), but soon they will not. Returns the parts that leave.

        A gang takes along what surplus it has left.
        """
        state, parts = self.state, self.state.books.parts.of(workload)
        for part in parts:
            state.books.leave(part, standing(part))
        state.sink(workload)
        state.releasing[workload.key] = workload
        queue = state.books.queue(workload)
        if queue is not None:
            self._stirred.add(queue)
        return parts

    def newly_running(self) -> list[Workload]:
        """Return who was admitted in this cycle, as it runs from now on; no grown copies."""
        state = self.state
        return [
            replace(
                state.workloads[move.workload], admission=Admission(state.now, move.assignments)
            )
            for move in self.moves
            if isinstance(move, Admit) and not move.replaces
        ]

    def stirred(self) -> set[QuotaKey]:
        """Return the queues that have gained or lost work since the last question."""
        stirred, self._stirred = self._stirred, set()
        return stirred

    def close(self) -> None:
        """Let the state be as decided. Its touched queues are those that moved."""
        state = self.state
        for workload, assignments in self._reserved:
            state.books.drop(workload, assignments, state.books.coming)
        for piece, nodes in self._kept_free:
            state.books.soon.room.stand(piece, nodes, sign=-1)
        state.wards.settle()
        for move in self.moves:
            match move:
                case Admit():
                    self._settle(move)
                    state.seat(state.workloads[move.workload], move.assignments)
                case Grow():
                    state.grown(move.workload, move.assignments)
                case Shrink():
                    state.shrunk(move)
                case Evict():
                    state.dismiss(move)
        state.replaced.clear()
        state.reservations.count(state.now)
        state.yields.settle()
        state.settle_use()
        for name, count in self._counted().items():
            self.work[name] += count - self._before[name]

    def _settle(self, move: Admit) -> None:
        """Let a copy hold everything by itself, and its original nothing any more."""
        if not move.replaces:
            return
        state, copy = self.state, self.state.workloads[move.workload]
        more, books = self._added[move.workload], self.state.books
        books.leave(copy, more)
        books.drop(copy, more, (books.now,))
        state.workloads[copy.key] = heir(copy, state.workloads[move.replaces])
        state.retire(move.replaces)
        books.hold(copy, move.assignments, books.both)
        books.stay(copy, move.assignments)

    def _counted(self) -> dict[str, int]:
        state = self.state
        return {
            "newcomers_seated": state.newcomers.seatings,
            "nodes_scanned": state.atlas.scanned,
            "forecasts": state.forecasts,
            "pod_sets_tried": state.assigner.steps,
            "relocations_tried": state.consolidator.searched,
            "trials": state.preemptor.trials,
        }

    def _borrows(
        self,
        workload: Workload,
        added: tuple[Assignment, ...],
        whole: tuple[Assignment, ...],
    ) -> dict[str, int]:
        """Return how much of the whole charge lies above nominal once ``added`` is charged."""
        books, borrows = self.state.books, Counter[str]()
        queue = books.queue(workload)
        if queue is None:
            return {}
        ledger = books.now.ledger
        more = dict(books.charge(workload, added))
        for fr, amount in books.charge(workload, whole):
            over = ledger.used(queue, fr) + more.get(fr, 0) - ledger.promised(queue, fr)
            if over > 0:
                borrows[fr.resource] += min(amount, over)
        return dict(sorted(borrows.items()))
