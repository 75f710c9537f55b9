"""Many admissions taken back, or reserved until checks have agreed, in a few statements.

What a single one is, and what follows from it, says :mod:`scheduling.lifecycle`.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import F

from gpuplatform.common.wakeup import note_changes
from scheduling import lifecycle, moves, persist
from scheduling.engine.terms import CheckVerdict, EvictionReason, Status
from scheduling.faces import Face
from scheduling.models import Admission, CheckState, PodSet, Workload
from scheduling.moves import Move
from scheduling.verdicts import Event, answer_to, read_policies

EVICTED = "evicted"
UNANSWERED: Mapping[str, Any] = {"state": CheckVerdict.PENDING.value, "message": "", "by": ""}


class Eviction(NamedTuple):
    """Who loses its admission, as its decider saw it; ``by``: the preemptor, if there is one."""

    face: Face
    reason: EvictionReason
    facts: Mapping[str, Any]
    by: UUID | None


def evict_all(evictions: Sequence[Eviction], now: datetime) -> set[UUID]:
    """Take admissions back, each if nothing was faster; their pods hold them until they are gone.

    Where its own policies say what becomes of evicted pods, a workload is written by itself.

    Returns:
        The workloads that were evicted; the others have another version or state by now.
    """
    uids = [one.face.uid for one in evictions]
    policies: dict[UUID, Any] = {}
    for part in persist.batches(uids):
        rows = Workload.objects.order_by().filter(pk__in=part)
        policies |= dict(rows.values_list("pk", "policies"))
    answered = {
        uid
        for uid, said in policies.items()
        if said and answer_to(read_policies(said), Event.EVICTED)
    }
    alone = [one for one in evictions if one.face.uid in answered]
    taken = _together([one for one in evictions if one.face.uid not in answered], now)
    return taken | {one.face.uid for one in alone if _alone(one, now)}


def _alone(one: Eviction, now: datetime) -> bool:
    row = Workload.objects.filter(pk=one.face.uid, version=one.face.version).first()
    by = Workload(uid=one.by) if one.by else None
    if row is None or not lifecycle.evict(row, one.reason, at=now, facts=one.facts, other=by):
        return False
    one.face.follow_row(row)
    return True


def _together(evictions: Sequence[Eviction], now: datetime) -> set[UUID]:
    whole = _whole_gangs([one.face.uid for one in evictions])
    going = [
        Move(
            one.face,
            Status.PENDING,
            now,
            one.reason.value,
            one.facts,
            gpus=lifecycle.gpus_of(whole[one.face.uid]),
            event_name=EVICTED,
            other=one.by,
            more={"growth": {}},
        )
        for one in evictions
    ]
    taken = moves.take(going)
    by_reason: defaultdict[str, list[UUID]] = defaultdict(list)
    for one, move in zip(evictions, going, strict=True):
        if one.face.uid in taken:
            one.face.wait(move)
            by_reason[one.reason.value].append(one.face.uid)
    for reason, uids in by_reason.items():
        _stop(uids, reason, now)
    return taken


def _whole_gangs(uids: Collection[UUID]) -> Mapping[UUID, list[tuple[int, Mapping[str, int]]]]:
    """Return all pods that were asked for, and what one asks for, by workload."""
    found: defaultdict[UUID, list[tuple[int, Mapping[str, int]]]] = defaultdict(list)
    for part in persist.batches(uids):
        rows = PodSet.objects.filter(workload__in=part).order_by()
        for uid, count, wanted, requests in rows.values_list(
            "workload_id", "count", "wanted", "requests"
        ):
            found[uid].append((wanted or count, requests))
    return found


def _stop(uids: Collection[UUID], reason: str, now: datetime) -> None:
    """Let the pods go, and let who waits again wait with all pods and unanswered checks."""
    for part in persist.batches(uids):
        held = Admission.objects.filter(workload__in=part, released_at=None, evicted_at=None)
        rows = list(held.select_related("workload").defer("workload__template"))
        for row in rows:
            row.evicted_at, row.eviction_reason = now, reason
            row.lost = [
                *row.lost,
                *lifecycle.lost_since(row, row.workload.last_checkpoint_at, now),
            ]
        Admission.objects.bulk_update(rows, ["evicted_at", "eviction_reason", "lost"])
        partial = PodSet.objects.filter(workload__in=part).exclude(wanted=None)
        partial.update(count=F("wanted"), wanted=None)
        CheckState.objects.filter(workload__in=part).update(**UNANSWERED, at=now)
    note_changes(lifecycle.CHANGED, sorted(uids))


class Reservation(NamedTuple):
    """For whom quota and nodes are kept, until which checks have agreed; those as blockers."""

    face: Face
    checks: Sequence[str]
    awaited: Sequence[Mapping[str, Any]]
    facts: Mapping[str, Any]
    gpus: int


def reserve_all(reservations: Sequence[Reservation], now: datetime) -> set[UUID]:
    """Keep quota and nodes for workloads that checks have still to agree to.

    Returns:
        The workloads for which it was written; the others have changed by now.
    """
    going = [
        Move(
            one.face,
            Status.PENDING,
            now,
            facts={**one.facts, "checks": ", ".join(one.checks)},
            gpus=one.gpus,
            event_name=lifecycle.RESERVED,
            more={"blockers": one.awaited},
        )
        for one in reservations
    ]
    taken = moves.take(going)
    done = [
        (one, move) for one, move in zip(reservations, going, strict=True) if one.face.uid in taken
    ]
    known = {
        pair
        for part in persist.batches(sorted(taken))
        for pair in CheckState.objects.filter(workload__in=part).values_list(
            "workload_id", "check_name"
        )
    }
    asked = [(one.face.uid, name, now) for one, _ in done for name in one.checks]
    new = [row for row in asked if row[:2] not in known]
    persist.insert(CheckState, ("workload_id", "check_name", "at"), new)
    for one, move in done:
        one.face.wait(move)
    note_changes(lifecycle.CHANGED, sorted(taken))
    return taken
