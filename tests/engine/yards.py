"""Crowded machine halls from one source of chance: levels, taints, flavors, several resources.

Where :mod:`tests.engine.rich` is about trees of promises, this is about where pods stand.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random

from scheduling.engine.machines import (
    CPU,
    GPU,
    MEMORY,
    PODS,
    Devices,
    Flavor,
    Node,
    Taint,
    Toleration,
)
from scheduling.engine.machines import Topology as Levels
from scheduling.engine.snapshot import (
    ClusterQueue,
    Cohort,
    DeviceRequest,
    Expression,
    FlavorQuotas,
    PodSet,
    Quota,
    ResourceGroup,
    SliceLayer,
    Snapshot,
    Subgroups,
    TopologyRequest,
    Workload,
)
from scheduling.engine.terms import DeviceLocality, Operator, PlacementPolicy, TopologyMode
from tests.engine.builders import BLOCK, HOST, RACK, RECLAIM_ANY
from tests.engine.rich import Dice

KINDS = ("fast", "slow")
LEVELS = (BLOCK, RACK, HOST)
DEDICATED = Taint("dedicated", "training")
TOLERATES = Toleration(DEDICATED.key, "Equal", DEDICATED.value)


def yard(random: Random, most_work: int = 24) -> Snapshot:
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
    devices = _devices(dice, gpus)
    gpus *= devices.replicas if devices else 1
    amounts = {GPU: gpus, CPU: dice.one(4000, 16_000), MEMORY: 64, PODS: dice.one(3, 110)}
    return Node(
        name,
        {**place, "kind": dice.one(*KINDS), HOST: name},
        amounts,
        (DEDICATED,) if dice.now_and_then(5) else (),
        ready=not dice.now_and_then(12),
        schedulable=not dice.now_and_then(12),
        unmanaged={GPU: 1, PODS: 1} if dice.now_and_then(6) else {},
        devices=devices,
    )


def _devices(dice: Dice, count: int) -> Devices | None:
    """Devices that are told apart: in two islands, with memory, shared in turns."""
    if dice.now_and_then(2):
        return None
    half = count // 2
    islands = (tuple(range(half)), tuple(range(half, count))) if dice.now_and_then(2) else ()
    return Devices(count, dice.one(None, 40), dice.one(1, 1, 1, 2), islands)


def _device(dice: Dice, gpus: int) -> DeviceRequest | None:
    """Near each other, or a part of one, by its time or by its memory."""
    if not gpus or not dice.now_and_then(3):
        return None
    if gpus == 1 and dice.now_and_then(2):
        return dice.one(DeviceRequest(1, 500), DeviceRequest(1, 300, 10), DeviceRequest(1, 0, 12))
    return DeviceRequest(gpus, locality=dice.one(*DeviceLocality))


def _queue(dice: Dice, name: str, nodes: tuple[Node, ...]) -> ClusterQueue:
    whole = sum(node.allocatable[GPU] for node in nodes)
    lines = tuple(
        FlavorQuotas(kind, {GPU: Quota(whole // dice.one(1, 2, 3, 8)), CPU: Quota(200_000)})
        for kind in dice.one(KINDS, KINDS[::-1], KINDS[:1])
    )
    return ClusterQueue(
        name,
        None if name == "alone" else "all",
        (ResourceGroup((GPU, CPU), lines),),
        preemption=RECLAIM_ANY,
    )


def _workload(dice: Dice, number: int) -> Workload:
    kind = dice.one("plain", "plain", "gang", "group")
    sets = [_pods(dice, "workers")]
    if dice.now_and_then(3) or kind == "group":
        sets.append(_pods(dice, "leader"))
    if kind == "group":
        level = dice.one(*LEVELS)
        together = TopologyRequest(TopologyMode.REQUIRED, level, group="together")
        sets = [replace(one, topology=together, min_count=None) for one in sets]
    key = f"w{number:02}"
    work = Workload(
        key,
        key,
        dice.one("a", "b", "alone", "a", "b", "alone", None),
        dice.number(0, 1) + number // 5,  # the later, the more urgent
        float(dice.number(0, 4)),
        tuple(sets),
    )
    return _with_minima(dice, work) if kind == "gang" else work


def _with_minima(dice: Dice, work: Workload) -> Workload:
    """A gang that runs with fewer pods: in all, of a role, in whole parts."""
    first, *others = work.pod_sets
    if dice.now_and_then(3):
        size = dice.number(1, 2)
        whole = first.count * size
        least = dice.number(1, first.count)
        first = replace(first, count=whole, min_count=None, subgroups=Subgroups(size, least))
        least *= size
    else:
        least = dice.number(0, first.count)
        first = replace(first, min_count=None, role_minimum=least)
    others = [replace(one, min_count=None, role_minimum=0) for one in others]
    total = sum(one.count for one in (first, *others))
    member = dice.number(max(least, 1), total)
    return replace(work, pod_sets=(first, *others), min_member=member)


def _pods(dice: Dice, name: str) -> PodSet:
    requests = {GPU: dice.one(1, 1, 2, 4, 0)}
    if dice.now_and_then(2):
        requests[CPU] = dice.one(500, 2000, 4000)
    request = _topology(dice)
    size = max((layer.size for layer in request.layers), default=1) if request else 1
    count = dice.number(1, 6 // size) * size
    reducible = size == 1 and dice.now_and_then(8)
    return PodSet(
        name,
        count,
        requests,
        {"kind": dice.one(*KINDS)} if dice.now_and_then(6) else {},
        (TOLERATES,) if dice.now_and_then(2) else (),
        request,
        min_count=dice.number(1, count) if reducible else None,
        affinity=_affinity(dice) if dice.now_and_then(8) else (),
        device=_device(dice, requests[GPU]),
    )


def _topology(dice: Dice) -> TopologyRequest | None:
    mode = dice.one(None, None, *TopologyMode)
    if mode is None:
        return None
    depth = dice.number(0, len(LEVELS) - 1)
    level = None if mode is TopologyMode.UNCONSTRAINED else LEVELS[depth]
    if not dice.now_and_then(4):
        return TopologyRequest(mode, level)
    inner = dice.one(*LEVELS[depth:])
    slices = SliceLayer(inner, dice.number(2, 3))
    if dice.now_and_then(3):
        return TopologyRequest(mode, level, preferred_slice=slices)
    return TopologyRequest(mode, level, slices=(slices,))


def _affinity(dice: Dice) -> tuple[tuple[Expression, ...], ...]:
    operator = dice.one(Operator.IN, Operator.NOT_IN)
    return ((Expression(RACK, operator, ("r0", "r1")),),)
