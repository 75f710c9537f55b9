"""Crowded machine halls from one source of chance: levels, taints, flavors, several resources.

Where :mod:`tests.engine.rich` is about trees of promises, this is about where pods stand.
"""

from collections.abc import Iterator, Mapping
from random import Random

from scheduling.engine.machines import CPU, GPU, MEMORY, PODS, Flavor, Node, Taint, Toleration
from scheduling.engine.machines import Topology as Levels
from scheduling.engine.snapshot import (
    ClusterQueue,
    Cohort,
    Expression,
    FlavorQuotas,
    PodSet,
    Quota,
    ResourceGroup,
    Snapshot,
    TopologyRequest,
    Workload,
)
from scheduling.engine.terms import Operator, PlacementPolicy, TopologyMode
from tests.engine.builders import BLOCK, HOST, RACK, RECLAIM_ANY
from tests.engine.rich import Dice

KINDS = ("fast", "slow")
LEVELS = (BLOCK, RACK, HOST)
DEDICATED = Taint("dedicated", "training")
TOLERATES = Toleration(DEDICATED.key, "Equal", DEDICATED.value)


def yard(random: Random, most_work: int = 16) -> Snapshot:
    """Return a hall in which everybody waits."""
    dice = Dice(random)
    nodes = tuple(_nodes(dice))
    flavors = {
        name: Flavor(name, {"kind": name}, topology="floor", policy=dice.one(*PlacementPolicy))
        for name in KINDS
    }
    return Snapshot(
        now=1000.0,
        flavors=flavors,
        topologies={"floor": Levels("floor", LEVELS)},
        nodes=nodes,
        cohorts={"all": Cohort("all")},
        cluster_queues={name: _queue(dice, name, nodes) for name in ("a", "b", "alone")},
        workloads=tuple(_workload(dice, i) for i in range(dice.number(4, most_work))),
    )


def _nodes(dice: Dice) -> Iterator[Node]:
    number = 0
    for block in range(dice.number(1, 3)):
        for rack in range(dice.number(1, 3)):
            for _ in range(dice.number(1, 3)):
                yield _node(dice, number, {BLOCK: f"b{block}", RACK: f"r{rack}"})
                number += 1


def _node(dice: Dice, number: int, place: Mapping[str, str]) -> Node:
    name = f"n{number:02}"
    gpus = dice.one(2, 4, 4, 8)
    amounts = {GPU: gpus, CPU: dice.one(4000, 16_000), MEMORY: 64, PODS: dice.one(3, 110)}
    return Node(
        name,
        {**place, "kind": dice.one(*KINDS), HOST: name},
        amounts,
        (DEDICATED,) if dice.now_and_then(5) else (),
        ready=not dice.now_and_then(12),
        schedulable=not dice.now_and_then(12),
        unmanaged={GPU: 1, PODS: 1} if dice.now_and_then(6) else {},
    )


def _queue(dice: Dice, name: str, nodes: tuple[Node, ...]) -> ClusterQueue:
    whole = sum(node.allocatable[GPU] for node in nodes)
    lines = tuple(
        FlavorQuotas(kind, {GPU: Quota(dice.number(0, whole)), CPU: Quota(200_000)})
        for kind in dice.one(KINDS, KINDS[::-1], KINDS[:1])
    )
    return ClusterQueue(
        name,
        None if name == "alone" else "all",
        (ResourceGroup((GPU, CPU), lines),),
        preemption=RECLAIM_ANY,
    )


def _workload(dice: Dice, number: int) -> Workload:
    sets = [_pods(dice, "workers")]
    if dice.now_and_then(3):
        sets.append(_pods(dice, "leader"))
    key = f"w{number:02}"
    return Workload(
        key,
        key,
        dice.one("a", "b", "alone", "a", "b", "alone", None),
        dice.number(0, 2),
        float(dice.number(0, 4)),
        tuple(sets),
    )


def _pods(dice: Dice, name: str) -> PodSet:
    requests = {GPU: dice.one(1, 1, 2, 4, 0)}
    if dice.now_and_then(2):
        requests[CPU] = dice.one(500, 2000, 4000)
    count = dice.number(1, 6)
    return PodSet(
        name,
        count,
        requests,
        {"kind": dice.one(*KINDS)} if dice.now_and_then(6) else {},
        (TOLERATES,) if dice.now_and_then(2) else (),
        _topology(dice),
        min_count=dice.number(1, count) if dice.now_and_then(8) else None,
        affinity=_affinity(dice) if dice.now_and_then(8) else (),
    )


def _topology(dice: Dice) -> TopologyRequest | None:
    mode = dice.one(None, None, *TopologyMode)
    if mode is None:
        return None
    level = None if mode is TopologyMode.UNCONSTRAINED else dice.one(*LEVELS)
    return TopologyRequest(mode, level)


def _affinity(dice: Dice) -> tuple[tuple[Expression, ...], ...]:
    operator = dice.one(Operator.IN, Operator.NOT_IN)
    return ((Expression(RACK, operator, ("r0", "r1")),),)
