"""Promises against capacity, and pending work that can never run."""

from collections.abc import Iterable, Mapping

from gpuplatform.common.diagnostics import Diagnostic
from queues.access import Actor
from queues.specs import ClusterQueueSpec, CohortSpec, FlavorSpec
from scheduling.engine.diagnostics import Checker, Finding
from scheduling.engine.promises import check_promises
from scheduling.engine.snapshot import Snapshot
from scheduling.engine.terms import DiagnosticCode

Impossible = Mapping[str, tuple[str, Diagnostic]]  # key to name and the first reason


def promise_findings(snapshot: Snapshot) -> list[Diagnostic]:
    """Return what is promised twice, what nobody can use, and who cannot get a loan back."""
    return [_diagnostic(finding) for finding in check_promises(snapshot)]


def standing_alerts(snapshot: Snapshot, actor: Actor) -> list[Diagnostic]:
    """Return the findings about promises that a reader may see: none with foreign names."""
    found = promise_findings(snapshot)
    if actor.sees_everything:
        return found
    return [alert for alert in found if alert.code != DiagnosticCode.LENDER_CANNOT_RECLAIM]


def impossible_work(snapshot: Snapshot) -> dict[str, tuple[str, Diagnostic]]:
    """Return the pending workloads that can never run: key to (name, first reason)."""
    checker, found = Checker(snapshot), {}
    for workload in snapshot.workloads:
        if workload.admission is None:
            diagnostics = [_diagnostic(finding) for finding in checker.check(workload)]
            errors = [diagnostic for diagnostic in diagnostics if diagnostic.is_error]
            if errors:
                found[workload.key] = (workload.name, errors[0])
    return found


def became_impossible(before: Impossible, after: Impossible) -> list[Diagnostic]:
    """Return the pending workloads that can never run since ``before``: who, why, how much."""
    return [
        Diagnostic(
            "WORK_BECOMES_IMPOSSIBLE",
            f"Workload/{name}",
            "",
            {**why.numbers, "workload": name, "blocker": why.code, "why": why.sentence},
        )
        for key, (name, why) in after.items()
        if key not in before
    ]


def became_possible(before: Impossible, after: Impossible, snapshot: Snapshot) -> list[Diagnostic]:
    """Return the pending workloads that could never run before, and now can."""
    pending = {work.key for work in snapshot.workloads if work.admission is None}
    return [
        Diagnostic("WORK_BECOMES_POSSIBLE", f"Workload/{name}", "", {"workload": name})
        for key, (name, _why) in before.items()
        if key in pending and key not in after
    ]


def identity(alert: Diagnostic) -> tuple[str, str, str]:
    """Return what makes two findings about promises the same one, with whichever numbers."""
    return alert.code, alert.subject, str(alert.numbers.get("resource", ""))


def concerns(diagnostic: Diagnostic, specs: Iterable[object]) -> bool:
    """Return whether a finding about the promises is also about one of these objects."""
    specs = list(specs)
    own = [spec for spec in specs if isinstance(spec, ClusterQueueSpec | CohortSpec)]
    if diagnostic.code == DiagnosticCode.LENDER_CANNOT_RECLAIM:
        named = str(diagnostic.numbers.get("queues", "")).split(", ")
        return any(isinstance(spec, ClusterQueueSpec) and spec.name in named for spec in own)
    flavors = diagnostic.subject.partition("/")[2].split(",")
    if any(isinstance(spec, FlavorSpec) and spec.name in flavors for spec in specs):
        return True
    return any(
        quotas.flavor in flavors
        for spec in own
        for group in spec.groups
        for quotas in group.flavors
    )


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
