"""What cohorts may never give, in other words than those that decide.

Part of :mod:`scheduling.engine.invariants`.
"""

from collections import Counter
from collections.abc import Iterator

from scheduling.engine.snapshot import NOTHING, FlavorResource, Quota, Snapshot
from scheduling.engine.tree import cohorts_in_cycles

Usage = Counter[tuple[str, FlavorResource]]  # by queue


def cohorts_within_sums(snapshot: Snapshot, before: Usage, after: Usage) -> Iterator[str]:
    """Yield where a cohort gives more than it has, and more than it gave before."""
    known, sums = snapshot.cluster_queues, _Sums(snapshot)
    grown = {fr for name, fr in after if after[name, fr] > before[name, fr] and name in known}
    for fr in sorted(grown):
        for cohort in sorted(sums.cohorts()):
            taken, had = sums.taken(cohort, fr, after), sums.taken(cohort, fr, before)
            limit = sums.limit(cohort, fr)
            if taken > had and limit is not None and taken > limit:
                yield f"cohort {cohort} gives {taken} of {fr}, more than {limit}"


class _Sums:
    """The arithmetic of what members lend and take, restated."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self.circular = snapshot, cohorts_in_cycles(snapshot.cohorts)

    def cohorts(self) -> set[str]:
        named = {q.cohort for q in self.snapshot.cluster_queues.values() if q.cohort}
        parents = {c.parent for c in self.snapshot.cohorts.values() if c.parent}
        return (named | parents | self.snapshot.cohorts.keys()) - self.circular

    def taken(self, cohort: str, fr: FlavorResource, usage: Usage) -> int:
        """Return what the members take beyond what each of them never lends."""
        queues = self.snapshot.cluster_queues.values()
        total = 0
        for queue in queues:
            if queue.cohort == cohort:
                quota = queue.quotas.get(fr, NOTHING)
                kept = _kept(quota.nominal, quota)
                total += max(0, usage[queue.name, fr] - kept)
        for child in self._children(cohort):
            kept = _kept(self._pool(child, fr), self._line(child, fr))
            total += max(0, self.taken(child, fr, usage) - kept)
        return total

    def _pool(self, cohort: str, fr: FlavorResource) -> int:
        """Return what the cohort has to give: its own line and what its members lend."""
        total = self._line(cohort, fr).nominal
        for queue in self.snapshot.cluster_queues.values():
            if queue.cohort == cohort:
                quota = queue.quotas.get(fr, NOTHING)
                total += quota.nominal - _kept(quota.nominal, quota)
        for child in self._children(cohort):
            pool = self._pool(child, fr)
            total += pool - _kept(pool, self._line(child, fr))
        return total

    def limit(self, cohort: str, fr: FlavorResource) -> int | None:
        spec = self.snapshot.cohorts.get(cohort)
        pool = self._pool(cohort, fr)
        if spec is None or spec.parent is None:
            return pool
        extra = self._line(cohort, fr).borrowing_limit
        return None if extra is None else pool + extra

    def _children(self, cohort: str) -> list[str]:
        cohorts = self.snapshot.cohorts.values()
        return [c.name for c in cohorts if c.parent == cohort and c.name not in self.circular]

    def _line(self, cohort: str, fr: FlavorResource) -> Quota:
        spec = self.snapshot.cohorts.get(cohort)
        return spec.quotas.get(fr, NOTHING) if spec else NOTHING


def _kept(pool: int, quota: Quota) -> int:
    return 0 if quota.lending_limit is None else max(0, pool - quota.lending_limit)
