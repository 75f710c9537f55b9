"""Giving back: of those taken, whoever need not leave after all stays (``FORMAT.md`` 7.4)."""

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
    *,
    keep_last: bool = True,
) -> tuple[Candidate, ...]:
    """Restore, last first, whom the preemptor does not need; return those it needs, in order.

    Args:
        taken: who is off the books, in the order in which they were taken.
        trial: opens a block whose changes are undone unless kept.
        restore: puts one of them back on the books.
        fits: whether the preemptor fits as the books stand.
        keep_last: do not even try the last one, without whom it did not fit.
    """
    needed = list(taken[-1:]) if keep_last else []
    going = {candidate.workload.key for candidate in needed}
    for candidate in reversed(taken[:-1] if keep_last else taken):
        with trial() as attempt:
            if candidate.workload.part_of not in going:  # no surplus stays of a gang that leaves
                restore(candidate.workload)
                if fits():
                    attempt.keep()
                    continue
        needed.append(candidate)
        going.add(candidate.workload.key)
    return tuple(reversed(needed))
