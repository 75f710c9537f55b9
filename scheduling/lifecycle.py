"""Where a workload stands and how it gets from one state to the next: one table, one writer.

Evicted is an event, not a state. An evicted workload is pending again at once, because that is
what its owner must know; its old admission goes on holding quota and nodes (``evicted_at`` set,
``released_at`` not) until the backend has seen the last pod go. Until then the engine counts what
it holds and decides nothing about it, and the database allows no second open admission.

    pending --admitted--> admitted --started--> running --finished--> finished
       ^                     |                     |
       +------evicted--------+---------------------+
    pending, admitted, running --cancelled--> finished
    pending, admitted, running --deactivated--> inactive --reactivated--> pending
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import F

from gpuplatform.common.wakeup import note_changes
from scheduling import persist
from scheduling.engine.terms import Outcome, PendingReason, Status
from scheduling.models import Admission, PodSet, Workload, WorkloadEvent

# From, to -> the line in the workload's story. A cancelled end has its own word.
TRANSITIONS: Mapping[tuple[Status, Status], str] = {
    (Status.PENDING, Status.ADMITTED): "admitted",
    (Status.ADMITTED, Status.RUNNING): "started",
    (Status.RUNNING, Status.FINISHED): "finished",
    (Status.ADMITTED, Status.FINISHED): "finished",  # over before anybody saw it start
    # Its pods had ended before the eviction reached them.
    (Status.PENDING, Status.FINISHED): "finished",
    (Status.ADMITTED, Status.PENDING): "evicted",
    (Status.RUNNING, Status.PENDING): "evicted",
    (Status.PENDING, Status.INACTIVE): "deactivated",
    (Status.ADMITTED, Status.INACTIVE): "deactivated",
    (Status.RUNNING, Status.INACTIVE): "deactivated",
    (Status.INACTIVE, Status.PENDING): "reactivated",
}
CANCELLABLE = (Status.PENDING, Status.ADMITTED, Status.RUNNING, Status.INACTIVE)
CHANGED = "workload"  # the topic of changes whose keys are workloads
CANCELLED = "Cancelled"  # why an admission ends when its workload is cancelled
MOST_GPUS = 2**31 - 1
_CALM: Mapping[str, Any] = {"pending_reason": "", "blockers": [], "position": None}


@transaction.atomic
def transition(
    workload: Workload,
    to: Status,
    *,
    at: datetime,
    reason: str = "",
    facts: Mapping[str, Any] | None = None,
    other: Workload | None = None,
    outcome: Outcome | None = None,
    expect_version: int | None = None,
    gpus: int | None = None,
) -> bool:
    """Move ``workload`` to another state and write the line of its story, if nothing was faster.

    Args:
        workload: as its caller saw it; brought up to date when the change was written.
        to: the new state.
        at: the instant at which it really happened.
        reason: a code, e.g. ``Preempted``.
        facts: the numbers of the event's sentence.
        other: the preemptor of a victim, or the victim of a preemptor.
        outcome: how it ended; required with ``finished`` and only there.
        expect_version: the version that the decision rests on; default is the caller's.
        gpus: what is held from now on; default is the whole gang where it waits again.

    Returns:
        Whether it was written; False when the row has another version or state by now.

    Raises:
        AssertionError: the table knows no such transition.
    """
    kind = _event(Status(workload.status), to, outcome)
    version = workload.version if expect_version is None else expect_version
    changes = {"status": to.value, **_effects(to, at, outcome), **_size(workload, to, gpus)}
    unchanged = Workload.objects.filter(pk=workload.pk, version=version, status=workload.status)
    if not unchanged.update(version=F("version") + 1, **changes):
        return False
    for name, value in {"version": version + 1, **changes}.items():
        setattr(workload, name, value)
    tell(workload, kind, at=at, reason=reason, facts=facts, other=other)
    note_changes(CHANGED, [workload.pk])  # who keeps a world reads the row again
    return True


class Line(NamedTuple):
    """One line of a workload's story; ``other``: the preemptor of a victim, or its victim."""

    workload: UUID
    at: datetime
    kind: str
    reason: str = ""
    facts: Mapping[str, Any] = {}
    other: UUID | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A workload on its way to another state, as its decider saw it; see :func:`transition`."""

    workload: UUID
    version: int
    current: Status
    to: Status
    at: datetime
    reason: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    other: UUID | None = None
    outcome: Outcome | None = None
    gpus: int | None = None

    @property
    def line(self) -> Line:
        """Return the line of the story that tells of it."""
        kind = _event(self.current, self.to, self.outcome)
        return Line(self.workload, self.at, kind, self.reason, self.facts, self.other)


def take(steps: Sequence[Step]) -> set[UUID]:
    """Write many transitions at once, each of them if nothing was faster; a few statements.

    Returns:
        The workloads that were moved; the others have another version or state by now.
    """
    waiting = [step.workload for step in steps if step.to is Status.PENDING]
    sizes = _whole_again(waiting) if waiting else {}
    taken: set[UUID] = set()
    for _, group in groupby(sorted(steps, key=_columns_of), key=_columns_of):
        taken |= _take_alike(list(group), sizes)
    tell_all(step.line for step in steps if step.workload in taken)
    return taken


def _columns_of(step: Step) -> tuple[str, bool]:
    return step.to.value, step.gpus is None


def _take_alike(steps: list[Step], sizes: Mapping[UUID, int]) -> set[UUID]:
    """Write transitions that set the same columns."""
    columns: list[str] = []
    rows = []
    for step in steps:
        changes = _effects(step.to, step.at, step.outcome)
        if step.to is Status.PENDING:
            changes |= {"gpus": sizes[step.workload], "growth": {}}
        elif step.gpus is not None:
            changes["gpus"] = step.gpus
        columns = ["version", "status", *changes]
        seen = step.workload, step.version, step.current.value
        rows.append((*seen, step.version + 1, step.to.value, *changes.values()))
    taken = persist.update(Workload, ("uid", "version", "status"), columns, rows)
    if steps[0].to is Status.PENDING:
        _ask_for_all(taken)
    return taken


def _whole_again(workloads: Iterable[UUID]) -> dict[UUID, int]:
    """Return the GPUs of whole gangs, with all pods that they ask for."""
    asked: dict[UUID, list[tuple[int, Mapping[str, int]]]] = {}
    for part in persist.batches(workloads):
        asked |= {uid: [] for uid in part}
        rows = PodSet.objects.filter(workload__in=part).order_by()
        for uid, count, wanted, requests in rows.values_list(
            "workload_id", "count", "wanted", "requests"
        ):
            asked[uid].append((wanted or count, requests))
    return {uid: gpus_of(pods) for uid, pods in asked.items()}


def _ask_for_all(workloads: Iterable[UUID]) -> None:
    for part in persist.batches(workloads):
        growing = PodSet.objects.filter(workload__in=part).exclude(wanted=None)
        growing.update(count=F("wanted"), wanted=None)


def tell_all(lines: Iterable[Line]) -> None:
    """Write lines of stories that change no state, in their order."""
    columns = ("workload_id", "at", "kind", "reason", "facts", "other_id")
    rows = [(w, at, kind, why, dict(facts), other) for w, at, kind, why, facts, other in lines]
    persist.insert(WorkloadEvent, columns, rows)


def cancel(workload: Workload, *, at: datetime, reason: str = "") -> bool:
    """End a workload by request; what it holds is released by the backend as soon as it can.

    Returns:
        Whether it was written; False when the workload has changed meanwhile or has ended.
    """
    if workload.status not in CANCELLABLE:
        return False
    with transaction.atomic():
        done = transition(
            workload, Status.FINISHED, at=at, reason=reason, outcome=Outcome.CANCELLED
        )
        if done:
            stop_admission(workload, at=at, reason=CANCELLED)
    return done


def stop_admission(workload: Workload, *, at: datetime, reason: str) -> None:
    """Ask for the release of what the workload holds; nothing to do where it holds nothing."""
    held = Admission.objects.filter(workload=workload, released_at=None, evicted_at=None)
    held.update(evicted_at=at, eviction_reason=reason)


def tell(
    workload: Workload,
    kind: str,
    *,
    at: datetime,
    reason: str = "",
    facts: Mapping[str, Any] | None = None,
    other: Workload | None = None,
) -> None:
    """Write one line of a workload's story that changes no state."""
    WorkloadEvent.objects.create(
        workload=workload, at=at, kind=kind, reason=reason, facts=dict(facts or {}), other=other
    )


def _event(current: Status, to: Status, outcome: Outcome | None) -> str:
    assert (outcome is not None) == (to is Status.FINISHED), "an end needs an outcome"
    if outcome is Outcome.CANCELLED and current in CANCELLABLE:
        return "cancelled"
    kind = TRANSITIONS.get((current, to))
    assert kind, f"no way from {current} to {to}"
    return kind


def _size(workload: Workload, to: Status, gpus: int | None) -> dict[str, Any]:
    """Return what changes of the size: with partial admission, and where it waits again.

    Who waits again waits with all pods that were asked for.
    """
    if to is Status.PENDING:
        pod_sets = workload.pod_sets
        pod_sets.exclude(wanted=None).update(count=F("wanted"), wanted=None)
        gpus = gpus_of(pod_sets.values_list("count", "requests"))
        return {"gpus": gpus, "growth": {}}
    return {} if gpus is None else {"gpus": gpus}


def gpus_of(pods: Iterable[tuple[int, Mapping[str, int]]]) -> int:
    """Return the GPUs that so many pods with these requests ask for, as far as a column holds."""
    total = sum(
        count * amount
        for count, requests in pods
        for resource, amount in requests.items()
        if resource.endswith("/gpu")
    )
    return min(total, MOST_GPUS)


def _effects(to: Status, at: datetime, outcome: Outcome | None) -> dict[str, Any]:
    """Return the columns that follow from the new state."""
    match to:
        case Status.ADMITTED:
            anew = {"started_at": None, "last_checkpoint_at": None}
            return {**_CALM, **anew, "admitted_at": at}
        case Status.RUNNING:
            return {"started_at": at}
        case Status.FINISHED:
            assert outcome is not None
            return {**_CALM, "outcome": outcome.value, "finished_at": at}
        case Status.PENDING:
            why = PendingReason.PENDING_EVALUATION.value
            return {**_CALM, "pending_reason": why, "admitted_at": None, "started_at": None}
        case Status.INACTIVE:
            return {**_CALM, "admitted_at": None, "started_at": None}
