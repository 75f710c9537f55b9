"""Gangs that come and go on a cluster 85 % full, placed by the engine's own function.

A decision is one gang: found a place, and taken in both accounts (what stands, and what will stand
soon). No quota and no queues; the figures are of placement alone. Goals: ``performance.md`` 4.1.
"""

import gc
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from scheduling.bench.report import Figure, Goal, Report
from scheduling.engine.atlas import Atlas
from scheduling.engine.capacity import FreeCapacity, Rooms
from scheduling.engine.cycle import advance
from scheduling.engine.journal import Journal
from scheduling.engine.machines import CPU, GPU, MEMORY, PODS, Flavor, Node, Topology
from scheduling.engine.placement import assign_pod_set
from scheduling.engine.snapshot import (
    Assignment,
    ClusterQueue,
    FlavorQuotas,
    PodSet,
    Preemption,
    Quota,
    Recent,
    ResourceGroup,
    Snapshot,
    TopologyRequest,
    Workload,
)
from scheduling.engine.state import State
from scheduling.engine.terms import PlacementPolicy, TopologyMode, WithinClusterQueue
from scheduling.engine.topology import HOSTNAME
from scheduling.engine.usual import expect

BLOCK, RACK = "topology/block", "topology/rack"
RACKS, HOSTS = 16, 16  # racks in a block, hosts in a rack
GPUS = 8
STORAGE, FABRIC = "ephemeral-storage", "rdma/hca"
EACH = {CPU: 12_000, MEMORY: 128 << 30, GPU: 1, STORAGE: 400 << 30, FABRIC: 1}  # of a node, by GPU
FULL = 85  # per cent of the GPUs
SIZES = (
    (1, 1),
    (1, 2),
    (1, 4),
    (1, 8),
    (4, 1),
    (8, 2),
    (2, 8),
    (4, 4),
    (4, 8),
    (8, 8),
    (16, 8),
    (64, 8),
)
OFTEN = (16, 12, 12, 16, 8, 6, 8, 6, 6, 4, 3, 1)
FLOORS = {1_000: 150.0, 10_000: 450.0}
GOALS = {
    (PlacementPolicy.BINPACK, 1_000): 50.0,
    (PlacementPolicy.BINPACK, 10_000): 150.0,
    (PlacementPolicy.FRAGMENTATION, 1_000): 500.0,
}
INFEASIBLE_US = 50.0
LARGE, LARGE_S = 1_024, 0.5
BIG, VICTIMS, VICTIMS_MS = 2_000, 700, 200.0
ASKED = 500  # times for too much
GROWTH = 2.0  # work units at ten times the nodes


def cluster(nodes: int, policy: PlacementPolicy, recent: Sequence[Recent] = ()) -> Snapshot:
    """Return so many equal nodes with eight GPUs each, in racks and blocks."""
    whole = {resource: amount * GPUS for resource, amount in EACH.items()} | {PODS: 110}
    return Snapshot(
        now=0.0,
        flavors={"gpu": Flavor("gpu", topology="site", policy=policy)},
        topologies={"site": Topology("site", (BLOCK, RACK, HOSTNAME))},
        nodes=tuple(Node(f"node-{i:05d}", _labels(i), whole) for i in range(nodes)),
        cohorts={},
        cluster_queues={},
        workloads=(),
        shapes=tuple(recent),
    )


def _labels(number: int) -> dict[str, str]:
    rack = number // HOSTS
    return {
        BLOCK: f"block-{rack // RACKS:03d}",
        RACK: f"rack-{rack:04d}",
        HOSTNAME: f"node-{number:05d}",
    }


def gangs() -> list[PodSet]:
    """Return every kind of gang: size, CPU for each GPU, and how near its pods must stand."""
    return [
        PodSet(f"{pods}x{gpus}", pods, _requests(gpus, lean=lean), topology=near)
        for pods, gpus in SIZES
        for lean in (False, True)
        for near in (None, _request(pods * gpus), TopologyRequest(TopologyMode.PREFERRED, RACK))
    ]


def _requests(gpus: int, *, lean: bool) -> dict[str, int]:
    """Return what one pod asks: its share of a node, or half of the CPU and memory of that."""
    asked = {resource: amount * gpus for resource, amount in EACH.items()}
    return asked | {CPU: asked[CPU] // 2, MEMORY: asked[MEMORY] // 2} if lean else asked


def _request(gpus: int) -> TopologyRequest:
    """Return the closest level at which so many GPUs fit in half a domain, as required."""
    level = RACK if gpus <= HOSTS * GPUS // 2 else BLOCK
    return TopologyRequest(TopologyMode.REQUIRED, level)


TOO_LARGE = PodSet(
    "too-large",
    HOSTS + 1,
    _requests(GPUS, lean=False),
    topology=TopologyRequest(TopologyMode.REQUIRED, RACK),
)


@dataclass(slots=True)
class Churn:
    """What one run counted; times in seconds of CPU."""

    decisions: int = 0
    refused: int = 0
    pods: int = 0
    place_s: float = 0.0
    release_s: float = 0.0
    infeasible_s: float = 0.0
    looked: int = 0
    weighed: int = 0
    placed: list[tuple[tuple[str, int], ...] | None] = field(default_factory=list)

    @property
    def us(self) -> float:
        """Return the mean of a decision, in microseconds."""
        return self.place_s / self.decisions * 1e6

    @property
    def units(self) -> float:
        """Return the work of a decision: nodes looked at and domains weighed."""
        return (self.looked + self.weighed) / self.decisions


class Yard:
    """A cluster with gangs on it; what it costs is counted from :meth:`start` to :meth:`stop`."""

    def __init__(self, nodes: int, policy: PlacementPolicy, seed: int) -> None:
        kinds = gangs()
        often = [times for times in OFTEN for _ in range(len(kinds) // len(SIZES))]
        recent = [Recent(one, one.count * times) for one, times in zip(kinds, often, strict=True)]
        self.atlas = Atlas(cluster(nodes, policy, recent))
        expect(self.atlas, self.atlas.snapshot.shapes)
        journal = Journal()
        self.rooms: Rooms = (FreeCapacity(self.atlas, journal), FreeCapacity(self.atlas, journal))
        self._chance = random.Random(seed)  # noqa: S311 - reproducible, and nobody's secret
        self._kinds, self._often = kinds, often
        self._stand: list[tuple[PodSet, Assignment]] = []
        self._used, self._most = 0, nodes * GPUS * FULL // 100
        self.churn = Churn()

    @property
    def full(self) -> bool:
        """Return whether as much stands as ever will."""
        return self._used >= self._most * 98 // 100

    def start(self) -> None:
        """Count from now on."""
        self.churn = Churn()
        self.atlas.ground.looked = self.atlas.ground.weighed = 0

    def stop(self) -> Churn:
        """Return what was counted since the start."""
        ground = self.atlas.ground
        self.churn.looked, self.churn.weighed = ground.looked, ground.weighed
        return self.churn

    def turn(self) -> None:
        """Let gangs leave until the next one keeps the cluster at its level, and let that come."""
        (gang,) = self._chance.choices(self._kinds, self._often)
        asked = gang.count * gang.requests[GPU]
        while self._stand and self._used + asked > self._most:
            self._leave()
        started = time.process_time()
        found = self.place(gang)
        self.churn.place_s += time.process_time() - started
        self.churn.decisions += 1
        self.churn.placed.append(tuple(found.nodes.items()) if found else None)
        if found is None:
            self.churn.refused += 1
            return
        self.churn.pods += gang.count
        self._stand.append((gang, found))
        self._used += asked

    def place(self, gang: PodSet) -> Assignment | None:
        """Place one gang and take its nodes in both accounts."""
        found = assign_pod_set(self.atlas, self.rooms, gang, {GPU: "gpu"})
        if found is not None:
            self._take(gang, found, 1)
        return found

    def _take(self, gang: PodSet, found: Assignment, sign: int) -> None:
        for room in self.rooms:
            room.take_all(gang, found.nodes, sign)

    def _leave(self) -> None:
        place = self._chance.randrange(len(self._stand))
        self._stand[place], self._stand[-1] = self._stand[-1], self._stand[place]
        gang, found = self._stand.pop()
        started = time.process_time()
        self._take(gang, found, -1)
        self.churn.release_s += time.process_time() - started
        self._used -= gang.count * gang.requests[GPU]

    def ask_too_much(self) -> None:
        """Ask for a gang that no rack can hold."""
        started = time.process_time()
        found = assign_pod_set(self.atlas, self.rooms, TOO_LARGE, {GPU: "gpu"})
        self.churn.infeasible_s += time.process_time() - started
        assert found is None, "a rack holds more than it has"


def churn(nodes: int, policy: PlacementPolicy, decisions: int, seed: int = 1) -> Churn:
    """Fill a cluster, let it settle, and count so many decisions on it; then ask for too much."""
    site = Yard(nodes, policy, seed)
    while not site.full:
        site.turn()
    for _ in range(decisions // 10):
        site.turn()
    site.start()
    gc.collect()
    gc.freeze()  # the cluster itself is no part of what is measured
    for _ in range(decisions):
        site.turn()
    counted = site.stop()
    site.start()
    for _ in range(ASKED):
        site.turn()
        site.ask_too_much()
    counted.infeasible_s = site.churn.infeasible_s
    gc.unfreeze()
    return counted


def one_large(policy: PlacementPolicy) -> float:
    """Return the seconds that one gang of 1,024 pods takes on 1,024 empty nodes."""
    site = Yard(LARGE, policy, 1)
    gang = PodSet("large", LARGE, _requests(GPUS, lean=False))
    started = time.process_time()
    found = site.place(gang)
    seconds = time.process_time() - started
    assert found is not None, "the cluster is empty"
    assert len(found.nodes) == LARGE, "a node holds two"
    return seconds


def bench(policy: PlacementPolicy, nodes: Sequence[int], decisions: int) -> Report:
    """Churn on each size, and beside it one large gang and one preemptor with many victims."""
    runs = {size: churn(size, policy, decisions) for size in nodes}
    again = churn(nodes[0], policy, decisions)
    goals = [goal for size, run in runs.items() for goal in _goals(policy, size, run)]
    if min(nodes) * 10 == max(nodes):
        growth = runs[max(nodes)].units / runs[min(nodes)].units
        goals.append(Goal("work-per-decision-at-ten-times-the-nodes", growth, GROWTH))
    goals.append(Goal("s-one-gang-of-1024", one_large(policy), LARGE_S))
    goals.append(Goal("ms-what-if-700-victims", many_victims(policy), VICTIMS_MS))
    goals.append(Goal("two-runs-differ", float(again.placed != runs[nodes[0]].placed), 0))
    env: dict[str, Figure] = {
        "profile": "recommended",
        "policy": policy,
        "nodes": ",".join(map(str, nodes)),
        "gpus of a node": GPUS,
        "resources": len(EACH) + 1,
        "levels": "block, rack, host",
        "full %": FULL,
        "kinds of gangs": len(gangs()),
    }
    work = {f"{name}, {size} nodes": n for size, run in runs.items() for name, n in _work(run)}
    return Report("gang", env, work, [run.place_s for run in runs.values()], goals)


def _goals(policy: PlacementPolicy, nodes: int, run: Churn) -> Iterable[Goal]:
    if nodes in FLOORS:
        yield Goal(f"us-per-decision-{nodes}-floor", run.us, FLOORS[nodes])
    if (policy, nodes) in GOALS:
        yield Goal(f"us-per-decision-{nodes}", run.us, GOALS[policy, nodes])
    yield Goal(f"us-infeasible-{nodes}", run.infeasible_s / ASKED * 1e6, INFEASIBLE_US)


def _work(run: Churn) -> Iterable[tuple[str, Figure]]:
    yield "decisions", run.decisions
    yield "refused", run.refused
    yield "pods per decision", run.pods / run.decisions
    yield "nodes looked at per decision", run.looked / run.decisions
    yield "domains weighed per decision", run.weighed / run.decisions
    yield "us per decision", run.us
    yield "us per release", run.release_s / run.decisions * 1e6


def many_victims(policy: PlacementPolicy) -> float:
    """Return the milliseconds of one cycle in which a gang may evict any of 700 others.

    They fill 2,000 nodes; the gang needs a whole block, so that most of them are tried.
    """
    columns = {resource: Quota(amount * GPUS * BIG) for resource, amount in EACH.items()}
    group = ResourceGroup(tuple(columns), (FlavorQuotas("gpu", columns),))
    rights = Preemption(within_cluster_queue=WithinClusterQueue.LOWER_PRIORITY)
    empty = replace(
        cluster(BIG, policy),
        cluster_queues={"queue": ClusterQueue("queue", None, (group,), preemption=rights)},
    )
    near = TopologyRequest(TopologyMode.REQUIRED, BLOCK)
    state = State(replace(empty, workloads=tuple(_victims())))
    standing = advance(state, 1.0)
    assert len(standing.moves) == VICTIMS, "the cluster does not hold them all"
    block = PodSet("main", RACKS * HOSTS, _requests(GPUS, lean=False), topology=near)
    state.put(Workload("preemptor", "preemptor", "queue", 100, 2.0, (block,)))
    gc.collect()
    started = time.process_time()
    found = advance(state, 3.0)
    spent = time.process_time() - started
    assert found.moves, "nobody had to leave"
    return spent * 1000


def _victims() -> Iterable[Workload]:
    """Yield 700 gangs that take 2,000 nodes whole."""
    for i in range(VICTIMS):
        pods = 3 if i < BIG - 2 * VICTIMS else 2
        pod_set = PodSet("main", pods, _requests(GPUS, lean=False))
        key = f"victim-{i:03d}"
        yield Workload(key, key, "queue", 0, float(i) / VICTIMS, (pod_set,))
