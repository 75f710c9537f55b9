"""Live workloads that change size, or report how far they are (``admission.md`` K37, K38).

Fewer pods are fewer at once; those that leave hold quota and nodes until the backend has seen
them go. More pods are asked for while the others run on; a cycle grants them, all or none, on the
same flavors. Pods that are over give their quota back; their nodes only when the cluster says
which of them are empty.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
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
from scheduling.engine.diagnostics import check_workload as check_feasible
from scheduling.engine.terms import PendingReason, Status
from scheduling.loader import load_snapshot, roles_of
from scheduling.minima import has_minima
from scheduling.models import PodSet, Workload
from scheduling.rules import MOST_PODS
from scheduling.shrinking import let_leave, pods_held
from scheduling.specs import PodSetChange, SliceSpec, WorkloadChange

HOLDING = (Status.ADMITTED.value, Status.RUNNING.value)
Counts = Mapping[str, int]


def change_workload(
    uid: UUID | str, change: WorkloadChange, *, actor: User | None, reason: str = ""
) -> Workload:
    """Bring a live workload to another size, or note how far it is.

    Raises:
        Rejected: it is not there or has ended, is not elastic, has no such pod set, or could
            never have that many pods; nothing was changed.
    """
    with transaction.atomic():
        row = Workload.objects.select_for_update().filter(uid=uid).select_related(None).first()
        refuse(require_row(row))
        assert row is not None
        pod_sets = list(row.pod_sets.all())
        now, held = clock.now(), pods_held(row)
        refuse(check_change(change, row, pod_sets, held, now))
        before = {pod_set.name: pod_set.wanted or pod_set.count for pod_set in pod_sets}
        wanted = before | {c.name: c.count for c in change.pod_sets if c.count is not None}
        if any(wanted[name] > count for name, count in before.items()):
            refuse(_impossible(row, wanted))
        if _write(row, pod_sets, change, wanted, held=held, now=now):
            over = sum(c.finished or 0 for c in change.pod_sets)
            _tell(row, (over, sum(held.values())), before, wanted)
            if change.last_checkpoint_at is not None:
                lifecycle.tell_checkpoint(row, change.last_checkpoint_at, at=now)
            if before != wanted:
                _audit(row, (before, wanted), actor, reason)
            request_cycle("workload", str(row.uid))
    return row


# ---- rules -------------------------------------------------------------------------------------
def check_change(
    change: WorkloadChange,
    row: Workload,
    pod_sets: Sequence[PodSet],
    held: Counts,
    now: datetime,
) -> Iterator[Problem]:
    """Yield why a live workload cannot become what is asked, each at its place in the body.

    ``held``: how many pods of each pod set it holds.
    """
    if row.status == Status.INACTIVE:
        yield _problem("status", "NOT_RUNNING", workload=str(row))
        return
    if row.status not in (Status.PENDING.value, *HOLDING):
        words = _("the workload has ended already, or has just changed; look again")
        yield Problem("status", "already_finished", words)
        return
    yield from _check_minima(change, row, pod_sets)
    known = {pod_set.name: pod_set for pod_set in pod_sets}
    for index, one in enumerate(change.pod_sets):
        path = f"pod_sets[{index}]"
        if one.name not in known:
            yield _problem(f"{path}.name", "POD_SET_NOT_FOUND", pod_set=one.name[:64])
        elif one.name in [earlier.name for earlier in change.pod_sets[:index]]:
            yield _problem(f"{path}.name", "POD_SET_TWICE", pod_set=one.name[:64])
        else:
            yield from _check_count(one, row, path)
            yield from _check_slices(one, known[one.name], path)
            stand = held.get(one.name, 0)
            yield from _check_finished(one, row, known[one.name], stand, path)
    if change.last_checkpoint_at is not None:
        yield from _check_checkpoint(change.last_checkpoint_at, row, now)


def _problem(path: str, code: str, **numbers: Any) -> Problem:
    return Diagnostic(code, "", path, numbers).as_problem()


def _check_count(one: PodSetChange, row: Workload, path: str) -> Iterator[Problem]:
    if one.count is None:
        return
    if not row.elastic:
        yield _problem(f"{path}.count", "NOT_ELASTIC", workload=str(row))
    if not 1 <= one.count <= MOST_PODS:
        numbers = {"pod_set": one.name, "pods": one.count, "limit": MOST_PODS}
        yield _problem(f"{path}.count", "POD_COUNT", **numbers)


def _check_slices(one: PodSetChange, pod_set: PodSet, path: str) -> Iterator[Problem]:
    slices = [SliceSpec(**layer) for layer in pod_set.slices]
    size = slices[0].size if slices and slices[0].is_required else 1
    if one.count is not None and one.count % size:
        numbers = {"slice_size": size, "pods": one.count, "pod_set": one.name}
        yield _problem(f"{path}.count", "SLICES_NOT_WHOLE", **numbers)


def _check_minima(
    change: WorkloadChange, row: Workload, pod_sets: Sequence[PodSet]
) -> Iterator[Problem]:
    """Yield where a size lies below the gang's minimum or a role's."""
    asked = {one.name: one.count for one in change.pod_sets if one.count is not None}
    counts = {p.name: asked.get(p.name, p.wanted or p.count) for p in pod_sets}
    if not asked:
        return
    if row.min_member is not None and row.min_member > sum(counts.values()):
        numbers = {"min_member": row.min_member, "pods": sum(counts.values())}
        yield _problem("pod_sets", "GANG_LARGER_THAN_POD_COUNT", **numbers)
    for index, one in enumerate(change.pod_sets):
        least = row.role_minima.get(one.name, 0)
        if one.count is not None and least > one.count:
            amounts = {"role": one.name, "minimum": least, "pods": one.count}
            yield _problem(f"pod_sets[{index}].count", "ROLE_MINIMUM_ABOVE_COUNT", **amounts)


def _check_finished(
    one: PodSetChange, row: Workload, pod_set: PodSet, stand: int, path: str
) -> Iterator[Problem]:
    """Yield where more pods are said to be over than stand, or fewer than were before."""
    if one.finished is None:
        return
    least, most = pod_set.finished, min(one.count or pod_set.count, stand)
    if row.status not in HOLDING:
        yield _problem(f"{path}.finished", "NOT_RUNNING", workload=str(row))
    elif not least <= one.finished <= most:
        numbers = {"value": one.finished, "low": min(least, most), "high": most}
        yield _problem(f"{path}.finished", "OUT_OF_RANGE", **numbers)


def _check_checkpoint(at: datetime, row: Workload, now: datetime) -> Iterator[Problem]:
    if row.status not in HOLDING or row.admitted_at is None:
        yield _problem("last_checkpoint_at", "NOT_RUNNING", workload=str(row))
        return
    since = max(row.admitted_at, row.last_checkpoint_at or row.admitted_at)  # none is unmade
    if not since <= at <= now:
        low, high = (f"{edge:%Y-%m-%dT%H:%M:%SZ}" for edge in (since, now))
        numbers = {"value": at.isoformat(), "low": low, "high": high}
        yield _problem("last_checkpoint_at", "OUT_OF_RANGE", **numbers)


def _impossible(row: Workload, wanted: Counts) -> Iterator[Problem]:
    """Yield why so many pods could never run, on an empty cluster."""
    snapshot = load_snapshot()
    known = next((w for w in snapshot.workloads if w.key == str(row.uid)), None)
    if known is None:
        return
    larger = tuple(replace(p, count=wanted[p.name]) for p in known.pod_sets)
    for finding in check_feasible(snapshot, replace(known, pod_sets=larger, admission=None)):
        found = Diagnostic(finding.code.value, str(row), "pod_sets", finding.numbers)
        if found.is_error:
            yield found.as_problem()


# ---- rows --------------------------------------------------------------------------------------
def _write(
    row: Workload,
    pod_sets: Sequence[PodSet],
    change: WorkloadChange,
    wanted: Counts,
    *,
    held: Counts,
    now: datetime,
) -> bool:
    """Write the new sizes and what was reported; return whether anything is different.

    A gang with a minimum asks for its new size at once: what it lacks is surplus.
    """
    holds = row.status in HOLDING
    gang = has_minima(row.min_member, row.role_minima, roles_of(pod_sets))
    over = {c.name: c.finished for c in change.pod_sets if c.finished is not None}
    changed = less = resized = False
    for pod_set in pod_sets:
        seen = (pod_set.count, pod_set.wanted, pod_set.finished)
        asked = wanted[pod_set.name]
        grows = holds and asked > pod_set.count and not gang
        pod_set.wanted = asked if grows else None
        pod_set.count = pod_set.count if grows else asked
        finished = over.get(pod_set.name, pod_set.finished)
        pod_set.finished = min(finished, pod_set.count)  # no more can be over than there are
        resized |= seen[:2] != (pod_set.count, pod_set.wanted)
        changed |= seen != (pod_set.count, pod_set.wanted, pod_set.finished)
        less |= pod_set.count < seen[0] or pod_set.finished > seen[2]
    at = change.last_checkpoint_at or row.last_checkpoint_at
    if not changed and at == row.last_checkpoint_at:
        return False
    PodSet.objects.bulk_update(pod_sets, ["count", "wanted", "finished"])
    row.last_checkpoint_at = at
    stand = _standing(pod_sets, held)
    row.gpus = lifecycle.gpus_of((stand[p.name], p.requests) for p in pod_sets)
    if holds and less:
        row.resized_at = now
    if not any(p.wanted for p in pod_sets):
        row.growth = {}
    elif resized or not row.growth:  # a report of progress asks for nothing new
        row.growth = {"since": now.isoformat()}
    if less and (holds or row.pending_reason == PendingReason.UNSATISFIED_CHECKS):
        let_leave(row, pod_sets, now)
    _save(row)
    return True


def _standing(pod_sets: Sequence[PodSet], held: Counts) -> Counts:
    """Return with how many pods of each pod set it goes on, whatever it asks for.

    Who holds nothing waits with all that is asked for.
    """
    return {p.name: min(p.count, held.get(p.name, 0)) if held else p.count for p in pod_sets}


def _save(row: Workload) -> None:
    """Write the columns of this room's change; a decision on the old size is stale by it."""
    columns = ("last_checkpoint_at", "gpus", "resized_at", "growth")
    changes = {name: getattr(row, name) for name in columns}
    unchanged = Workload.objects.filter(pk=row.pk, version=row.version, status=row.status)
    if not unchanged.update(version=F("version") + 1, **changes):
        words = _("the workload has ended already, or has just changed; look again")
        raise Rejected([Problem("status", "already_finished", words)])
    row.version += 1


def _tell(row: Workload, ended: tuple[int, int], before: Counts, wanted: Counts) -> None:
    """Write the lines of the story: pods that are over, of how many, and the size asked for."""
    total, asked, (over, held) = sum(before.values()), sum(wanted.values()), ended
    if over:
        facts = {"pods": over, "of_pods": held}
        lifecycle.tell(row, "pods_finished", at=clock.now(), facts=facts)
    if before != wanted:
        grows = asked > total and row.status in HOLDING
        facts = {"pods": asked, "from_pods": total}
        lifecycle.tell(row, "growth_asked" if grows else "scaled", at=clock.now(), facts=facts)


def _audit(row: Workload, change: tuple[Counts, Counts], actor: User | None, reason: str) -> None:
    before, after = ({"uid": str(row.uid), "pods": dict(counts)} for counts in change)
    audit.record(
        actor,
        "workload.scaled",
        ("Workload", f"{row.namespace}/{row.name}"),
        before=before,
        after=after,
        reason=reason,
        team=row.team.name if row.team else "",
    )
