"""A pure cluster: applies plans as the product does, step by step, until nothing moves."""

from dataclasses import dataclass, field, replace

from scheduling.engine.cycle import decide
from scheduling.engine.growth import heir
from scheduling.engine.invariants import violations
from scheduling.engine.plan import Admit, Evict, Plan
from scheduling.engine.snapshot import Admission, Snapshot


@dataclass
class Simulator:
    """``leave_after``: how many steps an evicted workload's pods still stand."""

    snapshot: Snapshot
    leave_after: int = 1
    step_s: float = 10.0
    evictions: list[tuple[str, str]] = field(default_factory=list)  # (victim, preemptor)
    leaving: dict[str, int] = field(default_factory=dict)
    plan: Plan = field(default_factory=lambda: Plan(()))

    def step(self) -> bool:
        """Release, decide, check, apply. Returns whether anything moved."""
        moved = self._release()
        self.plan = decide(self.snapshot)
        assert violations(self.snapshot, self.plan) == ()
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
        )
        now = self.snapshot.now + self.step_s
        self.snapshot = replace(self.snapshot, workloads=work, now=now)
        return bool(gone)

    def _apply(self) -> bool:
        admits = {d.workload: d for d in self.plan.decisions if isinstance(d, Admit)}
        evicts = {d.workload: d for d in self.plan.decisions if isinstance(d, Evict)}
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
        return bool(admits or evicts)
