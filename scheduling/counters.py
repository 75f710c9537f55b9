"""What a workload, a team or a queue made of its GPUs, counted from rows. Pure.

Source: ``finops.md`` 5. Every counter says where it is from: held, ready, borrowed, preempted and
lost from our own metering, to the microsecond; sampled, used and idle from whoever measures GPUs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from scheduling.engine.terms import EvictionReason, Holding

MICROSECOND = timedelta(microseconds=1)
HOUR = 3_600_000_000  # microseconds
PLACES = Decimal("0.000001")
# Who took its admission back: the platform. Its owner's request, and a limit of its own, are none.
EVICTIONS = frozenset(one.value for one in EvictionReason) - {EvictionReason.DEACTIVATED.value}
SOURCES: Mapping[str, str] = {
    **dict.fromkeys(("held", "ready", "borrowed", "preempted", "lost"), "scheduler"),
    **dict.fromkeys(("sampled", "used", "idle"), "utilisation"),
}


@dataclass(frozen=True, slots=True)
class Stay:
    """An admission, as far as it is counted. ``lost``: see ``models.Admission``."""

    started_at: datetime | None = None
    eviction_reason: str = ""
    lost: tuple[Mapping[str, Any], ...] = ()

    @property
    def was_evicted(self) -> bool:
        """Return whether the platform took it back."""
        return self.eviction_reason in EVICTIONS


@dataclass(frozen=True, slots=True)
class Span:
    """GPUs held on one ground in ``[start, end)``; no end: still held."""

    gpus: int
    start: datetime
    end: datetime | None
    holding: str = Holding.NOMINAL.value


@dataclass(frozen=True, slots=True)
class Measured:
    """GPU-hours that were measured: at all, busy, and under the threshold for long enough."""

    sampled: Decimal = Decimal(0)
    used: Decimal = Decimal(0)
    idle: Decimal = Decimal(0)

    def __add__(self, other: "Measured") -> "Measured":
        """Return both together."""
        return Measured(
            self.sampled + other.sampled, self.used + other.used, self.idle + other.idle
        )


@dataclass(frozen=True, slots=True)
class Counters:
    """Microseconds x GPUs, so that sums are exact; ``measured`` None: nobody measured anything.

    held: from admission to release. ready: since all pods of the last attempt were. borrowed: on
    somebody else's quota. preempted: held by stays that the platform ended. lost: progress that
    was thrown away, since the last checkpoint or else all. ``idle``: allocated, and under the
    threshold of use for the shortest idle time at least.
    """

    held: int = 0
    ready: int = 0
    borrowed: int = 0
    preempted: int = 0
    lost: int = 0
    measured: Measured | None = None
    open: bool = field(default=False, compare=False)  # something is still held

    def __add__(self, other: "Counters") -> "Counters":
        """Return both together."""
        measured = self.measured or other.measured
        if self.measured is not None and other.measured is not None:
            measured = self.measured + other.measured
        return Counters(
            self.held + other.held,
            self.ready + other.ready,
            self.borrowed + other.borrowed,
            self.preempted + other.preempted,
            self.lost + other.lost,
            measured,
            self.open or other.open,
        )

    def hours(self) -> dict[str, Decimal | None]:
        """Return GPU-hours by name, to six places; what was not measured is None."""
        found: dict[str, Decimal | None] = {
            name: (Decimal(getattr(self, name)) / HOUR).quantize(PLACES, ROUND_HALF_UP)
            for name in OWN
        }
        for one in fields(Measured):
            found[one.name] = getattr(self.measured, one.name) if self.measured else None
        return found


OWN = ("held", "ready", "borrowed", "preempted", "lost")
NAMES = tuple(SOURCES)


def count(stay: Stay, spans: Iterable[Span], start: datetime | None, end: datetime) -> Counters:
    """Return the counters of one admission in ``[start, end)``; ``start`` None: all of it."""
    held = ready = borrowed = lost = 0
    is_open = False
    for span in spans:
        first = span.start if start is None else max(span.start, start)
        last = min(span.end or end, end)
        is_open |= span.end is None
        held += span.gpus * _length(first, last)
        if span.holding == Holding.BORROWED.value:
            borrowed += span.gpus * _length(first, last)
        if stay.started_at is not None:
            ready += span.gpus * _length(max(first, stay.started_at), last)
        for stretch in stay.lost:
            if stretch["gpus"] is None:
                since, until = _ends(stretch)
                lost += span.gpus * _length(max(first, since), min(last, until))
    lost += sum(_lost(stretch, start, end) for stretch in stay.lost if stretch["gpus"])
    preempted = held if stay.was_evicted else 0
    return Counters(held, ready, borrowed, preempted, lost, open=is_open)


def _lost(stretch: Mapping[str, Any], start: datetime | None, end: datetime) -> int:
    since, until = _ends(stretch)
    first = since if start is None else max(since, start)
    return int(stretch["gpus"]) * _length(first, min(until, end))


def _ends(stretch: Mapping[str, Any]) -> tuple[datetime, datetime]:
    return datetime.fromisoformat(stretch["from"]), datetime.fromisoformat(stretch["to"])


def _length(start: datetime, end: datetime) -> int:
    """Return the microseconds between two instants, 0 where they are the wrong way round."""
    return max(0, (end - start) // MICROSECOND)
