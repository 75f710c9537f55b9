"""Who of another queue goes before waiting work by the fairness of their tree, and why.

Told from the state as a cycle left it, and from whom that cycle started. Somebody more urgent who
goes first needs no explanation; somebody less urgent does.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from scheduling.engine.entries import never
from scheduling.engine.fair_victims import sides
from scheduling.engine.gates import shut
from scheduling.engine.ordering import least_borrowing, urgency
from scheduling.engine.plan import Admit, Blocker, Move
from scheduling.engine.snapshot import Workload
from scheduling.engine.standing import standing
from scheduling.engine.state import State
from scheduling.engine.terms import BlockerCode, Fairness
from scheduling.engine.tournament import Contender, Footing, Tournament, Usage
from scheduling.engine.tree import Kind, QuotaKey

STARTED = "Started"  # the rival runs by now: it went first, and nobody goes first any more


@dataclass(frozen=True, slots=True)
class Rival:
    """Somebody whose turn comes, or came, before another's; ``usage``: what it asks for still."""

    workload: Workload
    queue: QuotaKey
    usage: Usage


class Rivals:
    """Answers for one plan. Cost: one tournament of heads for each tree that is asked for."""

    def __init__(self, state: State, moves: Iterable[Move] = ()) -> None:
        self._state, self._regime = state, state.regime
        self._ledger = state.books.soon.ledger
        self._started: dict[QuotaKey, list[Rival]] = {}  # by root
        self._next: dict[QuotaKey, Rival | None] = {}  # by root
        for move in moves:
            if isinstance(move, Admit):
                self._note(state.workloads[move.workload])

    def _note(self, workload: Workload) -> None:
        """Remember somebody who started; what it asked for is in the books already."""
        queue = self._state.books.queue(workload)
        if queue is not None and self._regime.is_fair(queue) and workload.admission:
            charge = self._state.books.charge(workload, standing(workload))
            rival = Rival(workload, queue, dict.fromkeys((fr for fr, _ in charge), 0))
            self._started.setdefault(self._ledger.root(queue), []).append(rival)

    def ahead(self, workload: Workload) -> Iterator[Blocker]:
        """Yield who started in its place in this cycle, else the one whose turn is next."""
        queue = self._state.books.queue(workload)
        if queue is None or not self._regime.is_fair(queue) or self._state.favoured(workload.key):
            return
        root = self._ledger.root(queue)
        mine = Rival(workload, queue, self._asks(workload))
        before = [one for one in self._started.get(root, ()) if self._overtook(one, mine)]
        if before and self._fits_without(before, workload):
            yield self._told(before[-1], mine, {"cause": STARTED})
            return
        following = self._whose_turn(root)
        shared = following is not None and following.usage.keys() & mine.usage.keys()
        if following is not None and shared and self._overtook(following, mine):
            yield self._told(following, mine, {})

    def _asks(self, workload: Workload) -> Usage:
        return least_borrowing(self._state.books, self._state.assigner, workload).usage

    def _overtook(self, rival: Rival, mine: Rival) -> bool:
        """Return whether it is fairness, not urgency, that put the rival first."""
        if rival.queue == mine.queue or urgency(rival.workload) < urgency(mine.workload):
            return False
        theirs, ours = self._footings(rival, mine)
        return theirs < ours

    def _footings(self, rival: Rival, mine: Rival) -> tuple[Footing, Footing]:
        ours, theirs = sides(self._ledger, mine.queue, rival.queue)
        footing = self._regime.footing
        return footing(rival.queue, rival.usage, theirs), footing(mine.queue, mine.usage, ours)

    def _fits_without(self, rivals: list[Rival], workload: Workload) -> bool:
        books = self._state.books
        with books.trial():
            for rival in rivals:
                books.drop(rival.workload, standing(rival.workload), books.both)
            return self._state.assigner.assign(workload, books.both) is not None

    def _whose_turn(self, root: QuotaKey) -> Rival | None:
        """Return who of the tree is looked at first when something comes free."""
        if root not in self._next:
            self._next[root] = self._play(root)
        return self._next[root]

    def _play(self, root: QuotaKey) -> Rival | None:
        tournament = Tournament[Workload](
            self._ledger, lambda one, at: self._regime.footing(one.queue, one.usage, at)
        )
        for queue in self._ledger.members(root):
            head = self._head(queue)
            if head is not None:
                usage = self._asks(self._state.asking(head))
                tournament.enter(Contender(queue, usage, urgency(head), head))
                tournament.replay(queue)
        while (champion := tournament.champion(root)) is not None:
            if not never(self._state, champion.who):
                return Rival(champion.who, champion.queue, champion.usage)
            tournament.withdraw(champion.queue)
            tournament.replay(champion.queue)
        return None

    def _head(self, queue: QuotaKey) -> Workload | None:
        state = self._state
        known = queue.kind is Kind.QUEUE and queue.name in state.lines.queues()
        if not known or shut(state.platform, state.circular, queue.name) is not None:
            return None
        key = next((key for key in state.walk(queue.name) if not state.favoured(key)), None)
        return None if key is None else state.workloads[key]

    def _told(self, rival: Rival, mine: Rival, cause: Mapping[str, str]) -> Blocker:
        """Return the blocker: who goes first, and how both parts of the tree stand."""
        ours, theirs = sides(self._ledger, mine.queue, rival.queue)
        their_footing, our_footing = self._footings(rival, mine)
        parent = self._ledger.nodes[ours].parent
        facts: dict[str, str | int] = {
            **cause,
            "first": rival.workload.key,
            "rival": theirs.name,
            "own": ours.name,
        }
        code = BlockerCode.NOMINAL_FIRST
        if their_footing.borrows == our_footing.borrows:
            history = self._regime.mode(ours) is Fairness.HISTORY
            code = BlockerCode.USED_MORE if history else BlockerCode.LARGER_SHARE
            facts |= self._figures("their", theirs, their_footing, history=history)
            facts |= self._figures("our", ours, our_footing, history=history)
        return Blocker(code, where=parent.name if parent else "", facts=facts)

    def _figures(
        self, prefix: str, node: QuotaKey, footing: Footing, *, history: bool
    ) -> dict[str, str | int]:
        if not history:
            return {f"{prefix}_share": f"{footing.figure[0] / 10:.1f}"}
        past = self._regime.history
        return {
            f"{prefix}_hours": f"{past.hours(node):.1f}",
            f"{prefix}_gpus": past.promised(node),
        }
