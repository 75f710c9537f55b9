"""What can never work in this queue or on this cluster. Pure, with the numbers.

Feasibility is judged on the EMPTY cluster: every healthy node, nothing running. Healthy means
Ready: a cordon is temporary. Where no nodes are known, checks about nodes are silent.
Source: ``placement.md`` 3, samples README.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from scheduling.engine.atlas import Atlas
from scheduling.engine.flavors import Options, options_of
from scheduling.engine.placement import (
    FreeCapacity,
    capacities,
    level_depth,
    place_pod_set,
)
from scheduling.engine.quota import QuotaLedger, queue_key, quota_tree
from scheduling.engine.snapshot import (
    PODS,
    ClusterQueue,
    FlavorResource,
    Node,
    PodSet,
    Snapshot,
    Workload,
)
from scheduling.engine.terms import BlockerCode, DiagnosticCode, TopologyMode
from scheduling.engine.topology import Hosts
from scheduling.engine.usage import by_importance, covered, demand, pod_footprint


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with ``subject``, and its numbers in canonical units."""

    code: DiagnosticCode
    subject: str
    numbers: Mapping[str, str | int] = field(default_factory=dict)


def ceilings(snapshot: Snapshot) -> dict[str, dict[FlavorResource, int]]:
    """Return what each queue could hold at most, by column, with nothing running anywhere."""
    ledger = QuotaLedger(quota_tree(snapshot))
    return {
        name: {fr: ledger.potential(queue_key(name), fr) for fr in sorted(queue.quotas)}
        for name, queue in sorted(snapshot.cluster_queues.items())
    }


def resource_ceilings(snapshot: Snapshot, queue: str) -> dict[str, int]:
    """Return the queue's ceiling for each resource: the sum over its flavors."""
    total: Counter[str] = Counter()
    for fr, amount in ceilings(snapshot).get(queue, {}).items():
        total[fr.resource] += amount
    return dict(total)


class Checker:
    """Checks workloads against one snapshot; remembers what does not depend on the workload."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._atlas = Atlas(_emptied(snapshot))
        self._ledger = QuotaLedger(quota_tree(snapshot))
        self._room = FreeCapacity(self._atlas.snapshot.nodes)

    def check(self, workload: Workload) -> tuple[Finding, ...]:
        """Return every reason why the workload can never run, and what it should know."""
        queues = self._snapshot.cluster_queues
        findings = [
            finding
            for name in dict.fromkeys((workload.queue or "", workload.ceiling_queue or ""))
            if name in queues
            for finding in self._queue(workload, queues[name])
        ]
        queue = self._snapshot.cluster_queues.get(workload.queue or "")
        if workload.queue is not None and queue is None:
            return tuple(findings)
        gang = _Gang(self._atlas, self._room, workload, queue)
        return (*findings, *gang.refusals(), *gang.cluster())

    def _queue(self, workload: Workload, queue: ClusterQueue) -> Iterable[Finding]:
        need, ceiling = demand(workload.pod_sets), self._ceiling(queue)
        for resource in by_importance(need):
            if resource in ceiling and need[resource] > ceiling[resource]:
                numbers: dict[str, str | int] = {
                    "resource": resource,
                    "need": need[resource],
                    "ceiling": ceiling[resource],
                    "largest_gang": largest_gang(workload.pod_sets, ceiling),
                    "pods": sum(pod_set.count for pod_set in workload.pod_sets),
                    "queue": queue.name,
                }
                yield Finding(DiagnosticCode.NEVER_FITS_QUEUE, workload.key, numbers)

    def _ceiling(self, queue: ClusterQueue) -> dict[str, int]:
        total: Counter[str] = Counter()
        for fr in queue.quotas:
            total[fr.resource] += self._ledger.potential(queue_key(queue.name), fr)
        return {resource: total[resource] for resource in covered(queue)}


def largest_gang(pod_sets: Iterable[PodSet], ceiling: Mapping[str, int]) -> int:
    """Return how many pods fit under the ceiling, taken pod set by pod set in order."""
    left, fitting = dict(ceiling), 0
    for pod_set in pod_sets:
        asked = {r: n for r, n in pod_footprint(pod_set).items() if r in left}
        pods = min((max(0, left[r]) // n for r, n in asked.items()), default=pod_set.count)
        pods = min(pods, pod_set.count)
        fitting += pods
        for resource, amount in asked.items():
            left[resource] -= amount * pods
    return fitting


def check_workload(snapshot: Snapshot, workload: Workload) -> tuple[Finding, ...]:
    """Return all findings about one workload: impossible requests and warnings."""
    return Checker(snapshot).check(workload)


class _Gang:
    """One workload on the empty cluster."""

    def __init__(
        self, atlas: Atlas, room: FreeCapacity, workload: Workload, queue: ClusterQueue | None
    ) -> None:
        self._atlas, self._room, self._workload = atlas, room, workload
        self._options = {p.name: options_of(atlas, queue, p) for p in workload.pod_sets}
        self._nodes = [node for node in self._reach() if node.usable]

    def refusals(self) -> Iterable[Finding]:
        """Yield why flavors and taints keep the pods out."""
        for pod_set in self._workload.pod_sets:
            options = self._options[pod_set.name]
            if not options.choices:
                yield from self._refused(pod_set, options)
                continue
            taint = self._taint_everywhere(pod_set, options)
            if taint:
                numbers = {"taint": taint, "pod_set": pod_set.name}
                yield Finding(DiagnosticCode.TAINT_NOT_TOLERATED, self._workload.key, numbers)

    def cluster(self) -> Iterable[Finding]:
        """Yield what the healthy nodes cannot hold."""
        if not self._nodes_matter():
            return
        found = [*self._totals(), *self._single_pods(), *self._domains()]
        yield from found
        fatal = any(f.code is not DiagnosticCode.NEEDS_WHOLE_CLUSTER for f in found)
        if not fatal and not any(True for _ in self.refusals()):
            yield from self._packing()

    def _refused(self, pod_set: PodSet, options: Options) -> Iterable[Finding]:
        for blocker in options.refusals:
            tainted = blocker.code is BlockerCode.TAINT
            code = (
                DiagnosticCode.TAINT_NOT_TOLERATED if tainted else DiagnosticCode.FLAVOR_MISMATCH
            )
            numbers = {**blocker.facts, "flavor": blocker.where, "pod_set": pod_set.name}
            if blocker.resource:
                numbers["resource"] = blocker.resource
            yield Finding(code, self._workload.key, numbers)

    def _taint_everywhere(self, pod_set: PodSet, options: Options) -> str:
        """Return the taint that keeps the pods from every node they could else use."""
        looks = [self._atlas.suitable(pod_set, option.values()) for option in options.choices]
        if any(look.nodes or look.quota_only for look in looks):
            return ""
        return next((look.taint for look in looks if look.taint), "")

    def _reach(self) -> list[Node]:
        """Return the nodes of all flavors that the gang may use, healthy or not."""
        names = {
            name
            for options in self._options.values()
            for option in options.choices
            for name in option.values()
        }
        if not names:
            return list(self._atlas.nodes.values())
        found = {node.name: node for name in names for node in self._atlas.nodes_of(name)}
        return [found[name] for name in sorted(found)]

    def _nodes_matter(self) -> bool:
        options = self._options.items()
        pod_sets = {pod_set.name: pod_set for pod_set in self._workload.pod_sets}
        return not any(
            self._atlas.suitable(pod_sets[name], option.values()).quota_only
            for name, found in options
            for option in found.choices
        ) and bool(self._atlas.nodes)

    def _totals(self) -> Iterable[Finding]:
        need = demand(self._workload.pod_sets)
        for resource in by_importance(need):
            have = sum(self._room.free(node.name, resource) for node in self._nodes)
            numbers: dict[str, str | int] = {
                "resource": resource,
                "need": need[resource],
                "have": have,
            }
            if need[resource] > have:
                yield Finding(DiagnosticCode.NEVER_FITS_CLUSTER, self._workload.key, numbers)
            elif need[resource] == have > 0:
                yield Finding(DiagnosticCode.NEEDS_WHOLE_CLUSTER, self._workload.key, numbers)

    def _single_pods(self) -> Iterable[Finding]:
        for pod_set in self._workload.pod_sets:
            for resource in by_importance(pod_set.requests):
                need = pod_set.requests[resource]
                frees = (self._room.free(node.name, resource) for node in self._nodes)
                largest = max(frees, default=0)
                if pod_set.count and need > largest:
                    numbers: dict[str, str | int] = {
                        "resource": resource,
                        "need": need,
                        "largest": largest,
                        "pod_set": pod_set.name,
                    }
                    yield Finding(DiagnosticCode.NEVER_FITS_NODE, self._workload.key, numbers)

    def _domains(self) -> Iterable[Finding]:
        for pod_set in self._workload.pod_sets:
            request = pod_set.topology
            if request is None or request.mode is not TopologyMode.REQUIRED:
                continue
            largest = max(
                (self._largest(pod_set, option) for option in self._choices(pod_set)), default=0
            )
            if largest < pod_set.count:
                resource = main_resource([pod_set])
                each = pod_footprint(pod_set)[resource]
                numbers: dict[str, str | int] = {
                    "level": request.level or "",
                    "resource": resource,
                    "largest": largest * each,
                    "need": pod_set.count * each,
                    "pods": pod_set.count,
                    "largest_pods": largest,
                }
                yield Finding(DiagnosticCode.NEVER_FITS_TOPOLOGY, self._workload.key, numbers)

    def _choices(self, pod_set: PodSet) -> tuple[Mapping[str, str], ...]:
        return self._options[pod_set.name].choices

    def _largest(self, pod_set: PodSet, option: Mapping[str, str]) -> int:
        return largest_domain(self._atlas, (self._room,), pod_set, option.values())

    def _packing(self) -> Iterable[Finding]:
        """Yield a finding where the sums suffice and whole pods still do not fit."""
        fits, pods = 0, sum(pod_set.count for pod_set in self._workload.pod_sets)
        for pod_set in self._workload.pod_sets:
            best = max(
                (self._pack(pod_set, option) for option in self._choices(pod_set)), default=0
            )
            fits += best
        if fits < pods:
            resource = main_resource(self._workload.pod_sets)
            need = demand(self._workload.pod_sets)[resource]
            numbers: dict[str, str | int] = {
                "resource": resource,
                "need": need,
                "have": need * fits // pods,
                "pods": pods,
                "fits": fits,
            }
            yield Finding(DiagnosticCode.NEVER_FITS_CLUSTER, self._workload.key, numbers)

    def _pack(self, pod_set: PodSet, option: Mapping[str, str]) -> int:
        rooms, flavors = (self._room,), option.values()
        placed = place_pod_set(self._atlas, rooms, pod_set, flavors)
        if placed is None:
            return min(pod_set.count, sum(self._capacity(pod_set, option).values()))
        return pod_set.count

    def _capacity(self, pod_set: PodSet, option: Mapping[str, str]) -> dict[str, int]:
        return capacities(self._atlas, (self._room,), pod_set, option.values())


def largest_domain(
    atlas: Atlas, rooms: tuple[FreeCapacity, ...], pod_set: PodSet, flavors: Iterable[str]
) -> int:
    """Return how many pods the roomiest domain at the requested level can hold."""
    names = sorted(set(flavors))
    depth = level_depth(atlas, pod_set, names)
    if depth is None:
        return 0
    capacity = capacities(atlas, rooms, pod_set, names)
    return Hosts(capacity, atlas.paths(atlas.levels(names))).largest(depth)


def main_resource(pod_sets: Iterable[PodSet]) -> str:
    """Return the resource that people count such a gang in: GPUs, else the first by name."""
    names = {resource for pod_set in pod_sets for resource in pod_footprint(pod_set)}
    return by_importance(names - {PODS} or names)[0]


def _emptied(snapshot: Snapshot) -> Snapshot:
    """Return the same cluster with nothing on it. A cordon passes: it makes nothing impossible."""
    nodes = (replace(node, schedulable=True, unmanaged={}) for node in snapshot.nodes)
    return replace(snapshot, nodes=tuple(nodes), workloads=())
