"""Try and undo: one journal of old values for all tables that a cycle changes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

K = TypeVar("K")


class Trial:
    """A piece of work that is undone when its block ends, unless it is kept."""

    def __init__(self) -> None:
        self.kept = False

    def keep(self) -> None:
        """Let the changes stand; an enclosing trial may still undo them."""
        self.kept = True


class Journal:
    """Remembers what was overwritten, so that any trial can be taken back exactly.

    Tables map to integers and read a missing key as 0.
    """

    def __init__(self) -> None:
        self._old: list[tuple[dict[Any, int], Any, int | None]] = []
        self._depth = 0

    def write(self, table: dict[K, int], key: K, value: int) -> None:
        """Set ``table[key]``, and remember the old value while a trial runs."""
        if self._depth:
            self._old.append((table, key, table.get(key)))
        table[key] = value

    @contextmanager
    def trial(self) -> Iterator[Trial]:
        """Undo everything written inside the block that is not kept. Trials nest."""
        mark, trial = len(self._old), Trial()
        self._depth += 1
        try:
            yield trial
        finally:
            self._depth -= 1
            if not trial.kept:
                self._undo(mark)
            elif not self._depth:
                self._old.clear()

    def _undo(self, mark: int) -> None:
        while len(self._old) > mark:
            table, key, value = self._old.pop()
            if value is None:
                del table[key]
            else:
                table[key] = value
