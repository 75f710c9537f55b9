"""Time of a period: which fact is in force when, and the slots in which nothing changes.

"Facts hold for exactly the time they are in force" (FORMAT.md 2): the period is cut wherever a
dated fact changes, so that within a slot every look-up has one answer.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Generic, NamedTuple, Protocol, TypeVar
from zoneinfo import ZoneInfo

from finops.allocation.facts import Instant, Number, Period, instant, moment

MICROSECONDS_PER_HOUR = 3_600_000_000
_BEFORE_ALL: Instant = -(10**18)  # outside the years that a date can name
_AFTER_ALL: Instant = 10**18


class Dated(Protocol):
    """A fact with a window."""

    @property
    def start(self) -> Instant | None:
        """The first instant; None has always been."""

    @property
    def end(self) -> Instant | None:
        """The instant after the last; None goes on."""


D = TypeVar("D", bound=Dated)
K = TypeVar("K", bound=Hashable)


class Span(NamedTuple):
    """A half-open stretch of time."""

    start: Instant
    end: Instant


class Piece(NamedTuple):
    """The part of something in one slot."""

    slot: int
    length: int  # microseconds


def hours(amount: Number) -> Fraction:
    """Return ``amount`` x microseconds as ``amount`` x hours."""
    return Fraction(amount, MICROSECONDS_PER_HOUR)


def span(fact: Dated) -> Span:
    """Return the window of a fact with far ends in place of open ones."""
    return Span(
        _BEFORE_ALL if fact.start is None else fact.start,
        _AFTER_ALL if fact.end is None else fact.end,
    )


def inside(fact: Dated, period: Period) -> Span | None:
    """Return the part of a fact's window in the period, None where there is none."""
    found = span(fact)
    cut = Span(max(found.start, period.start), min(found.end, period.end))
    return cut if cut.start < cut.end else None


class InForce(Generic[K, D]):
    """Dated facts by key; of one key at most one is in force at an instant (``checks``)."""

    def __init__(self, keyed: Iterable[tuple[K, D]]) -> None:
        self._facts: dict[K, list[tuple[Instant, Instant, D]]] = defaultdict(list)
        for key, fact in keyed:
            self._facts[key].append((*span(fact), fact))
        for rows in self._facts.values():
            rows.sort(key=lambda row: row[0])

    def at(self, key: K, when: Instant) -> D | None:
        """Return the fact of ``key`` in force at ``when``."""
        rows = self._facts.get(key)
        if not rows:
            return None
        place = bisect_right(rows, when, key=lambda row: row[0]) - 1
        if place < 0 or rows[place][1] <= when:
            return None
        return rows[place][2]

    def covers(self, key: K, wanted: Span) -> bool:
        """Return whether facts of ``key`` are in force during all of ``wanted``."""
        reached = wanted.start
        for start, end, _ in self._facts.get(key, ()):
            if start > reached:
                break
            reached = max(reached, end)
        return reached >= wanted.end


class Coverage:
    """A union of spans, kept as disjoint ones in order."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._starts: list[Instant] = []
        self._ends: list[Instant] = []
        for one in spans:
            self.add(one)

    def add(self, new: Span) -> bool:
        """Add a span; return whether it shares time with what was there."""
        first = bisect_left(self._ends, new.start)  # a span that ends where this begins merges
        last = bisect_right(self._starts, new.end)
        shares = any(
            self._starts[i] < new.end and new.start < self._ends[i] for i in range(first, last)
        )
        start = min([new.start, *self._starts[first:last]])
        end = max([new.end, *self._ends[first:last]])
        self._starts[first:last], self._ends[first:last] = [start], [end]
        return shares

    def holds(self, when: Instant) -> bool:
        """Return whether an instant is covered."""
        place = bisect_right(self._starts, when) - 1
        return place >= 0 and when < self._ends[place]

    def gaps(self, window: Span) -> list[Span]:
        """Return what is not covered of a window."""
        found: list[Span] = []
        reached = window.start
        for start, end in zip(self._starts, self._ends, strict=True):
            if reached < min(start, window.end):
                found.append(Span(reached, min(start, window.end)))
            reached = max(reached, end)
        if reached < window.end:
            found.append(Span(reached, window.end))
        return found

    def within(self, period: Period) -> list[Span]:
        """Return what is covered of a period."""
        cut = (
            Span(max(start, period.start), min(end, period.end))
            for start, end in zip(self._starts, self._ends, strict=True)
        )
        return [one for one in cut if one.start < one.end]


class Slots:
    """The period cut at ``cuts``; slots are counted from 0."""

    def __init__(self, period: Period, cuts: Iterable[Instant]) -> None:
        inner = {cut for cut in cuts if period.start < cut < period.end}
        self.period = period
        self.starts = [period.start, *sorted(inner)]
        self.ends = [*self.starts[1:], period.end]

    def __len__(self) -> int:
        return len(self.starts)

    def pieces(self, window: Span) -> Iterator[Piece]:
        """Yield the parts of a window, which lies in the period, slot by slot."""
        slot = bisect_right(self.starts, window.start) - 1
        start = window.start
        while start < window.end:
            end = min(self.ends[slot], window.end)
            yield Piece(slot, end - start)
            start = end
            slot += 1

    def of(self, fact: Dated) -> Iterator[Piece]:
        """Yield the parts of a fact in the period, slot by slot."""
        window = inside(fact, self.period)
        return iter(()) if window is None else self.pieces(window)


def edges(facts: Iterable[Dated]) -> Iterator[Instant]:
    """Yield the instants at which a dated fact begins or ends to be in force."""
    for fact in facts:
        if fact.start is not None:
            yield fact.start
        if fact.end is not None:
            yield fact.end


def local_date(period: Period, at: Instant) -> date:
    """Return the day that an instant lies in, as the period's time zone counts days."""
    return moment(at).astimezone(ZoneInfo(period.time_zone)).date()


def midnights(period: Period) -> list[Instant]:
    """Return the beginnings of the local days inside the period; a day has 23 to 25 hours."""
    zone = ZoneInfo(period.time_zone)
    found: list[Instant] = []
    try:
        day: date = moment(period.start).astimezone(zone).date()
        while True:
            day += timedelta(days=1)
            beginning = instant(datetime(day.year, day.month, day.day, tzinfo=zone))
            if beginning >= period.end:
                return found
            if beginning > period.start:
                found.append(beginning)
    except OverflowError:  # the last day that a date can name
        return found
