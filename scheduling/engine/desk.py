"""The working state of one cycle, and the few moves that change it.

Created by :func:`scheduling.engine.cycle.decide`, never outlives it.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from scheduling.engine.atlas import Atlas
from scheduling.engine.books import Books
from scheduling.engine.candidates import Candidate, Running
from scheduling.engine.claims import Claims, live_claims
from scheduling.engine.explain import Explainer, Why
from scheduling.engine.fairness import Regime
from scheduling.engine.flavors import Assigner
from scheduling.engine.history import remembered
from scheduling.engine.plan import Admit, Blocker, Decision, Evict, Hold, Plan
from scheduling.engine.preemption import Preemptor
from scheduling.engine.quota import QuotaKey, cohorts_in_cycles
from scheduling.engine.snapshot import Assignment, Memory, Snapshot, Workload
from scheduling.engine.tenure import lost_gpu_hours
from scheduling.engine.terms import EvictionReason, PendingReason
from scheduling.engine.usage import charged


class Desk:
    """Books, running work, claims, and the decisions taken so far."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.atlas = Atlas(snapshot)
        self.books = Books(snapshot, self.atlas)
        self.assigner = Assigner(self.books)
        self.running = Running(snapshot.workloads)
        self.preemptor = Preemptor(self.books, self.assigner, self.running)
        self.explainer = Explainer(self.books, self.assigner)
        self.circular = cohorts_in_cycles(snapshot.cohorts)
        self.claims = Claims(self.books, snapshot, live_claims(snapshot))
        self.regime = Regime(snapshot, self.books.soon.ledger)
        self.decisions: list[Decision] = []
        self.held: set[str] = set()
        self.releasing = {w.key: w for w in snapshot.workloads if w.admission and w.releasing}
        self.work: Counter[str] = Counter()
        self._instants: list[float] = []
        self._lines: dict[str, list[str]] = {}
        self._stirred: set[QuotaKey] = set()

    def pending(self) -> list[Workload]:
        """Return the pending work by key."""
        waiting = (w for w in self.snapshot.workloads if w.admission is None)
        return sorted(waiting, key=lambda w: w.key)

    def line_up(self, queue: str, ordered: Iterable[Workload]) -> None:
        """Remember the order of a queue, from which positions are counted at the end."""
        self._lines[queue] = [workload.key for workload in ordered]

    def admit(self, workload: Workload, assignments: tuple[Assignment, ...]) -> None:
        """Start the whole gang."""
        borrows = self._borrows(workload, assignments)
        queue = self.books.queue(workload)
        if queue is not None:
            self.regime.started(queue, charged(workload, assignments))
        self.books.hold(workload, assignments, self.books.both)
        self.books.stay(workload, assignments)
        self.decisions.append(Admit(workload.key, assignments, borrows))

    def hold(self, workload: Workload, reason: PendingReason, *blockers: Blocker) -> None:
        """Keep the workload waiting, and say why."""
        self.held.add(workload.key)
        self.decisions.append(Hold(workload.key, reason, blockers))

    def hold_because(self, workload: Workload, why: Why) -> None:
        """Keep the workload waiting for an explained reason."""
        reason, blockers = why
        self.hold(workload, reason, *blockers)

    def evict_stopped(self, workload: Workload, reason: EvictionReason) -> None:
        """Drain: take an admitted workload out of a stopped queue."""
        self._leave(workload)
        lost = lost_gpu_hours(workload, self.snapshot.now)
        self.decisions.append(Evict(workload.key, reason, lost_gpu_hours=lost))

    def evict_for(self, preemptor: Workload, victim: Candidate) -> None:
        """Evict a victim in favour of ``preemptor``, which it may never evict in turn."""
        self._leave(victim.workload)
        self.claims.remember(victim.workload.key, preemptor.key)
        lost = lost_gpu_hours(victim.workload, self.snapshot.now)
        reason, by = EvictionReason.PREEMPTED, preemptor.key
        self.decisions.append(Evict(victim.workload.key, reason, by, victim.right, lost))

    def look_again(self, at: float) -> None:
        """Note an instant at which time alone may change what is decided."""
        self._instants.append(at)

    def _leave(self, workload: Workload) -> None:
        """The pods still stand (``now``), but soon they will not."""
        assert workload.admission is not None
        self.books.leave(workload, workload.admission.assignments)
        self.running.remove(workload)
        self.releasing[workload.key] = workload
        queue = self.books.queue(workload)
        if queue is not None:
            self._stirred.add(queue)

    def stirred(self) -> set[QuotaKey]:
        """Return the queues that have lost work since the last question."""
        stirred, self._stirred = self._stirred, set()
        return stirred

    def plan(self) -> Plan:
        """Return everything that was decided, with positions, memory and counted work."""
        positions = {
            key: position
            for line in self._lines.values()
            for position, key in enumerate((key for key in line if key in self.held), start=1)
        }
        decisions = tuple(
            replace(d, position=positions.get(d.workload)) if isinstance(d, Hold) else d
            for d in self.decisions
        )
        self.work["nodes_scanned"] = self.atlas.scanned
        self.work["pod_sets_tried"] = self.assigner.steps
        self.work["trials"] = self.preemptor.trials
        claims = self.claims.standing()
        instants = [*self._instants, *(claim.expires_at for claim in claims)]
        history = remembered(self.snapshot, self.books.now.ledger)
        memory = Memory(claims, self.claims.evicted_by(), history=history)
        work = dict(sorted(self.work.items()))
        return Plan(decisions, memory, work, min(instants, default=None))

    def _borrows(self, workload: Workload, assignments: tuple[Assignment, ...]) -> dict[str, int]:
        """Return how much of the charge lies above nominal, by resource."""
        queue, borrows = self.books.queue(workload), Counter[str]()
        if queue is None:
            return {}
        ledger = self.books.now.ledger
        for fr, amount in charged(workload, assignments).items():
            over = ledger.used(queue, fr) + amount - ledger.promised(queue, fr)
            borrows[fr.resource] += max(0, min(amount, over))
        return {resource: amount for resource, amount in sorted(borrows.items()) if amount}
