"""Whose turn it is among the heads of all queues.

Waiting preemptors come first, and gangs for which room is reserved. In a tree that shares by
``share`` or ``history`` a tournament finds the one who stands for it; those, and the heads of all
other queues, go by rank: borrow level, priority, age, key. (Trees share nodes, so there is one
order over all of them.)
"""

from collections.abc import Iterable

from scheduling.engine.ordering import (
    Ask,
    Heads,
    Rank,
    borrow_level,
    least_borrowing,
    urgency,
)
from scheduling.engine.snapshot import Workload
from scheduling.engine.state import State
from scheduling.engine.tournament import Contender, Tournament, Usage
from scheduling.engine.tree import QuotaKey


class Contest:
    """The heads of the queues, best first; the head of a fair tree is its champion.

    A tree is played again where one of its queues has changed, and only there, when the next
    turn is asked for. Cost: O(log queues) for each step, and in a fair tree one footing for
    each level.
    """

    def __init__(self, state: State) -> None:
        self._state, self._books, self._regime = state, state.books, state.regime
        self._ledger = state.books.soon.ledger
        self._heads = Heads(self._rank)
        self._tournament = Tournament[Workload](
            self._ledger, lambda one, at: state.regime.footing(one.queue, one.usage, at)
        )
        self._by_rank: set[str] = set()  # who stands in line for itself; all others must win
        self._changed: set[QuotaKey] = set()  # queues whose tree has not been played again yet
        self._asks: dict[tuple[str | None, int, int | None, str], Ask] = {}  # by what is asked for
        self._fair_queues: dict[str, QuotaKey | None] = {}
        self._moves: dict[QuotaKey, int] = {}  # how often something moved in a tree, by root
        self._last: dict[str, tuple[int, Rank]] = {}  # ranks, and the moves of the tree then
        self._champions: dict[QuotaKey, str] = {}  # in line, by root
        self._ranks: dict[str, Rank] = {}  # of the champions in line; only their trees change them

    @property
    def played(self) -> int:
        """Return how many footings have been worked out."""
        return self._tournament.played

    def offer(self, workload: Workload) -> None:
        """Let ``workload`` stand as the head of its queue."""
        queue = self._fair_queue(workload)
        if queue is None:
            self._by_rank.add(workload.key)
            self._heads.offer(workload)
        else:
            self._enter(queue, workload, self._ask(workload))

    def stir(self, queues: Iterable[QuotaKey]) -> None:
        """Note that these queues hold more or less than before."""
        for queue in queues:
            root = self._ledger.root(queue)
            self._moves[root] = self._moves.get(root, 0) + 1
            if self._regime.is_fair(queue):
                self._changed.add(queue)

    def pop(self) -> Workload | None:
        """Return whose turn it is and forget it; None when nobody is left.

        A champion that was overtaken and won later is in line twice: the second time it is
        nobody any more, even if it has become a waiting preemptor meanwhile.
        """
        self._settle()
        while (workload := self._heads.pop()) is not None:
            if workload.key in self._by_rank:
                self._by_rank.remove(workload.key)
                return workload
            queue = self._books.queue(workload)
            if queue is not None and self._wins(queue, workload):
                return workload
        return None

    def _fair_queue(self, workload: Workload) -> QuotaKey | None:
        """Return the queue for which the workload plays; None where rank alone decides."""
        name = workload.queue or ""
        if name not in self._fair_queues:
            queue = self._books.queue(workload)
            plays = queue is not None and self._regime.is_fair(queue)
            self._fair_queues[name] = queue if plays else None
        found = self._fair_queues[name]
        return None if self._state.favoured(workload.key) else found

    def _enter(self, queue: QuotaKey, workload: Workload, usage: Usage) -> None:
        self._tournament.enter(Contender(queue, usage, urgency(workload), workload))
        self._changed.add(queue)

    def _wins(self, queue: QuotaKey, workload: Workload) -> bool:
        """Return whether it is still this one's turn, and close its queue if so."""
        root = self._ledger.root(queue)
        champion = self._tournament.champion(root)
        if champion is None or champion.who is not workload:
            return False  # overtaken since it was offered
        del self._champions[root], self._ranks[workload.key]
        usage = self._ask(workload)
        same = usage is champion.usage or usage == champion.usage
        if not same:  # another flavor asks for less by now
            self._enter(queue, workload, usage)
            self._settle()
            return False
        self._tournament.withdraw(queue)
        self._changed.add(queue)
        return True

    def _settle(self) -> None:
        """Play again where something has changed, and put the champions in line."""
        if not self._changed:
            return
        changed, self._changed = sorted(self._changed), set()
        for queue in changed:
            self._tournament.replay(queue)
        for root in dict.fromkeys(self._ledger.root(queue) for queue in changed):
            champion = self._tournament.champion(root)
            if champion is not None:
                self._line_up(root, champion)

    def _line_up(self, root: QuotaKey, champion: Contender[Workload]) -> None:
        key = champion.who.key
        level = borrow_level(self._books, champion.queue, champion.usage)
        rank = Rank(True, level, *champion.urgency)
        if self._champions.get(root) != key or self._ranks[key] != rank:
            self._ranks.pop(self._champions.get(root, ""), None)
            self._champions[root], self._ranks[key] = key, rank
            self._heads.put(rank, champion.who)

    def _ask(self, workload: Workload) -> Usage:
        kind = workload.queue, id(workload.pod_sets), workload.min_member, workload.replaces
        ask = self._asks.get(kind)
        if ask is None or not ask.settled:
            asking = self._state.asking(workload)
            ask = least_borrowing(self._books, self._state.assigner, asking)
            self._asks[kind] = ask
        return ask.usage

    def _rank(self, workload: Workload) -> Rank:
        known = self._ranks.get(workload.key)
        if known is not None:
            return known
        queue = self._books.queue(workload)
        if queue is None:
            return Rank(not self._state.favoured(workload.key), 0, *urgency(workload))
        moves = self._moves.get(self._ledger.root(queue), 0)
        last = self._last.get(workload.key)
        if last is not None and last[0] == moves:
            return last[1]
        level = borrow_level(self._books, queue, self._ask(workload))
        rank = Rank(not self._state.favoured(workload.key), level, *urgency(workload))
        self._last[workload.key] = moves, rank
        return rank
