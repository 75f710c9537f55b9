"""Claims: capacity freed for a preemptor is kept for it, and nobody strikes back.

Source: ``decisions.md`` 4.6 and 4.7.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from scheduling.engine.books import Books
from scheduling.engine.partial import grants
from scheduling.engine.snapshot import Assignment, Claim, Snapshot, Workload
from scheduling.engine.terms import StopPolicy

CLAIM_SECONDS = 600.0  # how long a claim outlives the last victim


def live_claims(snapshot: Snapshot, asking: Callable[[Workload], Workload]) -> list[Claim]:
    """Return the claims still in force, refreshed while a victim has not left.

    A claim ends when its workload starts, is withdrawn, changed or stopped, or with time.
    ``asking`` says for which pods a workload needs room: for other ones the claim is worthless.
    """
    workloads = {workload.key: workload for workload in snapshot.workloads}
    return [
        refreshed(claim, workloads, snapshot.now)
        for claim in sorted(snapshot.memory.claims, key=lambda claim: claim.workload)
        if _stands(claim, workloads, snapshot)
        and grants(asking(workloads[claim.workload]), claim.assignments)
    ]


def refreshed(claim: Claim, workloads: dict[str, Workload], now: float) -> Claim:
    """Return the claim with its end pushed back while a victim's pods still stand."""
    victims = (workloads.get(victim) for victim in claim.victims)
    if any(victim is not None and victim.releasing for victim in victims):
        return replace(claim, expires_at=now + CLAIM_SECONDS)
    return claim


def _stands(claim: Claim, workloads: dict[str, Workload], snapshot: Snapshot) -> bool:
    workload = workloads.get(claim.workload)
    if workload is None or workload.admission is not None or workload.blocked:
        return False
    queue = snapshot.cluster_queues.get(workload.queue or "")
    if queue is None or queue.inactive or queue.stop_policy is not StopPolicy.NONE:
        return False
    return snapshot.now < refreshed(claim, workloads, snapshot.now).expires_at


class Claims:
    """The claims of one cycle, charged to the ``soon`` account."""

    def __init__(self, books: Books, snapshot: Snapshot, claims: list[Claim]) -> None:
        self._books, self._now = books, snapshot.now
        self._workloads = {workload.key: workload for workload in snapshot.workloads}
        self._claims: dict[str, Claim] = {}
        self._preemptors: dict[str, set[str]] = {}  # by victim
        for victim, preemptor in snapshot.memory.evicted_by:
            if victim in self._workloads and preemptor in self._workloads:
                self.remember(victim, preemptor)
        for claim in claims:
            self._keep(claim)

    def __contains__(self, key: str) -> bool:
        return key in self._claims

    def keys(self) -> frozenset[str]:
        """Return the waiting preemptors."""
        return frozenset(self._claims)

    def lift(self, key: str) -> Claim | None:
        """Take a claim off the books, so that its own workload can use what it keeps."""
        claim = self._claims.pop(key, None)
        if claim is not None:
            self._books.drop(self._workloads[key], claim.assignments, self._books.coming)
        return claim

    def renew(self, claim: Claim, assignments: tuple[Assignment, ...]) -> None:
        """Put a lifted claim back, on these assignments."""
        self._keep(replace(claim, assignments=assignments))

    def make(
        self, workload: Workload, assignments: tuple[Assignment, ...], victims: set[str]
    ) -> None:
        """Keep for ``workload`` what its victims are going to leave."""
        expires_at = self._now + CLAIM_SECONDS
        self._keep(Claim(workload.key, assignments, tuple(sorted(victims)), expires_at))

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Look at the books without any claim; they are back afterwards."""
        with self._books.trial():
            for key, claim in self._claims.items():
                workload = self._workloads[key]
                self._books.drop(workload, claim.assignments, self._books.coming)
            yield

    def standing(self) -> tuple[Claim, ...]:
        """Return the claims for the next cycle."""
        return tuple(claim for _, claim in sorted(self._claims.items()))

    def remember(self, victim: str, preemptor: str) -> None:
        """Note who evicted whom."""
        self._preemptors.setdefault(victim, set()).add(preemptor)

    def evicted_by(self) -> tuple[tuple[str, str], ...]:
        """Return the pairs (victim, preemptor) for the next cycle."""
        pairs = ((v, p) for v, preemptors in self._preemptors.items() for p in preemptors)
        return tuple(sorted(pairs))

    def protected_from(self, key: str) -> frozenset[str]:
        """Return whom ``key`` may not evict: its preemptors, theirs, and so on."""
        seen: set[str] = set()
        found = [key]
        for victim in found:
            fresh = self._preemptors.get(victim, set()) - seen
            found.extend(fresh)
            seen |= fresh
        return frozenset(seen)

    def _keep(self, claim: Claim) -> None:
        workload = self._workloads[claim.workload]
        self._books.hold(workload, claim.assignments, self._books.coming)
        self._claims[claim.workload] = claim
