"""What becomes of work that holds something, beside what a cycle decides: read, judge, write.

Members that ended, pods that are never ready, times that are used up, and admission checks are
judged here, from the rows and from what the cluster has just told. The reconciler calls this
under the cycle's lease.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import F

from gpuplatform.common.wakeup import note_changes
from scheduling import checks, lifecycle, persist
from scheduling.engine.terms import CheckVerdict, PendingReason, Status, StopPolicy
from scheduling.holders import Holder, Owner, Stand
from scheduling.members import End, Member, MemberEnd
from scheduling.models import Admission, CheckState, Workload
from scheduling.models import MemberEnd as EndRow
from scheduling.routes import Doors, load_doors, resolve_queue
from scheduling.verdicts import (
    Deactivate,
    Finish,
    Limits,
    Requeue,
    Restart,
    Run,
    Verdict,
    backoff_s,
    judge,
    next_instant,
    read_policies,
)

logger = logging.getLogger(__name__)
HOLDING = (Status.ADMITTED.value, Status.RUNNING.value)


@dataclass(slots=True)
class Held:
    """Everything that holds quota, and what is known of it beside its own row.

    ``ends``: of the attempt that is on, by admission. ``stands``: where the pods are.
    """

    rows: Sequence[Holder | Admission]
    stands: Iterable[Stand]
    ends: Mapping[int, list[MemberEnd]]
    states: Mapping[UUID, list[CheckState]] = field(default_factory=dict)
    answers: list[checks.Answer] = field(default_factory=list)
    required: checks.Required = field(default_factory=checks.Required)
    doors: Doors | None = None  # read where something is reserved
    _pods: dict[int, Counter[str]] = field(default_factory=dict)

    def pods_of(self, admission: int) -> Mapping[str, int]:
        """Return how many of each pod set stand; they are counted where a member has ended."""
        if not self.ends.get(admission):
            return {}
        if not self._pods:
            for stand in self.stands:
                pods = self._pods.setdefault(stand.admission_id, Counter())
                pods[stand.pod_set] += stand.pods
        return self._pods.get(admission, {})


def read_limits() -> Limits:
    """Return for how long and how often the platform waits for pods."""
    return Limits(
        settings.PODS_READY_TIMEOUT_S, settings.PODS_READY_RECOVERY_S, settings.REQUEUE_LIMIT
    )


def read_held(rows: Sequence[Holder], stands: Iterable[Stand], now: datetime) -> Held:
    """Read what is to be judged, in a fixed number of queries; more where there are checks."""
    held = Held(rows, stands, read_ends(rows))
    held.required = checks.read_required()
    if held.required.checks or any(row.is_reserved for row in rows):
        standing = [row for row in rows if _stands(row)]
        held.states = checks.states_of(standing)
        asked = read_rows(row.pk for row in standing if row.workload_id in held.states)
        held.answers = checks.new_opinions(asked.values(), held.states, now)
        held.doors = load_doors() if any(row.is_reserved for row in standing) else None
    return held


def read_rows(keys: Iterable[int]) -> dict[int, Admission]:
    """Return these admissions as rows with their workloads, as far as they are still open."""
    found: dict[int, Admission] = {}
    for part in persist.batches(keys):
        some = Admission.objects.filter(released_at=None, pk__in=part).select_related("workload")
        some = some.defer("workload__template", "workload__labels", "workload__warnings")
        found |= {row.pk: row for row in some.order_by("admitted_at", "id")}
    return found


def _as_seen(seen: Sequence[Holder | Admission]) -> dict[int, Admission]:
    """Return as rows those that nobody has changed since they were seen."""
    rows = read_rows(row.pk for row in seen)
    return {
        row.pk: rows[row.pk]
        for row in seen
        if row.pk in rows
        and (rows[row.pk].workload.version, rows[row.pk].evicted_at)
        == (row.workload.version, row.evicted_at)
    }


def read_ends(rows: Iterable[Holder]) -> dict[int, list[MemberEnd]]:
    """Return the members that are over in the attempt that is on, by admission. 1 query."""
    attempts, found = {row.pk: row.attempt for row in rows}, dict[int, list[MemberEnd]]()
    for row in EndRow.objects.filter(admission__released_at=None):
        if attempts.get(row.admission_id) == row.attempt:
            member = Member(row.pod_set, row.node, row.slot)
            told = MemberEnd(member, End(row.end), row.at, row.exit_code, row.why)
            found.setdefault(row.admission_id, []).append(told)
    return found


def run_of(row: Holder | Admission, held: Held) -> Run:
    """Return how an admission stands, as its rows say it."""
    workload = row.workload
    return Run(
        admitted_at=workload.admitted_at or row.admitted_at,
        begun_at=row.begun_at or row.admitted_at,
        attempt=row.attempt,
        started_at=row.started_at,
        unready_since=row.unready_since,
        executed_s=workload.executed_s,
        max_execution_s=workload.max_execution_time_s,
        requeues=workload.requeues,
        retries=workload.retries,
        max_retries=workload.max_retries,
        on_failure=workload.on_failure,
        policies=read_policies(workload.policies),
        min_success=workload.min_success,
        min_member=workload.min_member,
        pods=held.pods_of(row.pk),
        ends=held.ends.get(row.pk, ()),
    )


def due(held: Held, now: datetime) -> set[int]:
    """Return of which admissions something is to be written; asked before the lease is taken."""
    told = {answer.state.workload_id for answer in held.answers}
    limits, standing = read_limits(), [row for row in held.rows if _stands(row)]
    found = {row.pk for row in standing if row.workload_id in told or _is_answered(row, held)}
    some = (row for row in standing if _may_turn(row, held))
    return found | {row.pk for row in some if judge(run_of(row, held), limits, now)}


def look_again_at(held: Held, now: datetime) -> datetime | None:
    """Return when time alone changes something of what is held; None: never."""
    limits = read_limits()
    some = [row for row in held.rows if _stands(row) and _may_turn(row, held)]
    found = [next_instant(run_of(row, held), limits, now) for row in some]
    return min((at for at in found if at is not None), default=None)


def follow(held: Held, now: datetime) -> int:
    """Write what has become of everything that is held; return how much was written."""
    checks.note(held.answers, now)
    limits, done = read_limits(), 0
    some = [row for row in held.rows if _stands(row) and _may_turn(row, held)]
    found = [(row, judge(run_of(row, held), limits, now)) for row in some]
    rows = _as_seen([row for row, verdict in found if verdict])
    for row, verdict in found:
        if verdict and row.pk in rows:
            done += act(rows[row.pk], verdict)
    return done + _follow_checks(held, now)


def act(row: Admission, verdict: Verdict) -> bool:
    """Let a verdict be true; returns whether it was written."""
    workload = row.workload
    logger.info("%s: %s (%s)", workload, type(verdict).__name__.lower(), verdict.reason)
    match verdict:
        case Finish(at, outcome, reason, facts):
            return lifecycle.finish(workload, outcome, at=at, reason=reason, facts=facts)
        case Restart(at, reason, facts):
            return lifecycle.restart(workload, row, at=at, reason=reason, facts=facts)
        case Deactivate(at, reason, facts):
            return lifecycle.deactivate(workload, reason, at=at, facts=facts)
        case Requeue():
            return _requeue(workload, verdict)


def _requeue(workload: Workload, verdict: Requeue) -> bool:
    times = workload.requeues + 1
    seconds = backoff_s(times, settings.REQUEUE_BASE_S, settings.REQUEUE_MAX_S)
    columns = {"requeues": times, "requeue_at": verdict.at + timedelta(seconds=seconds)}
    if settings.REQUEUE_TIMESTAMP == "Eviction":
        columns["queued_at"] = verdict.at
    facts = {**verdict.facts, "times": times, "rests_s": round(seconds)}
    return lifecycle.evict(workload, verdict.reason, at=verdict.at, facts=facts, columns=columns)


def _stands(row: Holder | Admission) -> bool:
    return row.evicted_at is None and not row.is_part


def _may_turn(row: Holder | Admission, held: Held) -> bool:
    """Return whether time or a member that ended can decide about a gang that stands.

    Not where all pods run and it may run for as long as it likes: most do.
    """
    if row.is_reserved or row.workload.status not in HOLDING:
        return False
    calm = row.started_at is not None and row.unready_since is None and row.attempt == 1
    return not calm or row.workload.max_execution_time_s is not None or row.pk in held.ends


def note_over(row: Admission, held: Held, *, at: datetime) -> None:
    """Let members that are over for good give their quota back while the others run on (K38).

    Those that finished; where the workload keeps going without the others, these as well.
    """
    keeps, workload = row.workload.on_failure == "keep", row.workload
    over = Counter(
        end.member.pod_set for end in held.ends.get(row.pk, ()) if keeps or end.end is End.FINISHED
    )
    stand = held.pods_of(row.pk)
    over = Counter({name: min(pods, over[name]) for name, pods in stand.items()})
    changed = [p for p in workload.pod_sets.all() if p.finished < over[p.name]]
    for pod_set in changed:
        pod_set.finished = over[pod_set.name]
        pod_set.save(update_fields=["finished"])
    if changed:
        Workload.objects.filter(pk=workload.pk).update(version=F("version") + 1, resized_at=at)
        workload.version += 1
        note_changes(lifecycle.CHANGED, [workload.pk])
        facts = {"pods": over.total(), "of_pods": sum(stand.values())}
        lifecycle.tell(workload, "pods_finished", at=at, facts=facts)


# ---- checks ------------------------------------------------------------------------------------
def _is_answered(row: Holder | Admission, held: Held) -> bool:
    """Return whether the rows of the checks ask for something to be done."""
    if not (row.is_reserved or held.states):
        return False
    if row.is_reserved and held.doors is not None and _shut(row.workload, held.doors):
        return True
    states = held.states.get(row.workload_id, [])
    if not (row.is_reserved or states):
        return False
    verdict = checks.decided(states, held.required.of(row.cluster_queue))
    bad = verdict in (CheckVerdict.RETRY, CheckVerdict.REJECTED)
    return bad or (row.is_reserved and verdict is CheckVerdict.READY)


def _follow_checks(held: Held, now: datetime) -> int:
    """Do what admission checks say; drop what was reserved in a queue that is stopped or gone."""
    done, some = 0, [row for row in held.rows if _stands(row) and _is_answered(row, held)]
    for row in _as_seen(some).values():
        why = _shut(row.workload, held.doors) if row.is_reserved and held.doors else ""
        if why:
            done += drop_reservation(row.workload, why, now)
            continue
        states = held.states.get(row.workload_id, [])
        done += checks.follow(row, states, held.required.of(row.cluster_queue), now)
    return done


def _shut(workload: Owner | Workload, doors: Doors) -> str:
    """Return why a workload that only reserves may not go on (``admission.md`` 2.2); or ""."""
    route = resolve_queue(workload.namespace, workload.queue_name, doors)
    queue = doors.cluster_queues.get(route.cluster_queue) if route else None
    if route is None or queue is None:
        return PendingReason.MISCONFIGURED
    stops = [queue.stop_policy, *([route.local_queue.stop_policy] if route.local_queue else [])]
    return PendingReason.ON_HOLD if any(stop != StopPolicy.NONE for stop in stops) else ""


def drop_reservation(workload: Workload, why: str, now: datetime) -> bool:
    """Give back what is reserved for a workload whose queue takes nothing any more."""
    if not lifecycle.transition(
        workload, Status.PENDING, at=now, event="reservation_dropped", reason=why
    ):
        return False
    lifecycle.stop_admission(workload, at=now, reason=why)
    return True
