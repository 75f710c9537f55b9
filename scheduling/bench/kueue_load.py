"""The load of Kueue's scheduler performance test, replayed in virtual time.

The whole engine decides, its state kept and fed by changes; a cycle costs no virtual time, the
pods of an evicted workload stand no longer. Where the data has nodes, every pod gets a place on
one, as near to the others as its class asks. Data and its rules: ``data/kueue-perf/README.md``
of the shared folder; anchors: ``performance.md`` 2.4.
"""

import gc
import heapq
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from scheduling.bench.report import Figure, Goal, Report
from scheduling.engine.cycle import advance
from scheduling.engine.machines import GPU, PODS, Flavor, Node, Topology
from scheduling.engine.plan import Admit
from scheduling.engine.snapshot import (
    ClusterQueue,
    Cohort,
    FlavorQuotas,
    FlavorResource,
    PodSet,
    Preemption,
    Quota,
    ResourceGroup,
    Snapshot,
    TopologyRequest,
    Workload,
)
from scheduling.engine.state import State
from scheduling.engine.terms import (
    Fairness,
    ReclaimWithinCohort,
    TopologyMode,
    WithinClusterQueue,
)
from scheduling.engine.topology import HOSTNAME
from scheduling.engine.tree import cohort_key

COLUMN = FlavorResource("default", GPU)
BLOCK, RACK = "topology/block", "topology/rack"
RACK_HOSTS = 64
FLOOR_US = 400.0
TOPOLOGY_FLOORS_US = {640: 595.0, 5_000: 4_631.0}  # by nodes: Kueue's core in Go
TOPOLOGY_GOALS_US = {640: 150.0, 5_000: 300.0}
GOALS_US = {(False, False): 98.0, (True, False): 62.0, (False, True): 116.0, (True, True): 72.0}
LARGE_SCALE_S = 5.0
MAKESPAN = {"baseline": 1.05, "tas": 1.05, "large_scale": 1.2}
RATIO = 1.5  # work units per decision, at ten times the pending work


@dataclass(frozen=True, slots=True)
class Load:
    """One load: the platform, and when which workload is created (milliseconds)."""

    name: str
    platform: Snapshot
    arrivals: tuple[tuple[int, Workload], ...]
    runtime_ms: Mapping[str, int]  # by workload
    bound_ms: float


def read_load(
    data: Mapping[str, Any],
    *,
    all_pending: bool = False,
    fair: bool = False,
    preempt: bool = True,
    times: int = 1,
    nodes: int | None = None,
    workloads: int | None = None,
) -> Load:
    """Return the load of one data file.

    Args:
        data: the file's JSON.
        all_pending: everything is created at once, instead of at the stated intervals.
        fair: the cohorts share fairly.
        preempt: whether queues may evict at all.
        times: how many times as many workloads.
        nodes: how many nodes, where there are any; default: as many as stated.
        workloads: how many in all, each class in its proportion; default: as many as stated.
    """
    count, each = data["cohorts"]["count"], data["cohorts"]["cluster_queues_each"]
    cohorts = [f"cohort-{c}" for c in range(count)]
    queues = {f"cq-0-{q}-{cohort}": cohort for cohort in cohorts for q in range(each)}
    arrivals: list[tuple[int, Workload]] = []
    runtime: dict[str, int] = {}
    each_queue = _counts(data, None if workloads is None else workloads // len(queues))
    for one, number in zip(data["workload_classes"], each_queue, strict=True):
        asked = {GPU: one["cpu_milli_per_pod"]}
        pod_sets = (PodSet("main", one["pods"], asked, topology=_nearness(one)),)
        for queue in queues:
            for i in range(number * times):
                at = 0 if all_pending else (i + 1) * one["creation_interval_ms"]
                key = f"{queue}/{one['class']}-{i}"
                arrivals.append((at, Workload(key, key, queue, one["priority"], at, pod_sets)))
                runtime[key] = one["runtime_ms"]
    arrivals.sort(key=lambda pair: (pair[0], pair[1].key))
    bound = data["derived"]["makespan_lower_bound_s"] * 1000
    platform = _platform(data, cohorts, queues, fair=fair, preempt=preempt)
    if data.get("topology"):
        platform = _with_nodes(platform, data["topology"], nodes)
    return Load(data["name"], platform, tuple(arrivals), runtime, bound)


def _counts(data: Mapping[str, Any], wanted: int | None) -> list[int]:
    """Return how many workloads of each class a queue gets, the largest remainders rounded up."""
    stated = [one["count_per_queue"] for one in data["workload_classes"]]
    if wanted is None:
        return stated
    whole = sum(stated)
    counts = [count * wanted // whole for count in stated]
    rest = sorted(range(len(stated)), key=lambda i: (-(stated[i] * wanted % whole), i))
    for i in rest[: wanted - sum(counts)]:
        counts[i] += 1
    return counts


def _nearness(one: Mapping[str, Any]) -> TopologyRequest | None:
    """Return how near the pods of a class must stand; balanced: in slices, at best together."""
    match one.get("topology_constraint"):
        case None:
            return None
        case "required":
            return TopologyRequest(TopologyMode.REQUIRED, RACK)
        case "balanced":
            return TopologyRequest(TopologyMode.PREFERRED, RACK, RACK, one["slice_size"])
        case _:
            return TopologyRequest(TopologyMode.PREFERRED, RACK)


def _with_nodes(platform: Snapshot, site: Mapping[str, Any], count: int | None) -> Snapshot:
    """Return the platform with equal nodes in racks of one block."""
    each = site["node_allocatable"]
    whole = {GPU: each["cpu_milli"], PODS: each["pods"]}
    nodes = (
        Node(name, {BLOCK: "block-0", RACK: f"rack-{i // RACK_HOSTS:03d}", HOSTNAME: name}, whole)
        for i in range(count or site["nodes"])
        for name in [f"node-{i:05d}"]
    )
    return replace(
        platform,
        flavors={"default": Flavor("default", topology="site")},
        topologies={"site": Topology("site", (BLOCK, RACK, HOSTNAME))},
        nodes=tuple(nodes),
    )


def _platform(
    data: Mapping[str, Any],
    cohorts: Iterable[str],
    queues: Mapping[str, str],
    *,
    fair: bool,
    preempt: bool,
) -> Snapshot:
    spec = data["cluster_queue"]
    quota = Quota(spec["nominal_quota_milli"], spec["borrowing_limit_milli"])
    groups = (ResourceGroup((GPU,), (FlavorQuotas("default", {GPU: quota}),)),)
    rights = Preemption()
    if preempt:
        rights = Preemption(
            within_cluster_queue=WithinClusterQueue(spec["within_cluster_queue"]),
            reclaim_within_cohort=ReclaimWithinCohort(spec["reclaim_within_cohort"]),
        )
    fairness = Fairness.SHARE if fair else Fairness.NONE
    return Snapshot(
        now=0.0,
        flavors={"default": Flavor("default")},
        topologies={},
        nodes=(),
        cohorts={name: Cohort(name, fairness=fairness) for name in cohorts},
        cluster_queues={
            name: ClusterQueue(name, cohort, groups, preemption=rights)
            for name, cohort in queues.items()
        },
        workloads=(),
    )


@dataclass(slots=True)
class Replay:
    """What one replay counted. Times are milliseconds of virtual time, CPU in seconds."""

    admissions: int = 0
    evictions: int = 0
    finished: int = 0
    cycles: int = 0
    makespan_ms: float = 0.0
    cpu_s: float = 0.0
    work: Counter[str] = field(default_factory=Counter)
    evicted: Counter[str] = field(default_factory=Counter)  # by class
    waited_ms: Counter[str] = field(default_factory=Counter)  # by class, to the last admission

    @property
    def decisions(self) -> int:
        """Return how often anything was decided: admissions and evictions."""
        return self.admissions + self.evictions


class _Player:
    """Plays one load; every change of the cluster is a change of the kept state."""

    def __init__(self, load: Load) -> None:
        self._load, self.replay = load, Replay()
        self._state = State(load.platform)
        self._ends: list[tuple[float, str, int]] = []  # when, who, which of its admissions
        self._runs: Counter[str] = Counter()
        self._waits: dict[str, float] = {}  # to the last admission so far
        self._held = 0

    def play(self) -> Replay:
        """Play until everybody has finished."""
        arrivals, place = self._load.arrivals, 0
        while place < len(arrivals) or self._ends:
            now = self._ends[0][0] if self._ends else math.inf
            if place < len(arrivals):
                now = min(now, arrivals[place][0])
            started = time.process_time()
            self._finish(now)
            while place < len(arrivals) and arrivals[place][0] <= now:
                self._state.put(arrivals[place][1])
                place += 1
            self.replay.cpu_s += time.process_time() - started
            self._settle(now)
            self.replay.makespan_ms = now
        for key, waited in self._waits.items():
            self.replay.waited_ms[_class(key)] += int(waited)
        return self.replay

    def _finish(self, now: float) -> None:
        while self._ends and self._ends[0][0] <= now:
            _, key, run = heapq.heappop(self._ends)
            if self._runs[key] == run:
                self._held -= _amount(self._state.workloads[key])
                self._state.drop(key)
                self.replay.finished += 1

    def _settle(self, now: float) -> None:
        """Run cycles until nobody moves any more; check the books after each."""
        moved = True
        while moved:
            started = time.process_time()
            desk = advance(self._state, now / 1000)
            moved = bool(desk.moves)
            for move in desk.moves:
                if isinstance(move, Admit):
                    self._admitted(move.workload, now)
                else:
                    self._evicted(move.workload)
            self.replay.cpu_s += time.process_time() - started
            self.replay.cycles += 1
            self.replay.work.update(desk.work)
            self._check()

    def _admitted(self, key: str, now: float) -> None:
        work = self._state.workloads[key]
        self._runs[key] += 1
        self._held += _amount(work)
        heapq.heappush(self._ends, (now + self._load.runtime_ms[key], key, self._runs[key]))
        self.replay.admissions += 1
        self._waits[key] = now - work.created_at

    def _evicted(self, key: str) -> None:
        work = self._state.workloads[key]
        self._runs[key] += 1  # the end of its last run does not count any more
        self._held -= _amount(work)
        self._state.put(replace(work, admission=None, releasing=False))
        self.replay.evictions += 1
        self.replay.evicted[_class(key)] += 1

    def _check(self) -> None:
        """Conservation: what the trees hold is what the running workloads ask for."""
        ledger = self._state.books.now.ledger
        roots = (cohort_key(name) for name in self._load.platform.cohorts)
        held = 0
        for root in roots:
            used = ledger.used(root, COLUMN)
            assert used <= ledger.promised(root, COLUMN), f"{root.name} holds more than it has"
            held += used
        assert held == self._held, f"the books say {held}, running work {self._held}"
        books = self._state.books
        holes = books.atlas.ground.holes
        least = min((min(holes[hole].amounts) for hole in set(books.now.room.holes)), default=0)
        assert least >= 0, "a node holds more than it has"


def _amount(work: Workload) -> int:
    return sum(pod_set.count * pod_set.requests[GPU] for pod_set in work.pod_sets)


def _class(key: str) -> str:
    return key.rpartition("/")[2].rpartition("-")[0]


def play(load: Load) -> Replay:
    """Replay a load. Raises AssertionError where usage is not conserved or work is lost."""
    player = _Player(load)
    gc.collect()
    gc.freeze()  # the load itself is no part of what is measured
    replay = player.play()
    gc.unfreeze()
    lost = len(load.arrivals) - replay.finished
    assert not lost, f"{lost} workloads never finished"
    return replay


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of a load with nodes: as much as stated, or another number of nodes and work."""

    nodes: int | None = None
    workloads: int | None = None


def bench(
    data: Mapping[str, Any],
    *,
    all_pending: bool,
    fair: bool,
    repeat: int = 3,
    scale: Scale = Scale(),
) -> Report:
    """Replay one load several times, and beside it what its goals need."""

    def read(*, all_pending: bool = all_pending, preempt: bool = True, times: int = 1) -> Load:
        return read_load(
            data,
            all_pending=all_pending,
            fair=fair,
            preempt=preempt,
            times=times,
            nodes=scale.nodes,
            workloads=scale.workloads,
        )

    load = read()
    replays = [play(load) for _ in range(repeat)]
    best = min(replays, key=lambda replay: replay.cpu_s)
    calm = play(read(preempt=False))
    few, many = play(read(all_pending=True)), play(read(all_pending=True, times=10))
    per_admission = best.cpu_s / best.admissions * 1e6
    makespan = calm.makespan_ms / load.bound_ms
    ratio = units(many) / units(few)
    nodes = len(load.platform.nodes)
    floor = TOPOLOGY_FLOORS_US.get(nodes, FLOOR_US)
    goals = [
        Goal("us-per-admission-floor", per_admission, floor),
        Goal("makespan-over-bound-without-preemption", makespan, MAKESPAN[load.name]),
        Goal("work-per-decision-at-ten-times-pending", ratio, RATIO),
    ]
    if nodes in TOPOLOGY_GOALS_US:
        goals.append(Goal("us-per-admission", per_admission, TOPOLOGY_GOALS_US[nodes]))
    if load.name == "baseline":  # the only load on which the peer was measured
        goals.append(Goal("us-per-admission", per_admission, GOALS_US[all_pending, fair]))
    if load.name == "large_scale":
        goals.append(Goal("cpu-s-whole-run", best.cpu_s, LARGE_SCALE_S))
    policy = "fragmentation" if nodes else "none: no nodes"
    env: dict[str, Figure] = {
        "profile": "recommended",
        "policy": policy,
        "nodes": nodes,
        "database": "none",
    }
    name = f"kueue-load {load.name}"
    return Report(name, env, _work(load, best), [one.cpu_s for one in replays], goals)


def units(replay: Replay) -> float:
    """Return counted work per decision."""
    return sum(replay.work.values()) / replay.decisions


def _work(load: Load, replay: Replay) -> dict[str, int | float | str]:
    finished = Counter(_class(work.key) for _, work in load.arrivals)
    waits = {name: replay.waited_ms[name] / finished[name] for name in sorted(finished)}
    return {
        "workloads": len(load.arrivals),
        "finished": replay.finished,
        "admissions": replay.admissions,
        "evictions": replay.evictions,
        **{f"evictions {name}": count for name, count in sorted(replay.evicted.items())},
        "cycles": replay.cycles,
        **dict(sorted(replay.work.items())),
        "virtual makespan s": replay.makespan_ms / 1000,
        "bound s": load.bound_ms / 1000,
        **{f"mean wait ms {name}": wait for name, wait in waits.items()},
    }
