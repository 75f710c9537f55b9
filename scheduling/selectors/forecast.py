"""What the next cycle would do with work that is not kept: the engine itself is asked."""

from collections.abc import Iterable
from dataclasses import asdict, replace

from django.utils.translation import gettext, ngettext

from gpuplatform.common import clock
from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.reasons import describe_amount
from queues.access import Actor
from scheduling.checks import read_required
from scheduling.engine.cycle import decide
from scheduling.engine.machines import GPU
from scheduling.engine.plan import Admit, Evict, Hold, Plan, Shrink
from scheduling.engine.snapshot import Snapshot
from scheduling.engine.snapshot import Workload as Known
from scheduling.engine.terms import BlockerCode
from scheduling.lines import part_of
from scheduling.models import Workload
from scheduling.rules import candidate
from scheduling.selectors.discretion import Discretion
from scheduling.selectors.foreseen import refusal_of
from scheduling.selectors.waiting import blocker_lines, deciding
from scheduling.specs import WorkloadSpec
from scheduling.world import World

MOST_WAITING = 2_000  # beyond this a cycle takes longer than somebody waits for an answer


def forecast_spec(
    spec: WorkloadSpec, world: World, actor: Actor | None, team_id: int | None
) -> Diagnostic:
    """Return what the next cycle would do with a workload of this team that was not kept."""
    work = candidate(spec, world)
    if not work.blocked:
        why, until = refusal_of(work.queue, team_id, clock.now())
        work = replace(work, blocked=why, not_before=until)
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
    known = {work.key: work for work in snapshot.workloads}
    if sum(1 for work in snapshot.workloads if work.admission is None) > MOST_WAITING:
        return {key: Diagnostic("FORECAST_TOO_LARGE", _subject(known, key)) for key in wanted}
    plan, discretion, required = decide(snapshot), Discretion(actor), read_required()
    return {
        key: _told(known[key], required.of(known[key].queue or ""), plan, discretion)
        if key in known
        else _waits(_subject(known, key), gettext("It is kept back until it is reactivated."))
        for key in wanted
    }


def _subject(known: dict[str, Known], key: str) -> str:
    return f"Workload/{known[key].name if key in known else key}"


def _told(work: Known, checks: tuple[str, ...], plan: Plan, discretion: Discretion) -> Diagnostic:
    """Return what a plan does with new work, of which these admission checks will be asked."""
    key, subject = work.key, f"Workload/{work.name}"
    takings = [d for d in plan.decisions if isinstance(d, Evict | Shrink)]
    evicted = sum(1 for taking in takings if taking.preemptor == key)
    for decision in plan.decisions:
        if decision.workload == key and isinstance(decision, Admit):
            return _admitted(work, decision, subject, ", ".join(checks))
        if decision.workload == key and isinstance(decision, Hold):
            if evicted:
                return _evicting(subject, evicted, ", ".join(checks))
            return _held(subject, decision, discretion)
    return _waits(subject, gettext("A cycle has to look at it."))


def _waits(subject: str, why: str) -> Diagnostic:
    return Diagnostic("WOULD_WAIT", subject, "", {"why": why})


def _admitted(work: Known, decision: Admit, subject: str, checks: str) -> Diagnostic:
    """Return on which flavors, with how many pods, what it borrows, and who is asked first."""
    flavors = {flavor for a in decision.assignments for flavor in a.flavors.values()}
    # Work outside every queue takes of no flavor.
    named = ", ".join(sorted(flavors)) or gettext("free nodes")
    numbers: dict[str, str | int] = {"flavors": named}
    terms, code = [numbers["flavors"]], "WOULD_BE_ADMITTED"
    if part := part_of(work, decision.assignments):
        numbers |= part
        terms += [gettext("with %(pods)d of %(of_pods)d pods") % part]
        code = "WOULD_BE_ADMITTED_IN_PART"
    if borrows := decision.borrows.get(GPU, 0):
        numbers["borrows"] = describe_amount(GPU, borrows)
        terms += [gettext("borrowing %(borrows)s") % numbers]
        code = code if part else "WOULD_BE_ADMITTED_BORROWING"
    if checks:
        numbers["checks"], code = checks, "WOULD_RESERVE"
    return Diagnostic(code, subject, "", numbers | {"terms": ", ".join(map(str, terms))})


def _evicting(subject: str, count: int, checks: str) -> Diagnostic:
    words = ngettext("%(n)d workload", "%(n)d workloads", count) % {"n": count}
    numbers: dict[str, str | int] = {"victims": words, "count": count}
    if checks:
        return Diagnostic("WOULD_EVICT_AND_RESERVE", subject, "", numbers | {"checks": checks})
    return Diagnostic("WOULD_EVICT", subject, "", numbers)


def _held(subject: str, decision: Hold, discretion: Discretion) -> Diagnostic:
    row = Workload(blockers=[asdict(blocker) for blocker in decision.blockers])
    line = deciding(row, blocker_lines(row, discretion))
    why = line.sentence if line else gettext("A cycle has to look at it.")
    code = line.code if line else BlockerCode.BEHIND_IN_QUEUE.value
    return Diagnostic("WOULD_WAIT", subject, "", {"why": why, "blocker": str(code)})
