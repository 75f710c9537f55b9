"""What a change of promises or nodes means: promises against capacity, work now impossible."""

from collections.abc import Iterable, Mapping

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.doors.intake import Item
from gpuplatform.doors.report import ImportReport, ObjectResult
from queues.choices import Fairness
from queues.selectors import fairness_above
from queues.specs import ClusterQueueSpec, CohortSpec, FlavorSpec, LocalQueueSpec, TopologySpec
from scheduling.engine.snapshot import Snapshot
from scheduling.selectors.edits import (
    Standing,
    cleared,
    debts_left,
    queues_of,
    standing_now,
    without_checkpoint,
)
from scheduling.selectors.promises import became_impossible, concerns
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


def judge(
    report: ImportReport, items: Mapping[int, Item], before: Standing, snapshot: Snapshot
) -> None:
    """Add to the report what the kept changes mean; to each object what concerns it."""
    after = standing_now(snapshot)
    promises = after.alerts
    report.findings += promises
    report.findings += cleared(before, after)
    report.findings += became_impossible(before.impossible, after.impossible)
    report.findings += without_checkpoint(before.snapshot, snapshot)
    kept = [items[one.document.index].specs for one in report.results if not one.is_rejected]
    edited = [name for specs in kept for spec in specs for name in queues_of(spec)]
    report.findings += debts_left(before.snapshot, snapshot, edited)
    for result in report.results:
        if not result.is_rejected:
            specs = items[result.document.index].specs
            result.tell(d for d in promises if concerns(d, specs))
            result.tell(_inactive(result, specs, snapshot))
            result.tell(_outside(result, specs, snapshot))
            if any(_weight_counts(spec, snapshot) for spec in specs):
                result.forget("FAIR_WEIGHT_KEPT")


def _weight_counts(spec: object, snapshot: Snapshot) -> bool:
    """Return whether the weight of an accepted queue or cohort decides anything."""
    if isinstance(spec, LocalQueueSpec):
        queue = snapshot.cluster_queues.get(spec.cluster_queue)
        return queue is not None and queue.usage_based
    if isinstance(spec, ClusterQueueSpec):
        return fairness_above(spec.cohort) != Fairness.NONE
    return isinstance(spec, CohortSpec) and fairness_above(spec.parent) != Fairness.NONE


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
