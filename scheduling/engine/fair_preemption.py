"""Victims in a tree that shares: by dominant share, and only if it is still fair in the end.

Source: ``FORMAT.md`` 8.2 to 8.4; victims by feasibility (``decisions.md`` 4.5); stable fairness
(4.7): what giving back has made unfair drops the plan, so that no pair alternates (Kueue #14543).
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from scheduling.engine.candidates import Attempt, Candidate, Grounds
from scheduling.engine.fair_victims import (
    Hunt,
    Lines,
    allowed,
    lines_of,
    sides,
    within_nominal,
)
from scheduling.engine.fairness import Regime
from scheduling.engine.giving_back import give_back
from scheduling.engine.shares import borrowing, compared, reaching
from scheduling.engine.snapshot import Assignment, FlavorResource
from scheduling.engine.stage import SoonStage
from scheduling.engine.terms import FairStrategy
from scheduling.engine.tournament import Usage
from scheduling.engine.tree import QuotaKey

MAX_PLANS = 4  # plans looked at for one preemptor; each leaves out whom the last took unfairly

Fit = Callable[[], tuple[Assignment, ...] | None]


@dataclass(frozen=True, slots=True)
class FairPlan:
    """Whom to evict, where the preemptor will stand, and which victims it takes unfairly."""

    victims: tuple[Candidate, ...]
    assignments: tuple[Assignment, ...]
    unfair: frozenset[str] = frozenset()


class FairPreemption:
    """Looks for victims by share; leaves the books as it found them."""

    def __init__(self, stage: SoonStage, regime: Regime) -> None:
        self._stage, self._regime = stage, regime
        self._ledger = self._stage.ledger

    def find(
        self, attempt: Attempt, grounds: Grounds, protected: Collection[str], fit: Fit
    ) -> FairPlan | None:
        """Return a plan that is fair in the end, or None. ``protected`` may not be evicted.

        ``fit`` places the whole gang in what is free. Cost: at most ``MAX_PLANS`` searches, each
        O(candidates) fits and O(queues of the tree) shares for each victim.
        """
        spared = set(protected)
        for _ in range(MAX_PLANS):
            plan = self._plan(attempt, grounds, spared, fit)
            if plan is None or not plan.unfair:
                return plan
            spared |= plan.unfair
        return None

    def level(
        self, attempt: Attempt, grounds: Grounds, gone: Collection[str], fit: Fit
    ) -> FairPlan | None:
        """Return a plan that takes surplus of other queues alone, and leaves nobody less than us.

        So those who hold least hold more after each taking, and it ends. ``gone`` is protected.
        """
        lines = {
            key: [one for one in line if one.workload.part_of]
            for key, line in lines_of(attempt, grounds, gone).items()
            if key != attempt.queue
        }
        lines = {key: line for key, line in lines.items() if line}
        return self._taken(attempt, grounds, lines, fit, (FairStrategy.FINAL_SHARE,))

    def may_help(
        self, queue: QuotaKey, usage: Usage, contested: Collection[FlavorResource]
    ) -> bool:
        """Return whether any share would let the queue take others' work, before any is looked at.

        Within its nominal quota it may; else somebody at its side must have no smaller share than
        it would have: no strategy takes from a smaller one. ``usage`` is what it asks for, less
        what its own work may give. Cost: O(children on its path) shares.
        """
        if not borrowing(self._ledger, queue, {fr: usage[fr] for fr in contested}):
            return True
        shares = self._regime.shares
        for node, amounts in reaching(self._ledger, queue, usage):
            mine = compared(shares.of(node, amounts))
            parent = self._ledger.nodes[node].parent
            for other in self._ledger.children.get(parent, ()) if parent else ():
                if other != node and compared(shares.of(other)) >= mine:
                    return True
        return False

    def _plan(
        self, attempt: Attempt, grounds: Grounds, spared: Collection[str], fit: Fit
    ) -> FairPlan | None:
        lines = lines_of(attempt, grounds, spared)
        return self._taken(attempt, grounds, lines, fit, self._regime.strategies)

    def _taken(
        self,
        attempt: Attempt,
        grounds: Grounds,
        lines: Lines,
        fit: Fit,
        strategies: Sequence[FairStrategy],
    ) -> FairPlan | None:
        if not lines or not self._possible(lines, fit):
            return None
        found: tuple[Assignment, ...] | None = None

        def fits() -> bool:
            nonlocal found
            again = fit()
            found = again or found
            return again is not None

        with self._stage.trial():
            hunt = Hunt(self._stage, self._regime.shares, attempt, fits, grounds)
            taken = hunt.run(lines, strategies)
            if not taken:
                return None
            victims = self._give_back(attempt, taken, fits)
            return FairPlan(victims, found or (), self._unfair(attempt, victims))

    def _give_back(
        self, attempt: Attempt, taken: Sequence[Candidate], fits: Callable[[], bool]
    ) -> tuple[Candidate, ...]:
        """Give back until nobody can be. One pod set is placed exactly: then one round does."""
        exact = len(attempt.preemptor.pod_sets) <= 1
        trial, restore = self._stage.trial, self._stage.put_back
        needed = give_back(taken, trial, restore, fits, keep_last=exact)
        while not exact:
            fewer = give_back(needed, trial, restore, fits, keep_last=False)
            exact, needed = len(fewer) == len(needed), fewer
        return needed

    def _possible(self, lines: Lines, fit: Fit) -> bool:
        """Return whether the gang would fit with every candidate gone: cheap way out."""
        with self._stage.trial():
            for line in lines.values():
                for candidate in line:
                    self._stage.remove(candidate.workload)
            return fit() is not None

    def _unfair(self, attempt: Attempt, victims: tuple[Candidate, ...]) -> frozenset[str]:
        """Return the foreign victims that no strategy allows, everything being as it will be."""
        self._stage.charge(attempt.queue, attempt.usage)
        foreign = [victim for victim in victims if victim.queue != attempt.queue]
        unfair: frozenset[str] = frozenset()
        if not within_nominal(self._ledger, attempt):
            unfair = frozenset(v.workload.key for v in foreign if not self._is_fair(attempt, v))
        self._stage.give(attempt.queue, attempt.usage)
        return unfair

    def _is_fair(self, attempt: Attempt, victim: Candidate) -> bool:
        ours, theirs = sides(self._ledger, attempt.queue, victim.queue)
        shares = self._regime.shares
        mine, after = shares.of(ours), shares.of(theirs)
        with self._stage.trial():
            self._stage.put_back(victim.workload)
            before = shares.of(theirs)
        return any(allowed(rule, mine, before, after) for rule in self._regime.strategies)
