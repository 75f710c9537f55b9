"""Whom to evict under fair sharing (``FORMAT.md`` 8.2 and 8.3)."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from scheduling.engine.candidates import Attempt, Candidate, Selection, VictimOrder, victim_order
from scheduling.engine.kueue.picture import Picture
from scheduling.engine.kueue.victims import Need, give_back, grounds
from scheduling.engine.quota import Kind, QuotaKey
from scheduling.engine.shares import Share, Shares, compared
from scheduling.engine.terms import FairStrategy, PreemptionReason, ReclaimWithinCohort

Lines = dict[QuotaKey, list[Candidate]]  # candidates by queue, first in turn first


class FairVictims:
    """By share: whoever holds most above its due gives first."""

    def __init__(self, picture: Picture, shares: Shares) -> None:
        self._picture, self._shares = picture, shares
        self._grounds = grounds(picture)

    def find(self, need: Need, gone: Collection[str]) -> tuple[Candidate, ...]:
        """Return whom to evict, or nobody."""
        picture, attempt = self._picture, need.attempt
        lines = self._lines(attempt, gone)
        if not lines:
            return ()

        def fits() -> bool:
            return picture.fits(attempt.queue, attempt.usage) and need.placed()

        with picture.trial():
            hunt = _Hunt(picture, self._shares, attempt, fits)
            taken = hunt.run(lines, picture.snapshot.fair_strategies)
            return give_back(picture, taken, fits) if taken else ()

    def _lines(self, attempt: Attempt, gone: Collection[str]) -> Lines:
        selection = Selection(attempt, self._grounds, gone)
        lines = {attempt.queue: list(selection.own())}
        rights = self._picture.queues[attempt.queue.name].preemption
        ledger = self._picture.ledger
        if rights.reclaim_within_cohort is not ReclaimWithinCohort.NEVER:
            for key in ledger.members(ledger.root(attempt.queue)):
                if key.kind is Kind.QUEUE and key != attempt.queue:
                    lines[key] = list(selection.of_borrower(key))
        return {key: line for key, line in lines.items() if line}


class _Hunt:
    """One search, in a running trial. Shares count the request, the test of fit does not."""

    def __init__(
        self, picture: Picture, shares: Shares, attempt: Attempt, fits: Callable[[], bool]
    ) -> None:
        self._picture, self._shares, self._attempt, self._fits = picture, shares, attempt, fits
        self._path = picture.ledger.path(attempt.queue)
        self._taken: list[Candidate] = []

    def run(self, lines: Lines, strategies: Sequence[FairStrategy]) -> list[Candidate]:
        """Return the victims with which it fits; the request is off the books again."""
        self._picture.charge(self._attempt.queue, self._attempt.usage)
        failed: Lines = {}
        done = self._first(lines, strategies[0], failed)
        if not done and len(strategies) > 1:
            done = self._second(failed)
        self._picture.give(self._attempt.queue, self._attempt.usage)
        return self._taken if done else []

    def _first(self, lines: Lines, strategy: FairStrategy, failed: Lines) -> bool:
        pruned: set[QuotaKey] = set()
        while (target := self._target(self._path[-1], lines, pruned)) is not None:
            line = lines[target]
            if target == self._attempt.queue:
                done = self._take(line.pop(0), PreemptionReason.IN_CLUSTER_QUEUE)
            elif self._picture.within(
                self._attempt.queue, dict.fromkeys(self._attempt.contested, 0)
            ):
                done = self._take(line.pop(0), PreemptionReason.IN_COHORT_RECLAMATION)
            else:
                done = self._first_fair(target, line, strategy, failed)
            if done:
                return True
        return False

    def _first_fair(
        self, target: QuotaKey, line: list[Candidate], strategy: FairStrategy, failed: Lines
    ) -> bool:
        """Take the first candidate of the line that the strategy allows."""
        ours, theirs = self._sides(target)
        mine, before = self._shares.of(ours), self._shares.of(theirs)
        while line:
            candidate = line.pop(0)
            if _allowed(strategy, mine, before, self._share_without(candidate, theirs)):
                return self._take(candidate, PreemptionReason.IN_COHORT_FAIR_SHARING)
            failed.setdefault(target, []).append(candidate)
        return False

    def _second(self, lines: Lines) -> bool:
        """Go through those that failed, at most once for each queue."""
        pruned: set[QuotaKey] = set()
        while (target := self._target(self._path[-1], lines, pruned)) is not None:
            ours, theirs = self._sides(target)
            mine, before = self._shares.of(ours), self._shares.of(theirs)
            candidate = lines.pop(target)[0]
            if _allowed(FairStrategy.INITIAL_SHARE, mine, before, before) and self._take(
                candidate, PreemptionReason.IN_COHORT_FAIR_SHARING
            ):
                return True
        return False

    def _take(self, candidate: Candidate, right: PreemptionReason) -> bool:
        self._picture.remove(candidate.workload)
        self._taken.append(replace(candidate, right=right))
        self._picture.give(self._attempt.queue, self._attempt.usage)
        done = self._fits()
        self._picture.charge(self._attempt.queue, self._attempt.usage)
        return done

    def _share_without(self, candidate: Candidate, node: QuotaKey) -> Share:
        with self._picture.trial():
            self._picture.remove(candidate.workload)
            return self._shares.of(node)

    def _sides(self, target: QuotaKey) -> tuple[QuotaKey, QuotaKey]:
        """Return the two nodes just below the lowest common ancestor."""
        theirs = self._picture.ledger.path(target)
        common = next(node for node in theirs if node in self._path)
        ours = self._path[self._path.index(common) - 1]
        return ours, theirs[theirs.index(common) - 1]

    def _target(self, top: QuotaKey, lines: Lines, pruned: set[QuotaKey]) -> QuotaKey | None:
        """Return the queue that gives next. Pruned nodes never come back in this search."""
        if top.kind is Kind.QUEUE:
            return top if lines.get(top) else None
        while top not in pruned:
            found = self._descend(top, lines, pruned)
            if found is not None:
                return found
        return None

    def _descend(self, cohort: QuotaKey, lines: Lines, pruned: set[QuotaKey]) -> QuotaKey | None:
        best: QuotaKey | None = None
        for child in self._picture.ledger.children.get(cohort, ()):
            if child in pruned:
                continue
            out = not self._shares.of(child).borrows and child not in self._path
            if out or (child.kind is Kind.QUEUE and not lines.get(child)):
                pruned.add(child)
            elif best is None or self._before(child, best, lines):
                best = child
        if best is None:
            pruned.add(cohort)
            return None
        return best if best.kind is Kind.QUEUE else self._descend(best, lines, pruned)

    def _before(self, child: QuotaKey, best: QuotaKey, lines: Lines) -> bool:
        """Return whether ``child`` gives before ``best``: larger share, cohort, better victim."""
        mine, other = compared(self._shares.of(child)), compared(self._shares.of(best))
        if mine != other:
            return mine > other
        if child.kind is not best.kind:
            return child.kind is Kind.COHORT
        if child.kind is Kind.COHORT:
            return False
        return self._turn(lines[child][0]) < self._turn(lines[best][0])

    def _turn(self, candidate: Candidate) -> tuple[bool, VictimOrder]:
        return candidate.queue == self._attempt.queue, victim_order(candidate.workload)


def _allowed(strategy: FairStrategy, mine: Share, before: Share, after: Share) -> bool:
    if strategy is FairStrategy.FINAL_SHARE:
        return compared(mine) <= compared(after)
    return compared(mine) < compared(before)
