"""Giving back: whom the preemptor does not need after all keeps running (``FORMAT.md`` 7.4)."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from scheduling.engine.candidates import Candidate
from scheduling.engine.journal import Trial
from scheduling.engine.snapshot import Workload


def give_back(
    taken: Sequence[Candidate],
    trial: Callable[[], AbstractContextManager[Trial]],
    restore: Callable[[Workload], None],
    fits: Callable[[], bool],
) -> tuple[Candidate, ...]:
    """Restore, last first, whoever can stay while the preemptor still fits; never the last one.

    Returns whom it needs, in the order in which they were taken; the others stand again.
    """
    needed = [taken[-1]]
    for candidate in reversed(taken[:-1]):
        with trial() as attempt:
            restore(candidate.workload)
            if fits():
                attempt.keep()
            else:
                needed.append(candidate)
    return tuple(reversed(needed))
