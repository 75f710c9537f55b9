"""Worlds of every kind, from one source of chance: deep trees, several flavors, groups, nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

from scheduling.engine.machines import CPU, GPU, MEMORY, Flavor, Node, Taint, Toleration, Topology
from scheduling.engine.moving import Moving
from scheduling.engine.patience import Patience
from scheduling.engine.queue_rules import LocalQueue, MinimumRuntime
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
from scheduling.engine.terms import (
    BorrowWithinCohort,
    Fairness,
    FairStrategy,
    QueueingStrategy,
    ReclaimTo,
    ReclaimWithinCohort,
    StopPolicy,
    TopologyMode,
    WithinClusterQueue,
)

RACK, HOST = "rack", "kubernetes.io/hostname"
KINDS = ("fast", "slow", "spare")
QUEUES = ("a", "b", "c", "d")
STICKY = Taint("dedicated", "ml")
TREES: tuple[Mapping[str, str | None], ...] = (
    {"root": None},
    {"root": None},
    {"root": None, "left": "root", "right": "root"},
    {"root": None, "left": "root", "low": "left", "right": "root"},
    {"root": None, "alone": None},
)


@dataclass
class Dice:
    """Chance in the words of this file."""

    random: Random

    def one(self, *choices):
        return choices[self.random.randrange(len(choices))]

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def now_and_then(self, times: int) -> bool:
        return self.random.randrange(times) == 0


@dataclass
class Setting:
    """What the worlds of one test may contain."""

    stops: bool = True
    nodes: bool = True
    topology: bool = True
    fairness: tuple[Fairness, ...] = tuple(Fairness)
    runtimes: bool = True
    most_work: int = 18
    strict: bool = True
    contended: bool = False  # one flavor, few refusals, rising priorities: many evictions
    levels: bool = False  # gangs take surplus up to their fair share
    kinds: tuple[str, ...] = field(default=KINDS)


def rich_world(random: Random, setting: Setting | None = None) -> Snapshot:
    """Return a world in which everybody waits."""
    dice, setting = Dice(random), setting or Setting()
    kinds = 1 if setting.contended else dice.one(1, 1, 2, 3)
    setting = replace(setting, kinds=setting.kinds[:kinds])
    flavors = {name: _flavor(dice, name, setting) for name in setting.kinds}
    tree = dice.one(*TREES)
    cohorts = {name: _cohort(dice, name, tree[name], setting) for name in tree}
    homes = (*tree,) if setting.contended else (*tree, *tree, *tree, None)
    queues = {name: _queue(dice, name, dice.one(*homes), setting) for name in QUEUES}
    doors = {
        f"{name}-{i}": LocalQueue(f"{name}-{i}", name, float(dice.number(0, 3)))
        for name in queues
        for i in (0, 1)
    }
    return Snapshot(
        now=1000.0,
        flavors=flavors,
        topologies={"floor": Topology("floor", (RACK, HOST))},
        nodes=_nodes(dice, flavors) if setting.nodes else (),
        cohorts=cohorts,
        cluster_queues=queues,
        workloads=tuple(
            _workload(dice, number, setting) for number in range(dice.number(6, setting.most_work))
        ),
        local_queues=doors,
        fair_strategies=dice.one((), (), tuple(FairStrategy), (FairStrategy.INITIAL_SHARE,))
        if Fairness.SHARE in setting.fairness
        else (),
        moving=Moving() if dice.now_and_then(3) else None,
        patience=Patience(dice.one(None, 0.0, 20.0, 3600.0), dice.one(1, 2), dice.one(40.0, 9e9)),
    )


def _flavor(dice: Dice, name: str, setting: Setting) -> Flavor:
    taints = (STICKY,) if dice.now_and_then(8) and not setting.contended else ()
    tolerations = (Toleration(STICKY.key, "Exists"),) if dice.now_and_then(2) else ()
    topology = "floor" if setting.topology and dice.now_and_then(2) else None
    return Flavor(name, {"kind": name}, taints, tolerations, topology)


def _nodes(dice: Dice, flavors: Mapping[str, Flavor]) -> tuple[Node, ...]:
    found = []
    for name in flavors:
        if dice.now_and_then(2):  # quota only
            continue
        for number in range(dice.number(1, 3)):
            host = f"{name}-{number}"
            labels = {"kind": name, RACK: f"r{number // 2}", HOST: host}
            whole = {GPU: dice.one(2, 4, 4, 8), CPU: dice.one(4000, 16_000), MEMORY: 64}
            found.append(
                Node(
                    host,
                    labels,
                    whole,
                    (STICKY,) if dice.now_and_then(6) else (),
                    ready=not dice.now_and_then(8),
                    schedulable=not dice.now_and_then(8),
                    unmanaged={GPU: 1} if dice.now_and_then(6) else {},
                )
            )
    return tuple(found)


def _limit(dice: Dice) -> int | None:
    return dice.one(None, None, None, 0, 1, 2, 4)


def _quota(dice: Dice, resource: str, *, limited: bool) -> Quota:
    unit = 1000 if resource == CPU else 1
    nominal = dice.one(4, 0, 2, 3, 6) * unit
    if not limited:
        return Quota(nominal)
    borrow, lend = _limit(dice), _limit(dice)
    return Quota(
        nominal,
        None if borrow is None else borrow * unit,
        None if lend is None else min(lend * unit, nominal),
    )


def _cohort(dice: Dice, name: str, parent: str | None, setting: Setting) -> Cohort:
    columns = [FlavorResource(kind, GPU) for kind in setting.kinds if dice.now_and_then(2)]
    return Cohort(
        name,
        parent,
        {fr: _quota(dice, GPU, limited=parent is not None) for fr in columns},
        dice.one(1.0, 1.0, 2.0, 0.5, 0.0),
        dice.one(*setting.fairness),
        ReclaimTo.FAIR_SHARE if setting.levels else ReclaimTo.QUOTA,
    )


def _queue(dice: Dice, name: str, cohort: str | None, setting: Setting) -> ClusterQueue:
    def line(flavor: str, resources: tuple[str, ...]) -> FlavorQuotas:
        limited = cohort is not None
        return FlavorQuotas(flavor, {r: _quota(dice, r, limited=limited) for r in resources})

    names = list(setting.kinds)
    dice.random.shuffle(names)
    first = (GPU, CPU) if dice.now_and_then(2) and not setting.contended else (GPU,)
    groups = [ResourceGroup(first, tuple(line(n, first) for n in names[: dice.one(1, 1, 2)]))]
    if CPU not in first and len(names) > 2:
        groups.append(ResourceGroup((CPU,), (line(names[2], (CPU,)),)))
    stop = setting.stops and dice.now_and_then(12)
    strict = setting.strict and dice.now_and_then(3)
    return ClusterQueue(
        name,
        cohort,
        tuple(groups),
        preemption=_preemption(dice),
        queueing_strategy=QueueingStrategy.STRICT_FIFO
        if strict
        else QueueingStrategy.BEST_EFFORT_FIFO,
        stop_policy=dice.one(*StopPolicy) if stop else StopPolicy.NONE,
        reclaimable=not dice.now_and_then(6),
        fair_weight=dice.one(1.0, 1.0, 2.0, 0.5, 0.0),
        usage_based=dice.now_and_then(4),
        priority_first=dice.now_and_then(2),
        minimum_runtime=MinimumRuntime(dice.one(0.0, 0.0, 0.0, 25.0), dice.now_and_then(2))
        if setting.runtimes
        else MinimumRuntime(),
    )


def _preemption(dice: Dice) -> Preemption:
    any_ = ReclaimWithinCohort.ANY
    reclaim = dice.one(*ReclaimWithinCohort, any_, any_, any_)
    never = reclaim is ReclaimWithinCohort.NEVER
    return Preemption(
        dice.one(*WithinClusterQueue, *[WithinClusterQueue.LOWER_PRIORITY] * 3),
        reclaim,
        BorrowWithinCohort.NEVER if never else dice.one(*BorrowWithinCohort),
        dice.one(None, 0, 1, 2),
    )


def _workload(dice: Dice, number: int, setting: Setting) -> Workload:
    queue = dice.one(*QUEUES, *QUEUES, None) if setting.nodes else dice.one(*QUEUES)
    sets = [_pods(dice, "main", setting, number)]
    if dice.now_and_then(12 if setting.contended else 4):
        sets.append(_pods(dice, "lead", setting))
    return Workload(
        key=f"w{number:02}",
        name=f"w{number:02}",
        queue=queue,
        priority=dice.number(0, 1) + dice.number(0, number // (1 if setting.contended else 2)),
        created_at=float(dice.number(0, 3)),
        pod_sets=tuple(sets),
        preemptible=not dice.now_and_then(12),
        local_queue="" if queue is None else f"{queue}-{dice.number(0, 1)}",
        last_checkpoint_at=dice.one(None, None, 1005.0),
        duration_s=dice.one(None, None, 5.0, 10.0, 40.0, 200.0),
    )


def _pods(dice: Dice, name: str, setting: Setting, number: int = 0) -> PodSet:
    if setting.contended:
        return PodSet(name, dice.number(1, 1 + number // 3), {GPU: 1})  # the later, the larger
    requests = {GPU: dice.one(1, 2, 1, 1, 4, 0)}
    if dice.now_and_then(3):
        requests[CPU] = dice.one(500, 1000, 2000)
    selector = {"kind": dice.one(*setting.kinds)} if dice.now_and_then(8) else {}
    tolerations = (Toleration(STICKY.key, value=STICKY.value),) if dice.now_and_then(2) else ()
    return PodSet(
        name, dice.number(1, 3), requests, selector, tolerations, _request(dice, setting)
    )


def _request(dice: Dice, setting: Setting) -> TopologyRequest | None:
    if not setting.topology or not dice.now_and_then(4):
        return None
    mode = dice.one(TopologyMode.REQUIRED, TopologyMode.PREFERRED)
    return TopologyRequest(mode, dice.one(RACK, HOST))
