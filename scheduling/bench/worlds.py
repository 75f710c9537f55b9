"""Plain worlds for benches of the running product: queues of one flavor, nodes, equal work."""

from collections.abc import Iterable

from scheduling.engine.machines import GPU, Flavor, Node
from scheduling.engine.snapshot import (
    ClusterQueue,
    Cohort,
    FlavorQuotas,
    PodSet,
    Quota,
    ResourceGroup,
    Snapshot,
    Workload,
)

FLAVOR, LABEL = "bench", "bench-pool"
RACK, RACK_SIZE = "rack", 16


def nodes(count: int, gpus: int) -> tuple[Node, ...]:
    """Return equal nodes."""
    return tuple(
        Node(
            name=f"node-{i:05}",
            labels={LABEL: FLAVOR, RACK: f"rack-{i // RACK_SIZE:04}"},
            allocatable={GPU: gpus, "pods": 110},
        )
        for i in range(count)
    )


def platform(
    queues: int, nominal: int, *, each: int = 10, machines: Iterable[Node] = ()
) -> Snapshot:
    """Return so many queues of equal nominal quota, ``each`` of them in a cohort."""
    group = ResourceGroup((GPU,), (FlavorQuotas(FLAVOR, {GPU: Quota(nominal)}),))
    names = {f"cq-{i:04}": f"cohort-{i // each:03}" for i in range(queues)}
    machines = tuple(machines)
    return Snapshot(
        now=0.0,
        flavors={FLAVOR: Flavor(FLAVOR, {LABEL: FLAVOR} if machines else {})},
        topologies={},
        nodes=machines,
        cohorts={name: Cohort(name, None) for name in dict.fromkeys(names.values())},
        cluster_queues={
            name: ClusterQueue(name=name, cohort=cohort, groups=(group,))
            for name, cohort in names.items()
        },
        workloads=(),
    )


def gang(name: str, queue: str, pods: int, gpus: int = 1, age: float = 0.0) -> Workload:
    """Return a gang that waits since ``age`` seconds before the bench begins."""
    parts = (PodSet("main", pods, {GPU: gpus}),)
    return Workload(name, f"bench/{name}", queue, 0, -age, parts)
