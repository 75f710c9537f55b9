"""Whom to evict under fair sharing in Kueue's cycle (``FORMAT.md`` 8)."""

from collections.abc import Collection

from scheduling.engine.candidates import Candidate
from scheduling.engine.fair_victims import Hunt, lines_of
from scheduling.engine.giving_back import give_back
from scheduling.engine.kueue.picture import Picture
from scheduling.engine.kueue.victims import Need, grounds
from scheduling.engine.shares import Shares


class FairVictims:
    """By share: whoever holds most above its due gives first."""

    def __init__(self, picture: Picture, shares: Shares) -> None:
        self._picture, self._shares = picture, shares
        self._grounds = grounds(picture)

    def find(self, need: Need, gone: Collection[str]) -> tuple[Candidate, ...]:
        """Return whom to evict, or nobody."""
        picture, attempt = self._picture, need.attempt
        lines = lines_of(attempt, self._grounds, gone)
        if not lines:
            return ()

        def fits() -> bool:
            return picture.fits(attempt.queue, attempt.usage) and need.placed()

        with picture.trial():
            hunt = Hunt(picture, self._shares, attempt, fits, self._grounds)
            taken = hunt.run(lines, picture.snapshot.fair_strategies)
            return give_back(taken, picture.trial, picture.put_back, fits) if taken else ()
