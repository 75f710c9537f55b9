"""What happened in a replay: who waited and ran, what was held, and what was borrowed."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from scheduling.engine.snapshot import FlavorResource
from scheduling.engine.usage import is_gpu

HOUR_S = 3600.0
Charge = tuple[tuple[FlavorResource, int], ...]


class Span(NamedTuple):
    """What of a replay is counted: half-open, in seconds. Work counts if it came inside."""

    start_s: float = -inf
    end_s: float = inf

    def holds(self, at: float) -> bool:
        """Return whether an instant lies inside."""
        return self.start_s <= at < self.end_s

    def hours_of(self, since: float, until: float) -> float:
        """Return how much of a stretch lies inside."""
        return max(0.0, min(until, self.end_s) - max(since, self.start_s)) / HOUR_S


EVERYTHING = Span()


@dataclass(frozen=True, slots=True)
class Stay:
    """One workload that ran to its end. ``waited_s``: all the time in which it did not run.

    Runs that an eviction broke off count as waiting: they had to be done again.
    """

    key: str
    queue: str
    team: str
    gpus: int
    submitted_s: float
    finished_s: float
    waited_s: float


class Hold(NamedTuple):
    """What one run of a workload held, from when to when. ``run_s``: when that run began."""

    key: str
    queue: str
    charge: Charge
    since_s: float
    until_s: float
    run_s: float
    evicted: bool


@dataclass(slots=True)
class Tape:
    """The outcome of a replay. ``hours`` are GPU-hours by queue.

    ``unfinished``: work that never started, by key: it cannot, under these promises. ``last_s``:
    when the last work came; until then load kept coming. ``holds``: who held what, in order of
    their ends; all of them, whatever is counted.
    """

    stays: list[Stay] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    unfinished: tuple[str, ...] = ()
    evictions: int = 0
    evicted: Counter[str] = field(default_factory=Counter)  # by queue
    lost_gpu_hours: Counter[str] = field(default_factory=Counter)  # by queue
    used: Counter[str] = field(default_factory=Counter)
    used_while_coming: Counter[str] = field(default_factory=Counter)
    borrowed: Counter[str] = field(default_factory=Counter)
    held_idle_gpu_hours: float = 0.0  # on nodes kept for blocked gangs
    most_waiting: int = 0
    first_s: float = 0.0
    last_s: float = 0.0
    end_s: float = 0.0
    instants: int = 0
    cycles: int = 0
    work: Counter[str] = field(default_factory=Counter)


class Meter:
    """Adds up what queues hold, and what of it lies above what they were promised.

    Each change costs the queue that it is about; ``last_s`` splits the time in two.
    """

    def __init__(
        self,
        tape: Tape,
        nominal: Mapping[str, Mapping[FlavorResource, int]],
        last_s: float,
        counted: Span = EVERYTHING,
    ) -> None:
        self._tape, self._counted = tape, counted
        coming_s = last_s if counted is EVERYTHING else counted.end_s
        self._coming = Span(counted.start_s, coming_s)
        self._nominal = nominal
        self._held: dict[str, Counter[FlavorResource]] = {}
        self._since: dict[str, float] = {}

    def change(
        self, queue: str, charge: Iterable[tuple[FlavorResource, int]], sign: int, now: float
    ) -> None:
        """Let a queue hold more (``sign`` 1) or less (-1) from now on."""
        self._count(queue, now)
        held = self._held.setdefault(queue, Counter())
        for column, amount in charge:
            if is_gpu(column.resource):
                held[column] += sign * amount

    def close(self, now: float) -> None:
        """Count everybody up to now."""
        for queue in self._held:
            self._count(queue, now)

    def _count(self, queue: str, now: float) -> None:
        since = self._since.get(queue, now)
        self._since[queue] = now
        hours = self._counted.hours_of(since, now)
        if hours <= 0:
            return
        coming = self._coming.hours_of(since, now)
        promised = self._nominal.get(queue, {})
        for column, amount in self._held.get(queue, {}).items():
            self._tape.used[queue] += amount * hours  # type: ignore[assignment]
            self._tape.used_while_coming[queue] += amount * coming  # type: ignore[assignment]
            over = max(0, amount - promised.get(column, 0))
            self._tape.borrowed[queue] += over * hours  # type: ignore[assignment]
