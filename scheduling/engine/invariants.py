"""What may never happen, in other words than those that decide (house 2.5).

The property tests use :func:`violations` as their oracle; the applier asks it before it writes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from scheduling.engine.candidates import may_evict_own, may_reclaim
from scheduling.engine.cohort_laws import Usage, cohorts_within_sums
from scheduling.engine.consolidation_laws import broken_moves
from scheduling.engine.device_laws import devices_broken
from scheduling.engine.gang_laws import broken_gangs, unlawful_release, unmet
from scheduling.engine.gangs import may_lack_pods, without
from scheduling.engine.invariants_topology import scattered
from scheduling.engine.node_laws import oversold, pods_by_node
from scheduling.engine.plan import Admit, Evict, Grow, Hold, Plan, Shrink
from scheduling.engine.regrowth import came_back
from scheduling.engine.reservation_laws import broken_reservations
from scheduling.engine.snapshot import (
    NOTHING,
    Admission,
    Assignment,
    Claim,
    FlavorResource,
    Snapshot,
    Workload,
)
from scheduling.engine.standing import standing
from scheduling.engine.terms import BlockerCode, EvictionReason, ReclaimTo, StopPolicy
from scheduling.engine.tree import cohorts_in_cycles
from scheduling.engine.usage import charged_alike, held_usage, paired, pod_footprint


def violations(snapshot: Snapshot, plan: Plan) -> tuple[str, ...]:
    """Return a sentence for each broken law; empty for a sound plan."""
    world = _World(snapshot, plan)
    laws = (
        world.each_pending_once,
        world.evictions_hit_running_work,
        world.gangs_whole,
        world.gangs_together,
        world.nodes_not_oversold,
        world.devices_not_oversold,
        world.queues_within_limits,
        lambda: cohorts_within_sums(snapshot, world.before, world.after),
        world.victims_lawful,
        world.surplus_taken_lawfully,
        world.claims_keep_their_room,
        world.copies_replace_lawfully,
        lambda: broken_gangs(snapshot, plan),
    )
    found = [sentence for law in laws for sentence in law()]
    return (*found, *broken_reservations(snapshot, plan), *broken_moves(snapshot, plan))


class _World:
    """The snapshot and the plan side by side."""

    def __init__(self, snapshot: Snapshot, plan: Plan) -> None:
        self.snapshot, self.plan = snapshot, plan
        self.work = {w.key: w for w in snapshot.workloads}
        known = [d for d in plan.decisions if isinstance(d, Admit) and d.workload in self.work]
        self.admits = known
        self.evicts = [d for d in plan.decisions if isinstance(d, Evict)]
        self.grows = {d.workload: d for d in plan.decisions if isinstance(d, Grow)}
        self.shrinks = [d for d in plan.decisions if isinstance(d, Shrink)]
        self._takings: list[Evict | Shrink] = [*self.evicts, *self.shrinks]
        self.claims = {claim.workload: claim for claim in plan.memory.claims}
        self.circular, self._running = cohorts_in_cycles(snapshot.cohorts), dict[int, Workload]()
        self.before: Usage = Counter()
        runs = ((w, standing(w)) for w in snapshot.workloads if w.admission is not None)
        for workload, usage in charged_alike(runs):
            for fr, amount in usage.items():
                self.before[workload.queue or "", fr] += amount
        self.after: Usage = Counter(self.before)
        self.replaced = {admit.replaces for admit in known if admit.replaces in self.work}
        for key in self.replaced:
            for fr, amount in held_usage(self.work[key]).items():
                self.after[self.work[key].queue or "", fr] -= amount
        for workload, usage in charged_alike(map(self._stands, self.admits)):
            for fr, amount in usage.items():
                self.after[workload.queue or "", fr] += amount
        for workload in (self.work[key] for key in self.grows if key in self.work):
            queue = workload.queue or ""
            for fr, amount in held_usage(workload).items():
                self.after[queue, fr] -= amount
            for fr, amount in held_usage(self._grown_work(workload)).items():
                self.after[queue, fr] += amount

    def each_pending_once(self) -> Iterable[str]:
        admits = Counter(admit.workload for admit in self.admits)
        holds = Counter(d.workload for d in self.plan.decisions if isinstance(d, Hold))
        pending = {key for key, w in self.work.items() if w.admission is None}
        for key in sorted(pending | admits.keys() | holds.keys()):
            gang = key in self.work and may_lack_pods(self.work[key])
            runs = admits[key] or key not in pending
            spare = holds[key] if gang and runs else 0  # why some of its pods wait
            decided = admits[key] + holds[key] - spare
            if decided != (1 if key in pending else 0) or spare > 1:
                yield f"{key} was decided {decided} times"

    def evictions_hit_running_work(self) -> Iterable[str]:
        for key, times in sorted(Counter(e.workload for e in self.evicts).items()):
            workload = self.work.get(key)
            runs = workload is not None and workload.admission and not workload.releasing
            if times > 1 or not runs:
                yield f"{key} is evicted {times} times or does not run"

    def gangs_whole(self) -> Iterable[str]:
        for admit in self.admits:
            copies = admit.replaces  # what has finished of an original is not placed anew
            workload = self._admitted(admit) if copies else self.work[admit.workload]
            yield from self._whole(workload, admit.assignments)

    def gangs_together(self) -> Iterable[str]:
        """What was scattered already, by new labels of nodes, may stay so where it grows."""
        placed = {admit.workload: (admit.replaces, admit.assignments) for admit in self.admits}
        placed |= {key: (key, grow.assignments) for key, grow in self.grows.items()}
        placed |= {one.workload: (one.workload, self._left(one.workload)) for one in self.shrinks}
        for key, (before, assignments) in sorted(placed.items()):
            runs, now = self.work.get(before), self.work.get(key)
            was = any(scattered(self.snapshot, runs, standing(runs))) if runs else False
            if now is not None and not was:
                yield from scattered(self.snapshot, now, assignments)

    def _left(self, key: str) -> tuple[Assignment, ...]:
        """Return what a gang keeps that loses pods; pods on lost nodes are another law's."""
        gang = self.work[key]
        left = standing(replace(gang, reclaimable={}))
        for one in self.shrinks:
            if one.workload == key and one.preemptor:
                left = without(left, one.pods)
        return left

    def nodes_not_oversold(self) -> Iterable[str]:
        load: Counter[tuple[str, str]] = Counter()
        touched: set[str] = set()
        for workload, assignments in self._standing():
            self._load(load, workload, assignments)
        moves = [(admit.assignments, admit.replaces) for admit in self.admits]
        moves += [(grow.assignments, grow.workload) for grow in self.grows.values()]
        for assignments, before in moves:
            had = self._nodes_of(self.work.get(before))
            now = pods_by_node(assignments)
            touched.update(name for name, pods in now.items() if pods > had[name])
        nodes = {node.name: node for node in self.snapshot.nodes}
        for name in sorted(touched):
            if name not in nodes or not nodes[name].usable:
                yield f"work is placed on {name}, which cannot take any"
            else:
                yield from oversold(nodes[name], load)

    def devices_not_oversold(self) -> Iterable[str]:
        nodes = {node.name: node for node in self.snapshot.nodes if node.devices is not None}
        if nodes:
            new = frozenset(admit.workload for admit in self.admits)
            yield from devices_broken(nodes, self._standing(), new)

    def queues_within_limits(self) -> Iterable[str]:
        for name, fr in sorted(self._grown()):
            queue = self.snapshot.cluster_queues[name]
            quota = queue.quotas.get(fr)
            nominal = quota.nominal if quota else 0
            if queue.cohort is None:
                limit: int | None = nominal
            else:
                lends = quota.borrowing_limit if quota else 0
                limit = None if lends is None else nominal + lends
            if limit is not None and self.after[name, fr] > limit:
                yield f"{name} holds {self.after[name, fr]} of {fr}, more than {limit}"

    def victims_lawful(self) -> Iterable[str]:
        for evict in self.evicts:
            victim = self.work.get(evict.workload)
            if victim is not None and evict.reason is not EvictionReason.CONSOLIDATED:
                yield from self._unlawful(evict, victim)

    def _unlawful(self, evict: Evict, victim: Workload) -> Iterator[str]:
        if evict.reason is EvictionReason.CLUSTER_QUEUE_STOPPED:
            queue = self.snapshot.cluster_queues.get(victim.queue or "")
            if queue is None or queue.stop_policy is not StopPolicy.HOLD_AND_DRAIN:
                yield f"{victim.key} is drained from an open queue"
        elif evict.reason is EvictionReason.LOCAL_QUEUE_STOPPED:
            if victim.blocked != BlockerCode.QUEUE_STOPPED:
                yield f"{victim.key} is drained from an open local queue"
        elif evict.reason is EvictionReason.OUTGROWN:
            if not came_back(victim, self.snapshot.memory.held_less):
                yield f"{victim.key} has not outgrown what it holds"
        elif evict.reason is EvictionReason.NODE_FAILURES:
            yield from unlawful_release(self.snapshot, victim)
        elif not self._lawful(victim, self.work.get(evict.preemptor or "")):
            yield f"{victim.key} is protected from {evict.preemptor}"

    def surplus_taken_lawfully(self) -> Iterable[str]:
        for shrink in (one for one in self.shrinks if one.preemptor):
            gang, preemptor = self.work[shrink.workload], self.work.get(shrink.preemptor or "")
            if not self._lawful(replace(gang, part_of=gang.key), preemptor):
                yield f"the surplus of {gang.key} is protected from {shrink.preemptor}"

    def claims_keep_their_room(self) -> Iterable[str]:
        for preemptor in sorted({e.preemptor for e in self._takings if e.preemptor}):
            claim, workload = self.claims.get(preemptor), self.work.get(preemptor)
            if workload is not None and self._levels(workload):
                continue
            if claim is None or workload is None:
                yield f"{preemptor} evicts and claims nothing"
            elif tuple(self._whole(self._difference(workload), claim.assignments)):
                yield from self._whole(workload, claim.assignments)
        yield from self._claims_fit(tuple(self.claims.values()))

    def _levels(self, gang: Workload) -> bool:
        """Return whether it runs, or starts now, and takes surplus alone up to its fair share."""
        runs = gang.admission is not None or any(a.workload == gang.key for a in self.admits)
        queue = self.snapshot.cluster_queues.get(gang.queue or "")
        root = self.snapshot.cohorts.get(self._root(queue.cohort) or "") if queue else None
        levels = root is not None and root.reclaim_to is ReclaimTo.FAIR_SHARE
        return runs and levels and all(evict.preemptor != gang.key for evict in self.evicts)

    def copies_replace_lawfully(self) -> Iterable[str]:
        """A copy replaces running work of its own queue, once, and leaves its pods in place."""
        evicted = {evict.workload for evict in self.evicts}
        times = Counter(admit.replaces for admit in self.admits if admit.replaces)
        for admit in self.admits:
            copy, original = self.work[admit.workload], self.work.get(admit.replaces)
            if not admit.replaces:
                continue
            runs = original is not None and original.admission and not original.releasing
            if not runs or admit.replaces in evicted or times[admit.replaces] > 1:
                yield f"{copy.key} replaces {admit.replaces}, which does not run on until then"
            elif original is not None and (original.key, original.queue) != (
                copy.replaces,
                copy.queue,
            ):
                yield f"{copy.key} may not replace {original.key}"

    def _grown_work(self, workload: Workload) -> Workload:
        assert workload.admission is not None
        assignments = self.grows[workload.key].assignments
        return replace(workload, admission=replace(workload.admission, assignments=assignments))

    # -- restated arithmetic ----------------------------------------------------------------

    def _stands(self, admit: Admit) -> tuple[Workload, tuple[Assignment, ...]]:
        """Return a workload with what it holds then: all of it, unless some has finished."""
        workload = self.work[admit.workload]
        if not (workload.reclaimable or admit.replaces):
            return workload, admit.assignments
        running = self._admitted(admit)
        return running, standing(running)

    def _admitted(self, admit: Admit) -> Workload:
        """Return the workload as it runs then; finished pods of an original are a copy's too."""
        if id(admit) not in self._running:  # the plan keeps its moves alive
            self._running[id(admit)] = self._as_admitted(admit)
        return self._running[id(admit)]

    def _as_admitted(self, admit: Admit) -> Workload:
        workload = self.work[admit.workload]
        done = Counter[str]() | Counter(workload.reclaimable)
        if admit.replaces in self.work:
            done |= Counter(self.work[admit.replaces].reclaimable)
        admission = Admission(self.snapshot.now, admit.assignments)
        return replace(workload, admission=admission, reclaimable=done)

    def _nodes_of(self, workload: Workload | None) -> Counter[str]:
        return pods_by_node(standing(workload)) if workload else Counter()

    def _difference(self, workload: Workload) -> Workload:
        """Return what a copy lacks while the one that it replaces runs; else the workload."""
        original = self.work.get(workload.replaces)
        if original is None or original.admission is None:
            return workload
        has = {a.pod_set: a.count for a in standing(replace(original, reclaimable={}))}
        pod_sets = (replace(p, count=p.count - has.get(p.name, 0)) for p in workload.pod_sets)
        return replace(workload, pod_sets=tuple(p for p in pod_sets if p.count > 0))

    def _whole(self, workload: Workload, assignments: tuple[Assignment, ...]) -> Iterator[str]:
        granted = {a.pod_set: a.count for a in assignments}
        names = [pod_set.name for pod_set in workload.pod_sets]
        if may_lack_pods(workload):
            if wrong := unmet(workload, granted):
                yield f"{workload.key} starts with {wrong}"
        elif list(granted) != names or any(
            not min(p.count, p.min_count or p.count) <= granted[p.name] <= p.count
            for p in workload.pod_sets
        ):
            yield f"{workload.key} starts without some of its pods"
        for assignment in assignments:
            placed = sum(assignment.nodes.values())
            done = workload.reclaimable.get(assignment.pod_set, 0) if workload.replaces else 0
            enough = assignment.count - done <= placed <= assignment.count
            if not enough and (placed or self._has_nodes(assignment)):
                yield f"{workload.key} has {placed} of {assignment.count} pods placed"

    def _has_nodes(self, assignment: Assignment) -> bool:
        names = set(assignment.flavors.values())
        if names & {*self.snapshot.memory.machines}:
            return True
        flavors = [self.snapshot.flavors[name] for name in names]
        labels = [flavor.node_labels.items() for flavor in flavors] or [{}.items()]
        return any(wanted <= n.labels.items() for n in self.snapshot.nodes for wanted in labels)

    def _standing(self) -> Iterator[tuple[Workload, tuple[Assignment, ...]]]:
        """Yield what stands on nodes once the plan is applied: victims have not left yet."""
        for workload in self.snapshot.workloads:
            if workload.key in self.grows:
                yield workload, self.grows[workload.key].assignments
            elif workload.admission is not None and workload.key not in self.replaced:
                yield workload, standing(workload)
        for admit in self.admits:
            yield self.work[admit.workload], admit.assignments

    def _load(
        self,
        load: Counter[tuple[str, str]],
        workload: Workload,
        assignments: tuple[Assignment, ...],
        sign: int = 1,
    ) -> None:
        for pod_set, assignment in paired(workload, assignments):
            if not assignment.nodes:
                continue
            for resource, amount in pod_footprint(pod_set).items():
                for node, pods in assignment.nodes.items():
                    load[node, resource] += amount * pods * sign

    def _claims_fit(self, claims: tuple[Claim, ...]) -> Iterator[str]:
        """Once victims have left, claims and running work must fit on the nodes together."""
        load: Counter[tuple[str, str]] = Counter()
        leaving = {e.workload for e in self.evicts}
        for workload, assignments in self._standing():
            if workload.key not in leaving and not workload.releasing:
                self._load(load, workload, assignments)
        for shrink in self.shrinks:
            if shrink.workload not in leaving:
                self._load(load, self.work[shrink.workload], shrink.pods, sign=-1)
        fresh = {e.preemptor for e in self._takings}
        fresh |= {evict.workload for evict in self.evicts if evict.moves_to}
        nodes = {node.name: node for node in self.snapshot.nodes}
        for claim in claims:
            self._load(load, self.work[claim.workload], claim.assignments)
        for claim in claims:
            if claim.workload in fresh:
                for name in sorted({n for a in claim.assignments for n in a.nodes}):
                    yield from oversold(nodes[name], load)

    def _grown(self) -> set[tuple[str, FlavorResource]]:
        known = self.snapshot.cluster_queues
        return {
            key for key in self.after if self.after[key] > self.before[key] and key[0] in known
        }

    def _lawful(self, victim: Workload, preemptor: Workload | None) -> bool:
        """Return whether the policies of the preemptor's queue allow this victim."""
        queues = self.snapshot.cluster_queues
        if preemptor is None or not victim.preemptible:
            return False
        if victim.queue not in queues or preemptor.queue not in queues:
            return False
        rights = queues[preemptor.queue or ""].preemption
        if self._too_young(victim, preemptor):
            return False
        if victim.queue == preemptor.queue:
            return may_evict_own(rights.within_cluster_queue, preemptor, victim)
        host = queues[victim.queue or ""]
        return (
            host.reclaimable
            and may_reclaim(rights.reclaim_within_cohort, preemptor, victim)
            and self._root(host.cohort) == self._root(queues[preemptor.queue or ""].cohort)
            and self._borrows(victim)
        )

    def _too_young(self, victim: Workload, preemptor: Workload) -> bool:
        """Return whether the victim has run for less than its queue grants (``decisions`` 4.9)."""
        granted = self.snapshot.cluster_queues[victim.queue or ""].minimum_runtime
        ran = self.snapshot.now - (victim.admission.admitted_at if victim.admission else 0.0)
        yields = granted.yields_to_own and victim.priority < preemptor.priority
        return ran < granted.seconds and not (yields and victim.queue == preemptor.queue)

    def _borrows(self, victim: Workload) -> bool:
        quotas = self.snapshot.cluster_queues[victim.queue or ""].quotas
        return any(
            self.after[victim.queue or "", fr] > quotas.get(fr, NOTHING).nominal
            for fr, amount in held_usage(victim).items()
            if amount
        )

    def _root(self, cohort: str | None) -> str | None:
        while cohort is not None and cohort not in self.circular:
            spec = self.snapshot.cohorts.get(cohort)
            if spec is None or spec.parent is None:
                return cohort
            cohort = spec.parent
        return cohort
