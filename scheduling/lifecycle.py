"""Where a workload stands and how it gets from one state to the next: one table, one writer.

Evicted is an event, not a state. An evicted workload is pending again at once, because that is
what its owner must know; its old admission goes on holding quota and nodes (``evicted_at`` set,
``released_at`` not) until the backend has seen the last pod go. Until then the engine counts what
it holds and decides nothing about it, and the database allows no second open admission.

The table is printed, and drawn, in ``docs/concepts/life-of-a-workload.md``.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from django.db import transaction
from django.db.models import F

from gpuplatform.common.wakeup import note_changes
from scheduling.engine.terms import CheckVerdict, EvictionReason, Outcome, PendingReason, Status
from scheduling.models import Admission, PodSet, Workload, WorkloadEvent
from scheduling.steps import FIRST, STEPS
from scheduling.verdicts import Action, Event, answer_to, read_policies

CANCELLABLE = (Status.PENDING, Status.ADMITTED, Status.RUNNING, Status.INACTIVE)
HOLDING = (Status.ADMITTED, Status.RUNNING)
RESERVED, RESTARTED = "quota_reserved", "restarted"
CHANGED = "workload"  # the topic of changes whose keys are workloads
STARTED = "started"  # the same, where nothing has happened but that they run
CANCELLED = "Cancelled"  # why an admission ends when its workload is cancelled
MOST_GPUS = 2**31 - 1
CHECKPOINTS_TOLD = timedelta(hours=1)
_CALM: Mapping[str, Any] = {"pending_reason": "", "blockers": [], "position": None}
_ANEW: Mapping[str, Any] = {
    "requeues": 0,
    "retries": 0,
    "executed_s": 0.0,
    "requeue_at": None,
    "queued_at": None,
    "inactive_reason": "",
}


class Moved(Protocol):
    """What of a workload decides which columns change when it moves."""

    status: str
    admitted_at: datetime | None
    executed_s: float


@transaction.atomic
def transition(
    workload: Workload,
    to: Status,
    *,
    at: datetime,
    event: str = "",
    reason: str = "",
    facts: Mapping[str, Any] | None = None,
    other: Workload | None = None,
    outcome: Outcome | None = None,
    expect_version: int | None = None,
    gpus: int | None = None,
    columns: Mapping[str, Any] | None = None,
) -> bool:
    """Move ``workload`` to another state and write the line of its story, if nothing was faster.

    Args:
        workload: as its caller saw it; brought up to date when the change was written.
        to: the new state.
        at: the instant at which it really happened.
        event: what happened, in the table's words; default is the table's first for this move.
        reason: a code, e.g. ``Preempted``.
        facts: the numbers of the event's sentence.
        other: the preemptor of a victim, or the victim of a preemptor.
        outcome: how it ended; required with ``finished`` and only there.
        expect_version: the version that the decision rests on; default is the caller's.
        gpus: what is held from now on; default is the whole gang where it waits again.
        columns: what else changes with it.

    Returns:
        Whether it was written; False when the row has another version or state by now.

    Raises:
        AssertionError: the table knows no such transition.
    """
    current = Status(workload.status)
    event = event_of(current, to, outcome, event)
    version = workload.version if expect_version is None else expect_version
    changes = {
        "status": to.value,
        **effects_of(workload, event, to, at),
        **({"outcome": outcome.value} if outcome else {}),
        **_size(workload, current, to, gpus),
        **(columns or {}),
    }
    unchanged = Workload.objects.filter(pk=workload.pk, version=version, status=workload.status)
    if not unchanged.update(version=F("version") + 1, **changes):
        return False
    for name, value in {"version": version + 1, **changes}.items():
        setattr(workload, name, value)
    tell(workload, event, at=at, reason=reason, facts=facts, other=other)
    note_changes(CHANGED, [workload.pk])  # who keeps a world reads the row again
    return True


@transaction.atomic
def evict(
    workload: Workload,
    reason: EvictionReason,
    *,
    at: datetime,
    facts: Mapping[str, Any] | None = None,
    other: Workload | None = None,
    event: str = "evicted",
    columns: Mapping[str, Any] | None = None,
) -> bool:
    """Take the admission back; its pods hold it until they have gone.

    What its own policies say of evicted pods happens at once: it may have to wait until somebody
    resumes it, or be over. Only work that could restart by itself waits in the queue again.
    """
    why = reason.value
    if not transition(
        workload,
        Status.PENDING,
        at=at,
        event=event,
        reason=why,
        facts=facts,
        other=other,
        columns=columns,
    ):
        return False
    stop_admission(workload, at=at, reason=why, loses=True)
    workload.checks.update(state=CheckVerdict.PENDING.value, message="", by="", at=at)
    match answer_to(read_policies(workload.policies), Event.EVICTED):
        case Action.ABORT:
            return deactivate(workload, "AbortedByPolicy", at=at)
        case Action.TERMINATE:
            return finish(workload, Outcome.FAILED, at=at, reason="TerminatedByPolicy")
        case Action.COMPLETE:
            return finish(workload, Outcome.SUCCEEDED, at=at, reason="CompletedByPolicy")
        case _:
            return True


@transaction.atomic
def deactivate(
    workload: Workload, reason: str, *, at: datetime, facts: Mapping[str, Any] | None = None
) -> bool:
    """Take a workload out of the queue until somebody reactivates it."""
    columns = {"inactive_reason": reason, "requeue_at": None}
    done = transition(
        workload, Status.INACTIVE, at=at, reason=reason, facts=facts, columns=columns
    )
    if done:
        stop_admission(workload, at=at, reason=EvictionReason.DEACTIVATED.value, loses=True)
        workload.checks.update(state=CheckVerdict.PENDING.value, message="", by="", at=at)
    return done


@transaction.atomic
def finish(
    workload: Workload,
    outcome: Outcome,
    *,
    at: datetime,
    reason: str = "",
    facts: Mapping[str, Any] | None = None,
) -> bool:
    """End a workload that has ended by itself; pods that still stand are asked to stop."""
    done = transition(
        workload, Status.FINISHED, at=at, reason=reason, facts=facts, outcome=outcome
    )
    if done:
        stop_admission(workload, at=at, reason=outcome.value)
    return done


@transaction.atomic
def restart(
    workload: Workload,
    admission: Admission,
    *,
    at: datetime,
    reason: str,
    facts: Mapping[str, Any] | None = None,
) -> bool:
    """Let all members start anew where they are: the next attempt of the same admission."""
    columns = {"retries": workload.retries + 1}
    if not transition(
        workload,
        Status.ADMITTED,
        at=at,
        event=RESTARTED,
        reason=reason,
        facts=facts,
        columns=columns,
    ):
        return False
    admission.lost = [*admission.lost, *lost_since(admission, workload.last_checkpoint_at, at)]
    admission.attempt, admission.begun_at = admission.attempt + 1, at
    admission.started_at = admission.unready_since = None
    columns_of_attempt = ["attempt", "begun_at", "started_at", "unready_since", "lost"]
    admission.save(update_fields=columns_of_attempt)
    PodSet.objects.filter(workload=workload).update(finished=0)
    return True


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


def stop_admission(workload: Workload, *, at: datetime, reason: str, loses: bool = False) -> None:
    """Ask for the release of what the workload holds; nothing to do where it holds nothing.

    ``loses``: what it did since its last checkpoint has to be done again.
    """
    held = Admission.objects.filter(workload=workload, released_at=None, evicted_at=None)
    if loses:
        for admission in held:
            lost = lost_since(admission, workload.last_checkpoint_at, at)
            Admission.objects.filter(pk=admission.pk).update(lost=[*admission.lost, *lost])
    held.update(evicted_at=at, eviction_reason=reason)


def lost_since(
    admission: Admission, saved: datetime | None, at: datetime, gpus: int | None = None
) -> list[dict[str, Any]]:
    """Return the stretch whose progress is thrown away at ``at``, as a row holds it.

    Since the last checkpoint of this attempt, else all of the attempt (``finops.md`` 5); nothing
    of one whose pods have never been ready.
    """
    since = max(filter(None, (admission.admitted_at, admission.begun_at, saved)))
    if admission.started_at is None or since >= at:
        return []
    return [{"from": since.isoformat(), "to": at.isoformat(), "gpus": gpus}]


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


def tell_checkpoint(workload: Workload, saved: datetime, *, at: datetime) -> None:
    """Write that progress is safe; once an hour where nothing else happens in between."""
    newest = workload.events.order_by("-id").first()
    if newest is None or newest.kind != "checkpoint" or at - newest.at >= CHECKPOINTS_TOLD:
        tell(workload, "checkpoint", at=at, facts={"saved_until": saved.isoformat()})


def event_of(current: Status, to: Status, outcome: Outcome | None, event: str) -> str:
    """Return what happens with this move. Raises AssertionError if the table knows none."""
    assert (outcome is not None) == (to is Status.FINISHED), "an end needs an outcome"
    if outcome is Outcome.CANCELLED:
        event = "cancelled"
    kind = event or FIRST.get((current, to), "")
    assert (current, kind, to) in STEPS, f"no way from {current} by {kind!r} to {to}"
    return kind


def _size(workload: Workload, current: Status, to: Status, gpus: int | None) -> dict[str, Any]:
    """Return what changes of the size: with partial admission, and where it waits again.

    Who waits again waits with all pods that were asked for.
    """
    if to is Status.PENDING and (current is not Status.PENDING or gpus is None):
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


def effects_of(workload: Moved, event: str, to: Status, at: datetime) -> dict[str, Any]:
    """Return the columns that follow from the new state."""
    match to:
        case Status.ADMITTED:
            anew = {"last_checkpoint_at": None, "requeue_at": None, "admitted_at": at}
            return {**_CALM, "started_at": None, **(anew if event != RESTARTED else {})}
        case Status.RUNNING:
            return {"started_at": at}
        case Status.FINISHED:
            return {**_CALM, "finished_at": at, "requeue_at": None}
        case Status.PENDING if event == RESERVED:
            why = PendingReason.UNSATISFIED_CHECKS.value
            return {**_CALM, "pending_reason": why, "requeue_at": None}
        case Status.PENDING:
            why = PendingReason.PENDING_EVALUATION.value
            anew = dict(_ANEW) if workload.status == Status.INACTIVE else {}
            waits = {"pending_reason": why, "waiting_since": at}
            return {**_CALM, **waits, **anew, **_out(workload, at)}
        case Status.INACTIVE:
            return {**_CALM, **_out(workload, at)}


def _out(workload: Moved, at: datetime) -> dict[str, Any]:
    """Return the columns of who holds no admission any more; its time so far is noted."""
    columns: dict[str, Any] = {"admitted_at": None, "started_at": None}
    if workload.admitted_at is not None and workload.status in HOLDING:
        ran = max(0.0, (at - workload.admitted_at).total_seconds())
        columns["executed_s"] = workload.executed_s + ran
    return columns
