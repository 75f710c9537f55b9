"""Claims: capacity freed for a preemptor is kept for it, and nobody strikes back.

Work that is moved has one too, on the nodes where it starts again: from when it is told to leave.
Source: ``decisions.md`` 4.6 and 4.7.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from scheduling.engine.books import Books
from scheduling.engine.snapshot import Assignment, Claim, Memory, Workload

CLAIM_SECONDS = 600.0  # how long a claim outlives the last victim


class Claims:
    """The claims in force, charged to the ``soon`` account, and who evicted whom.

    ``workloads`` is the live table of all work by key; ``asking`` says for which pods a
    workload needs room, because for other ones a claim is worthless.
    """

    def __init__(
        self,
        books: Books,
        workloads: Mapping[str, Workload],
        asking: Callable[[Workload], Workload],
    ) -> None:
        self._books, self._workloads, self._asking = books, workloads, asking
        self._claims: dict[str, Claim] = {}
        self._in_queue: dict[str, set[str]] = {}
        self._preemptors: dict[str, set[str]] = {}  # by victim
        self._victims: dict[str, set[str]] = {}  # by preemptor

    def __contains__(self, key: str) -> bool:
        return key in self._claims

    def restore(self, memory: Memory) -> None:
        """Take over what an earlier cycle remembered; what no longer holds ends at once."""
        for victim, preemptor in memory.evicted_by:
            if victim in self._workloads and preemptor in self._workloads:
                self.remember(victim, preemptor)
        for claim in sorted(memory.claims, key=lambda claim: claim.workload):
            self.keep(claim)

    def keys(self) -> frozenset[str]:
        """Return the waiting preemptors."""
        return frozenset(self._claims)

    def waiting_in(self, queue: str) -> list[str]:
        """Return the waiting preemptors of one queue, sorted."""
        return sorted(self._in_queue.get(queue, ()))

    def refresh(self, now: float) -> list[Workload]:
        """End what has expired, push back the end of what still waits for victims.

        Returns:
            The workloads that lost their claim.
        """
        lost = []
        for key, claim in sorted(self._claims.items()):
            fresh = self._refreshed(claim, now)
            self._claims[key] = fresh
            if now >= fresh.expires_at:
                self.lift(key)
                lost.append(self._workloads[key])
        return lost

    def _refreshed(self, claim: Claim, now: float) -> Claim:
        """Return the claim with its end pushed back while a victim's pods still stand."""
        victims = (self._workloads.get(victim) for victim in claim.victims)
        if any(victim is not None and victim.releasing for victim in victims):
            return replace(claim, expires_at=now + CLAIM_SECONDS)
        return claim

    def lift(self, key: str) -> Claim | None:
        """Take a claim off the books, so that its own workload can use what it keeps."""
        claim = self._claims.pop(key, None)
        if claim is not None:
            workload = self._workloads[key]
            self._books.drop(workload, claim.assignments, self._books.coming)
            self._in_queue[workload.queue or ""].discard(key)
        return claim

    def keep(self, claim: Claim, assignments: tuple[Assignment, ...] | None = None) -> None:
        """Put a claim on the books, unless its workload started, changed or may not start.

        ``assignments``: where the workload is going to stand now; default: as before.
        """
        if assignments is not None:
            claim = replace(claim, assignments=assignments)
        workload = self._workloads.get(claim.workload)
        if workload is not None and self._may_wait(workload, claim):
            self._books.hold(workload, claim.assignments, self._books.coming)
            self._claims[claim.workload] = claim
            self._in_queue.setdefault(workload.queue or "", set()).add(workload.key)

    def _may_wait(self, workload: Workload, claim: Claim) -> bool:
        moves = workload.releasing and workload.key in claim.victims
        if workload.admission is not None and not moves:
            return False
        return self._books.may_get(workload, claim.assignments, self._asking(workload))

    def make(
        self,
        workload: Workload,
        assignments: tuple[Assignment, ...],
        victims: set[str],
        now: float,
    ) -> None:
        """Keep for ``workload`` what its victims are going to leave."""
        expires_at = now + CLAIM_SECONDS
        self.keep(Claim(workload.key, assignments, tuple(sorted(victims)), expires_at))

    def review(self, original: Workload) -> None:
        """End the claims of grown copies that are worthless now that ``original`` has changed."""
        waiting = self.waiting_in(original.queue or "")
        for key in [k for k in waiting if self._workloads[k].replaces == original.key]:
            claim = self.lift(key)
            assert claim is not None
            self.keep(claim)

    @contextmanager
    def lifted(self, keys: Iterable[str]) -> Iterator[None]:
        """Look at the books without these claims; they are back afterwards."""
        with self._books.trial():
            for key in keys:
                claim = self._claims[key]
                self._books.drop(self._workloads[key], claim.assignments, self._books.coming)
            yield

    def standing(self) -> tuple[Claim, ...]:
        """Return the claims for the next cycle."""
        return tuple(claim for _, claim in sorted(self._claims.items()))

    # -- who evicted whom -------------------------------------------------------------------

    def remember(self, victim: str, preemptor: str) -> None:
        """Note who evicted whom."""
        self._preemptors.setdefault(victim, set()).add(preemptor)
        self._victims.setdefault(preemptor, set()).add(victim)

    def forget(self, key: str) -> None:
        """Forget a workload that is gone, as victim and as preemptor."""
        for preemptor in self._preemptors.pop(key, ()):
            self._victims[preemptor].discard(key)
        for victim in self._victims.pop(key, ()):
            self._preemptors[victim].discard(key)

    def evicted_by(self) -> tuple[tuple[str, str], ...]:
        """Return the pairs (victim, preemptor) for the next cycle."""
        pairs = ((v, p) for v, preemptors in self._preemptors.items() for p in preemptors)
        return tuple(sorted(pairs))

    def protected_from(self, key: str) -> frozenset[str]:
        """Return whom ``key`` may not evict: its preemptors, theirs, and so on."""
        if key not in self._preemptors:
            return frozenset()
        seen: set[str] = set()
        found = [key]
        for victim in found:
            fresh = self._preemptors.get(victim, set()) - seen
            found.extend(fresh)
            seen |= fresh
        return frozenset(seen)
