"""Whom to evict by share: whoever holds most above its due gives first (``FORMAT.md`` 8.2, 8.3).

For both profiles. Equal shares of two cohorts go to the one with the better victim, so that the
same world always gives the same answer (``admission.md`` T1).
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from math import isinf
from typing import Any, Protocol

from scheduling.engine.candidates import Attempt, Candidate, Grounds, Selection
from scheduling.engine.journal import Trial
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.shares import Compared, Share, Shares, borrowing, compared
from scheduling.engine.snapshot import Workload
from scheduling.engine.terms import FairStrategy, PreemptionReason, ReclaimWithinCohort
from scheduling.engine.tournament import Usage
from scheduling.engine.tree import Kind, QuotaKey

Lines = dict[QuotaKey, list[Candidate]]  # candidates by queue, first in turn first


class Stage(Protocol):
    """Where evictions are tried out: a ledger, and what stands on it."""

    @property
    def ledger(self) -> QuotaLedger:
        """Return the account in which shares are compared."""
        ...

    def trial(self) -> Trial:
        """Open a block whose changes are undone unless kept."""
        ...

    def charge(self, queue: QuotaKey, usage: Usage) -> None:
        """Charge quota alone."""
        ...

    def give(self, queue: QuotaKey, usage: Usage) -> None:
        """Undo a charge."""
        ...

    def remove(self, work: Workload) -> None:
        """Take running work away."""
        ...

    def put_back(self, work: Workload) -> None:
        """Undo a removal."""
        ...


def lines_of(attempt: Attempt, grounds: Grounds, gone: Collection[str]) -> Lines:
    """Return the candidates by queue: the own, and all of the tree that borrow what is needed."""
    selection, ledger = Selection(attempt, grounds, gone), grounds.ledger
    lines = {attempt.queue: list(selection.own())}
    rights = grounds.queues[attempt.queue.name].preemption
    if rights.reclaim_within_cohort is not ReclaimWithinCohort.NEVER:
        for key in ledger.members(ledger.root(attempt.queue)):
            if key.kind is Kind.QUEUE and key != attempt.queue:
                lines[key] = list(selection.of_borrower(key))
    return {key: line for key, line in lines.items() if line}


def within_nominal(ledger: QuotaLedger, attempt: Attempt) -> bool:
    """Return whether the preemptor's queue, its request charged, owns all that is contested."""
    return not borrowing(ledger, attempt.queue, dict.fromkeys(attempt.contested, 0))


def sides(ledger: QuotaLedger, ours: QuotaKey, theirs: QuotaKey) -> tuple[QuotaKey, QuotaKey]:
    """Return the nodes above two queues just below their lowest common cohort."""
    mine, other = ledger.path(ours), ledger.path(theirs)
    common = next(node for node in other if node in mine)
    return mine[mine.index(common) - 1], other[other.index(common) - 1]


def allowed(strategy: FairStrategy, mine: Share, before: Share, after: Share) -> bool:
    """Return whether a preemptor with share ``mine`` may take a victim, by this strategy."""
    if strategy is FairStrategy.FINAL_SHARE:
        return compared(mine) <= compared(after)
    return compared(mine) < compared(before)


class Hunt:
    """One search, in a running trial. Shares count the request, the test of fit does not."""

    def __init__(
        self,
        stage: Stage,
        shares: Shares,
        attempt: Attempt,
        fits: Callable[[], bool],
        grounds: Grounds,
    ) -> None:
        self._stage, self._shares, self._attempt = stage, shares, attempt
        self._fits, self._order, self._ledger = fits, grounds.order, stage.ledger
        self._running, self._own_is_safe = grounds.running, grounds.profile.own_quota_safe
        self._path = self._ledger.path(attempt.queue)
        self._taken: list[Candidate] = []

    def run(self, lines: Lines, strategies: Sequence[FairStrategy]) -> list[Candidate]:
        """Return the victims with which it fits; the request is off the books again."""
        self._stage.charge(self._attempt.queue, self._attempt.usage)
        failed: Lines = {}
        done = self._first(lines, strategies[0], failed)
        if not done and len(strategies) > 1:
            done = self._second(failed)
        self._stage.give(self._attempt.queue, self._attempt.usage)
        return self._taken if done else []

    def _first(self, lines: Lines, strategy: FairStrategy, failed: Lines) -> bool:
        pruned: set[QuotaKey] = set()
        while (target := self._target(self._path[-1], lines, pruned)) is not None:
            line = lines[target]
            if target == self._attempt.queue:
                done = self._take(line.pop(0), PreemptionReason.IN_CLUSTER_QUEUE)
            elif within_nominal(self._ledger, self._attempt):
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
        ours, theirs = sides(self._ledger, self._attempt.queue, target)
        mine, before = self._shares.of(ours), self._shares.of(theirs)
        while line:
            candidate = line.pop(0)
            if self._cuts_own(candidate):
                continue
            after = self._share_without(candidate, theirs)
            if allowed(strategy, mine, before, after):
                return self._take_fairly(candidate, mine, before, after)
            failed.setdefault(target, []).append(candidate)
        return False

    def _second(self, lines: Lines) -> bool:
        """Go through those that failed, at most once for each queue."""
        pruned: set[QuotaKey] = set()
        while (target := self._target(self._path[-1], lines, pruned)) is not None:
            ours, theirs = sides(self._ledger, self._attempt.queue, target)
            mine, before = self._shares.of(ours), self._shares.of(theirs)
            candidate = lines.pop(target)[0]
            fair = allowed(FairStrategy.INITIAL_SHARE, mine, before, before)
            if not fair or self._cuts_own(candidate):
                continue
            after = self._share_without(candidate, theirs)
            if self._take_fairly(candidate, mine, before, after):
                return True
        return False

    def _cuts_own(self, candidate: Candidate) -> bool:
        """Return whether its queue would be left with less than its own of what is contested.

        Who borrows takes no more than loans by share: own quota is judged column by column, and
        before any share (``admission.md`` T2, Kueue #9406).
        """
        if not self._own_is_safe:
            return False
        used = self._running.usage[candidate.workload.key]
        columns = [fr for fr in self._attempt.contested if used[fr]]
        ledger, queue = self._ledger, candidate.queue
        if not self._running.has_surplus(queue.name):
            return any(
                ledger.used(queue, fr) - used[fr] < ledger.promised(queue, fr) for fr in columns
            )
        with self._stage.trial():  # a gang takes its surplus along
            self._stage.remove(candidate.workload)
            return any(ledger.used(queue, fr) < ledger.promised(queue, fr) for fr in columns)

    def _take_fairly(self, candidate: Candidate, mine: Share, before: Share, after: Share) -> bool:
        """Take a victim by share, and keep the figures for the one who has to be told."""
        shares = Compared(*(None if isinf(s.value) else s.value for s in (mine, before, after)))
        return self._take(
            replace(candidate, shares=shares), PreemptionReason.IN_COHORT_FAIR_SHARING
        )

    def _take(self, candidate: Candidate, right: PreemptionReason) -> bool:
        self._stage.remove(candidate.workload)
        self._taken.append(replace(candidate, right=right))
        self._stage.give(self._attempt.queue, self._attempt.usage)
        done = self._fits()
        self._stage.charge(self._attempt.queue, self._attempt.usage)
        return done

    def _share_without(self, candidate: Candidate, node: QuotaKey) -> Share:
        with self._stage.trial():
            self._stage.remove(candidate.workload)
            return self._shares.of(node)

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
        for child in self._ledger.children.get(cohort, ()):
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
        turn, rival = self._turn(child, lines), self._turn(best, lines)
        return turn is not None and (rival is None or turn < rival)

    def _turn(self, node: QuotaKey, lines: Lines) -> tuple[bool, Any] | None:
        """Return the place of the first victim in or below the node; None: there is none."""
        firsts = (lines[key][0] for key in self._ledger.members(node) if lines.get(key))
        turns = ((c.queue == self._attempt.queue, self._order(c.workload)) for c in firsts)
        return min(turns, default=None)
