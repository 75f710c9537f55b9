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
from scheduling.engine.flavors import Assigner
from scheduling.engine.growth import asked, merged, original_of, originals
from scheduling.engine.plan import Admit, Blocker, Decision, Evict, Hold, Plan
from scheduling.engine.preemption import Preemptor
from scheduling.engine.quota import cohorts_in_cycles
from scheduling.engine.regrowth import held_less
from scheduling.engine.snapshot import Assignment, Memory, Snapshot, Workload
from scheduling.engine.standing import standing
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
        self._originals = originals(snapshot.workloads)
        self.claims = Claims(self.books, snapshot, live_claims(snapshot, self.asking))
        self.decisions: list[Decision] = []
        self.held: set[str] = set()
        self.releasing = {w.key: w for w in snapshot.workloads if w.admission and w.releasing}
        self.work: Counter[str] = Counter()
        self._lines: dict[str, list[str]] = {}

    def pending(self) -> list[Workload]:
        """Return the pending work by key."""
        waiting = (w for w in self.snapshot.workloads if w.admission is None)
        return sorted(waiting, key=lambda w: w.key)

    def line_up(self, queue: str, ordered: Iterable[Workload]) -> None:
        """Remember the order of a queue, from which positions are counted at the end."""
        self._lines[queue] = [workload.key for workload in ordered]

    def asking(self, workload: Workload) -> Workload:
        """Return the workload with what it needs room for: of a grown copy, the difference."""
        original = original_of(workload, self._originals)
        return workload if original is None else asked(workload, original, self.atlas)

    def admit(self, workload: Workload, assignments: tuple[Assignment, ...]) -> None:
        """Start the whole gang on what it was asking for; a grown copy replaces the other."""
        original, whole = original_of(workload, self._originals), assignments
        if original is not None:
            whole = merged(workload, original, assignments)
            self._replace(original)
        borrows = self._borrows(workload, assignments, whole)
        self.books.hold(workload, assignments, self.books.both)
        self.books.stay(workload, assignments)
        replaces = original.key if original else ""
        self.decisions.append(Admit(workload.key, whole, borrows, replaces))

    def _replace(self, original: Workload) -> None:
        """Let nobody evict or replace it in this cycle; what it holds stays charged."""
        del self._originals[original.key]
        if original.queue:
            self.running.remove(original)

    def hold(self, workload: Workload, reason: PendingReason, *blockers: Blocker) -> None:
        """Keep the workload waiting, and say why."""
        self.held.add(workload.key)
        self.decisions.append(Hold(workload.key, reason, blockers))

    def hold_because(self, workload: Workload, why: Why) -> None:
        """Keep the workload waiting for an explained reason."""
        reason, blockers = why
        self.hold(workload, reason, *blockers)

    def evict(self, workload: Workload, reason: EvictionReason) -> None:
        """Take an admitted workload out for nobody's sake: its queue is stopped, for instance."""
        self._leave(workload)
        self.decisions.append(Evict(workload.key, reason))

    def evict_for(self, preemptor: Workload, victim: Candidate) -> None:
        """Evict a victim in favour of ``preemptor``, which it may never evict in turn."""
        self._leave(victim.workload)
        self.claims.remember(victim.workload.key, preemptor.key)
        self.decisions.append(
            Evict(victim.workload.key, EvictionReason.PREEMPTED, preemptor.key, victim.right)
        )

    def _leave(self, workload: Workload) -> None:
        """The pods still stand (``now``), but soon they will not."""
        self.books.leave(workload, standing(workload))
        if workload.queue:
            self.running.remove(workload)
        self.releasing[workload.key] = workload
        self._originals.pop(workload.key, None)

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
        memory = Memory(
            self.claims.standing(), self.claims.evicted_by(), held_less=self._held_less()
        )
        return Plan(decisions, memory, dict(sorted(self.work.items())))

    def _held_less(self) -> dict[str, dict[str, int]]:
        stays = (w for w in self.snapshot.workloads if w.key not in self.releasing)
        return held_less(stays)

    def _borrows(
        self,
        workload: Workload,
        added: tuple[Assignment, ...],
        whole: tuple[Assignment, ...],
    ) -> dict[str, int]:
        """Return how much of the whole charge lies above nominal once ``added`` is charged."""
        queue, borrows = self.books.queue(workload), Counter[str]()
        if queue is None:
            return {}
        ledger = self.books.now.ledger
        more = charged(workload, added)
        for fr, amount in charged(workload, whole).items():
            over = ledger.used(queue, fr) + more[fr] - ledger.promised(queue, fr)
            borrows[fr.resource] += max(0, min(amount, over))
        return {resource: amount for resource, amount in sorted(borrows.items()) if amount}
