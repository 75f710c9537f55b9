"""Quota arithmetic over the cohort tree: who may still take how much.

Amounts are integers in canonical units. Nothing here knows about nodes, time or the database.
Source of every formula: ``admission.md`` 3.2, ``FORMAT.md`` 4.1.
"""

from collections.abc import Callable

from scheduling.engine.journal import Journal, Trial
from scheduling.engine.snapshot import FlavorResource
from scheduling.engine.tree import Line, QuotaKey, QuotaTree

Amount = Callable[[QuotaKey, FlavorResource], int]


class QuotaLedger:
    """The running account of a tree: promised, used, still available.

    Whoever builds a ledger owns it. Questions cost O(depth of the tree). What was promised is
    answered by the tree itself; its questions are offered here under the same names.
    """

    def __init__(self, tree: QuotaTree, journal: Journal | None = None) -> None:
        self.tree = tree
        self.nodes, self.children = tree.nodes, tree.children
        self.promised: Amount = tree.promised
        self.guaranteed: Amount = tree.guaranteed
        self.potential: Amount = tree.potential
        self.quota, self.columns = tree.quota, tree.columns
        self.path, self.root, self.members = tree.path, tree.root, tree.members
        self.height = tree.height
        self._journal = journal or Journal()
        self._used: list[int] = []  # by the place of the cell
        self._lines: dict[tuple[QuotaKey, FlavorResource], Line] = {}

    def _line(self, key: QuotaKey, fr: FlavorResource) -> Line:
        line = self._lines.get((key, fr))
        return self._open(key, fr) if line is None else line

    def _open(self, key: QuotaKey, fr: FlavorResource) -> Line:
        """Return a line of the tree, with room for its numbers in this ledger."""
        line = self._lines[key, fr] = self.tree.line(key, fr)
        self._used.extend([0] * (self.tree.size - len(self._used)))
        return line

    # -- what is taken ----------------------------------------------------------------------

    def used(self, key: QuotaKey, fr: FlavorResource) -> int:
        """Return what counts against the node: for a cohort, what its children took."""
        return self._used[self._line(key, fr)[0].place]

    def borrowed(self, key: QuotaKey, fr: FlavorResource) -> int:
        """Return how much of the node's usage lies above what it was promised."""
        cell = self._line(key, fr)[0]
        over = self._used[cell.place] - cell.promised
        return max(0, over)

    def above(self, key: QuotaKey, fr: FlavorResource, more: int) -> int:
        """Return how much of the node's usage would lie above its promise with ``more`` taken."""
        cell = self._line(key, fr)[0]
        return max(0, self._used[cell.place] + more - cell.promised)

    def spare(self, key: QuotaKey, fr: FlavorResource) -> int:
        """Return the unused part of what the node never lends."""
        cell = self._line(key, fr)[0]
        left = cell.guaranteed - self._used[cell.place]
        return max(0, left)

    def available(self, key: QuotaKey, fr: FlavorResource) -> int:
        """Return how much the node can still take, borrowing included.

        Negative when quota was cut below what is in use: debt, which blocks new work only.
        """
        line, taken = self._line(key, fr), self._used
        answer = line[-1].promised - taken[line[-1].place]
        for place, promised, guaranteed, limit in line[-2::-1]:
            left = guaranteed - taken[place]
            if limit is not None:
                room = promised - guaranteed + limit + (min(0, left))
                answer = min(room, answer)
            answer += max(0, left)
        return answer

    def borrowing_room(self, key: QuotaKey, fr: FlavorResource) -> int | None:
        """Return what the node's own borrowing limit still lets it take from its parent."""
        place, promised, guaranteed, limit = self._line(key, fr)[0]
        if limit is None:
            return None
        return promised - guaranteed + limit - max(0, self._used[place] - guaranteed)

    def reserve(self, key: QuotaKey, fr: FlavorResource, amount: int) -> None:
        """Charge ``amount``; what exceeds a guaranteed part bubbles up to the parent."""
        assert amount >= 0, f"cannot reserve {amount}"
        taken, write = self._used, self._journal.write
        for place, _, guaranteed, _ in self._line(key, fr):
            if not amount:
                return
            used = taken[place]
            write(taken, place, used + amount)
            if guaranteed > used:
                amount = max(0, amount - (guaranteed - used))

    def release(self, key: QuotaKey, fr: FlavorResource, amount: int) -> None:
        """Undo a :meth:`reserve` of ``amount``; what the parent gave goes back first."""
        taken, write = self._used, self._journal.write
        for place, _, guaranteed, _ in self._line(key, fr):
            if not amount:
                return
            used = taken[place]
            assert 0 <= amount <= used, f"{key.name} cannot release {amount} of {used} {fr}"
            write(taken, place, used - amount)
            amount = min(amount, max(0, used - guaranteed))

    @property
    def changes(self) -> int:
        """Return a number that differs whenever anything in this ledger may."""
        return self._journal.changes

    def trial(self) -> Trial:
        """Open a block whose reservations are undone unless kept."""
        return self._journal.trial()

    # -- where it comes from ----------------------------------------------------------------

    def fits_in(self, key: QuotaKey, fr: FlavorResource, amount: int) -> bool:
        """Return whether the node stays within what it was promised with ``amount`` more."""
        cell = self._line(key, fr)[0]
        return self._used[cell.place] + amount <= cell.promised

    def borrow_level(self, key: QuotaKey, fr: FlavorResource, amount: int) -> int:
        """Return the height of the lowest subtree that can supply ``amount`` (K35).

        0 means own nominal. The height of a cohort is the distance to its furthest leaf.
        """
        line, taken = self._line(key, fr), self._used
        if len(line) == 1 or taken[line[0].place] + amount <= line[0].promised:
            return 0
        path = self.tree.path(key)
        for below, cell, node in zip(line, line[1:], path[1:], strict=False):
            amount -= max(0, below.guaranteed - taken[below.place])
            if taken[cell.place] + amount <= cell.promised:
                return self.tree.height(node)
        return self.tree.height(path[-1])
