"""A cluster that exists in the imagination only: gangs start at once and end on time.

It remembers nothing: what a gang has done follows from its rows and the clock, so that a restart
loses nothing and an end that is noticed late still happened when it was due.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from scheduling.backends.base import Gang, Sighting
from scheduling.engine.terms import Outcome


class SimulatedBackend:
    """A cluster whose clock is handed in."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._gangs: tuple[Gang, ...] = ()

    def converge(self, desired: Sequence[Gang]) -> None:
        """Take note of the gangs that should stand."""
        self._gangs = tuple(desired)

    def observe(self) -> Sequence[Sighting]:
        """Return what has become of each of them by now."""
        return [self._sight(gang) for gang in self._gangs]

    def _sight(self, gang: Gang) -> Sighting:
        start = gang.started_at or gang.admitted_at
        end = self._end(gang, start)
        if end is not None and (gang.evicted_at is None or end <= gang.evicted_at):
            return Sighting(gang.admission, start, Outcome.SUCCEEDED, released_at=end)
        if gang.evicted_at is not None:
            return Sighting(gang.admission, gang.started_at, released_at=gang.evicted_at)
        return Sighting(gang.admission, start)

    def _end(self, gang: Gang, start: datetime) -> datetime | None:
        """Return when the gang ended by itself, if it has by now."""
        if gang.expected_duration_s is None:
            return None
        end = start + timedelta(seconds=gang.expected_duration_s)
        return end if end <= self._now else None
