"""What a change of promises means: promises against capacity, work that can never run now."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.quantities import nearest_resource
from queues.specs import ClusterQueueSpec, CohortSpec, ResourceGroupSpec
from scheduling.engine.diagnostics import Checker, Finding
from scheduling.engine.promises import check_promises
from scheduling.engine.snapshot import Snapshot
from scheduling.engine.terms import DiagnosticCode
from scheduling.engine.whatif import what_if
from scheduling.loader import load_snapshot
from scheduling.rules import WELL_KNOWN

Impossible = Mapping[str, tuple[str, str]]
NAMED = 5  # workloads that an answer names; the rest is a number
MOST_COMPARED = 3_000  # workloads; beyond this two cycles take longer than somebody waits


def promise_findings(snapshot: Snapshot) -> list[Diagnostic]:
    """Return what is promised twice, what nobody can use, and who cannot get a loan back."""
    return [_diagnostic(finding) for finding in check_promises(snapshot)]


def impossible_work(snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    """Return the pending workloads that can never run: key to (name, first reason)."""
    checker, found = Checker(snapshot), {}
    for workload in snapshot.workloads:
        if workload.admission is None:
            diagnostics = [_diagnostic(finding) for finding in checker.check(workload)]
            errors = [diagnostic for diagnostic in diagnostics if diagnostic.is_error]
            if errors:
                found[workload.key] = (workload.name, errors[0].sentence)
    return found


def became_impossible(before: Impossible, snapshot: Snapshot) -> list[Diagnostic]:
    """Return the pending workloads that can never run since ``before``."""
    return [
        Diagnostic(
            "WORK_BECOMES_IMPOSSIBLE", f"Workload/{name}", "", {"workload": name, "why": why}
        )
        for key, (name, why) in impossible_work(snapshot).items()
        if key not in before
    ]


def concerns(diagnostic: Diagnostic, specs: Iterable[object]) -> bool:
    """Return whether a finding about the promises is also about one of these objects."""
    own = [spec for spec in specs if isinstance(spec, ClusterQueueSpec | CohortSpec)]
    if diagnostic.code == DiagnosticCode.LENDER_CANNOT_RECLAIM:
        named = str(diagnostic.numbers.get("queues", "")).split(", ")
        return any(isinstance(spec, ClusterQueueSpec) and spec.name in named for spec in own)
    flavors = diagnostic.subject.partition("/")[2].split(",")
    return any(
        quotas.flavor in flavors
        for spec in own
        for group in spec.groups
        for quotas in group.flavors
    )


def watch_promise(spec: Any) -> Callable[[], list[Diagnostic]]:
    """Return what tells, once ``spec`` is saved, what the promise means (``common.consequences``).

    Told are findings about the flavors of the object, resources that nothing offers, pending
    work that the edit makes impossible, and what the next cycle does otherwise because of it.
    """
    if not isinstance(spec, ClusterQueueSpec | CohortSpec):
        return list
    seen = load_snapshot()
    before = impossible_work(seen)

    def told() -> list[Diagnostic]:
        snapshot = load_snapshot()
        found = [d for d in promise_findings(snapshot) if concerns(d, [spec])]
        return [
            *_unknown_resources(spec, snapshot),
            *found,
            *_shortened(became_impossible(before, snapshot)),
            *_effects(seen, snapshot),
        ]

    return told


def _effects(before: Snapshot, after: Snapshot) -> Iterable[Diagnostic]:
    """Yield who starts, waits or goes in the next cycle by the edit, and whose loan changes."""
    if len(after.workloads) > MOST_COMPARED:
        yield Diagnostic("EDIT_TOO_LARGE_TO_COMPARE", "", "", {"count": len(after.workloads)})
        return
    names = {workload.key: workload.name for workload in after.workloads}
    found = what_if(before, after)
    for code, keys in (
        ("EDIT_EVICTS", found.evicted),
        ("EDIT_SPARES", found.spared),
        ("EDIT_STARTS", found.starts),
        ("EDIT_KEEPS_WAITING", found.waits),
    ):
        if keys:
            known = sorted(names.get(key, key) for key in keys)
            listed = ", ".join(known[:NAMED]) + (" ..." if len(known) > NAMED else "")
            yield Diagnostic(code, "", "", {"count": len(keys), "names": listed})
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


def _resources(groups: Iterable[ResourceGroupSpec]) -> set[str]:
    return {resource for group in groups for resource in group.resources}


def _shortened(found: list[Diagnostic]) -> list[Diagnostic]:
    """Return the first few; the last of them counts the rest."""
    if len(found) <= NAMED:
        return found
    numbers: dict[str, str | int] = {"count": len(found) - NAMED}
    return [*found[:NAMED], Diagnostic("MORE_WORK_BECOMES_IMPOSSIBLE", "", "", numbers)]


def _diagnostic(finding: Finding) -> Diagnostic:
    code, subject = finding.code, finding.subject
    if code is DiagnosticCode.LENDER_CANNOT_RECLAIM:
        subject = f"Cohort/{subject}"
    elif code in (
        DiagnosticCode.GUARANTEES_EXCEED_CAPACITY,
        DiagnosticCode.STRANDED_CAPACITY,
    ):
        subject = f"ResourceFlavor/{subject}"
    return Diagnostic(code.value, subject, "", finding.numbers)
