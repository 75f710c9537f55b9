"""What happened to a workload, in words; foreign workloads in it are not named."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from django.utils.translation import gettext, ngettext

from gpuplatform.common import reasons
from gpuplatform.common.locales import by_locale
from queues.access import Actor
from scheduling.engine.machines import GPU
from scheduling.models import WorkloadEvent

SHOWN = 0.05  # GPU-hours that are not 0.0 in the words of a line

EVENT_CHIPS = {
    "submitted": "is-pending",
    "requeued": "is-pending",
    "admitted": "is-admitted",
    "started": "is-running",
    "finished": "is-good",
}


class EventLine(NamedTuple):
    """One line of the story, in words. ``tone``: key, bad or ""."""

    event: WorkloadEvent
    title: str
    detail: str
    tone: str

    @property
    def chip(self) -> str:
        """Return the class of the event's chip."""
        return EVENT_CHIPS.get(self.event.kind, "is-off")


def event_line(event: WorkloadEvent, actor: Actor) -> EventLine:
    """Return one event in words; a foreign workload in it is not named."""
    titles = {
        "submitted": gettext("Submitted"),
        "admitted": gettext("Admitted"),
        "started": gettext("Started"),
        "finished": gettext("Finished"),
        "cancelled": gettext("Cancelled"),
        "evicted": gettext("Evicted"),
        "requeued": gettext("Back in the queue"),
        "released": gettext("Released"),
        "deactivated": gettext("Deactivated"),
        "reactivated": gettext("Reactivated"),
        "loan_opened": gettext("Began to borrow"),
        "loan_changed": gettext("Borrows now"),
        "loan_closed": gettext("Returned what it borrowed"),
        "preempting": gettext("Makes room"),
        "consolidating": gettext("Another moves for it"),
        "scaled": gettext("Brought to another size"),
        "growth_asked": gettext("Asks for more pods"),
        "grown": gettext("Grew"),
        "pods_finished": gettext("Some pods are over"),
        "mended": gettext("Lost pods run elsewhere"),
        "members_lost": gettext("Lost pods with their node"),
        "surplus_taken": gettext("Lost pods above its minimum"),
        "surplus_left": gettext("The pods that were taken have left"),
        "quota_reserved": gettext("Quota and nodes reserved"),
        "reservation_dropped": gettext("Lost what was reserved"),
        "check_answered": gettext("Admission check answered"),
        "gate_opened": gettext("Gate opened"),
        "priority_changed": gettext("Priority changed"),
        "restarted": gettext("Restarted in place"),
        "member_failed": gettext("A pod failed"),
        "member_lost": gettext("A pod was taken away"),
        "readiness_lost": gettext("Not all pods are ready any more"),
        "readiness_back": gettext("All pods are ready again"),
        "checkpoint": gettext("Progress saved"),
    }
    tone = {"evicted": "bad", "admitted": "key", "submitted": "key", "finished": "key"}
    title = titles.get(event.kind, event.kind.replace("_", " ").capitalize())
    details = [_because(event), _numbers(event), _other(event, actor)]
    detail = " ".join(part for part in details if part)
    return EventLine(event, title, detail, tone.get(event.kind, ""))


def _because(event: WorkloadEvent) -> str:
    words = [
        reasons.sentence(code, event.facts)
        for code in (event.reason, str(event.facts.get("right") or ""))
        if code in reasons.REGISTRY
    ]
    return " ".join(words) or event.reason


def _numbers(event: WorkloadEvent) -> str:
    facts, parts = event.facts, []
    if event.kind == "priority_changed":
        words = gettext("From %(before)s to %(priority)s.")
        parts.append(words % {"before": facts["before"], "priority": facts["priority"]})
    amount = facts.get("gpus") or facts.get("amount")
    if isinstance(amount, int):
        words = ngettext("%(n)d GPU", "%(n)d GPUs", amount) % {"n": amount}
        parts.append(f"{words}{_from_lenders(facts.get('lenders'))}.")
    borrows = facts.get("borrows")
    if isinstance(borrows, dict) and (borrowed := borrows.get(GPU)):
        parts.append(gettext("%(n)s of them borrowed.") % {"n": borrowed})
    if isinstance(pods := facts.get("pods"), int) and facts.get("of_pods"):
        parts.append(gettext("%(n)d of %(all)s pods.") % {"n": pods, "all": facts["of_pods"]})
    elif isinstance(pods, int) and facts.get("from_pods"):
        words = gettext("From %(before)s to %(n)d pods.")
        parts.append(words % {"before": facts["from_pods"], "n": pods})
    if isinstance(lost := facts.get("lost"), list) and lost:
        words = gettext("On %(names)s. The others keep their place for a while.")
        parts.append(words % {"names": ", ".join(lost)})
    if isinstance(taken := facts.get("taken"), int):
        parts.append(ngettext("%(n)d pod.", "%(n)d pods.", taken) % {"n": taken})
    parts += _losses(facts)
    nodes = facts.get("nodes")
    if isinstance(nodes, int) and nodes:
        parts.append(ngettext("On %(n)d node.", "On %(n)d nodes.", nodes) % {"n": nodes})
    return " ".join([*parts, *_life(facts)])


def _losses(facts: Mapping[str, object]) -> list[str]:
    """Return what was lost or held idle, and where work that moves goes on."""
    parts = []
    if isinstance(lost := facts.get("lost_gpu_hours"), int | float):
        words = gettext("%(n)s GPU-hours of work since its last checkpoint, or its start, lost.")
        parts.append(
            words % {"n": by_locale(f"{lost:.1f}") if lost >= SHOWN else gettext("Next to no")}
        )
    if isinstance(idle := facts.get("held_idle_gpu_hours"), int | float):
        words = gettext("%(n)s GPU-hours were held idle for it before.")
        parts.append(words % {"n": f"{idle:g}"})
    if isinstance(names := facts.get("moves_to"), str):
        parts.append(gettext("It goes on at %(names)s.") % {"names": names})
    return parts


def _life(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the numbers of lines about checks, gates, members and rests, in words."""
    if verdict := facts.get("verdict"):
        words = gettext("%(check)s: %(verdict)s.")
        yield words % {"check": facts.get("check", ""), "verdict": verdict}
    elif names := facts.get("checks"):
        yield gettext("It waits for %(names)s.") % {"names": names}
    if gates := facts.get("gates"):
        yield f"{gates}."
    if facts.get("message"):
        yield str(facts["message"])
    if by := facts.get("by"):
        yield gettext("By %(name)s.") % {"name": by}
    if facts.get("pod_set") and "slot" in facts:
        yield _member(facts)
    if retry := facts.get("retry"):
        words = gettext("Restart %(n)s of at most %(all)s.")
        yield words % {"n": retry, "all": facts.get("of_retries", "?")}


def _member(facts: Mapping[str, Any]) -> str:
    name = f"{facts['pod_set']}-{facts['slot']}"
    where = gettext("%(name)s on %(node)s") % {"name": name, "node": facts.get("node") or "-"}
    code = facts.get("exit_code")
    how = "" if code is None else gettext(", exit code %(code)s") % {"code": code}
    why = f" ({facts['why']})" if facts.get("why") else ""
    return f"{where}{how}{why}."


def _from_lenders(lenders: object) -> str:
    """Return `` from cq-ia``, or ``: 23 from cq-search, 9 from company`` for several."""
    if not isinstance(lenders, dict) or not any(lenders):
        return ""
    if len(lenders) == 1:
        return " " + gettext("from %(lender)s") % {"lender": next(iter(lenders))}
    parts = (
        gettext("%(n)s from %(lender)s") % {"n": amount, "lender": lender}
        for lender, amount in lenders.items()
    )
    return ": " + ", ".join(parts)


def _other(event: WorkloadEvent, actor: Actor) -> str:
    other = event.other
    if other is None:
        return ""
    seen = actor.sees_everything or (other.team_id is not None and actor.sees_team(other.team_id))
    name = str(other) if seen else gettext("a workload of another team")
    if event.kind in {"evicted", "requeued", "surplus_taken"}:
        return gettext("For %(name)s.") % {"name": name}
    return gettext("With %(name)s.") % {"name": name}
