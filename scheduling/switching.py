"""Writers of what people decide about live work: stop and resume, open gates, agree, save.

One transaction each, audited, then a wake-up.
"""

from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from gpuplatform.common import audit, clock
from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.problems import Problem, Rejected
from gpuplatform.common.wakeup import request_cycle
from queues.models import User
from queues.services.writing import refuse, require_row
from scheduling import lifecycle
from scheduling.checks import KINDS, MANUAL, tell_awaited
from scheduling.engine.terms import CheckVerdict, Status
from scheduling.models import AdmissionCheck, CheckState, Workload
from scheduling.scaling import change_workload
from scheduling.services import BY_REQUEST
from scheduling.specs import WorkloadChange


def change(uid: UUID | str, asked: WorkloadChange, *, actor: User | None) -> Workload:
    """Do all that a change of a live workload asks for, or nothing of it.

    Raises:
        Rejected: one of its parts is not possible.
    """
    with transaction.atomic():
        row = _locked(uid)
        if asked.resizes:
            row = change_workload(uid, asked, actor=actor, reason=asked.reason)
        if asked.gates is not None:
            row = open_gates(uid, asked.gates, actor=actor, reason=asked.reason)
        if asked.priority is not None:
            row = set_priority(uid, asked.priority, actor=actor, reason=asked.reason)
        if asked.active is not None:
            row = set_active(uid, asked.active, actor=actor, reason=asked.reason)
    return row


@transaction.atomic
def set_active(uid: UUID | str, active: bool, *, actor: User | None, reason: str = "") -> Workload:
    """Take a workload out of the queue, or let it in again with its counters at nought.

    Asking for what is so already changes nothing.

    Raises:
        Rejected: it is not there, or has ended.
    """
    row = _locked(uid)
    if row.status == Status.FINISHED:
        refuse([_problem("active", "NOT_ACTIVE", workload=str(row))])
    if active is not (row.status == Status.INACTIVE):
        return row
    now = clock.now()
    if active:
        done = lifecycle.transition(row, Status.PENDING, at=now, reason=BY_REQUEST)
    else:
        facts = {"message": reason[:500], "by": actor.username if actor else ""}
        done = lifecycle.deactivate(row, BY_REQUEST, at=now, facts=facts)
    _written(done)
    _note(row, "reactivated" if active else "deactivated", actor, reason)
    return row


@transaction.atomic
def open_gates(
    uid: UUID | str, left: tuple[str, ...], *, actor: User | None, reason: str = ""
) -> Workload:
    """Leave only some of the gates that keep a workload out of the queue (K51).

    Raises:
        Rejected: it is not there, has ended, or a gate would be added.
    """
    row = _locked(uid)
    refuse(_check_gates(row, left))
    before = list(row.gates)
    if list(left) == before:
        return row
    changed = Workload.objects.filter(pk=row.pk, version=row.version)
    _written(changed.update(version=F("version") + 1, gates=list(left)) == 1)
    row.version, row.gates = row.version + 1, list(left)
    opened = [gate for gate in before if gate not in left]
    lifecycle.tell(row, "gate_opened", at=clock.now(), facts={"gates": ", ".join(opened)})
    _note(row, "gate_opened", actor, reason)
    return row


@transaction.atomic
def set_priority(
    uid: UUID | str, priority: int, *, actor: User | None, reason: str = ""
) -> Workload:
    """Give a live workload another priority: its place in the queue, and whom it may evict.

    Its priority class, which said so until now, no longer does.

    Raises:
        Rejected: it is not there, or has ended.
    """
    row = _locked(uid)
    if row.status == Status.FINISHED:
        refuse([_problem("priority", "NOT_ACTIVE", workload=str(row))])
    if row.priority == priority:
        return row
    before, columns = row.priority, {"priority": priority, "priority_class": ""}
    changed = Workload.objects.filter(pk=row.pk, version=row.version)
    _written(changed.update(version=F("version") + 1, **columns) == 1)
    row.version, row.priority, row.priority_class = row.version + 1, priority, ""
    facts = {"before": before, "priority": priority}
    lifecycle.tell(row, "priority_changed", at=clock.now(), facts=facts)
    _note(row, "priority_changed", actor, reason)
    return row


def _check_gates(row: Workload, left: tuple[str, ...]) -> Iterator[Problem]:
    if row.status == Status.FINISHED:
        yield _problem("admission_gates", "NOT_ACTIVE", workload=str(row))
    for gate in left:
        if gate not in row.gates:
            yield _problem("admission_gates", "GATE_ADDED", gate=gate[:64])


@transaction.atomic
def answer_check(
    uid: UUID | str,
    name: str,
    verdict: CheckVerdict,
    *,
    actor: User | None,
    message: str = "",
    retry_after_s: int | None = None,
) -> CheckState:
    """Say for an admission check that people answer whether a workload may start.

    The same answer twice is one. What follows from it the next look at the rows does.

    Raises:
        Rejected: the workload is not there, the check does not wait for it, or is not answered
            by people.
    """
    row = _locked(uid)
    state = row.checks.select_for_update().filter(check_name=name).first()
    if state is None or row.status == Status.FINISHED:
        raise Rejected([_problem("check", "NO_SUCH_CHECK", check=name[:64])])
    check = AdmissionCheck.objects.filter(name=name).first()
    if check is not None and check.kind in KINDS and check.kind != MANUAL:
        raise Rejected([_problem("check", "CHECK_NEEDS_NO_ANSWER", check=name[:64])])
    said = (state.state, state.message, state.retry_after_s)
    if said == (verdict.value, message, retry_after_s):
        return state
    state.state, state.message, state.at = verdict.value, message[:500], clock.now()
    state.by, state.retry_after_s = actor.username if actor else "", retry_after_s
    state.save()
    tell_awaited(row.pk)
    facts = {"check": name, "verdict": verdict.value, "message": message[:500], "by": state.by}
    lifecycle.tell(row, "check_answered", at=state.at, facts=facts)
    _note(row, "check_answered", actor, "", check=name, verdict=verdict.value, message=message)
    return state


def report_checkpoint(uid: UUID | str, at: datetime | None, *, actor: User | None) -> Workload:
    """Note up to when a running workload's progress is safe; None: up to now.

    Raises:
        Rejected: it is not there, does not run, or was safe for longer already.
    """
    when = at or clock.now()
    return change_workload(uid, WorkloadChange(last_checkpoint_at=when), actor=actor)


# ---- parts -------------------------------------------------------------------------------------
def _locked(uid: UUID | str) -> Workload:
    row = Workload.objects.select_for_update().filter(uid=uid).select_related(None).first()
    refuse(require_row(row))
    assert row is not None
    return row


def _problem(path: str, code: str, **numbers: str | int) -> Problem:
    return Diagnostic(code, "", path, numbers).as_problem()


def _written(done: bool) -> None:
    if not done:
        words = _("the workload has ended already, or has just changed; look again")
        raise Rejected([Problem("status", "already_finished", words)])


def _note(row: Workload, verb: str, actor: User | None, reason: str, **more: str) -> None:
    audit.record(
        actor,
        f"workload.{verb}",
        ("Workload", f"{row.namespace}/{row.name}"),
        after={"uid": str(row.uid), "status": row.status, "gates": row.gates}
        | ({"priority": row.priority} if verb == "priority_changed" else {})
        | more,
        reason=reason,
        team=row.team.name if row.team else "",
    )
    request_cycle("workload", str(row.uid))
