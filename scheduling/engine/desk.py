"""One cycle at work on a state: the decisions taken so far, and the few moves that add one.

Opened and closed by :mod:`scheduling.engine.cycle`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from scheduling.engine.candidates import Candidate
from scheduling.engine.gates import Why
from scheduling.engine.growth import heir, merged
from scheduling.engine.plan import Admit, Blocker, Evict
from scheduling.engine.snapshot import Assignment, Workload
from scheduling.engine.standing import standing
from scheduling.engine.state import State
from scheduling.engine.tenure import lost_gpu_hours
from scheduling.engine.terms import EvictionReason, PendingReason
from scheduling.engine.tree import QuotaKey


class Desk:
    """Moves in the order in which they were taken; the state's books follow at once."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.moves: list[Admit | Evict] = []
        self.work: Counter[str] = Counter()
        self._reserved: list[tuple[Workload, tuple[Assignment, ...]]] = []
        self._added: dict[str, tuple[Assignment, ...]] = {}  # by copy: its further pods
        self._stirred: set[QuotaKey] = set()
        self.shielded: frozenset[str] = frozenset()  # whom nobody may evict in this cycle
        state.newcomers.open()
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
        self.moves.append(Admit(workload.key, whole, borrows, replaces))

    def move(self, seats: Mapping[str, tuple[Assignment, ...]]) -> None:
        """Let newcomers of this cycle stand elsewhere, on the same flavors."""
        books, workloads = self.state.books, self.state.workloads
        for place, admit in enumerate(self.moves):
            if isinstance(admit, Admit) and admit.workload in seats:
                books.drop(workloads[admit.workload], admit.assignments, books.both)
                self.moves[place] = replace(admit, assignments=seats[admit.workload])
        for key, assignments in seats.items():
            books.hold(workloads[key], assignments, books.both)
            self.state.newcomers.add(workloads[key], assignments)

    def _replace(self, copy: Workload, original: Workload, more: tuple[Assignment, ...]) -> None:
        """Let nobody evict or replace it in this cycle; what it holds stays charged."""
        self.state.replaced.add(original.key)
        self.state.running.remove(original)
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

    def evict(self, workload: Workload, reason: EvictionReason) -> None:
        """Take an admitted workload out for nobody's sake: its queue is stopped, for instance."""
        self._leave(workload)
        lost = lost_gpu_hours(workload, self.state.now)
        self.moves.append(Evict(workload.key, reason, lost_gpu_hours=lost))

    def evict_for(self, preemptor: Workload, victim: Candidate) -> None:
        """Evict a victim in favour of ``preemptor``, which it may never evict in turn."""
        self._leave(victim.workload)
        self.state.claims.remember(victim.workload.key, preemptor.key)
        lost = lost_gpu_hours(victim.workload, self.state.now)
        reason, by = EvictionReason.PREEMPTED, preemptor.key
        self.moves.append(Evict(victim.workload.key, reason, by, victim.right, lost))

    def _leave(self, workload: Workload) -> None:
        """The pods still stand (``now``), but soon they will not."""
        self.state.books.leave(workload, standing(workload))
        self.state.running.remove(workload)
        self.state.releasing[workload.key] = workload
        queue = self.state.books.queue(workload)
        if queue is not None:
            self._stirred.add(queue)

    def stirred(self) -> set[QuotaKey]:
        """Return the queues that have gained or lost work since the last question."""
        stirred, self._stirred = self._stirred, set()
        return stirred

    def close(self) -> None:
        """Let the state be as decided. Its touched queues are those that moved."""
        state = self.state
        for workload, assignments in self._reserved:
            state.books.drop(workload, assignments, state.books.coming)
        state.wards.settle()
        for move in self.moves:
            if isinstance(move, Admit):
                self._settle(move)
                state.seat(state.workloads[move.workload], move.assignments)
            else:
                state.dismiss(move)
        state.replaced.clear()
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
            "pod_sets_tried": state.assigner.steps,
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
