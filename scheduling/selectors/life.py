"""What happens to one workload beside its admission: checks, gates, rests, members, progress."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from gpuplatform.common import reasons
from queues.access import Actor
from scheduling.checks import MANUAL
from scheduling.engine.terms import CheckVerdict, Status
from scheduling.models import Admission, CheckState, MemberEnd, Workload
from scheduling.selectors.story_facts import StoryFacts

SHOWN = 10  # members that are over


@dataclass(frozen=True, slots=True)
class CheckLine:
    """What one check says; ``asks``: a person answers it, and the reader may be that person."""

    state: CheckState
    description: str
    asks: bool

    @property
    def chip(self) -> str:
        """Return the class of the state's chip."""
        chips = {CheckVerdict.READY: "is-good", CheckVerdict.REJECTED: "is-bad"}
        return chips.get(CheckVerdict(self.state.state), "is-pending")


@dataclass(frozen=True, slots=True)
class Inactive:
    """Why work is not tried any more: of a check its name, who answered for it, and the words.

    ``by`` "": nobody; a kind of check that answers by itself, or a rule.
    """

    code: str
    sentence: str
    next_step: str
    check: str
    message: str
    by: str


@dataclass(frozen=True, slots=True)
class Life:
    """What the page of a workload tells of its life. ``ready_until``: its pods have so long."""

    checks: Sequence[CheckLine]
    gates: Sequence[str]
    ends: Sequence[MemberEnd]
    attempt: int
    retries: int
    requeues: int
    requeue_at: datetime | None
    saved_at: datetime | None
    ready_until: datetime | None
    runs_until: datetime | None
    inactive: Inactive | None

    @property
    def tells(self) -> bool:
        """Return whether there is anything to tell."""
        told = (self.checks, self.gates, self.ends, self.retries, self.requeues)
        more = (self.saved_at, self.ready_until, self.runs_until, self.inactive)
        return any(told) or any(more)

    @property
    def asked(self) -> list[CheckLine]:
        """Return the checks that the reader may answer now."""
        return [line for line in self.checks if line.asks]


def life_of(workload: Any, admission: Admission | None, actor: Actor, facts: StoryFacts) -> Life:
    """Return what happens to a workload."""
    is_off = workload.status == Status.INACTIVE
    reserved = bool(admission and admission.is_reserved)
    stands = admission is not None and admission.evicted_at is None
    stands = stands and workload.status != Status.FINISHED
    return Life(
        # Nobody is asked about work that is not tried: who comes back is asked anew.
        checks=[] if is_off else _lines(actor, facts, reserved=reserved),
        gates=workload.gates,
        ends=facts.ends[:SHOWN] if admission and _lost_members(workload) else [],
        attempt=admission.attempt if admission else 1,
        retries=workload.retries,
        requeues=workload.requeues,
        requeue_at=workload.requeue_at,
        saved_at=workload.last_checkpoint_at if stands else None,
        ready_until=_ready_until(workload, admission) if admission and stands else None,
        runs_until=_runs_until(workload) if stands else None,
        inactive=why_inactive(workload),
    )


def _lost_members(workload: Any) -> bool:
    """Return whether its story tells of members that are over; its events are read already."""
    return any(event.kind.startswith("member_") for event in workload.events.all())


def _lines(actor: Actor, facts: StoryFacts, *, reserved: bool) -> list[CheckLine]:
    known = facts.checks
    return [
        CheckLine(
            state,
            known[state.check_name].description,
            reserved and actor.may_operate and known[state.check_name].kind == MANUAL,
        )
        for state in facts.states
        if state.check_name in known
    ]


def _ready_until(workload: Workload, admission: Admission) -> datetime | None:
    """Return until when its pods have to be ready, where some are not."""
    if admission.is_reserved:
        return None
    if admission.started_at is None:
        again = admission.attempt > 1
        seconds = settings.PODS_READY_RECOVERY_S if again else settings.PODS_READY_TIMEOUT_S
        since: datetime | None = admission.begun_at or admission.admitted_at
    else:
        seconds, since = settings.PODS_READY_RECOVERY_S, admission.unready_since
    waits = since is not None and seconds > 0 and workload.status != Status.INACTIVE
    return since + timedelta(seconds=seconds) if waits and since else None


def _runs_until(workload: Workload) -> datetime | None:
    """Return when it will have run for as long as it may."""
    if workload.max_execution_time_s is None or workload.admitted_at is None:
        return None
    left = max(0.0, workload.max_execution_time_s - workload.executed_s)
    return workload.admitted_at + timedelta(seconds=left)


def why_inactive(workload: Any) -> Inactive | None:
    """Return why it is inactive, with what was told then; its events are read already."""
    if workload.status != Status.INACTIVE:
        return None
    code = workload.inactive_reason or "Deactivated"
    told = [e for e in workload.events.all() if e.kind == "deactivated"]
    facts = max(told, key=lambda event: (event.at, event.pk)).facts if told else {}
    return Inactive(
        code=code,
        sentence=reasons.sentence(code, facts),
        next_step=reasons.next_step(code, facts),
        check=str(facts.get("check", "")),
        message=str(facts.get("message", "")),
        by=str(facts.get("by", "")),
    )
