"""Try and undo: one journal of old values for all tables that a cycle changes."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from scheduling.engine.tables import HoleTable

K = TypeVar("K")


class Journal:
    """Remembers what was overwritten, so that any trial can be taken back exactly.

    Tables map to integers: dicts, where a missing key reads as 0, or lists.
    """

    def __init__(self) -> None:
        self.changes = 0  # grows with every change and undoing: what was worked out is outdated
        self._old: list[tuple[Any, Any, int | None]] = []
        self._depth = 0

    def write(self, table: dict[K, int] | list[int], key: Any, value: int) -> None:
        """Set ``table[key]``, and remember the old value while a trial runs."""
        self.changes += 1
        if self._depth:
            known = isinstance(table, list) or key in table
            self._old.append((table, key, table[key] if known else None))
        table[key] = value

    def write_all(self, table: HoleTable, holes: Mapping[int, int]) -> None:
        """Set the holes of several nodes at once, as :meth:`write` does."""
        self.changes += 1
        if self._depth:
            self._old += [(table, number, table[number]) for number in holes]
        table.update(holes)

    def trial(self) -> "Trial":
        """Undo everything written inside the block that is not kept. Trials nest."""
        return Trial(self)

    def begin(self) -> int:
        """Start to remember; return the mark to go back to."""
        self._depth += 1
        return len(self._old)

    def end(self, mark: int, *, kept: bool) -> None:
        """Stop what began at ``mark``: undo it, or leave it to the enclosing trial."""
        self._depth -= 1
        if not kept:
            self._undo(mark)
        elif not self._depth:
            self._old.clear()

    def _undo(self, mark: int) -> None:
        self.changes += 1
        old = self._old
        while len(old) > mark:
            table, key, value = old.pop()
            if value is None:
                del table[key]
            else:
                table[key] = value


class Trial:
    """A piece of work that is undone when its block ends, unless it is kept."""

    __slots__ = ("_journal", "_mark", "kept")

    def __init__(self, journal: Journal) -> None:
        self._journal, self._mark, self.kept = journal, 0, False

    def keep(self) -> None:
        """Let the changes stand; an enclosing trial may still undo them."""
        self.kept = True

    def __enter__(self) -> Self:
        self._mark = self._journal.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._journal.end(self._mark, kept=self.kept)
