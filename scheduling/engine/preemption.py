"""Choosing victims: nobody is evicted unless the preemptor's whole gang is then placed.

Source: ``FORMAT.md`` 7.3 and 7.4; victims by feasibility (``decisions.md`` 4.5).
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import islice, product
from math import isfinite

from scheduling.engine.books import Books, available
from scheduling.engine.candidates import (
    Attempt,
    Candidate,
    Candidates,
    Grounds,
    Running,
    Selection,
)
from scheduling.engine.flavors import Assigner, Option
from scheduling.engine.ordering import total_usage
from scheduling.engine.profile import RECOMMENDED, Profile
from scheduling.engine.quota import Kind, QuotaKey
from scheduling.engine.snapshot import Assignment, FlavorResource, Workload
from scheduling.engine.tenure import safe_until
from scheduling.engine.terms import BorrowWithinCohort

MAX_COMBINATIONS = 16  # flavor combinations for which victims are looked for


@dataclass(frozen=True, slots=True)
class Rescue:
    """Whom to evict, and where the preemptor is going to stand."""

    victims: tuple[Candidate, ...]
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class Shelter:
    """Room could be made at ``until``: the minimum runtime still protects ``victims``."""

    victims: tuple[str, ...]
    until: float


class Preemptor:
    """Looks for victims in the ``soon`` account; leaves the books as it found them."""

    def __init__(
        self, books: Books, assigner: Assigner, running: Running, profile: Profile = RECOMMENDED
    ) -> None:
        self._books, self._assigner, self._running = books, assigner, running
        self._ledger, self._queues = books.soon.ledger, books.snapshot.cluster_queues
        now = books.snapshot.now
        grounds = Grounds(self._ledger, books.staying, self._queues, running, now, profile)
        self._grounds = grounds
        self.trials = 0

    def find(
        self, workload: Workload, protected: Collection[str], at: float | None = None
    ) -> Rescue | None:
        """Return the best way to make room, or None. ``protected`` may not be evicted.

        Among the flavor combinations, in their order, one that only takes back lent quota
        beats one that evicts the queue's own work (``FORMAT`` 5.5). ``at``: as it would be at
        that instant, if everything went on as it stands.
        """
        queue = self._books.queue(workload)
        if queue is None:
            return None
        grounds = self._grounds if at is None else replace(self._grounds, now=at)
        second_best: Rescue | None = None
        for pinned in self._combinations(workload):
            rescue = self._for_flavors(workload, queue, pinned, protected, grounds)
            if rescue and all(victim.queue != queue for victim in rescue.victims):
                return rescue
            second_best = second_best or rescue
        return second_best

    def shelter(self, workload: Workload, protected: Collection[str]) -> Shelter | None:
        """Return until when nothing but a minimum runtime keeps the workload from its room.

        None where time alone makes no room. Cost: a :meth:`find` for each halving of the
        instants at which somebody in the tree loses protection.
        """
        instants = self._instants(workload)
        if not instants or self.find(workload, protected, instants[-1]) is None:
            return None

        def makes_room(at: float) -> bool:
            return self.find(workload, protected, at) is not None

        last = len(instants) - 1
        until = instants[bisect_left(instants, True, hi=last, key=makes_room)]
        rescue = self.find(workload, protected, until)
        works = [victim.workload for victim in rescue.victims] if rescue else []
        safe = (work.key for work in works if self._grounds.safe(work, workload))
        return Shelter(tuple(sorted(safe)), until)

    def _instants(self, workload: Workload) -> list[float]:
        """Return when running work of the workload's tree loses its protection, in order."""
        queue = self._books.queue(workload)
        if queue is None:
            return []
        members = self._ledger.members(self._ledger.root(queue))
        granting = (
            self._queues[key.name]
            for key in members
            if key.kind is Kind.QUEUE and self._queues[key.name].minimum_runtime.seconds
        )
        return sorted(
            {
                safe_until(spec, work)
                for spec in granting
                for work in self._running.of(spec.name)
                if self._grounds.safe(work, workload) and isfinite(safe_until(spec, work))
            }
        )

    def _combinations(self, workload: Workload) -> Iterator[dict[str, Option]]:
        names = [pod_set.name for pod_set in workload.pod_sets]
        options = [self._assigner.options(workload, p).choices for p in workload.pod_sets]
        for chosen in islice(product(*options), MAX_COMBINATIONS):
            yield dict(zip(names, chosen, strict=True))

    def _for_flavors(
        self,
        workload: Workload,
        queue: QuotaKey,
        pinned: dict[str, Option],
        protected: Collection[str],
        grounds: Grounds,
    ) -> Rescue | None:
        usage = total_usage(workload, pinned)
        attempt = Attempt(workload, queue, usage, self._contested(queue, usage))
        if not self._eligible(attempt):
            return None
        candidates = Selection(attempt, grounds, protected).collect()
        if not candidates.all or not self._possible(attempt, pinned, candidates):
            return None
        for borrowing in self._passes(attempt, candidates):
            rescue = self._one_pass(attempt, pinned, candidates, borrowing=borrowing)
            if rescue is not None:
                return rescue
        return None

    def _contested(
        self, queue: QuotaKey, usage: dict[FlavorResource, int]
    ) -> frozenset[FlavorResource]:
        """Return the columns without enough quota; all of them if only nodes are missing."""
        sides = self._books.coming
        short = frozenset(
            fr for fr, amount in usage.items() if amount > available(sides, queue, fr)
        )
        return short or frozenset(fr for fr, amount in usage.items() if amount)

    def _eligible(self, attempt: Attempt) -> bool:
        """Return whether eviction may be tried at all (``FORMAT`` 5.3)."""
        rights = self._books.snapshot.cluster_queues[attempt.queue.name].preemption
        borrowing = rights.borrow_within_cohort is not BorrowWithinCohort.NEVER
        return all(
            amount <= self._ledger.potential(attempt.queue, fr)
            and (
                fr not in attempt.contested
                or borrowing
                or self._entitled(attempt.queue, fr, amount)
            )
            for fr, amount in attempt.usage.items()
        )

    def _entitled(self, queue: QuotaKey, fr: FlavorResource, amount: int) -> bool:
        """Return whether nothing has to be borrowed from the root: own quota or a subtree's."""
        if amount <= max(self._ledger.promised(queue, fr), self._ledger.available(queue, fr)):
            return True
        top = self._ledger.height(self._ledger.root(queue))
        return self._ledger.borrow_level(queue, fr, amount) < top

    def _passes(self, attempt: Attempt, candidates: Candidates) -> tuple[bool, ...]:
        rights = self._books.snapshot.cluster_queues[attempt.queue.name].preemption
        never = rights.borrow_within_cohort is BorrowWithinCohort.NEVER
        unused = all(self._ledger.fits_in(attempt.queue, fr, 1) for fr in attempt.contested)
        if not candidates.foreign or (never and not unused):
            return (True,)
        return (False, True) if never and not candidates.hierarchy else (True, False)

    def _possible(
        self, attempt: Attempt, pinned: dict[str, Option], candidates: Candidates
    ) -> bool:
        """Return whether the gang would fit with every candidate gone: cheap way out."""
        with self._books.trial():
            for candidate in candidates.all:
                self._evict(candidate)
            return self._fit(attempt, pinned, borrowing=True) is not None

    def _one_pass(
        self,
        attempt: Attempt,
        pinned: dict[str, Option],
        candidates: Candidates,
        *,
        borrowing: bool,
    ) -> Rescue | None:
        """Evict one by one until the gang fits, then give back whom it does not need."""
        taken: list[Candidate] = []
        with self._books.trial():
            for candidate in candidates.all:
                if self._passed_over(attempt, candidate, borrowing=borrowing):
                    continue
                self._evict(candidate)
                taken.append(candidate)
                found = self._fit(attempt, pinned, borrowing=borrowing)
                if found is not None:
                    return self._give_back(attempt, pinned, taken, found, borrowing=borrowing)
        return None

    def _give_back(
        self,
        attempt: Attempt,
        pinned: dict[str, Option],
        taken: list[Candidate],
        found: tuple[Assignment, ...],
        *,
        borrowing: bool,
    ) -> Rescue:
        needed = [taken[-1]]
        for candidate in reversed(taken[:-1]):
            with self._books.trial() as trial:
                self._restore(candidate)
                again = self._fit(attempt, pinned, borrowing=borrowing)
                if again is not None:
                    found = again
                    trial.keep()
            if again is None:
                needed.append(candidate)
        return Rescue(tuple(reversed(needed)), found)

    def _passed_over(self, attempt: Attempt, candidate: Candidate, *, borrowing: bool) -> bool:
        """Return whether the candidate is safe in this pass.

        A foreign one is, once its queue or a cohort below the common ancestor is back within
        its quota, and in a pass with borrowing if it may only be taken without.
        """
        if candidate.queue == attempt.queue:
            return False
        if borrowing and not candidate.while_borrowing:
            return True
        used, staying = self._running.usage[candidate.workload.key], self._books.staying
        columns = [fr for fr in attempt.contested if used[fr]]
        own = set(staying.path(attempt.queue))
        branch = [node for node in staying.path(candidate.queue) if node not in own]
        return any(all(not staying.borrowed(node, fr) for fr in columns) for node in branch)

    def _fit(
        self, attempt: Attempt, pinned: dict[str, Option], *, borrowing: bool
    ) -> tuple[Assignment, ...] | None:
        self.trials += 1
        nominal_only = frozenset() if borrowing else attempt.contested
        coming = self._books.coming
        return self._assigner.assign(attempt.preemptor, coming, pinned, nominal_only)

    def _evict(self, candidate: Candidate) -> None:
        work = candidate.workload
        assert work.admission is not None
        self._books.leave(work, work.admission.assignments)

    def _restore(self, candidate: Candidate) -> None:
        work = candidate.workload
        assert work.admission is not None
        self._books.hold(work, work.admission.assignments, self._books.coming)
        self._books.stay(work, work.admission.assignments)
