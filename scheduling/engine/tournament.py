"""The tournament of a cohort tree: whose turn it is, found level by level.

At each cohort the winners of its children compete, each with the footing of the child through
which it comes; the winner goes up (``FORMAT.md`` 6.2, ``admission.md`` 3.5). For both profiles.
"""

import heapq
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

from scheduling.engine.quota import QuotaLedger
from scheduling.engine.snapshot import FlavorResource
from scheduling.engine.tree import QuotaKey

T = TypeVar("T")
Usage = Mapping[FlavorResource, int]
Figure = tuple[float, ...]  # smaller has been served less


class Footing(NamedTuple):
    """How a part of the tree stands with one more request. Smaller wins."""

    borrows: bool  # nominal first: in any column of the request
    figure: Figure


class Contender(NamedTuple, Generic[T]):
    """The head of a queue. ``urgency`` decides between equal footings; no two are the same."""

    queue: QuotaKey
    usage: Usage
    urgency: tuple[int, float, str]
    who: T


class Tournament(Generic[T]):
    """One tree with the head of each of its queues.

    A change of one queue (its head, its usage) replays the matches on its way to the root and no
    others. ``footing`` answers for a contender and a node above it, as things are when asked.
    Cost of a change: O(depth) footings and O(log siblings) comparisons for each.
    """

    def __init__(
        self, ledger: QuotaLedger, footing: Callable[[Contender[T], QuotaKey], Footing]
    ) -> None:
        self._ledger, self._footing = ledger, footing
        self._winners: dict[QuotaKey, Contender[T]] = {}
        self._places: dict[QuotaKey, tuple[Footing, tuple[int, float, str]]] = {}
        self._matches: dict[
            QuotaKey, list[tuple[tuple[Footing, tuple[int, float, str]], QuotaKey]]
        ] = {}
        self.played = 0

    def enter(self, contender: Contender[T]) -> None:
        """Let ``contender`` stand for its queue. Takes effect with the next replay."""
        self._winners[contender.queue] = contender

    def withdraw(self, queue: QuotaKey) -> None:
        """Let nobody stand for the queue. Takes effect with the next replay."""
        self._winners.pop(queue, None)
        self._places.pop(queue, None)

    def replay(self, queue: QuotaKey) -> None:
        """Play again what a change of this queue may have turned."""
        for node, parent in pairwise(self._ledger.path(queue)):
            winner = self._winners.get(node)
            if winner is None:
                self._places.pop(node, None)
            else:
                self.played += 1
                place = self._footing(winner, node), winner.urgency
                self._places[node] = place
                heapq.heappush(self._matches.setdefault(parent, []), (place, node))
            self._crown(parent)

    def _crown(self, parent: QuotaKey) -> None:
        """Let the best child's winner stand for ``parent``; outdated places drop out."""
        match = self._matches.get(parent, [])
        while match and self._places.get(match[0][1]) != match[0][0]:
            heapq.heappop(match)
        if match:
            self._winners[parent] = self._winners[match[0][1]]
        else:
            self._winners.pop(parent, None)

    def champion(self, root: QuotaKey) -> Contender[T] | None:
        """Return whose turn it is; None when nobody waits."""
        return self._winners.get(root)

    def place(self, node: QuotaKey) -> Footing | None:
        """Return how the node's present winner stands; None where nobody waits."""
        place = self._places.get(node)
        return place[0] if place else None
