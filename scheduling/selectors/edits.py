"""What an edit of promises or of the cluster means, told before and after it is saved.

Work that can never run any more, promises that no longer agree with capacity (or do again), work
without a checkpoint that may now be evicted, and what the next cycle does otherwise.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.locales import by_locale
from gpuplatform.common.money import digits
from gpuplatform.common.quantities import nearest_resource
from queues.specs import (
    CellsSpec,
    ClusterQueueSpec,
    CohortSpec,
    FlavorSpec,
    ResourceGroupSpec,
    TopologySpec,
)
from scheduling.engine.debts import debts
from scheduling.engine.snapshot import Snapshot
from scheduling.engine.tree import Kind
from scheduling.engine.view import quota_rows
from scheduling.engine.whatif import Difference, what_if
from scheduling.engine.widening import exposed_by, takes_by_share
from scheduling.loader import load_snapshot
from scheduling.rules import WELL_KNOWN
from scheduling.selectors.moving import movers, total_cost
from scheduling.selectors.promises import (
    Impossible,
    became_impossible,
    became_possible,
    concerns,
    identity,
    impossible_work,
    promise_findings,
)
from scheduling.specs import NodeDrain, NodeRemoval, NodeSpec

NAMED = 5  # workloads that an answer names; the rest is a number
NOBODY = "Nobody"  # a cause, as the registry of reasons names it
MOST_COMPARED = 3_000  # workloads; beyond this two cycles take longer than somebody waits
WATCHED = (
    *(CellsSpec, ClusterQueueSpec, CohortSpec, FlavorSpec, TopologySpec),
    *(NodeSpec, NodeRemoval, NodeDrain),
)
# What may widen preemption, in the words of the forms.
FIELD_WORDS: Mapping[str, str | Promise] = {
    "within_cluster_queue": _("evicting in the queue itself"),
    "reclaim_within_cohort": _("taking lent quota back"),
    "borrow_within_cohort": _("evicting others while borrowing"),
    "max_priority_threshold": _("the highest priority that may be evicted while borrowing"),
    "fairness": _("what is lent goes to"),
    "fair_weight": _("weight"),
    "minimum_runtime_s": _("safety from eviction"),
    "yields_to_own": _("yielding to higher priority of its own queue"),
    "reclaimable": _("whether loans may be taken back"),
    "stop_policy": _("stop policy"),
    "cohort": _("cohort"),
    "groups": _("quota"),
}


@dataclass(frozen=True, slots=True)
class Standing:
    """How things stand: the world, the work that can never run, the alerts about promises."""

    snapshot: Snapshot
    impossible: Impossible
    alerts: tuple[Diagnostic, ...]


def standing_now(snapshot: Snapshot | None = None) -> Standing:
    """Return how things stand, in ``snapshot`` or in the tables."""
    snapshot = snapshot or load_snapshot()
    return Standing(snapshot, impossible_work(snapshot), tuple(promise_findings(snapshot)))


def watch_edit(spec: Any) -> Callable[[], list[Diagnostic]]:
    """Return what tells, once ``spec`` is saved, what the edit means (``common.consequences``).

    Told are findings about the flavors of the object, alerts that appear or clear, resources
    that nothing offers, pending work that becomes impossible or possible, running work without
    a checkpoint that may now be evicted, and what the next cycle does otherwise.
    """
    if not isinstance(spec, WATCHED):
        return list
    before = standing_now()

    def told() -> list[Diagnostic]:
        after = standing_now()
        unknown = (
            _unknown_resources(spec, after.snapshot)
            if isinstance(spec, ClusterQueueSpec | CohortSpec)
            else ()
        )
        return [
            *unknown,
            *_not_looked_at(spec, after.snapshot),
            *debts_left(before.snapshot, after.snapshot, queues_of(spec)),
            *_below_use(spec, before.snapshot, after.snapshot),
            *_standing_on(spec, before.snapshot),
            *changed_alerts(before, after, [spec]),
            *_shortened(became_impossible(before.impossible, after.impossible)),
            *became_possible(before.impossible, after.impossible, after.snapshot)[:NAMED],
            *without_checkpoint(before.snapshot, after.snapshot),
            *_effects(before.snapshot, after.snapshot),
        ]

    return told


def changed_alerts(
    before: Standing, after: Standing, specs: Iterable[object]
) -> Iterable[Diagnostic]:
    """Yield alerts that are new or say other numbers; those that end; those that stand anyway.

    Of the last only what concerns the objects, and as such: the edit is not what causes them.
    """
    specs, known = list(specs), {identity(alert): alert.numbers for alert in before.alerts}
    standing = []
    for alert in after.alerts:
        if known.get(identity(alert)) != alert.numbers:
            yield alert
        elif concerns(alert, specs):
            numbers: dict[str, str | int] = {"alert": alert.code, "why": alert.sentence}
            standing.append(Diagnostic("ALERT_STANDS", alert.subject, "", numbers))
    yield from cleared(before, after)
    yield from standing


def cleared(before: Standing, after: Standing) -> Iterable[Diagnostic]:
    """Yield the alerts that no longer hold."""
    stand = {identity(alert) for alert in after.alerts}
    for alert in before.alerts:
        if identity(alert) not in stand:
            numbers: dict[str, str | int] = {"alert": alert.code, "why": alert.sentence}
            yield Diagnostic("ALERT_CLEARS", alert.subject, "", numbers)


def without_checkpoint(before: Snapshot, after: Snapshot) -> Iterable[Diagnostic]:
    """Yield a warning where preemption widens over work that has no progress saved."""
    if len(after.workloads) > MOST_COMPARED:
        return
    found = exposed_by(before, after)
    if found.workloads:
        names = {workload.key: workload.name for workload in after.workloads}
        yield Diagnostic(
            "PREEMPTION_WITHOUT_CHECKPOINT",
            "",
            "",
            {
                "count": len(found.workloads),
                "workloads": _listed([names[key] for key in found.workloads]),
                "gpu_hours": by_locale(f"{found.gpu_hours:.1f}"),
                "fields": ", ".join(found.fields),
                "because": ", ".join(str(FIELD_WORDS[name]) for name in found.fields),
            },
        )


def _effects(before: Snapshot, after: Snapshot) -> Iterable[Diagnostic]:
    """Yield who starts, waits or goes in the next cycle by the edit, and whose loan changes."""
    if len(after.workloads) > MOST_COMPARED:
        yield Diagnostic("EDIT_TOO_LARGE_TO_COMPARE", "", "", {"count": len(after.workloads)})
        return
    names = {workload.key: workload.name for workload in after.workloads}
    found = what_if(before, after)
    for code, keys in (
        ("EDIT_EVICTS", found.evicted),
        ("EDIT_SHRINKS", found.shrunk),
        ("EDIT_MOVES", found.moved),
        ("EDIT_SPARES", found.spared),
        ("EDIT_STARTS", found.starts),
        ("EDIT_KEEPS_WAITING", found.waits),
    ):
        if keys:
            known = sorted(names.get(key, key) for key in keys)
            listed = _listed(known)
            numbers: dict[str, str | int] = {"count": len(keys), "names": listed}
            numbers |= _losses(found, frozenset(keys), names)
            yield Diagnostic(code, "", "", numbers)
    for loan in found.loans[:NAMED]:
        yield Diagnostic(
            "EDIT_CUTS_LOAN" if loan.after < loan.before else "EDIT_GIVES_LOAN",
            f"ClusterQueue/{loan.queue}",
            "",
            {
                "queue": loan.queue,
                "flavor": loan.column.flavor,
                "resource": loan.column.resource,
                "borrowed_before": loan.before,
                "borrowed_after": loan.after,
            },
        )


def _losses(
    found: Difference, keys: frozenset[str], names: Mapping[str, str]
) -> dict[str, str | int]:
    """Return for whom these lose anything by the edit, how many pods, and what is thrown away."""
    losses = [one for one in found.evictions if one.workload in keys]
    if not losses:
        return {}
    preemptors = sorted({names.get(one.preemptor, one.preemptor) for one in losses} - {""})
    lost = sum(one.lost_gpu_hours for one in losses)
    listed = _listed(preemptors)
    numbers: dict[str, str | int] = {"gpu_hours": by_locale(f"{lost:.1f}")}
    if pods := sum(one.pods for one in losses):
        numbers["pods"] = pods
    # Who drains a queue evicts for nobody: what is lost is told all the same.
    return numbers | ({"preemptors": listed} if preemptors else {"cause": NOBODY})


def _listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    listed, more = ", ".join(names[:NAMED]), len(names) - NAMED
    if more <= 0:
        return listed
    return gettext("%(names)s and %(n)d more") % {"names": listed, "n": more}


def _standing_on(spec: object, before: Snapshot) -> Iterable[Diagnostic]:
    """Yield who stands on a node that is to be forgotten or drained: that work has to leave."""
    if not isinstance(spec, NodeRemoval | NodeDrain):
        return
    found = movers(spec.name, before)
    if not found:
        return
    lost = sum(mover.gpu_hours for mover in found)
    names = [mover.name for mover in found]
    numbers: dict[str, str | int] = {"count": len(found), "names": _listed(names)}
    numbers["gpu_hours"] = by_locale(f"{lost:.1f}")
    if isinstance(spec, NodeRemoval):
        yield Diagnostic("REMOVAL_EVICTS", f"Node/{spec.name}", "", numbers)
        return
    cost = total_cost(found)
    if cost is not None:
        numbers |= {"cost": digits(cost), "currency": settings.CURRENCY}
    yield Diagnostic("DRAIN_MOVES", f"Node/{spec.name}", "", numbers)


def debts_left(before: Snapshot, after: Snapshot, own: Iterable[str] = ()) -> Iterable[Diagnostic]:
    """Yield what queues hold above all that they may use, where the edit makes it more.

    Of the queues named in ``own``, which were edited, it is told however large it was. Own
    queues come first, then the largest debts.
    """
    mine, was = set(own), debts(before)
    found = debts(after)
    for name, fr in sorted(found, key=lambda at: (at[0] not in mine, -found[at].over, at)):
        debt, old = found[name, fr], was.get((name, fr))
        if name not in mine and old is not None and old.over >= debt.over:
            continue
        numbers: dict[str, str | int] = {"queue": name, "flavor": fr.flavor}
        numbers |= {"resource": fr.resource, "amount": debt.used, "ceiling": debt.ceiling}
        numbers["over"] = debt.over
        path = "groups" if name in mine else ""
        yield Diagnostic("EDIT_LEAVES_DEBT", f"ClusterQueue/{name}", path, numbers)


def _below_use(spec: object, before: Snapshot, after: Snapshot) -> Iterable[Diagnostic]:
    """Yield the cells whose nominal drops below what is held: the rest is on loan from then on."""
    if not isinstance(spec, ClusterQueueSpec | CellsSpec):
        return
    left = {(row.kind, row.name, row.flavor, row.resource): row for row in quota_rows(after)}
    for row in quota_rows(before):
        now = left.get((row.kind, row.name, row.flavor, row.resource))
        nominal = now.nominal if now else 0
        if row.kind is Kind.QUEUE and nominal < min(row.nominal, row.used):
            numbers: dict[str, str | int] = {"queue": row.name, "flavor": row.flavor}
            numbers |= {"resource": row.resource, "amount": row.used, "promised": nominal}
            yield Diagnostic("EDIT_BELOW_USE", f"ClusterQueue/{row.name}", "groups", numbers)


def _not_looked_at(spec: object, snapshot: Snapshot) -> Iterable[Diagnostic]:
    """Yield that a right to evict while borrowing counts for nothing where a tree shares."""
    asks = isinstance(spec, ClusterQueueSpec) and spec.preemption.borrow_within_cohort != "Never"
    if isinstance(spec, ClusterQueueSpec) and asks and takes_by_share(snapshot, spec.cohort):
        numbers = {"queue": spec.name, "cohort": spec.cohort or ""}
        path = "preemption.borrow_within_cohort"
        yield Diagnostic("BORROW_WITHIN_COHORT_UNUSED", f"ClusterQueue/{spec.name}", path, numbers)


def _unknown_resources(
    spec: ClusterQueueSpec | CohortSpec, snapshot: Snapshot
) -> Iterable[Diagnostic]:
    """Yield a warning for each resource that no node and no other promise knows."""
    known = {r for node in snapshot.nodes for r in node.allocatable} | WELL_KNOWN
    for name, queue in snapshot.cluster_queues.items():
        known |= {fr.resource for fr in queue.quotas} if name != spec.name else set()
    for resource in sorted(_resources(spec.groups) - known):
        numbers = {"resource": resource, "nearest": nearest_resource(resource, known)}
        yield Diagnostic("UNKNOWN_RESOURCE", spec.name, "groups", numbers)


def queues_of(spec: object) -> tuple[str, ...]:
    """Return the names of the queues whose own promises a spec sets."""
    if isinstance(spec, CellsSpec):
        return tuple(cell.queue for cell in spec.cells)
    return (spec.name,) if isinstance(spec, ClusterQueueSpec) else ()


def _resources(groups: Iterable[ResourceGroupSpec]) -> set[str]:
    return {resource for group in groups for resource in group.resources}


def _shortened(found: list[Diagnostic]) -> list[Diagnostic]:
    """Return the first few; the last of them counts the rest."""
    if len(found) <= NAMED:
        return found
    numbers: dict[str, str | int] = {"count": len(found) - NAMED}
    return [*found[:NAMED], Diagnostic("MORE_WORK_BECOMES_IMPOSSIBLE", "", "", numbers)]
