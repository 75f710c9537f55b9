"""A cluster that exists in the imagination only: gangs start at once and end on time.

It remembers nothing: what a gang has done follows from its rows and the clock, so that a restart
loses nothing and an end that is noticed late still happened when it was due. Annotations of a
workload let it start late, stop slowly or lose members (:class:`Script`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduling.backends.base import End, Gang, Member, MemberEnd, Sighting
from scheduling.engine.terms import Outcome

PREFIX = "gpuplatform.io/simulate-"
START = f"{PREFIX}start-seconds"  # until all members are ready
STOP = f"{PREFIX}stop-seconds"  # until the last pod is gone, at most its grace
FAILURES = f"{PREFIX}failures"  # "600:137,60:1": of each attempt in turn, seconds and exit code
NEVER = "never"
MOST_S, MOST_CODE = 10**9, 255


@dataclass(frozen=True, slots=True)
class Script:
    """How a gang behaves. ``start_s`` None: it never becomes ready.

    ``failures``: of each attempt in turn, after how many seconds its first member fails, and
    with which exit code; attempts beyond run through.
    """

    start_s: float | None = 0.0
    stop_s: float = 0.0
    failures: tuple[tuple[float, int], ...] = ()


SMOOTH = Script()


def read_script(hints: Mapping[str, str]) -> Script:
    """Return what a workload's annotations say; what cannot be read counts as not said."""
    if not hints:
        return SMOOTH
    started = hints.get(START, "")
    return Script(
        None if started == NEVER else _seconds(started),
        _seconds(hints.get(STOP, "")),
        tuple(_failure(text) for text in hints.get(FAILURES, "").split(",") if text),
    )


def _seconds(text: str) -> float:
    return min(_number(text), MOST_S)


def _number(text: str) -> int:
    return int(text[:10]) if text.isascii() and text.isdecimal() else 0


def _failure(text: str) -> tuple[float, int]:
    after, _colon, code = text.partition(":")
    return _seconds(after), min(_number(code), MOST_CODE) or 1


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
        script, told = read_script(gang.hints), gang.attempt
        start = gang.started_at or _plus(gang.since, script.start_s)
        failure = self._failure(gang, script, start)
        end = self._end(gang, start) if failure is None else None
        if end is not None and (gang.evicted_at is None or end <= gang.evicted_at):
            return Sighting(gang.admission, start, Outcome.SUCCEEDED, end, told)
        if gang.evicted_at is not None:
            gone = gang.evicted_at + timedelta(seconds=min(script.stop_s, gang.grace_s))
            released = gone if gone <= self._now else None
            return Sighting(gang.admission, gang.started_at, None, released, told)
        started = start if start is not None and start <= self._now else None
        ready = gang.size - (failure is not None) if started else 0
        ends = (failure,) if failure else ()
        return Sighting(gang.admission, started, attempt=told, ready=ready, ends=ends)

    def _failure(self, gang: Gang, script: Script, start: datetime | None) -> MemberEnd | None:
        """Return the member that has failed in this attempt by now, if its script says so."""
        if gang.attempt > len(script.failures) or not gang.pods or gang.part_of is not None:
            return None
        after, code = script.failures[gang.attempt - 1]
        at, first = _plus(start, after), gang.pods[0]
        edge = self._now if gang.evicted_at is None else min(self._now, gang.evicted_at)
        if at is None or at > edge:
            return None
        return MemberEnd(Member(first.pod_set, first.node, 0), End.FAILED, at, code)

    def _end(self, gang: Gang, start: datetime | None) -> datetime | None:
        """Return when the gang ended by itself, if it has by now."""
        end = _plus(start, gang.expected_duration_s)
        return end if end is not None and end <= self._now else None


def _plus(start: datetime | None, seconds: float | None) -> datetime | None:
    if start is None or seconds is None:
        return None
    return start + timedelta(seconds=seconds)
