"""Choosing victims: nobody is evicted unless the preemptor's whole gang is then placed.

Source: ``FORMAT.md`` 7.3 and 7.4; victims by feasibility (``decisions.md`` 4.5).
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite

from scheduling.engine.books import Books, within
from scheduling.engine.candidates import (
    Attempt,
    Candidate,
    Candidates,
    Grounds,
    Running,
    Selection,
)
from scheduling.engine.cutting import Cutting
from scheduling.engine.domain_victims import by_domain, price
from scheduling.engine.fair_preemption import FairPreemption
from scheduling.engine.fairness import Regime
from scheduling.engine.flavors import Assigner, Option
from scheduling.engine.giving_back import give_back
from scheduling.engine.grades import Grade, Mode, Standing
from scheduling.engine.profile import RECOMMENDED, Profile
from scheduling.engine.prospects import Prospects
from scheduling.engine.snapshot import Assignment, Workload
from scheduling.engine.stage import SoonStage
from scheduling.engine.tenure import safe_until
from scheduling.engine.tree import queue_key
from scheduling.engine.ways import Way, Ways, levels

BEST = Grade(Mode.RECLAIM)


@dataclass(frozen=True, slots=True)
class Rescue:
    """Whom to evict, and where the preemptor is going to stand, borrowing as ``standing`` says."""

    victims: tuple[Candidate, ...]
    assignments: tuple[Assignment, ...]
    standing: Standing


@dataclass(frozen=True, slots=True)
class Shelter:
    """Room could be made at ``until``: the minimum runtime still protects ``victims``."""

    victims: tuple[str, ...]
    until: float


class Preemptor:
    """Looks for victims in the ``soon`` account; leaves the books as it found them."""

    def __init__(
        self,
        books: Books,
        assigner: Assigner,
        running: Running,
        regime: Regime,
        cutting: Cutting,
        *,
        consumption: Callable[[Workload], float],
        profile: Profile = RECOMMENDED,
    ) -> None:
        self._books, self._assigner, self._running = books, assigner, running
        self._cutting = cutting
        self._ledger, self._queues = books.soon.ledger, books.snapshot.cluster_queues
        self._profile, self.now = profile, books.snapshot.now
        queues = sorted(self._queues.items())
        self._granting = [queue_key(n) for n, queue in queues if queue.minimum_runtime.seconds]
        self._consumption = consumption
        self._stage, self._regime = SoonStage(books), regime
        self._fair = FairPreemption(self._stage, regime)
        self.prospects = Prospects(books, running, regime, self._fair)
        self._last = self._grounds_at(self.now)
        self.ways = Ways(assigner)
        self.trials = 0
        self.spared: set[str] = set()  # whom a search passed over because they are protected

    def find(
        self,
        workload: Workload,
        protected: Collection[str],
        at: float | None = None,
        ways: Iterable[Way] | None = None,
    ) -> Rescue | None:
        """Return the best way to make room, or None.

        Args:
            workload: the preemptor.
            protected: who may not be evicted.
            at: judge as it would be at that instant, if everything went on as it stands.
            ways: the flavors to look at, in order; default: all that the queue has.

        Where gangs would have to go whole, or nobody can, though there is surplus, it is cut
        anew: the pods on the nodes that the preemptor can use become the surplus.
        """
        queue = self._books.queue(workload)
        if queue is None:
            return None
        every = tuple(self.ways.of(workload, queue) if ways is None else ways)
        best = self._find(workload, protected, at, every)
        if best is not None and all(victim.workload.part_of for victim in best.victims):
            return best
        for nodes in self._cutting.orders(workload, every):
            with self._cutting.by(nodes):
                other = self._find(workload, protected, at, every)
            if other is not None and (best is None or self._is_cheaper(other, best)):
                best = other
        return best

    def _is_cheaper(self, one: Rescue, other: Rescue) -> bool:
        return price(one.victims, self.now) < price(other.victims, self.now)

    def _find(
        self,
        workload: Workload,
        protected: Collection[str],
        at: float | None,
        ways: Iterable[Way],
    ) -> Rescue | None:
        """Return the best way to make room with the surplus as it is cut.

        By default, only to take back lent quota beats evicting the queue's own work, then
        borrowing from nearby beats borrowing from afar; the queue may prefer otherwise
        (``FORMAT`` 5.5). Ties: the earlier way.
        """
        queue = self._books.queue(workload)
        assert queue is not None
        grounds = self._grounds(self.now if at is None else at)
        preference = self._queues[queue.name].fungibility.preference
        best: Rescue | None = None
        for attempt, way in self.prospects.attempts(workload, queue, ways):
            rescue = self._for_flavors(attempt, way, protected, grounds)
            if rescue is None:
                continue
            if rescue.standing.grade == BEST:
                return rescue
            rank = rescue.standing.rank(preference)
            if best is None or rank > best.standing.rank(preference):
                best = rescue
        self.spared |= grounds.spared
        grounds.spared.clear()
        return best

    def level(self, piece: Workload, protected: Collection[str]) -> Rescue | None:
        """Return whose surplus a piece of a running gang takes, as far as shares allow; or None.

        For trees in which gangs take up to their fair share.
        """
        queue = self._books.queue(piece)
        assert queue is not None
        grounds = self._grounds(self.now)
        for attempt, way in self.prospects.attempts(piece, queue, self.ways.of(piece, queue)):
            fit = partial(self._fit, attempt, way.pinned, borrowing=True)
            plan = self._fair.level(attempt, grounds, protected, fit)
            if plan is not None and not plan.unfair:
                stands = Standing(Mode.RECLAIM, ())
                return Rescue(plan.victims, plan.assignments, stands)
        return None

    def _grounds(self, now: float) -> Grounds:
        if self._last.now != now:
            self._last = self._grounds_at(now)
        return self._last

    def _grounds_at(self, now: float) -> Grounds:
        ledger, staying = self._ledger, self._books.staying
        return Grounds(
            ledger, staying, self._queues, self._running, now, self._profile, self._consumption
        )

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
        grounds = self._grounds(self.now)
        safe = (work.key for work in works if grounds.safe(work, workload))
        return Shelter(tuple(sorted(safe)), until)

    def _instants(self, workload: Workload) -> list[float]:
        """Return when running work of the workload's tree loses its protection, in order."""
        queue = self._books.queue(workload)
        if queue is None or not self._granting:
            return []
        root_of = self._ledger.root
        root = root_of(queue)
        granting = (self._queues[key.name] for key in self._granting if root_of(key) == root)
        grounds = self._grounds(self.now)
        return sorted(
            {
                safe_until(spec, work)
                for spec in granting
                for work in self._running.of(spec.name)
                if grounds.safe(work, workload) and isfinite(safe_until(spec, work))
            }
        )

    def _for_flavors(
        self, attempt: Attempt, way: Way, protected: Collection[str], grounds: Grounds
    ) -> Rescue | None:
        if self._regime.is_fair(attempt.queue):
            return self._by_share(attempt, way, protected, grounds)
        candidates = Selection(attempt, grounds, protected).collect()
        if not candidates.all or not self._possible(attempt, way, candidates):
            return None
        for borrowing in grounds.passes(attempt, candidates):
            rescue = self._one_pass(attempt, way, candidates.all, borrowing=borrowing)
            if rescue is not None:
                return self._cheapest(attempt, way, candidates.all, rescue, borrowing=borrowing)
        return None

    def _cheapest(
        self,
        attempt: Attempt,
        way: Way,
        candidates: Sequence[Candidate],
        rescue: Rescue,
        *,
        borrowing: bool,
    ) -> Rescue:
        """Return the cheapest of ``rescue`` and those inside one required domain each."""
        pod_sets = attempt.preemptor.pod_sets
        if len(pod_sets) != 1 or pod_sets[0].topology is None or len(rescue.victims) <= 1:
            return rescue
        option = way.pinned[pod_sets[0].name]
        groups = by_domain(self._books.atlas, pod_sets[0], option, candidates)
        passes = (self._one_pass(attempt, way, one, borrowing=borrowing) for one in groups)
        found = [one for one in passes if one and one.standing == rescue.standing]
        return min([rescue, *found], key=lambda one: price(one.victims, self.now))

    def _by_share(
        self, attempt: Attempt, way: Way, protected: Collection[str], grounds: Grounds
    ) -> Rescue | None:
        def fit() -> tuple[Assignment, ...] | None:
            return self._fit(attempt, way.pinned, borrowing=True)

        plan = self._fair.find(attempt, grounds, protected, fit)
        if plan is None:
            return None
        with self._books.trial():
            for victim in plan.victims:
                self._stage.remove(victim.workload)
            stands = self._standing(attempt, way, plan.victims)
        return Rescue(plan.victims, plan.assignments, stands)

    def _standing(self, attempt: Attempt, way: Way, victims: Sequence[Candidate]) -> Standing:
        """Return how well the preemptor is served; these are off the books."""
        reclaims = all(victim.queue != attempt.queue for victim in victims)
        mode = Mode.RECLAIM if reclaims else Mode.PREEMPT
        return Standing(mode, levels([self._ledger], attempt.queue, way))

    def _possible(self, attempt: Attempt, way: Way, candidates: Candidates) -> bool:
        """Return whether the gang would fit with every candidate gone: cheap way out."""
        with self._books.trial():
            for candidate in candidates.all:
                self._stage.remove(candidate.workload)
            return self._fit(attempt, way.pinned, borrowing=True) is not None

    def _one_pass(
        self, attempt: Attempt, way: Way, candidates: Sequence[Candidate], *, borrowing: bool
    ) -> Rescue | None:
        """Evict one by one until the gang fits, then give back whom it does not need."""
        taken: list[Candidate] = []
        with self._books.trial():
            for candidate in candidates:
                if self._passed_over(attempt, candidate, borrowing=borrowing):
                    continue
                self._stage.remove(candidate.workload)
                taken.append(candidate)
                if self._fit(attempt, way.pinned, borrowing=borrowing) is not None:
                    return self._settled(attempt, way, taken, borrowing=borrowing)
        return None

    def _settled(
        self, attempt: Attempt, way: Way, taken: Sequence[Candidate], *, borrowing: bool
    ) -> Rescue:
        """Give back until nobody can be, and return who is left.

        One round suffices, and the last one taken is needed, where only room counts and one pod
        set takes it. Several pod sets may find another place once somebody is back; and where
        nobody is left who may not be taken while borrowing, the preemptor may borrow, and needs
        fewer (Kueue #1974). Then all are tried until a round returns nobody.
        """
        settled = borrowing and len(attempt.preemptor.pod_sets) <= 1
        needed = self._give_back(attempt, way, taken, borrowing=borrowing, keep_last=settled)
        while not settled:
            fewer = self._give_back(attempt, way, needed, borrowing=borrowing, keep_last=False)
            settled, needed = len(fewer) == len(needed), fewer
        assignments = self._fit(attempt, way.pinned, borrowing=borrowing or _may_borrow(needed))
        assert assignments is not None, "whoever was given back leaves the gang its place"
        return Rescue(needed, assignments, self._standing(attempt, way, needed))

    def _give_back(
        self,
        attempt: Attempt,
        way: Way,
        taken: Sequence[Candidate],
        *,
        borrowing: bool,
        keep_last: bool,
    ) -> tuple[Candidate, ...]:
        gone = {candidate.workload.key: candidate for candidate in taken}
        tried: list[Candidate] = []

        def restore(work: Workload) -> None:
            self._stage.put_back(work)
            tried.append(gone.pop(work.key))

        def fits() -> bool:
            may = borrowing or _may_borrow(gone.values())
            if self._fit(attempt, way.pinned, borrowing=may) is not None:
                return True
            gone[tried[-1].workload.key] = tried[-1]
            return False

        return give_back(taken, self._books.trial, restore, fits, keep_last=keep_last)

    def _passed_over(self, attempt: Attempt, candidate: Candidate, *, borrowing: bool) -> bool:
        """Return whether the candidate is safe in this pass.

        A foreign one is in a pass with borrowing if it may only be taken without; and it is once
        no contested column that it uses is borrowed by its queue and by every cohort below the
        common ancestor. Stricter than ``FORMAT`` 7.3, which adds the columns up: what is promised
        is promised column by column (``admission.md`` T2).
        """
        if candidate.queue == attempt.queue:
            return False
        if borrowing and not candidate.while_borrowing:
            return True
        used, staying = self._running.usage[candidate.workload.key], self._books.staying
        own = set(staying.path(attempt.queue))
        branch = [node for node in staying.path(candidate.queue) if node not in own]
        return not any(
            used[fr] and all(staying.borrowed(node, fr) for node in branch)
            for fr in attempt.contested
        )

    def _fit(
        self, attempt: Attempt, pinned: Mapping[str, Option], *, borrowing: bool
    ) -> tuple[Assignment, ...] | None:
        coming = self._books.coming
        if not within(coming, attempt.queue, attempt.usage):
            return None
        self.trials += 1
        nominal_only = frozenset() if borrowing else attempt.contested
        return self._assigner.assign(attempt.preemptor, coming, pinned, nominal_only)


def _may_borrow(gone: Iterable[Candidate]) -> bool:
    """Return whether each of them may be evicted though the preemptor borrows."""
    return all(candidate.while_borrowing for candidate in gone)
