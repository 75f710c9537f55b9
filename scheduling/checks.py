"""Admission checks: who is asked once quota is reserved, and what follows from the answers.

A kind of check is a small object that is registered when its room starts (:func:`register`): it
gives its opinion on work that waits for it. Manual approval is the one kind that has none: people
answer, through REST or a page. Source: ``admission.md`` K48.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

from django.db.models import F, OuterRef, Subquery
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from gpuplatform.common.wakeup import request_cycle
from scheduling import lifecycle
from scheduling.engine.plan import Blocker
from scheduling.engine.terms import (
    BlockerCode,
    CheckVerdict,
    EvictionReason,
    PendingReason,
    Status,
)
from scheduling.holders import Holder
from scheduling.models import Admission, AdmissionCheck, CheckState, Workload, WorkloadEvent
from scheduling.routes import Refusal

ALL_QUEUES = "*"
MANUAL = "manual"
RETRY_S = 60  # until a check that says "later" is asked again, where it does not say how long


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a check says of one workload. ``retry_after_s`` counts with ``RETRY`` alone."""

    state: CheckVerdict
    message: str = ""
    retry_after_s: int | None = None


class CheckKind(Protocol):
    """Somebody who answers checks of one kind.

    ``watches``: its answer counts while work runs as well, not only before it starts.
    """

    name: str
    label: str | Promise
    watches: bool

    def opinions(
        self, check: AdmissionCheck, workloads: Sequence[Workload], now: datetime
    ) -> Mapping[UUID, Opinion]:
        """Return an opinion on each of these workloads; on whom none is given, it waits."""

    def refused(self, now: datetime) -> Mapping[int, Refusal]:
        """Return of which teams it would send all work back by now: known before room is made."""


class Manual:
    """Approval by a person: no opinion of its own."""

    name: str = MANUAL
    label: str | Promise = _("Approval by an admin")
    watches: bool = False

    def opinions(
        self, check: AdmissionCheck, workloads: Sequence[Workload], now: datetime
    ) -> Mapping[UUID, Opinion]:
        """Return nothing: people answer."""
        del check, workloads, now
        return {}

    def refused(self, now: datetime) -> Mapping[int, Refusal]:
        """Return nobody: what people will say is not known."""
        del now
        return {}


KINDS: dict[str, CheckKind] = {MANUAL: Manual()}


def register(kind: CheckKind) -> None:
    """Let checks of a further kind be answered; called while the applications start."""
    KINDS[kind.name] = kind


# ---- which checks ------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Required:
    """The checks of every queue, by name."""

    checks: tuple[AdmissionCheck, ...] = ()
    _found: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, queue: str) -> tuple[str, ...]:
        """Return the names of the checks that work of a queue needs; "" is outside every queue."""
        if queue not in self._found:
            self._found[queue] = tuple(
                check.name
                for check in self.checks
                if queue and (queue in check.queues or ALL_QUEUES in check.queues)
            )
        return self._found[queue]

    def awaited(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """Return these checks as blockers, as a workload's row holds what it waits for."""
        kinds = {check.name: check.kind for check in self.checks}
        return [
            asdict(Blocker(BlockerCode.ADMISSION_CHECK, where=name, facts=_cause(kinds.get(name))))
            for name in names
        ]


def _cause(kind: str | None) -> dict[str, str | int]:
    """Return who answers: a person also where nobody knows the kind (:class:`Manual`)."""
    return {} if kind in KINDS and kind != MANUAL else {"cause": "Manual"}


def read_required() -> Required:
    """Read the checks, by name. 1 query."""
    return Required(tuple(AdmissionCheck.objects.all()))


def refusals(queues: Iterable[str], now: datetime) -> dict[tuple[str, int], Refusal]:
    """Return which teams' new work the checks of these queues keep out, the longest refusal.

    Nobody is evicted for work that is sent back as soon as it has its quota. Reads the checks,
    and what their kinds read where there are some.
    """
    checks = read_required().checks
    known = {name: KINDS[name].refused(now) for name in {c.kind for c in checks} & KINDS.keys()}
    found: dict[tuple[str, int], Refusal] = {}
    for queue in queues if any(known.values()) else ():
        for check in checks:
            if queue in check.queues or ALL_QUEUES in check.queues:
                for team, refusal in known.get(check.kind, {}).items():
                    found[queue, team] = max(
                        found.get((queue, team), refusal), refusal, key=lambda one: one.until
                    )
    return found


# ---- what they say -----------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Answer:
    """A new answer of a check about one workload."""

    state: CheckState
    opinion: Opinion


def new_opinions(
    held: Iterable[Admission], states: Mapping[UUID, Sequence[CheckState]], now: datetime
) -> list[Answer]:
    """Return what the registered kinds say otherwise than the rows. Reads what the kinds read."""
    checks = {check.name: check for check in read_required().checks}
    asked: defaultdict[str, list[tuple[Workload, CheckState]]] = defaultdict(list)
    for admission in held:
        for state in states.get(admission.workload_id, ()):
            check = checks.get(state.check_name)
            kind = KINDS.get(check.kind) if check else None
            if kind is not None and (admission.is_reserved or kind.watches):
                asked[state.check_name].append((admission.workload, state))
    found = []
    for name, pairs in asked.items():
        check = checks[name]
        said = KINDS[check.kind].opinions(check, [work for work, _state in pairs], now)
        for work, state in pairs:
            opinion = said.get(work.pk)
            stands = (state.state, state.message, state.retry_after_s)
            if opinion and stands != (opinion.state, opinion.message, opinion.retry_after_s):
                found.append(Answer(state, opinion))
    return found


def note(answers: Iterable[Answer], now: datetime) -> None:
    """Write answers into the rows of their checks."""
    for answer in answers:
        answer.state.state = answer.opinion.state.value
        answer.state.message = answer.opinion.message[:500]
        answer.state.retry_after_s = answer.opinion.retry_after_s
        answer.state.at = now
        answer.state.save()
        tell_awaited(answer.state.workload_id)


def tell_awaited(uid: UUID) -> None:
    """Say in the row of work that is reserved which checks have still to agree.

    Whoever writes an answer calls this. 3 queries.
    """
    states = CheckState.objects.filter(workload=uid).exclude(state=CheckVerdict.READY.value)
    names = states.order_by("check_name").values_list("check_name", flat=True)
    waits = Workload.objects.filter(pk=uid, pending_reason=PendingReason.UNSATISFIED_CHECKS.value)
    if waits.update(blockers=read_required().awaited(names)):
        request_cycle(lifecycle.CHANGED, uid)


def states_of(held: Iterable[Admission | Holder]) -> dict[UUID, list[CheckState]]:
    """Return the rows of the checks of work that is held, by workload. 1 query."""
    rows: defaultdict[UUID, list[CheckState]] = defaultdict(list)
    keys = [admission.workload_id for admission in held]
    for state in CheckState.objects.filter(workload__in=keys).order_by("check_name"):
        rows[state.workload_id].append(state)
    return rows


def decided(states: Sequence[CheckState], names: Sequence[str]) -> CheckVerdict:
    """Return what the checks say together: the worst of them; ready where all are.

    A check that is required no longer counts no more; one that is new has not answered.
    """
    said = {state.check_name: CheckVerdict(state.state) for state in states}
    verdicts = [said.get(name, CheckVerdict.PENDING) for name in names]
    for worst in (CheckVerdict.REJECTED, CheckVerdict.RETRY, CheckVerdict.PENDING):
        if worst in verdicts:
            return worst
    return CheckVerdict.READY


def follow(
    admission: Admission, states: Sequence[CheckState], names: Sequence[str], now: datetime
) -> bool:
    """Do what the answers say: start it, send it back to the queue, or deactivate it.

    Returns:
        Whether something was written.
    """
    workload, verdict = admission.workload, decided(states, names)
    if verdict is CheckVerdict.READY and admission.is_reserved:
        return _clear(admission, now)
    if verdict is CheckVerdict.RETRY:
        return _try_later(workload, states, now)
    if verdict is CheckVerdict.REJECTED:
        said = next(s for s in states if s.state == CheckVerdict.REJECTED)
        facts = {"check": said.check_name, "message": said.message, "by": said.by}
        return lifecycle.deactivate(workload, "AdmissionCheckRejected", at=now, facts=facts)
    return False


def _clear(admission: Admission, now: datetime) -> bool:
    if not lifecycle.transition(
        admission.workload, Status.ADMITTED, at=now, gpus=admission.workload.gpus
    ):
        return False
    admission.is_reserved, admission.begun_at = False, now
    admission.save(update_fields=["is_reserved", "begun_at"])
    return True


def _try_later(workload: Workload, states: Sequence[CheckState], now: datetime) -> bool:
    said = [state for state in states if state.state == CheckVerdict.RETRY]
    seconds = max(RETRY_S if s.retry_after_s is None else s.retry_after_s for s in said)
    facts = {"check": said[0].check_name, "message": said[0].message, "rests_s": seconds}
    rests = {"requeue_at": now + timedelta(seconds=seconds), "queued_at": now}
    reason = EvictionReason.ADMISSION_CHECK
    if not lifecycle.evict(workload, reason, at=now, facts=facts, columns=rests):
        return False
    for state in said:
        state.retries += 1
        state.save(update_fields=["retries"])
    return True


def ask_again(kind: str, team_id: int, now: datetime) -> int:
    """Let work of a team try now that a check of this kind had asked to try later.

    Whoever changes what the check goes by calls this. Returns how many.
    """
    names = set(AdmissionCheck.objects.filter(kind=kind).values_list("name", flat=True))
    evicted = WorkloadEvent.objects.filter(workload=OuterRef("pk"), kind="evicted")
    resting = Workload.objects.filter(
        team=team_id, status=Status.PENDING.value, requeue_at__gt=now
    ).annotate(newest=Subquery(evicted.order_by("-id").values("id")[:1]))
    events = WorkloadEvent.objects.in_bulk([row.newest for row in resting if row.newest])
    free = [row for row in resting if _sent_back_by(events.get(row.newest), names)]
    for row in free:
        unchanged = Workload.objects.filter(pk=row.pk, version=row.version)
        unchanged.update(requeue_at=now, version=F("version") + 1)
    if free:
        request_cycle(lifecycle.CHANGED, *(row.pk for row in free))
    tell(kind, now)
    return len(free)


def tell(kind: str, now: datetime) -> None:
    """Have the cycle ask anew whom checks of this kind refuse beforehand (:func:`refusals`).

    Whoever changes that calls this.
    """
    if AdmissionCheck.objects.filter(kind=kind).exists():
        request_cycle(AdmissionCheck.__name__, kind, now.isoformat())


def _sent_back_by(event: WorkloadEvent | None, names: Container[str]) -> bool:
    """Return whether an eviction was a check's wish, and one of these."""
    is_wish = event is not None and event.reason == EvictionReason.ADMISSION_CHECK
    return event is not None and is_wish and event.facts.get("check") in names
