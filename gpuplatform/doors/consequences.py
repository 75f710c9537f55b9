"""What a change of promises or nodes means: promises against capacity, work now impossible."""

from collections.abc import Iterable, Mapping

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.doors.intake import Item
from gpuplatform.doors.report import ImportReport, ObjectResult
from queues.specs import ClusterQueueSpec, CohortSpec, FlavorSpec, LocalQueueSpec, TopologySpec
from scheduling.engine.diagnostics import Checker, Finding
from scheduling.engine.promises import check_promises
from scheduling.engine.snapshot import Snapshot
from scheduling.engine.terms import DiagnosticCode
from scheduling.specs import NodeSpec

CHANGES_PROMISES = (
    ClusterQueueSpec,
    CohortSpec,
    FlavorSpec,
    LocalQueueSpec,
    NodeSpec,
    TopologySpec,
)


def changes_promises(items: Iterable[Item]) -> bool:
    """Return whether any of the items can change what is promised or what there is."""
    return any(isinstance(spec, CHANGES_PROMISES) for item in items for spec in item.specs)


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


def judge(
    report: ImportReport,
    items: Mapping[int, Item],
    before: Mapping[str, tuple[str, str]],
    snapshot: Snapshot,
) -> None:
    """Add to the report what the kept changes mean; to each object what concerns it."""
    promises = [_diagnostic(finding) for finding in check_promises(snapshot)]
    report.findings += promises
    report.findings += [
        Diagnostic(
            "WORK_BECOMES_IMPOSSIBLE", f"Workload/{name}", "", {"workload": name, "why": why}
        )
        for key, (name, why) in impossible_work(snapshot).items()
        if key not in before
    ]
    for result in report.results:
        if not result.is_rejected:
            specs = items[result.document.index].specs
            result.tell(d for d in promises if _concerns(d, specs))
            result.tell(_inactive(result, specs, snapshot))
            result.tell(_outside(result, specs, snapshot))


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


def _concerns(diagnostic: Diagnostic, specs: Iterable[object]) -> bool:
    """Return whether a finding about the promises is also about one of these queues."""
    queues = [spec for spec in specs if isinstance(spec, ClusterQueueSpec)]
    if diagnostic.code == DiagnosticCode.LENDER_CANNOT_RECLAIM:
        named = str(diagnostic.numbers.get("queues", "")).split(", ")
        return any(queue.name in named for queue in queues)
    flavors = diagnostic.subject.partition("/")[2].split(",")
    return any(
        quotas.flavor in flavors
        for queue in queues
        for group in queue.groups
        for quotas in group.flavors
    )


def _inactive(
    result: ObjectResult, specs: Iterable[object], snapshot: Snapshot
) -> Iterable[Diagnostic]:
    """Yield why an accepted queue cannot admit yet (``admission.md`` K8, K16)."""
    subject = result.document.subject
    for spec in specs:
        if isinstance(spec, LocalQueueSpec) and spec.cluster_queue not in snapshot.cluster_queues:
            numbers = {"queue": spec.name, "target": spec.cluster_queue}
            yield Diagnostic("ClusterQueueNotFound", subject, "spec.clusterQueue", numbers)
        if isinstance(spec, ClusterQueueSpec):
            queue = snapshot.cluster_queues.get(spec.name)
            if queue is not None and queue.inactive:
                yield Diagnostic(queue.inactive, subject, "", _missing(spec, snapshot))


def _outside(
    result: ObjectResult, specs: Iterable[object], snapshot: Snapshot
) -> Iterable[Diagnostic]:
    """Yield which nodes of an accepted flavor cannot be placed in its topology."""
    for spec in specs:
        topology = snapshot.topologies.get(spec.topology) if isinstance(spec, FlavorSpec) else None
        if topology is None or not isinstance(spec, FlavorSpec):
            continue
        nodes = [
            node.name
            for node in snapshot.nodes
            if spec.node_labels.items() <= node.labels.items()
            and not set(topology.levels) <= node.labels.keys()
        ]
        if nodes:
            numbers = {"nodes": ", ".join(nodes[:10]), "flavor": spec.name}
            yield Diagnostic("NODES_OUTSIDE_TOPOLOGY", result.document.subject, "", numbers)


def _missing(spec: ClusterQueueSpec, snapshot: Snapshot) -> dict[str, str | int]:
    flavors = [quotas.flavor for group in spec.groups for quotas in group.flavors]
    absent = [name for name in flavors if name not in snapshot.flavors]
    topologies = [
        topology
        for name in flavors
        if name in snapshot.flavors
        and (topology := snapshot.flavors[name].topology)
        and topology not in snapshot.topologies
    ]
    return {
        "queue": spec.name,
        "flavor": ", ".join(absent),
        "topology": ", ".join(topologies),
    }
