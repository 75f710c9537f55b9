"""In which order the heads of one cycle are processed (``FORMAT.md`` 6.1 and 6.2)."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from scheduling.engine.kueue.picture import Picture
from scheduling.engine.kueue.shares import Share, Shares, compared
from scheduling.engine.quota import Kind, QuotaKey

if TYPE_CHECKING:
    from scheduling.engine.kueue.cycle import Entry


def classic(entries: Sequence["Entry"]) -> Iterator["Entry"]:
    """Yield who borrows from nearer first, then by priority, age and key."""
    yield from sorted(entries, key=lambda entry: (entry.nomination.level, *_urgency(entry)))


def _urgency(entry: "Entry") -> tuple[int, float, str]:
    work = entry.workload
    return -work.priority, work.created_at, work.key


class Tournament:
    """Picks the winner of each cohort tree again and again, as the picture changes."""

    def __init__(self, picture: Picture, shares: Shares) -> None:
        self._picture, self._shares, self._ledger = picture, shares, picture.ledger

    def run(self, entries: Sequence["Entry"]) -> Iterator["Entry"]:
        """Yield the entries root by root, queues without cohort last."""
        by_root: dict[QuotaKey, dict[QuotaKey, Entry]] = {}
        for entry in entries:
            by_root.setdefault(self._ledger.root(entry.queue), {})[entry.queue] = entry
        for root in sorted(by_root, key=lambda key: (key.kind is Kind.QUEUE, key.name)):
            waiting = by_root[root]
            while waiting:
                winner = self._winner(root, waiting, self._standings(waiting))
                assert winner is not None
                yield waiting.pop(winner.queue)

    def _standings(
        self, waiting: dict[QuotaKey, "Entry"]
    ) -> dict[tuple[QuotaKey, QuotaKey], tuple[bool, tuple[float, float]]]:
        """Return for each entry and node above it: does it borrow, its share, request included."""
        standings: dict[tuple[QuotaKey, QuotaKey], tuple[bool, tuple[float, float]]] = {}
        for queue, entry in waiting.items():
            usage = entry.nomination.usage
            with self._picture.trial():
                self._picture.charge(queue, usage)
                for node in self._ledger.path(queue)[:-1]:
                    share: Share = self._shares.of(node)
                    borrows = any(self._ledger.borrowed(node, fr) > 0 for fr in usage)
                    standings[queue, node] = borrows, compared(share)
        return standings

    def _winner(
        self,
        node: QuotaKey,
        waiting: dict[QuotaKey, "Entry"],
        standings: dict[tuple[QuotaKey, QuotaKey], tuple[bool, tuple[float, float]]],
    ) -> "Entry | None":
        if node.kind is Kind.QUEUE:
            return waiting.get(node)
        found = []
        for child in self._ledger.children.get(node, ()):
            winner = self._winner(child, waiting, standings)
            if winner is not None:
                found.append((standings[winner.queue, child], *_urgency(winner), winner))
        return min(found, key=lambda rival: rival[:-1])[-1] if found else None
