"""A pure cluster: applies plans as the product does, step by step, until nothing moves."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from scheduling.engine.cycle import decide
from scheduling.engine.growth import heir
from scheduling.engine.invariants import violations
from scheduling.engine.parts import leaver, leaving_key, reduced_by
from scheduling.engine.plan import Admit, Evict, Grow, Plan, Shrink
from scheduling.engine.snapshot import Admission, Assignment, Snapshot
from scheduling.engine.standing import standing


@dataclass
class Simulator:
    """``leave_after``: how many steps an evicted workload's pods still stand."""

    snapshot: Snapshot
    leave_after: int = 1
    step_s: float = 10.0
    evictions: list[tuple[str, str]] = field(default_factory=list)  # (victim, preemptor)
    shrinks: list[tuple[str, str, int]] = field(default_factory=list)  # gang, preemptor, pods
    leaving: dict[str, int] = field(default_factory=dict)
    plan: Plan = field(default_factory=lambda: Plan(()))

    def step(self) -> bool:
        """Release, decide, check, apply. Returns whether anything moved."""
        moved = self._release()
        self.plan = decide(self.snapshot)
        broken = violations(self.snapshot, self.plan)
        assert broken == (), broken
        changed = self._apply()
        return moved or changed

    def run(self, limit: int = 60) -> int:
        """Step until rest. Returns the number of steps; fails if there is no rest."""
        for steps in range(limit):
            if not self.step() and not self.leaving:
                return steps
        raise AssertionError(f"no rest after {limit} steps: {self.evictions}")

    def admitted(self) -> set[str]:
        work = self.snapshot.workloads
        return {w.key for w in work if w.admission and not w.releasing}

    def finish(self, key: str) -> None:
        rest = tuple(w for w in self.snapshot.workloads if w.key != key)
        self.snapshot = replace(self.snapshot, workloads=rest)

    def submit(self, *workloads: object) -> None:
        self.snapshot = replace(self.snapshot, workloads=(*self.snapshot.workloads, *workloads))

    def _release(self) -> bool:
        gone = {key for key, left in self.leaving.items() if left <= 0}
        self.leaving = {k: left - 1 for k, left in self.leaving.items() if k not in gone}
        work = tuple(
            replace(w, admission=None, releasing=False) if w.key in gone else w
            for w in self.snapshot.workloads
            if w.key not in gone or not w.part_of
        )
        now = self.snapshot.now + self.step_s
        self.snapshot = replace(self.snapshot, workloads=work, now=now)
        return bool(gone)

    def _apply(self) -> bool:
        admits = {d.workload: d for d in self.plan.decisions if isinstance(d, Admit)}
        evicts = {d.workload: d for d in self.plan.decisions if isinstance(d, Evict)}
        resized = self._resize()
        known = {w.key: w for w in self.snapshot.workloads}
        replaced = {d.replaces for d in admits.values()}
        for key, evict in evicts.items():
            self.evictions.append((key, evict.preemptor or ""))
            self.leaving[key] = self.leave_after - 1
        work = tuple(
            replace(
                heir(w, known.get(admits[w.key].replaces, w)),
                admission=Admission(self.snapshot.now, admits[w.key].assignments),
            )
            if w.key in admits
            else replace(w, releasing=w.releasing or w.key in evicts)
            for w in self.snapshot.workloads
            if w.key not in replaced
        )
        self.snapshot = replace(self.snapshot, workloads=work, memory=self.plan.memory)
        return bool(admits or evicts or resized)

    def _resize(self) -> bool:
        """Let gangs have what they grew by, and let the surplus that was taken stand apart."""
        work = {w.key: w for w in self.snapshot.workloads}
        moves = [d for d in self.plan.decisions if isinstance(d, Grow | Shrink)]
        for move in moves:
            gang = work[move.workload]
            if isinstance(move, Grow):
                admission = replace(gang.admission, assignments=move.assignments)
                work[gang.key] = replace(gang, admission=admission)
                continue
            self.shrinks.append((gang.key, move.preemptor or "", pods_in(move.pods)))
            part = leaver(gang, move.pods, work.get(leaving_key(gang.key)))
            work[part.key], work[gang.key] = part, reduced_by(gang, move.pods)
            self.leaving[part.key] = self.leave_after - 1
        self.snapshot = replace(self.snapshot, workloads=tuple(work.values()))
        return bool(moves)

    def pods(self, key: str) -> int:
        """Return how many pods of a workload run."""
        work = next(w for w in self.snapshot.workloads if w.key == key)
        running = work.admission is not None and not work.releasing
        return pods_in(standing(work)) if running else 0


def pods_in(assignments: Iterable[Assignment]) -> int:
    return sum(assignment.count for assignment in assignments)
