"""Whom to evict without fair sharing (``FORMAT.md`` 7.3 and 7.4), and giving back for both."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from scheduling.engine.candidates import (
    Attempt,
    Candidate,
    Candidates,
    Grounds,
    Selection,
)
from scheduling.engine.giving_back import give_back
from scheduling.engine.kueue.picture import Picture
from scheduling.engine.snapshot import Workload
from scheduling.engine.tree import QuotaKey


@dataclass(frozen=True, slots=True)
class Need:
    """For whom and for what room is made; ``placed`` says whether the topology has room."""

    attempt: Attempt
    placed: Callable[[], bool] = lambda: True


class Victims(Protocol):
    """A way of choosing victims. It leaves the picture as it found it."""

    def find(self, need: Need, gone: Collection[str]) -> tuple[Candidate, ...]:
        """Return whom to evict, or nobody. ``gone`` are out of the picture already."""
        ...


def grounds(picture: Picture) -> Grounds:
    """Return on what this picture's candidates are judged."""
    ledger, now = picture.ledger, picture.snapshot.now
    queues, running = picture.queues, picture.running
    return Grounds(ledger, ledger, queues, running, now, picture.profile, _consumption(picture))


def _consumption(picture: Picture) -> Callable[[Workload], float]:
    def consumption(work: Workload) -> float:
        local = picture.snapshot.local_queues.get(work.local_queue)
        based = local is not None and picture.queues[work.queue or ""].usage_based
        return local.consumption if local and based else 0.0

    return consumption


class ClassicVictims:
    """By priority, with and without borrowing."""

    def __init__(self, picture: Picture) -> None:
        self._picture, self._grounds = picture, grounds(picture)

    def find(self, need: Need, gone: Collection[str]) -> tuple[Candidate, ...]:
        """Return whom to evict, or nobody. Cost: O(candidates x columns) for each pass."""
        candidates = Selection(need.attempt, self._grounds, gone).collect()
        for borrowing in self._grounds.passes(need.attempt, candidates):
            victims = self._one_pass(need, candidates, borrowing=borrowing)
            if victims:
                return victims
        return ()

    def _one_pass(
        self, need: Need, candidates: Candidates, *, borrowing: bool
    ) -> tuple[Candidate, ...]:
        picture, attempt, taken = self._picture, need.attempt, list[Candidate]()

        def fits() -> bool:
            within = borrowing or picture.within(attempt.queue, attempt.usage)
            return within and picture.fits(attempt.queue, attempt.usage) and need.placed()

        with picture.trial():
            for candidate in candidates.all:
                if self._passed_over(attempt, candidate, borrowing=borrowing):
                    continue
                picture.remove(candidate.workload)
                taken.append(candidate)
                if fits():
                    return give_back(taken, picture.trial, picture.put_back, fits)
        return ()

    def _passed_over(self, attempt: Attempt, candidate: Candidate, *, borrowing: bool) -> bool:
        """Return whether the candidate is safe in this pass (see ``preemption.py``)."""
        if candidate.queue == attempt.queue:
            return False
        if borrowing and not candidate.while_borrowing:
            return True
        ledger = self._picture.ledger
        own = set(ledger.path(attempt.queue))
        branch: Sequence[QuotaKey] = [n for n in ledger.path(candidate.queue) if n not in own]
        return any(
            all(not ledger.borrowed(node, fr) for fr in attempt.contested) for node in branch
        )
