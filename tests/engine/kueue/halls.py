"""Large machine halls as scenarios: four levels, thousands of nodes, slices and groups.

``hall(random, nodes)`` gives the JSON value of one scenario that may be run as it is.
"""

from random import Random
from typing import Any

Scenario = dict[str, Any]
LEVELS = ["zone", "block", "rack", "host"]
SPANS = (1024, 128, 16)  # nodes of a zone, a block, a rack


def hall(random: Random, nodes: int, queues: int = 4, work: int = 40) -> Scenario:
    """Return a hall of so many nodes: some busy outside the platform, some closed."""
    names = [f"q{i}" for i in range(queues)]
    gpus = nodes * 8
    return {
        "id": f"hall-{nodes}",
        "settings": {"max_cycles": 200},
        "topologies": [{"name": "floor", "levels": LEVELS}],
        "nodes": [_node(random, number) for number in range(nodes)],
        "flavors": [{"name": "gpu", "topology": "floor", "node_labels": {"pool": "gpu"}}],
        "cohorts": [{"name": "all"}],
        "cluster_queues": [_queue(name, gpus // queues) for name in names],
        "local_queues": [{"name": name, "cluster_queue": name} for name in names],
        "workloads": [_workload(random, i, names, gpus // work) for i in range(work)],
        "events": [],
    }


def _node(random: Random, number: int) -> Scenario:
    zone, block, rack = (
        f"{name}{number // span}" for name, span in zip("zbr", SPANS, strict=True)
    )
    busy = random.choice((0, 0, 0, 1, 4, 8))
    return {
        "name": f"n{number:05}",
        "labels": {"pool": "gpu", "zone": zone, "block": block, "rack": rack},
        "allocatable": {"gpu": 8, "cpu": random.choice((32_000, 96_000)), "pods": 110},
        "ready": random.randrange(50) > 0,
        "used": {"gpu": busy} if busy else {},
    }


def _queue(name: str, gpus: int) -> Scenario:
    line = {"name": "gpu", "resources": {"gpu": {"nominal": gpus}, "cpu": {"nominal": 10**9}}}
    return {
        "name": name,
        "cohort": "all",
        "queueing_strategy": "BestEffortFIFO",
        "preemption": {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"},
        "resource_groups": [{"covered_resources": ["gpu", "cpu"], "flavors": [line]}],
    }


def _workload(random: Random, number: int, queues: list[str], gpus: int) -> Scenario:
    each = random.choice((1, 1, 2, 4, 8))
    count = max(1, random.randint(1, 2 * gpus) // each)
    request = _request(random)
    size = request.get("slice_size", 1)
    workers = {
        "name": "workers",
        "count": -(-count // size) * size,
        "requests": {"gpu": each, "cpu": each * random.choice((1000, 4000))},
        "topology_request": request,
    }
    sets = [workers]
    if random.randrange(4) == 0 and "slice_size" not in request and "unconstrained" not in request:
        workers["topology_request"] = request | {"group": "together"}
        leader = {"name": "leader", "count": 1, "requests": {"cpu": 8000}}
        sets.append(leader | {"topology_request": request | {"group": "together"}})
    return {
        "name": f"w{number:03}",
        "queue": random.choice(queues),
        "priority": random.choice((0, 0, 0, 5)),
        "created_at": number,
        "pod_sets": sets,
    }


def _request(random: Random) -> Scenario:
    level = random.randrange(3)
    kind = random.randrange(5)
    if kind == 0:
        return {"unconstrained": True}
    if kind == 1:
        inner = random.choice(LEVELS[max(level, 1) :])
        size = random.choice((2, 4, 8))
        return {"required": LEVELS[level], "slice_required": inner, "slice_size": size}
    return {random.choice(("required", "preferred")): LEVELS[level]}
