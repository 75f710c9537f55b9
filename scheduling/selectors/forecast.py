"""What the next cycle would do with work that is not kept: the engine itself is asked."""

from collections.abc import Iterable
from dataclasses import asdict, replace

from django.utils.translation import gettext, ngettext

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.reasons import describe_amount
from queues.access import Actor
from scheduling.engine.cycle import decide
from scheduling.engine.machines import GPU
from scheduling.engine.plan import Admit, Evict, Hold, Plan, Shrink
from scheduling.engine.snapshot import Snapshot
from scheduling.engine.terms import BlockerCode
from scheduling.models import Workload
from scheduling.rules import candidate
from scheduling.selectors.discretion import Discretion
from scheduling.selectors.waiting import blocker_lines, deciding
from scheduling.specs import WorkloadSpec
from scheduling.world import World

MOST_WAITING = 2_000  # beyond this a cycle takes longer than somebody waits for an answer


def forecast_spec(spec: WorkloadSpec, world: World, actor: Actor | None) -> Diagnostic:
    """Return what the next cycle would do with a workload that was not kept."""
    work = candidate(spec, world)
    known = world.snapshot.workloads
    snapshot = replace(world.snapshot, workloads=(*known, work) if spec.active else known)
    return forecast([work.key], snapshot, actor)[work.key]


def forecast(
    keys: Iterable[str], snapshot: Snapshot, actor: Actor | None
) -> dict[str, Diagnostic]:
    """Return what the next cycle would do with pending workloads of the snapshot, by key.

    Nothing is changed. What is not in the snapshot was sent in to be kept back. Where very many
    wait, the answer is that only a cycle can tell.
    """
    wanted = list(keys)
    names = {work.key: work.name for work in snapshot.workloads}
    if sum(1 for work in snapshot.workloads if work.admission is None) > MOST_WAITING:
        return {key: Diagnostic("FORECAST_TOO_LARGE", _subject(names, key)) for key in wanted}
    plan, discretion = decide(snapshot), Discretion(actor)
    return {
        key: _told(key, _subject(names, key), plan, discretion)
        if key in names
        else _waits(_subject(names, key), gettext("It is kept back until it is reactivated."))
        for key in wanted
    }


def _subject(names: dict[str, str], key: str) -> str:
    return f"Workload/{names.get(key, key)}"


def _told(key: str, subject: str, plan: Plan, discretion: Discretion) -> Diagnostic:
    takings = [d for d in plan.decisions if isinstance(d, Evict | Shrink)]
    evicted = sum(1 for taking in takings if taking.preemptor == key)
    for decision in plan.decisions:
        if decision.workload == key and isinstance(decision, Admit):
            return _admitted(subject, decision)
        if decision.workload == key and isinstance(decision, Hold):
            return _evicting(subject, evicted) if evicted else _held(subject, decision, discretion)
    return _waits(subject, gettext("A cycle has to look at it."))


def _waits(subject: str, why: str) -> Diagnostic:
    return Diagnostic("WOULD_WAIT", subject, "", {"why": why})


def _admitted(subject: str, decision: Admit) -> Diagnostic:
    flavors = {flavor for a in decision.assignments for flavor in a.flavors.values()}
    numbers: dict[str, str | int] = {"flavors": ", ".join(sorted(flavors))}
    if borrows := decision.borrows.get(GPU, 0):
        numbers["borrows"] = describe_amount(GPU, borrows)
        return Diagnostic("WOULD_BE_ADMITTED_BORROWING", subject, "", numbers)
    return Diagnostic("WOULD_BE_ADMITTED", subject, "", numbers)


def _evicting(subject: str, count: int) -> Diagnostic:
    words = ngettext("%(n)d workload", "%(n)d workloads", count) % {"n": count}
    return Diagnostic("WOULD_EVICT", subject, "", {"victims": words, "count": count})


def _held(subject: str, decision: Hold, discretion: Discretion) -> Diagnostic:
    row = Workload(blockers=[asdict(blocker) for blocker in decision.blockers])
    line = deciding(row, blocker_lines(row, discretion))
    why = line.sentence if line else gettext("A cycle has to look at it.")
    code = line.code if line else BlockerCode.BEHIND_IN_QUEUE.value
    return Diagnostic("WOULD_WAIT", subject, "", {"why": why, "blocker": str(code)})
