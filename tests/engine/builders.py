"""Engine worlds in a few words: ``world().nodes(8).queue("cq-a", nominal=4).build()``."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from scheduling.engine.decay import Decayed
from scheduling.engine.machines import CPU, GPU, MEMORY, Flavor, Node, Topology
from scheduling.engine.snapshot import (
    Admission,
    Assignment,
    ClusterQueue,
    Cohort,
    FlavorQuotas,
    FlavorResource,
    Memory,
    PodSet,
    Preemption,
    Quota,
    ResourceGroup,
    Snapshot,
    TopologyRequest,
    Workload,
)
from scheduling.engine.terms import (
    Fairness,
    ReclaimWithinCohort,
    TopologyMode,
    WithinClusterQueue,
)

GI = 1024**3
H100 = FlavorResource("h100-sxm", GPU)
BLOCK, RACK, HOST = (
    "topology.kubernetes.io/block",
    "topology.kubernetes.io/rack",
    "kubernetes.io/hostname",
)
LEVELS = (BLOCK, RACK, HOST)

RECLAIM_LOWER = Preemption(
    within_cluster_queue=WithinClusterQueue.LOWER_PRIORITY,
    reclaim_within_cohort=ReclaimWithinCohort.LOWER_PRIORITY,
)
RECLAIM_ANY = Preemption(
    within_cluster_queue=WithinClusterQueue.LOWER_PRIORITY,
    reclaim_within_cohort=ReclaimWithinCohort.ANY,
)


def node(number: int, gpus: int = 4, **changes: object) -> Node:
    """A node as in the samples: two nodes a rack, two racks a block."""
    name = f"h100-node-{number:02d}"
    labels = {
        "accelerator": "h100-sxm",
        BLOCK: f"block-{(number - 1) // 4}",
        RACK: f"rack-{(number - 1) // 2}",
        HOST: name,
    }
    allocatable = {CPU: 120_000, MEMORY: 960 * GI, GPU: gpus, "pods": 110}
    return replace(Node(name, labels, allocatable), **changes)


def pods(count: int = 1, gpus: int = 1, name: str = "main", **changes: object) -> PodSet:
    """Pods of some GPUs each; ``cpu`` in cores and ``memory`` in Gi add requests."""
    requests = {GPU: gpus} if gpus else {}
    if "cpu" in changes:
        requests[CPU] = int(changes.pop("cpu")) * 1000
    if "memory" in changes:
        requests[MEMORY] = int(changes.pop("memory")) * GI
    return replace(PodSet(name, count, requests), **changes)


def required(level: str) -> TopologyRequest:
    return TopologyRequest(TopologyMode.REQUIRED, level)


def preferred(level: str) -> TopologyRequest:
    return TopologyRequest(TopologyMode.PREFERRED, level)


def columns(flavor: str, quotas: Mapping[str, Quota]) -> ResourceGroup:
    return ResourceGroup(tuple(quotas), (FlavorQuotas(flavor, quotas),))


@dataclass
class World:
    """Collects the parts of a snapshot; every method returns the world itself."""

    now: float = 1000.0
    flavors: dict[str, Flavor] = field(default_factory=dict)
    topologies: dict[str, Topology] = field(default_factory=dict)
    node_list: list[Node] = field(default_factory=list)
    cohorts: dict[str, Cohort] = field(default_factory=dict)
    queues: dict[str, ClusterQueue] = field(default_factory=dict)
    workloads: list[Workload] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)

    def flavor(self, name: str = "h100-sxm", **changes: object) -> "World":
        labels = {"accelerator": name}
        self.flavors[name] = replace(Flavor(name, labels), **changes)
        return self

    def topology(self, *levels: str) -> "World":
        self.topologies["datacenter"] = Topology("datacenter", levels or LEVELS)
        return self

    def nodes(self, count: int, gpus: int = 4, **changes: object) -> "World":
        for _ in range(count):
            self.node_list.append(node(len(self.node_list) + 1, gpus, **changes))
        return self

    def cohort(
        self,
        name: str,
        parent: str | None = None,
        *,
        fairness: Fairness = Fairness.NONE,
        weight: float = 1.0,
        **quota: int,
    ) -> "World":
        quotas = {H100: Quota(**quota)} if quota else {}
        self.cohorts[name] = Cohort(name, parent, quotas, weight, fairness)
        return self

    def used(self, **gpu_hours: float) -> "World":
        """Past use by queue, ``cq_ia`` for ``cq-ia``; nobody holds anything since."""
        history = {
            queue.replace("_", "-"): Decayed(hours, 0.0, self.now)
            for queue, hours in gpu_hours.items()
        }
        self.memory = replace(self.memory, history=history)
        return self

    def queue(
        self,
        name: str,
        nominal: int = 0,
        cohort: str | None = "llm",
        *,
        borrow: int | None = None,
        lend: int | None = None,
        groups: tuple[ResourceGroup, ...] | None = None,
        cpu: int | None = None,
        memory: int | None = None,
        **changes: object,
    ) -> "World":
        quotas = {GPU: Quota(nominal, borrow, lend)}
        if cpu is not None:
            quotas[CPU] = Quota(cpu * 1000)
        if memory is not None:
            quotas[MEMORY] = Quota(memory * GI)
        default = (columns("h100-sxm", quotas),)
        queue = ClusterQueue(name, cohort, default if groups is None else groups)
        self.queues[name] = replace(queue, **changes)
        return self

    def pending(
        self,
        key: str,
        queue: str | None,
        *pod_sets: PodSet,
        gpus: int = 1,
        priority: int = 0,
        **changes: object,
    ) -> "World":
        created = 100.0 + len(self.workloads)
        work = Workload(key, key, queue, priority, created, pod_sets or (pods(gpus=gpus),))
        self.workloads.append(replace(work, **changes))
        return self

    def running(
        self,
        key: str,
        queue: str | None,
        *pod_sets: PodSet,
        gpus: int = 1,
        priority: int = 0,
        on: Mapping[str, int] | None = None,
        at: float | None = None,
        flavor: str = "h100-sxm",
        **changes: object,
    ) -> "World":
        sets = pod_sets or (pods(gpus=gpus),)
        assignments = tuple(
            Assignment(
                p.name, p.count, dict.fromkeys(p.requests, flavor) if queue else {}, on or {}
            )
            for p in sets
        )
        admitted = at if at is not None else 200.0 + len(self.workloads)
        admission = Admission(admitted, assignments)
        return self.pending(key, queue, *sets, priority=priority, admission=admission, **changes)

    def build(self) -> Snapshot:
        if not self.flavors:
            self.flavor()
        return Snapshot(
            self.now,
            self.flavors,
            self.topologies,
            tuple(self.node_list),
            self.cohorts,
            self.queues,
            tuple(self.workloads),
            self.memory,
        )


def world() -> World:
    return World()


def three_teams(preemption: Preemption = RECLAIM_LOWER) -> World:
    """The article's cohort of four GPUs on one node."""
    return (
        world()
        .nodes(1)
        .queue("cq-datos", 2, borrow=2, preemption=RECLAIM_LOWER)
        .queue("cq-ia", 1, lend=1, preemption=preemption)
        .queue("cq-plataforma", 1, borrow=3, preemption=preemption)
    )


def two_teams() -> World:
    """``kueue-two-teams-rayjob.yaml``."""
    return (
        world()
        .queue(
            "cq-team-datos",
            16,
            "llm",
            borrow=8,
            lend=8,
            cpu=128,
            memory=512,
            preemption=RECLAIM_LOWER,
        )
        .queue(
            "cq-team-ia", 8, "llm", borrow=8, lend=4, cpu=64, memory=256, preemption=RECLAIM_LOWER
        )
    )


def volcano(total: int, queues: Iterable[tuple[str, int, int]]) -> World:
    """Volcano queues (name, guarantee, capability) as the loader maps them."""
    queues = list(queues)
    rest = max(0, total - sum(guarantee for _, guarantee, _ in queues))
    made = world().nodes(total // 4).cohort("volcano", nominal=rest)
    for name, guarantee, capability in queues:
        made.queue(
            name,
            guarantee,
            "volcano",
            lend=0,
            borrow=capability - guarantee,
            preemption=RECLAIM_ANY,
        )
    return made
