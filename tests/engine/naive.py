"""Slow and simple answers to what the engine answers fast, from the sentences of the rules alone.

Nothing here uses the engine's ledger, books or search. Source: ``FORMAT.md`` 4.1, 5.2, 10.1.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from scheduling.engine.machines import PODS, Node
from scheduling.engine.reservation_laws import waits_behind
from scheduling.engine.snapshot import (
    NOTHING,
    Assignment,
    ClusterQueue,
    FlavorResource,
    PodSet,
    Quota,
    Snapshot,
    Workload,
)
from scheduling.engine.terms import StopPolicy, TopologyMode

Usage = Mapping[str, Counter[FlavorResource]]  # by queue


class Tree:
    """The quota tree, every question answered from the leaves anew."""

    def __init__(self, snapshot: Snapshot, usage: Usage) -> None:
        self.snapshot, self.usage = snapshot, usage

    def fits(self, queue: str, asked: Mapping[FlavorResource, int]) -> bool:
        """With the request taken, no root gives more than it has, nobody borrows too much."""
        spec = self.snapshot.cluster_queues[queue]
        mine = self.usage.get(queue, Counter()) + Counter(asked)
        after = Tree(self.snapshot, {**self.usage, queue: mine})
        for fr, amount in asked.items():
            quota = spec.quotas.get(fr, NOTHING)
            if not amount:
                continue
            if spec.cohort is None:
                if mine[fr] > quota.nominal:
                    return False
                continue
            limit = quota.borrowing_limit
            if limit is not None and mine[fr] > quota.nominal + limit:
                return False
            if not all(after.bears(cohort, fr) for cohort in self.above(spec.cohort)):
                return False
        return True

    def above(self, cohort: str | None) -> Iterator[str]:
        while cohort is not None:
            yield cohort
            spec = self.snapshot.cohorts.get(cohort)
            cohort = spec.parent if spec else None

    def bears(self, cohort: str, fr: FlavorResource) -> bool:
        spec = self.snapshot.cohorts.get(cohort)
        taken, pool = self.taken(cohort, fr), self.pool(cohort, fr)
        if spec is None or spec.parent is None:
            return taken <= pool
        limit = self.line(cohort, fr).borrowing_limit
        return limit is None or taken <= pool + limit

    def line(self, cohort: str, fr: FlavorResource) -> Quota:
        spec = self.snapshot.cohorts.get(cohort)
        return spec.quotas.get(fr, NOTHING) if spec else NOTHING

    def pool(self, cohort: str, fr: FlavorResource) -> int:
        return self.line(cohort, fr).nominal + sum(
            whole - kept for whole, kept, _ in self.members(cohort, fr)
        )

    def taken(self, cohort: str, fr: FlavorResource) -> int:
        return sum(max(0, used - kept) for _, kept, used in self.members(cohort, fr))

    def members(self, cohort: str, fr: FlavorResource) -> Iterator[tuple[int, int, int]]:
        """Yield of each child: what it was promised, what of it is never lent, what it uses."""
        for queue in self.snapshot.cluster_queues.values():
            if queue.cohort == cohort:
                quota = queue.quotas.get(fr, NOTHING)
                used = self.usage.get(queue.name, Counter())[fr]
                yield quota.nominal, kept(quota.nominal, quota), used
        for child in self.snapshot.cohorts.values():
            if child.parent == cohort:
                whole = self.pool(child.name, fr)
                yield whole, kept(whole, self.line(child.name, fr)), self.taken(child.name, fr)


def kept(whole: int, quota: Quota) -> int:
    return 0 if quota.lending_limit is None else max(0, whole - quota.lending_limit)


def charged(work: Workload, assignments: Iterable[Assignment]) -> Counter[FlavorResource]:
    """What a workload on these assignments is charged."""
    sets = {pod_set.name: pod_set for pod_set in work.pod_sets}
    total: Counter[FlavorResource] = Counter()
    for one in assignments:
        asked = {**sets[one.pod_set].requests, PODS: 1}
        for resource, flavor in one.flavors.items():
            total[FlavorResource(flavor, resource)] += asked.get(resource, 0) * one.count
    return total


def usage_of(snapshot: Snapshot, but: Iterable[str] = ()) -> dict[str, Counter[FlavorResource]]:
    """What every queue's running work is charged, some of it left out."""
    gone, usage = set(but), dict[str, Counter[FlavorResource]]()
    for work in snapshot.workloads:
        if work.admission is not None and work.queue is not None and work.key not in gone:
            usage.setdefault(work.queue, Counter()).update(
                charged(work, work.admission.assignments)
            )
    return usage


def free_of(snapshot: Snapshot, but: Iterable[str] = ()) -> dict[str, Counter[str]]:
    """What is free on every node, some running work left out."""
    gone, free = set(but), dict[str, Counter[str]]()
    for node in snapshot.nodes:
        free[node.name] = Counter({PODS: 110, **node.allocatable})
        free[node.name].subtract(node.unmanaged)
    for work in snapshot.workloads:
        for one in work.admission.assignments if work.admission and work.key not in gone else ():
            pod_set = next(p for p in work.pod_sets if p.name == one.pod_set)
            for node_name, pods in one.nodes.items():
                for resource, amount in {**pod_set.requests, PODS: 1}.items():
                    if node_name in free:
                        free[node_name][resource] -= amount * pods
    return free


def options(queue: ClusterQueue, pod_set: PodSet) -> Iterator[dict[str, str]]:
    """Every choice of one flavor for each group of which the pods ask something."""
    covered = {resource for group in queue.groups for resource in group.resources}
    asked = {resource for resource, amount in pod_set.requests.items() if amount}
    if PODS in covered:
        asked.add(PODS)
    if not asked <= covered:
        return
    groups = [g for g in queue.groups if asked & set(g.resources)]
    for flavors in product(*(g.flavors for g in groups)):
        yield {
            resource: chosen.flavor
            for group, chosen in zip(groups, flavors, strict=True)
            for resource in group.resources
            if resource in asked
        }


def tolerated(taints, pod_set: PodSet, flavors) -> bool:
    allowed = [*pod_set.tolerations, *(t for flavor in flavors for t in flavor.tolerations)]
    hard = [taint for taint in taints if taint.effect in ("NoSchedule", "NoExecute")]
    return all(any(one.tolerates(taint) for one in allowed) for taint in hard)


def may_use(snapshot: Snapshot, pod_set: PodSet, names: Iterable[str]) -> bool:
    """No flavor's taint keeps the pods away, and no label contradicts their selector."""
    for name in names:
        flavor = snapshot.flavors[name]
        if not tolerated(flavor.node_taints, pod_set, [flavor]):
            return False
        if any(flavor.node_labels.get(k, v) != v for k, v in pod_set.node_selector.items()):
            return False
    return True


def hosts(snapshot: Snapshot, pod_set: PodSet, names: Iterable[str]) -> list[Node] | None:
    """The nodes that take the pods under these flavors; None where no flavor has nodes."""
    flavors = [snapshot.flavors[name] for name in sorted(set(names))]
    real = [
        f
        for f in flavors
        if any(f.node_labels.items() <= n.labels.items() for n in snapshot.nodes)
    ]
    if not snapshot.nodes or (flavors and not real):
        return None
    return [
        node
        for node in snapshot.nodes
        if node.ready
        and node.schedulable
        and all(flavor.node_labels.items() <= node.labels.items() for flavor in real)
        and pod_set.node_selector.items() <= node.labels.items()
        and tolerated(node.taints, pod_set, flavors)
    ]


def has_room(
    snapshot: Snapshot, pod_set: PodSet, names: Iterable[str], free: Mapping[str, Counter[str]]
) -> bool:
    """Whether the nodes take all pods of one pod set, in one domain where that is required."""
    nodes = hosts(snapshot, pod_set, names)
    if nodes is None:
        return True
    asked = {r: n for r, n in {**pod_set.requests, PODS: 1}.items() if n}
    fitting = {
        node.name: max(0, min(free[node.name][r] // n for r, n in asked.items())) for node in nodes
    }
    request = pod_set.topology
    if request is None or request.mode is not TopologyMode.REQUIRED:
        return sum(fitting.values()) >= pod_set.count
    domains: Counter[str] = Counter()
    for node in nodes:
        domains[node.labels[request.level or ""]] += fitting[node.name]
    return any(pods >= pod_set.count for pods in domains.values())


def could_start(snapshot: Snapshot, work: Workload, but: Iterable[str] = ()) -> bool:
    """Whether a workload of one pod set fits, with some running work gone."""
    (pod_set,) = work.pod_sets
    gone = tuple(but)
    tree, free = Tree(snapshot, usage_of(snapshot, gone)), free_of(snapshot, gone)
    queue = snapshot.cluster_queues[work.queue or ""]
    return any(
        may_use(snapshot, pod_set, option.values())
        and tree.fits(queue.name, asked_under(pod_set, option))
        and has_room(snapshot, pod_set, option.values(), free)
        for option in options(queue, pod_set)
    )


def asked_under(pod_set: PodSet, option: Mapping[str, str]) -> dict[FlavorResource, int]:
    asked = {**pod_set.requests, PODS: 1}
    return {FlavorResource(f, r): asked[r] * pod_set.count for r, f in option.items()}


def heads_and_more(snapshot: Snapshot) -> Iterator[Workload]:
    """The waiting work of one pod set that nobody ahead may keep from starting.

    Behind a reservation one waits for what is free: that is what it is for.
    """
    for work in snapshot.workloads:
        if any(waits_behind(snapshot, work, one) for one in snapshot.memory.reservations):
            continue
        queue = snapshot.cluster_queues.get(work.queue or "")
        if work.admission is not None or work.blocked or queue is None or len(work.pod_sets) > 1:
            continue
        if queue.stop_policy is StopPolicy.NONE and not queue.inactive:
            yield work
