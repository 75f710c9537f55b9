"""Which nodes of a field look alike: one count, shared by all that ask about pods there.

Where nodes are alike, what changes is how many there are of each look; and who asks about one
kind of pod need not look at a node again, but at the few holes whose nodes are others than before.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Sequence

from scheduling.engine.ground import Ground
from scheduling.engine.tables import HoleTable, Log


class Census:
    """The nodes of a field by what is free on them in each of several tables at once.

    Ask :meth:`refresh` before anything else. ``holes`` is the hole of each node when last looked
    at, -1 outside of the field. ``alike`` lists the nodes of each hole in order; a hole that no
    node has is not there.
    """

    def __init__(
        self, ground: Ground, numbers: Collection[int], tables: Sequence[HoleTable]
    ) -> None:
        self._ground, self._numbers, self._tables = ground, numbers, tuple(tables)
        self._marks = [table.log.end for table in tables]
        self.holes = [-1] * len(tables[0])
        self.alike: dict[int, list[int]] = {}
        self.changed = Log(len(self.holes))  # holes whose nodes are others
        self.moved = Log(len(self.holes))  # nodes whose hole is another
        for number, hole in self._met(numbers).items():
            self.holes[number] = hole
            self.alike.setdefault(hole, []).append(number)
        ground.looked += len(numbers)

    def refresh(self) -> None:
        """Look again at the nodes that were written since.

        Cost: O(those), each O(log nodes) and a move of the numbers behind it.
        """
        marks, self._marks = self._marks, [table.log.end for table in self._tables]
        if marks == self._marks:
            return
        since = [table.log.since(mark) for table, mark in zip(self._tables, marks, strict=True)]
        written: set[int] = set()
        for numbers in since:  # None: nobody knows any more
            written.update(self._numbers if numbers is None else numbers)
        self._ground.looked += len(written)
        self._move(self._met(written))

    def _met(self, numbers: Collection[int]) -> dict[int, int]:
        """Return the holes of what is free on these nodes in all tables."""
        first, *others = self._tables
        found = {}
        for number in numbers:
            hole = first[number]
            for table in others:
                if table[number] != hole:
                    hole = self._ground.meet(hole, table[number])
            found[number] = hole
        return found

    def _move(self, met: dict[int, int]) -> None:
        """Let these nodes have these holes."""
        holes, alike = self.holes, self.alike
        moved: list[int] = []
        changed: set[int] = set()
        for number, now in met.items():
            was = holes[number]
            if was in (now, -1):
                continue
            holes[number] = now
            left = alike[was]
            del left[bisect_left(left, number)]
            if not left:
                del alike[was]
            insort(alike.setdefault(now, []), number)
            changed.update((was, now))
            moved.append(number)
        self.moved.write(moved)
        self.changed.write(changed)
