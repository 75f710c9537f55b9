"""What became of a plan when it was written."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MOST_LINES = 200  # of one plan, for the terminal


@dataclass
class ApplyReport:
    """What became of a plan: keys of workloads, and a line for each decision that was written.

    ``stale`` were decided on rows that have changed since; the next cycle decides again.
    """

    admitted: list[str] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    resized: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    held: int = 0
    lines: list[str] = field(default_factory=list)
    unsaid: int = 0

    def say(self, line: Callable[..., str], *facts: Any) -> None:
        """Add a line for a decision; of very many the first are said, the others counted."""
        if len(self.lines) < MOST_LINES:
            self.lines.append(line(*facts))
        else:
            self.unsaid += 1

    @property
    def said(self) -> tuple[str, ...]:
        """Return the lines, and how many more there would be."""
        more = [f"and {self.unsaid} decisions more"] if self.unsaid else []
        return (*self.lines, *more)

    @property
    def moved(self) -> bool:
        """Return whether anybody holds other things than before."""
        return bool(self.admitted or self.evicted or self.resized)
