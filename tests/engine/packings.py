"""Crowded clusters for the oracle: one queue, equal priorities, gangs up to the brim.

Blocks of racks of nodes; two kinds of machines, some dedicated by a taint, a few with little
CPU. Gangs come until the GPUs are as full as wanted. Whether all of them fit is not known.
"""

from collections.abc import Iterator
from random import Random

from scheduling.engine.machines import CPU, GPU, MEMORY, PODS, Flavor, Node, Taint, Toleration
from scheduling.engine.machines import Topology as Levels
from scheduling.engine.snapshot import (
    ClusterQueue,
    FlavorQuotas,
    PodSet,
    Quota,
    ResourceGroup,
    Snapshot,
    TopologyRequest,
    Workload,
)
from scheduling.engine.terms import TopologyMode
from tests.engine.builders import BLOCK, HOST, RACK

RDMA = "rdma/hca"
DEDICATED = Taint("dedicated", "training")
TOLERATES = Toleration(DEDICATED.key, "Equal", DEDICATED.value)
MOST_GANGS, MOST_NODES = 40, 200
ONE_BLOCK = 16  # nodes


def crowded(seed: int, fill: int, most_nodes: int = MOST_NODES) -> Snapshot:
    """Return a cluster whose gangs ask for ``fill`` per cent of its GPUs, if 40 of them can."""
    chance = Random(f"{seed}/{fill}/{most_nodes}")
    nodes = tuple(_nodes(chance, chance.randint(most_nodes // 4, most_nodes)))
    gpus = sum(node.allocatable[GPU] for node in nodes)
    work = tuple(_gangs(chance, gpus * fill // 100, gpus))
    columns = {r: Quota(sum(n.allocatable[r] for n in nodes)) for r in (GPU, CPU, MEMORY, RDMA)}
    group = ResourceGroup(tuple(columns), (FlavorQuotas("gpu", columns),))
    return Snapshot(
        now=1000.0,
        flavors={"gpu": Flavor("gpu", {"gpu": "yes"}, topology="floor")},
        topologies={"floor": Levels("floor", (BLOCK, RACK, HOST))},
        nodes=nodes,
        cohorts={},
        cluster_queues={"team": ClusterQueue("team", None, (group,))},
        workloads=work,
    )


def _nodes(chance: Random, count: int) -> Iterator[Node]:
    for number in range(count):
        name = f"n{number:03}"
        small = (number // 4) % 5 == 4  # every fifth rack
        labels = {
            "gpu": "yes",
            "model": "l40s" if small else "h100",
            BLOCK: f"b{number // ONE_BLOCK}",
            RACK: f"r{number // 4}",
            HOST: name,
        }
        lean = chance.randrange(8) == 0
        amounts = {
            GPU: 4 if small else 8,
            CPU: 32_000 if lean else 96_000,
            MEMORY: 256 if lean else 1024,
            RDMA: 1 if small else 4,
            PODS: 8 if lean else 32,
        }
        dedicated = (number // 4) % 7 == 6  # every seventh rack
        yield Node(name, labels, amounts, (DEDICATED,) if dedicated else ())


def _gangs(chance: Random, wanted: int, gpus: int) -> Iterator[Workload]:
    asked = 0
    mean = max(1, gpus // (MOST_GANGS - 8))
    for number in range(MOST_GANGS):
        left = wanted - asked
        if left <= 0:
            return
        sets = _pod_sets(chance, min(left, chance.randint(1, 2 * mean)))
        asked += sum(p.count * p.requests[GPU] for p in sets if GPU in p.requests)
        yield Workload(f"g{number:02}", f"g{number:02}", "team", 0, 100.0 + number, sets)


def _pod_sets(chance: Random, gpus: int) -> tuple[PodSet, ...]:
    """About so many GPUs in equal pods; now and then a leader without any."""
    each = min(gpus, chance.choice((1, 1, 2, 2, 4, 4, 8, 8, 3)))
    count = max(1, gpus // each)
    requests = {GPU: each, CPU: each * chance.choice((2000, 6000, 10_000)), MEMORY: each * 32}
    if each in (4, 8) and chance.randrange(3) == 0:
        requests[RDMA] = each // 2
    small = each <= 4 and chance.randrange(4) == 0
    workers = PodSet(
        "workers",
        count,
        requests,
        {"model": "l40s" if small and RDMA not in requests else "h100"}
        if chance.randrange(3) == 0
        else {},
        (TOLERATES,) if chance.randrange(2) == 0 else (),
        _level(chance, count * each),
    )
    if chance.randrange(5):
        return (workers,)
    return workers, PodSet("leader", 1, {CPU: 4000, MEMORY: 16})


def _level(chance: Random, gpus: int) -> TopologyRequest | None:
    """A level that the gang can fit in, on machines of the common kind."""
    if chance.randrange(2):
        return None
    for level, most in ((HOST, 8), (RACK, 28), (BLOCK, 100)):
        if gpus <= most:
            return TopologyRequest(TopologyMode.REQUIRED, level)
    return None
