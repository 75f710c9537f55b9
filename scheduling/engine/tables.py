"""The hole of each node, by number, and who reads along.

Whoever keeps something by node remembers a place in a log, and looks again at what has been
written since; undoing a trial is writing as well.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import SupportsIndex

_LONG = 4096  # entries of a log, beside some for each node; of older ones nothing is known
_EACH = 4


class Log:
    """Numbers in the order in which they were written, as many of the last as are worth it.

    ``end`` is the place that has been reached.
    """

    def __init__(self, nodes: int) -> None:
        self._most = _EACH * nodes + _LONG
        self.end = self._dropped = 0
        self._kept: list[int] = []

    def write(self, numbers: Collection[int]) -> None:
        """Append these numbers."""
        self._kept.extend(numbers)
        self.end += len(numbers)
        if len(self._kept) > self._most:
            self._dropped = self.end
            self._kept.clear()

    def since(self, mark: int) -> set[int] | None:
        """Return the numbers written since that place, each once; None: it is too old."""
        return set(self._kept[mark - self._dropped :]) if mark >= self._dropped else None


class HoleTable(list[int]):
    """The hole of each node, with a log of the nodes that were written."""

    def __init__(self, holes: Iterable[int]) -> None:
        super().__init__(holes)
        self.log = Log(len(self))

    def __setitem__(self, number: SupportsIndex, hole: int) -> None:  # type: ignore[override]
        self.update({int(number): hole})

    def update(self, holes: Mapping[int, int]) -> None:
        """Write the holes of several nodes."""
        put = list.__setitem__
        for number, hole in holes.items():
            put(self, number, hole)
        self.log.write(holes)
