"""What becomes of a running gang by itself: its members end, or a time runs out. Pure.

One function, :func:`judge`, over facts of one admission. Sources: ``admission.md`` 2.2, K52, K54;
``placement.md`` 1.12 (Volcano's policies). Of several things that have happened the first counts.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from scheduling.engine.terms import EvictionReason, Outcome
from scheduling.members import End, MemberEnd

MOST_RETRIES = 3  # Volcano's maxRetry, where nobody says how often


class Event(StrEnum):
    """What may happen to members, in Volcano's words."""

    FAILED = "PodFailed"
    EVICTED = "PodEvicted"
    COMPLETED = "TaskCompleted"
    ANY = "*"


class Action(StrEnum):
    """What is done then: the whole job starts anew, waits to be resumed, or is over."""

    RESTART = "RestartJob"
    ABORT = "AbortJob"
    TERMINATE = "TerminateJob"
    COMPLETE = "CompleteJob"


@dataclass(frozen=True, slots=True)
class Policy:
    """One answer to what happens to a member; ``pod_set`` "" holds for all of them.

    Either ``events`` or an ``exit_code`` of a member that failed.
    """

    action: Action
    events: tuple[Event, ...] = ()
    exit_code: int | None = None
    pod_set: str = ""

    def answers(self, event: Event, pod_set: str, exit_code: int | None) -> bool:
        """Return whether the policy is about this. ``*`` is about what went badly.

        Of completed tasks ``*`` answers with the job's completion alone: no success restarts.
        """
        if self.pod_set not in ("", pod_set):
            return False
        if self.exit_code is not None:
            return event is Event.FAILED and exit_code == self.exit_code
        well = event is Event.COMPLETED and self.action is not Action.COMPLETE
        return event in self.events or (Event.ANY in self.events and not well)

    def as_json(self) -> dict[str, Any]:
        """Return the policy as it is stored and shown."""
        return {
            "action": self.action.value,
            "events": [event.value for event in self.events],
            "exit_code": self.exit_code,
            "pod_set": self.pod_set,
        }


def read_policies(rows: Iterable[Mapping[str, Any]]) -> tuple[Policy, ...]:
    """Return stored policies, those of single pod sets first: they come before the job's."""
    found = [
        Policy(
            Action(row["action"]),
            tuple(Event(name) for name in row["events"]),
            row["exit_code"],
            row["pod_set"],
        )
        for row in rows
    ]
    return tuple(sorted(found, key=lambda policy: not policy.pod_set))


def answer_to(policies: Iterable[Policy], event: Event, pod_set: str = "") -> Action | None:
    """Return what the first policy about an event says; None where none is about it."""
    return next((p.action for p in policies if p.answers(event, pod_set, None)), None)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long the platform waits for pods, and how often. Seconds; 0 or less: for ever.

    ``requeues`` None: as often as need be. ``recovery_s``: as ``ready_s``, once all were ready.
    """

    ready_s: float = 1800.0
    recovery_s: float = 1800.0
    requeues: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """How one admission stands, as far as it decides about its workload's life.

    ``begun_at``: since when this attempt may start. ``admitted_at``: since when its time counts,
    beside the ``executed_s`` of earlier admissions. ``pods``: how many of each pod set stand.
    """

    admitted_at: datetime
    begun_at: datetime
    attempt: int = 1
    started_at: datetime | None = None
    unready_since: datetime | None = None
    executed_s: float = 0.0
    max_execution_s: float | None = None
    requeues: int = 0
    retries: int = 0
    max_retries: int | None = None
    on_failure: str = "restart"
    policies: tuple[Policy, ...] = ()
    min_success: int | None = None
    min_member: int | None = None
    pods: Mapping[str, int] = field(default_factory=dict)
    ends: Sequence[MemberEnd] = ()


@dataclass(frozen=True, slots=True)
class Finish:
    """It is over."""

    at: datetime
    outcome: Outcome
    reason: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Restart:
    """All its members start anew where they are."""

    at: datetime
    reason: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Requeue:
    """It gives back what it holds, and tries again later."""

    at: datetime
    reason: EvictionReason
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deactivate:
    """It gives back what it holds, and somebody has to reactivate it."""

    at: datetime
    reason: str
    facts: Mapping[str, Any] = field(default_factory=dict)


Verdict = Finish | Restart | Requeue | Deactivate


def judge(run: Run, limits: Limits, now: datetime) -> Verdict | None:
    """Return what has become of the admission by ``now``; None: it goes on."""
    found = [*_of_members(run), *_of_time(run), *_of_readiness(run, limits)]
    due = [verdict for verdict in found if verdict.at <= now]
    return min(due, key=lambda verdict: verdict.at, default=None)


def next_instant(run: Run, limits: Limits, now: datetime) -> datetime | None:
    """Return when time alone decides about the admission, if nothing else happens."""
    found = [*_of_time(run), *_of_readiness(run, limits)]
    return min((verdict.at for verdict in found if verdict.at > now), default=None)


# ---- members -----------------------------------------------------------------------------------
def _of_members(run: Run) -> Iterator[Verdict]:
    """Yield the first verdict that follows from members that are over, in their order."""
    counts: Counter[tuple[str, End]] = Counter()
    for end in sorted(run.ends, key=lambda one: (one.at, one.member)):
        counts[end.member.pod_set, end.end] += 1
        verdict = _of_end(run, end, counts)
        if verdict is not None:
            yield verdict
            return


def _of_end(run: Run, end: MemberEnd, counts: Counter[tuple[str, End]]) -> Verdict | None:
    pod_set, facts = end.member.pod_set, _facts(end)
    done = sum(count for (_, how), count in counts.items() if how is End.FINISHED)
    if run.min_success is not None and done >= run.min_success:
        return Finish(end.at, Outcome.SUCCEEDED, "EnoughSucceeded", {"pods": done})
    action = _action(run, end, counts[pod_set, End.FINISHED])
    if action is not None:
        return _acted(run, end, action)
    if end.end is not End.FINISHED and run.on_failure == "restart":
        return _restart(run, end.at, facts)
    if end.end is not End.FINISHED and run.on_failure == "fail":
        return Finish(end.at, Outcome.FAILED, "MemberFailed", facts)
    if counts.total() < sum(run.pods.values()):
        return None
    needed = run.min_success or run.min_member or sum(run.pods.values())
    outcome = Outcome.SUCCEEDED if done >= needed else Outcome.FAILED
    return Finish(end.at, outcome, "MembersOver", {"pods": done, "of_pods": counts.total()})


def _action(run: Run, end: MemberEnd, finished: int) -> Action | None:
    """Return what the policies say of this end."""
    pod_set, event = end.member.pod_set, Event.FAILED
    if end.end is End.LOST:
        event = Event.EVICTED
    elif end.end is End.FINISHED:
        if finished < run.pods.get(pod_set, 0):
            return None
        event = Event.COMPLETED
    for policy in run.policies:
        if policy.answers(event, pod_set, end.exit_code):
            return policy.action
    return None


def _acted(run: Run, end: MemberEnd, action: Action) -> Verdict:
    facts = {**_facts(end), "policy": action.value}
    match action:
        case Action.RESTART:
            return _restart(run, end.at, facts)
        case Action.ABORT:
            return Deactivate(end.at, "AbortedByPolicy", facts)
        case Action.TERMINATE:
            return Finish(end.at, Outcome.FAILED, "TerminatedByPolicy", facts)
        case Action.COMPLETE:
            return Finish(end.at, Outcome.SUCCEEDED, "CompletedByPolicy", facts)


def _restart(run: Run, at: datetime, facts: Mapping[str, Any]) -> Verdict:
    most = MOST_RETRIES if run.max_retries is None else run.max_retries
    if run.retries >= most:
        return Finish(at, Outcome.FAILED, "RetryLimitExceeded", {**facts, "retries": most})
    return Restart(at, "MemberFailed", {**facts, "retry": run.retries + 1, "of_retries": most})


def _facts(end: MemberEnd) -> dict[str, Any]:
    said = {"pod_set": end.member.pod_set, "node": end.member.node, "slot": end.member.slot}
    code = {} if end.exit_code is None else {"exit_code": end.exit_code}
    return {**said, "end": end.end.value, **code, **({"why": end.why} if end.why else {})}


# ---- time --------------------------------------------------------------------------------------
def _of_time(run: Run) -> Iterator[Verdict]:
    """Yield when the time that it may run in all is used up (K52)."""
    if run.max_execution_s is not None:
        at = run.admitted_at + timedelta(seconds=max(0.0, run.max_execution_s - run.executed_s))
        facts = {"limit_s": round(run.max_execution_s)}
        yield Deactivate(at, "MaximumExecutionTimeExceeded", facts)


def _of_readiness(run: Run, limits: Limits) -> Iterator[Verdict]:
    """Yield when its pods have not been ready for too long (K54)."""
    again = run.attempt > 1
    cause, seconds = "WaitForStart", limits.ready_s
    since: datetime | None = run.begun_at
    if again or run.started_at is not None:
        cause, seconds = "WaitForRecovery", limits.recovery_s
    if run.started_at is not None:
        since = run.unready_since
    if since is None or seconds <= 0:
        return
    at, facts = since + timedelta(seconds=seconds), {"cause": cause, "waited_s": round(seconds)}
    if limits.requeues is not None and run.requeues >= limits.requeues:
        facts["requeues"] = run.requeues
        yield Deactivate(at, "RequeuingLimitExceeded", facts)
    else:
        yield Requeue(at, EvictionReason.PODS_READY_TIMEOUT, facts)


def backoff_s(times: int, base_s: float, most_s: float) -> float:
    """Return how long work rests after its ``times``-th eviction: base x 2^(times - 1), capped."""
    doublings = min(max(0, times - 1), 60)
    return min(base_s * 2.0**doublings, most_s)
