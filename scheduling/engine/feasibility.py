"""What can never work in this queue or on this cluster. Pure, with the numbers.

Feasibility is judged on the EMPTY cluster: every healthy node, nothing running. Healthy means
Ready: a cordon is temporary. Where no nodes are known, checks about nodes are silent.
Source: ``placement.md`` 3, samples README.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from scheduling.engine.atlas import Atlas
from scheduling.engine.bounds import best_total, largest_gang
from scheduling.engine.capacity import FreeCapacity
from scheduling.engine.flavors import (
    Option,
    Options,
    combinations,
    jointly,
    no_common_flavor,
    options_of,
)
from scheduling.engine.machines import PODS
from scheduling.engine.partial import smallest
from scheduling.engine.placement import fitting_pods
from scheduling.engine.pools import Pool, Pools, pool_of
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.shortage import Shortage, shortage
from scheduling.engine.snapshot import ClusterQueue, FlavorResource, PodSet, Snapshot, Workload
from scheduling.engine.terms import BlockerCode, DeviceLocality, DiagnosticCode
from scheduling.engine.together import Unit, assign_alone, units_of
from scheduling.engine.tree import queue_key, quota_tree
from scheduling.engine.usage import (
    asked_of,
    by_importance,
    covered,
    demand,
    device_request,
    pod_charge,
    pod_footprint,
    quota_demand,
    shape,
)


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
        self._room = FreeCapacity(self._atlas)
        self._pools = Pools(self._atlas, self._room)
        self._ceilings: dict[str, dict[FlavorResource, int]] = {}
        self._sound: set[object] = set()  # kinds of pods that flavors take and nodes can hold

    def check(self, workload: Workload) -> tuple[Finding, ...]:
        """Return every reason why the workload can never run, and what it should know.

        It is judged by the fewest pods with which it is content.
        """
        workload = smallest(workload)
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
        gang = _Gang(self._pools, (self._atlas, self._room, queue), workload)
        kind = gang.kind()
        if kind is not None and kind in self._sound:
            return tuple(findings)
        more = (*gang.refusals(), *gang.cluster())
        if kind is not None and not more:
            self._sound.add(kind)
        return (*findings, *more)

    def _queue(self, workload: Workload, queue: ClusterQueue) -> Iterable[Finding]:
        """Yield for each resource that flavors chosen jointly cannot give within their ceilings.

        Where each resource could be had, but not all on the same flavors, the most important
        one is named.
        """
        need, pods = quota_demand(workload.pod_sets), sum(p.count for p in workload.pod_sets)
        choices = {p.name: self._choices(queue, p) for p in workload.pod_sets}
        limits = self._limits(queue)
        short = {
            resource: most
            for resource in by_importance(need.keys() & covered(queue))
            if (most := _most(workload.pod_sets, choices, limits, resource)) < need[resource]
        }
        fits, exact = largest_gang(workload.pod_sets, choices, limits)
        if not short and fits < pods and exact:
            resource = by_importance(need.keys() & covered(queue))[0]
            short = {resource: need[resource] * fits // pods}
        for resource, most in short.items():
            numbers: dict[str, str | int] = {
                "resource": resource,
                "need": need[resource],
                "ceiling": most,
                "largest_gang": fits,
                "pods": pods,
                "queue": queue.name,
            }
            yield Finding(DiagnosticCode.NEVER_FITS_QUEUE, workload.key, numbers)

    def _choices(self, queue: ClusterQueue, pod_set: PodSet) -> tuple[Option, ...]:
        """Return the flavors to judge a pod set by; one that suits none is told so elsewhere."""
        found = () if queue.inactive else options_of(self._atlas, queue, pod_set).choices
        return found or combinations(queue, asked_of(queue, pod_set), lambda _flavor: True)

    def _limits(self, queue: ClusterQueue) -> dict[FlavorResource, int]:
        if queue.name not in self._ceilings:
            key = queue_key(queue.name)
            self._ceilings[queue.name] = {
                fr: self._ledger.potential(key, fr) for fr in queue.quotas
            }
        return self._ceilings[queue.name]


def _most(
    pod_sets: Iterable[PodSet],
    choices: Mapping[str, Sequence[Option]],
    limits: Mapping[FlavorResource, int],
    resource: str,
) -> int:
    """Return how much of one resource the queue can give to the whole gang."""
    asks = []
    for pod_set in pod_sets:
        amount = pod_charge(pod_set).get(resource, 0) * pod_set.count
        options = choices[pod_set.name]
        flavors = dict.fromkeys(option[resource] for option in options if resource in option)
        if amount:
            asks.append((amount, [FlavorResource(flavor, resource) for flavor in flavors]))
    return best_total(asks, limits)


def check_workload(snapshot: Snapshot, workload: Workload) -> tuple[Finding, ...]:
    """Return all findings about one workload: impossible requests and warnings."""
    return Checker(snapshot).check(workload)


Parts = tuple[Atlas, FreeCapacity, ClusterQueue | None]
EVERYWHERE: frozenset[Pool] = frozenset([()])


class _Gang:
    """One workload on the empty cluster."""

    def __init__(self, pools: Pools, parts: Parts, workload: Workload) -> None:
        self._pools = pools
        self._atlas, self._room, self._queue = parts
        self._workload = workload
        self._options = {
            p.name: options_of(self._atlas, self._queue, p) for p in workload.pod_sets
        }

    def kind(self) -> object:
        """Return what everything but the queue's quota depends on for pods of one kind, else None.

        Equal for work of different queues that may use the same flavors.
        """
        if len(self._workload.pod_sets) != 1:
            return None
        (pod_set,) = self._workload.pod_sets
        options = self._options[pod_set.name].choices
        flavors = tuple(tuple(sorted(option.items())) for option in options)
        return shape(pod_set), self._workload.min_member, flavors

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
        for unit in units_of(self._workload.pod_sets):
            each = all(self._choices(pod_set) for pod_set in unit)
            if each and not any(True for _ in self._together(unit)):
                facts = no_common_flavor(unit).facts
                yield Finding(DiagnosticCode.FLAVOR_MISMATCH, self._workload.key, facts)

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
            have = self._have(resource)
            numbers: dict[str, str | int] = {
                "resource": resource,
                "need": need[resource],
                "have": have,
            }
            if need[resource] > have:
                yield Finding(DiagnosticCode.NEVER_FITS_CLUSTER, self._workload.key, numbers)
            elif need[resource] == have > 0:
                yield Finding(DiagnosticCode.NEEDS_WHOLE_CLUSTER, self._workload.key, numbers)

    def _have(self, resource: str) -> int:
        """Return what the gang could get of its flavors' nodes, one choice for each pod set."""
        asks = [
            (amount, self._pools_of(pod_set))
            for pod_set in self._workload.pod_sets
            if (amount := pod_footprint(pod_set).get(resource, 0) * pod_set.count)
            and self._choices(pod_set)
        ]
        pools = frozenset[Pool]().union(*(places for _, places in asks)) or EVERYWHERE
        limits = {pool: self._pools.total(frozenset([pool]), resource) for pool in pools}
        most = best_total(asks, limits)
        whole = self._pools.total(pools, resource)
        return min(most, whole) if most < sum(amount for amount, _ in asks) else whole

    def _pools_of(self, pod_set: PodSet) -> frozenset[Pool]:
        """Return the pools on which a pod set may stand; one that suits none is told so."""
        found = (pool_of(option.values()) for option in self._choices(pod_set))
        return frozenset(found) or EVERYWHERE

    def _single_pods(self) -> Iterable[Finding]:
        for pod_set in self._workload.pod_sets:
            pools = self._pools_of(pod_set)
            for resource in by_importance(pod_set.requests):
                need = pod_set.requests[resource]
                largest = self._pools.largest(pools, resource)
                if pod_set.count and need > largest:
                    numbers: dict[str, str | int] = {
                        "resource": resource,
                        "need": need,
                        "largest": largest,
                        "pod_set": pod_set.name,
                    }
                    yield Finding(DiagnosticCode.NEVER_FITS_NODE, self._workload.key, numbers)
            yield from self._islands(pod_set, pools)

    def _islands(self, pod_set: PodSet, pools: frozenset[Pool]) -> Iterable[Finding]:
        """Yield a finding where nodes have enough devices for a pod, and no island has."""
        asked = device_request(pod_set)
        if asked is None or asked.locality is not DeviceLocality.REQUIRE or not pod_set.count:
            return
        largest, node = self._pools.largest_island(pools)
        if largest < asked.count <= node:
            facts = {"pod_set": pod_set.name}
            numbers: dict[str, str | int] = {"need": asked.count, "largest": largest, **facts}
            yield Finding(DiagnosticCode.NEVER_FITS_ISLAND, self._workload.key, numbers)

    def _domains(self) -> Iterable[Finding]:
        """Yield what no flavor's topology could ever give: a domain, whole slices, a group's."""
        for unit in units_of(self._workload.pod_sets):
            lacks = [self._lacks(unit, options) for options in self._together(unit)]
            if not lacks or None in lacks:
                continue
            least = max((lack for lack in lacks if lack), key=lambda lack: lack.fits)
            yield Finding(
                DiagnosticCode.NEVER_FITS_TOPOLOGY, self._workload.key, _in_numbers(least)
            )

    def _together(self, unit: Unit) -> Iterable[tuple[Mapping[str, str], ...]]:
        return jointly(self._queue, unit, [self._choices(pod_set) for pod_set in unit])

    def _lacks(self, unit: Unit, options: tuple[Mapping[str, str], ...]) -> Shortage | None:
        return shortage(self._atlas, (self._room,), unit, options)

    def _choices(self, pod_set: PodSet) -> tuple[Mapping[str, str], ...]:
        return self._options[pod_set.name].choices

    def _packing(self) -> Iterable[Finding]:
        """Yield a finding where the sums suffice and whole pods still do not fit."""
        fits, pods = 0, sum(pod_set.count for pod_set in self._workload.pod_sets)
        for pod_set in self._workload.pod_sets:
            best = 0
            for option in self._choices(pod_set):
                best = max(best, self._pack(pod_set, option))
                if best == pod_set.count:
                    break
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
        placed = assign_alone(self._atlas, rooms, pod_set, option)
        if placed is None:
            return min(pod_set.count, fitting_pods(self._atlas, rooms, pod_set, flavors))
        return pod_set.count


def _in_numbers(lack: Shortage) -> dict[str, str | int]:
    resource = main_resource(lack.pod_sets)
    need = demand(lack.pod_sets)[resource]
    return {
        "level": lack.level,
        "resource": resource,
        "largest": need * lack.fits // lack.pods,
        "need": need,
        "pods": lack.pods,
        "largest_pods": lack.fits,
        **lack.facts,
    }


def main_resource(pod_sets: Iterable[PodSet]) -> str:
    """Return the resource that people count such a gang in: GPUs, else the first by name."""
    names = {resource for pod_set in pod_sets for resource in pod_footprint(pod_set)}
    return by_importance(names - {PODS} or names)[0]


def _emptied(snapshot: Snapshot) -> Snapshot:
    """Return the same cluster with nothing on it.

    A cordon passes, and GPUs that are free now will be taken: neither makes anything impossible.
    """
    nodes = (replace(node, schedulable=True, unmanaged={}) for node in snapshot.nodes)
    return replace(snapshot, nodes=tuple(nodes), workloads=(), keeps_for_gpus=False)
