"""How well a flavor serves, which of two is better, and when the search for a better one ends.

Source: ``FORMAT.md`` 5.4 and 5.5, ``admission.md`` 3.8 and K33.
"""

from enum import IntEnum
from typing import NamedTuple

from scheduling.engine.queue_rules import Fungibility
from scheduling.engine.terms import FlavorPreference, FlavorSearch


class Mode(IntEnum):
    """How work gets what it asks for, worst first.

    DEFERRED: without evicting anybody, once those have left who are leaving already.
    """

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    DEFERRED = 4
    FIT = 5


class Grade(NamedTuple):
    """A mode, and from how far up the tree quota is borrowed."""

    mode: Mode
    level: int = 0

    def rank(self, preference: FlavorPreference) -> tuple[int, int, int]:
        """Return a sort key; the larger grade is the better one.

        What cannot serve is worse than what can, whatever is preferred.
        """
        if self.mode <= Mode.NO_CANDIDATES:
            return int(self.mode), 0, -self.level
        if preference is FlavorPreference.PREEMPTION_OVER_BORROWING:
            return Mode.PREEMPT, -self.level, self.mode
        return Mode.PREEMPT, self.mode, -self.level


def goes_on(grade: Grade, rules: Fungibility) -> bool:
    """Return whether the next flavor is looked at as well."""
    if grade.mode <= Mode.NO_CANDIDATES:
        return True
    if grade.mode is not Mode.FIT and rules.when_can_preempt is FlavorSearch.TRY_NEXT_FLAVOR:
        return True
    return grade.level > 0 and rules.when_can_borrow is FlavorSearch.TRY_NEXT_FLAVOR


class Standing(NamedTuple):
    """How a whole workload would be served under one way of choosing its flavors.

    ``levels``: from how far up each borrowing column of each pod set borrows, furthest first.
    """

    mode: Mode
    levels: tuple[int, ...] = ()

    @property
    def grade(self) -> Grade:
        """Return the grade of the worst column (``FORMAT`` 5.6)."""
        return Grade(self.mode, max(self.levels, default=0))

    def rank(self, preference: FlavorPreference) -> tuple[tuple[int, int, int], tuple[int, ...]]:
        """Return a sort key; the larger is better. Equal grades: the other columns decide."""
        return self.grade.rank(preference), (*(-level for level in self.levels), 0)
