"""The world of a running scenario: it changes by events and by what a cycle decided."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from scheduling.engine import consumption
from scheduling.engine.decay import Consumed, UsageDecay
from scheduling.engine.growth import heir
from scheduling.engine.lobby import Lobby
from scheduling.engine.queue_rules import LocalQueue
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.scenario.script import Event, EventKind, Scenario
from scheduling.engine.snapshot import (
    Admission,
    Assignment,
    ClusterQueue,
    Cohort,
    FlavorResource,
    Memory,
    Quota,
    Snapshot,
    Workload,
)
from scheduling.engine.terms import StopPolicy
from scheduling.engine.tree import Kind, QuotaKey, cohort_key, queue_key, quota_tree
from scheduling.engine.usage import held_usage

Verdict = tuple[str, str | None]  # outcome and reason of a waiting workload
NOT_CONSIDERED: Verdict = ("NotConsidered", None)
PREEMPTED: Verdict = ("Preempted", None)
DRAINED: Verdict = ("Drained", None)


class World:
    """Everything that stands at one moment, and the memory of the cycles so far."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.now = scenario, scenario.start_at
        self.nodes = {node.name: node for node in scenario.nodes}
        self.cohorts = {cohort.name: cohort for cohort in scenario.cohorts}
        self.queues = {queue.name: queue for queue in scenario.queues}
        self.workloads = {work.key: work for work in scenario.workloads}
        self.finished: list[str] = []
        self.verdicts: dict[str, Verdict] = {}
        self.memory = Memory(
            consumption={
                door.name: Consumed(door.consumed, {}, scenario.start_at)
                for door in scenario.doors
                if door.consumed
            }
        )
        self.consumed = {door.name: consumption.natural(door.consumed) for door in scenario.doors}
        self._updated = scenario.start_at

    # -- questions ----------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return the world as one frozen value."""
        scenario = self.scenario
        return Snapshot(
            now=self.now,
            flavors={flavor.name: flavor for flavor in scenario.flavors},
            topologies={topology.name: topology for topology in scenario.topologies},
            nodes=tuple(self.nodes.values()),
            cohorts=dict(self.cohorts),
            cluster_queues=dict(self.queues),
            workloads=tuple(self.workloads.values()),
            memory=self.memory,
            local_queues={
                door.name: LocalQueue(
                    door.name, door.cluster_queue, self.figure(door.name), door.fair_weight
                )
                for door in scenario.doors
            },
            fair_strategies=scenario.strategies,
            usage_decay=_usage_decay(scenario),
            half_life_s=scenario.half_life_s,
            patience=scenario.patience,
        )

    def figure(self, local_queue: str) -> float:
        """Return the consumption that is compared; 0 where usage is not looked at."""
        decay = self.scenario.decay
        if decay is None:
            return 0.0
        door = next(door for door in self.scenario.doors if door.name == local_queue)
        return consumption.figure(self.consumed[local_queue], decay.weights, door.fair_weight)

    def ledger(self) -> QuotaLedger:
        """Return the quota tree with what is running."""
        ledger = QuotaLedger(quota_tree(self.snapshot()))
        for work in self.workloads.values():
            for fr, amount in self.usage(work).items():
                ledger.reserve(queue_key(work.queue or ""), fr, amount)
        return ledger

    def usage(self, work: Workload) -> Counter[FlavorResource]:
        """Return what a workload is charged; nothing for a waiting one."""
        return held_usage(work)

    def _tree_of(self, key: QuotaKey) -> list[str]:
        ledger = QuotaLedger(quota_tree(self.snapshot()))
        members = ledger.members(ledger.root(key))
        return [member.name for member in members if member.kind is Kind.QUEUE]

    # -- usage that fades ---------------------------------------------------------------------

    def age_consumption(self) -> None:
        """Bring the consumption of every local queue up to now."""
        decay = self.scenario.decay
        if decay is None:
            return
        alpha = consumption.fading(self.now - self._updated, decay.half_life_seconds)
        running: dict[str, Counter[str]] = {name: Counter() for name in self.consumed}
        for work in self.workloads.values():
            for fr, amount in self.usage(work).items():
                running[work.local_queue][fr.resource] += amount
        for name, amounts in running.items():
            held = consumption.natural(amounts)
            self.consumed[name] = consumption.decayed(self.consumed[name], held, alpha)
        self._updated = self.now

    def _charge_entry(self, work: Workload) -> None:
        decay = self.scenario.decay
        if decay is None or not self.queues[work.queue or ""].usage_based:
            return
        asked: Counter[str] = Counter()
        for pod_set in work.pod_sets:
            each = pod_set.requests if pod_set.charges is None else pod_set.charges
            asked.update({r: n * pod_set.count for r, n in each.items()})
        alpha = consumption.fading(decay.sampling_seconds, decay.half_life_seconds)
        past = self.consumed[work.local_queue]
        self.consumed[work.local_queue] = consumption.charged(
            past, consumption.natural(asked), alpha
        )

    # -- what a cycle decided -----------------------------------------------------------------

    def remember(self, lobby: Lobby) -> None:
        """Keep this lobby for the next cycle."""
        self.memory = replace(self.memory, lobby=lobby)

    def admit(self, key: str, assignments: tuple[Assignment, ...]) -> None:
        """Let a workload hold its quota and nodes from now on."""
        work = self.workloads[key]
        self.workloads[key] = replace(work, admission=Admission(self.now, assignments))
        self.verdicts.pop(key, None)
        self._changed([work.queue or ""])
        self._charge_entry(work)

    def mend(self, key: str, assignments: tuple[Assignment, ...]) -> None:
        """Let a gang that lost a node stand where its pods have been put."""
        work = self.workloads[key]
        assert work.admission is not None
        admission = replace(work.admission, assignments=assignments)
        self.workloads[key] = replace(work, admission=admission)

    def retire(self, copy: str, original: str) -> None:
        """Let a workload end because a grown copy has taken its place; nothing comes free."""
        ended = self.workloads.pop(original)
        self.workloads[copy] = heir(self.workloads[copy], ended)
        self.finished.append(original)
        self.remember(self.memory.lobby.forget(original))

    def evict(self, key: str, verdict: Verdict = PREEMPTED) -> None:
        """Let a workload wait again at its old place, and wake its tree."""
        work = self.workloads[key]
        self.workloads[key] = replace(work, admission=None)
        self.verdicts[key] = verdict
        self._left(work)

    # -- events -------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Let one event happen, and wake whom it concerns (``FORMAT.md`` 4.4)."""
        match event.kind:
            case EventKind.SUBMIT:
                assert event.workload is not None
                self.workloads[event.name] = event.workload
            case EventKind.FINISH | EventKind.DELETE:
                self._end(event.name, finished=event.kind is EventKind.FINISH)
            case EventKind.SET_PRIORITY:
                self._set_priority(event)
            case EventKind.SET_QUOTA:
                self._set_quota(event)
            case EventKind.SET_STOP_POLICY:
                self._set_stop_policy(event)
            case EventKind.SET_NODE:
                assert event.node is not None
                self.nodes[event.node.name] = event.node
                self._wake(self.queues)
            case EventKind.ADVANCE_CLOCK:
                self.now += event.seconds
            case _:
                self._note(event)

    def finish_what_is_done(self) -> None:
        """End the work that has run for as long as it takes; the first to end goes first."""
        for ends_at, key in sorted(self.ends()):
            if ends_at <= self.now:
                self._end(key, finished=True)

    def ends(self) -> list[tuple[float, str]]:
        """Return when running work ends by itself, and its key."""
        return [
            (work.admission.admitted_at + self.scenario.durations[key], key)
            for key, work in self.workloads.items()
            if work.admission is not None and key in self.scenario.durations
        ]

    def instants(self) -> Iterator[float]:
        """Yield the instants, some of them past, at which time alone may change a decision.

        Work ends, claims expire, nodes have been away for long, and running work loses the
        protection of its minimum runtime.
        """
        yield from (ends_at for ends_at, _ in self.ends())
        yield from (claim.expires_at for claim in self.memory.claims)
        grace = self.snapshot().gang_grace_s
        for since in self.memory.absent.values():
            yield from (since + grace, since + 2 * grace)
        for work in self.workloads.values():
            if work.admission is not None:
                safe = self.queues[work.queue or ""].minimum_runtime.seconds
                yield work.admission.admitted_at + safe

    def _note(self, event: Event) -> None:
        """Note what one workload says of itself; what it gives back, others may take.

        Counts are edited in place: running work holds no more than before, and may hold less.
        """
        work = self.workloads.get(event.name)
        if work is None:
            return
        match event.kind:
            case EventKind.CHECKPOINT:
                work = replace(work, last_checkpoint_at=event.seconds)
            case EventKind.RECLAIM_PODS:
                work = replace(work, reclaimable=event.pods)
            case EventKind.SCALE:
                counts = event.pods
                sets = (replace(p, count=counts.get(p.name, p.count)) for p in work.pod_sets)
                work = replace(work, pod_sets=tuple(sets))
        self.workloads[event.name] = work
        self._wake(self.queues)

    def _end(self, key: str, *, finished: bool) -> None:
        work = self.workloads.pop(key, None)
        if work is None:
            return
        if finished:
            self.finished.append(key)
        self.verdicts.pop(key, None)
        if work.admission is not None:
            self._left(work)
        else:  # Kueue wakes the tree for waiting work as well
            self._wake(self._tree_of(queue_key(work.queue or "")))
        self.remember(self.memory.lobby.forget(key).wake([key]))

    def _set_priority(self, event: Event) -> None:
        work = self.workloads.get(event.name)
        if work is None:
            return
        self.workloads[event.name] = replace(work, priority=event.priority)
        if work.admission is not None:
            self._changed([work.queue or ""])
            self._wake(self._tree_of(queue_key(work.queue or "")))
        else:
            self.remember(self.memory.lobby.wake([event.name]))

    def _set_quota(self, event: Event) -> None:
        assert event.column is not None
        key = cohort_key(event.name) if event.of_cohort else queue_key(event.name)
        if event.of_cohort:
            cohort = self.cohorts.get(event.name, Cohort(event.name))
            quotas = {**cohort.quotas, event.column: event.quota}
            self.cohorts[event.name] = replace(cohort, quotas=quotas)
        else:
            queue = self.queues[event.name]
            self.queues[event.name] = _with_quota(queue, event.column, event.quota)
        tree = self._tree_of(key)
        self._changed(tree)
        self._wake(tree)

    def _set_stop_policy(self, event: Event) -> None:
        self.queues[event.name] = replace(self.queues[event.name], stop_policy=event.stop_policy)
        if event.stop_policy is StopPolicy.HOLD_AND_DRAIN:
            for work in list(self.workloads.values()):
                if work.queue == event.name and work.admission is not None:
                    self.evict(work.key, DRAINED)
        self._wake(self._tree_of(queue_key(event.name)))

    def _left(self, work: Workload) -> None:
        self.remember(self.memory.lobby.forget(work.key))
        self._changed([work.queue or ""])
        self._wake(self._tree_of(queue_key(work.queue or "")))

    def _changed(self, queues: Iterable[str]) -> None:
        self.remember(self.memory.lobby.changed(queues))

    def _wake(self, queues: Collection[str]) -> None:
        keys = {w.key for w in self.workloads.values() if w.queue in set(queues)}
        self.remember(self.memory.lobby.wake(keys, queues))


def _usage_decay(scenario: Scenario) -> UsageDecay | None:
    decay = scenario.decay
    if decay is None:
        return None
    return UsageDecay(decay.half_life_seconds, decay.sampling_seconds, decay.weights)


def _with_quota(queue: ClusterQueue, column: FlavorResource, quota: Quota) -> ClusterQueue:
    """Return the queue with one line of its table replaced."""
    groups = tuple(
        replace(
            group,
            flavors=tuple(
                replace(flavor, quotas={**flavor.quotas, column.resource: quota})
                if flavor.flavor == column.flavor and column.resource in group.resources
                else flavor
                for flavor in group.flavors
            ),
        )
        for group in queue.groups
    )
    return replace(queue, groups=groups)
