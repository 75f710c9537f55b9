"""Small sites and traces for replays."""

import json

from scheduling.engine.machines import GPU
from scheduling.engine.snapshot import PodSet, Snapshot, Workload
from scheduling.replay.site import read_site
from scheduling.replay.tape import Tape
from scheduling.replay.trace import Arrival, Trace, trace


def site(nodes: int = 1, gpus: int = 4, **queues: int) -> Snapshot:
    """Equal nodes, and queues with their nominal GPUs in one cohort."""
    content = {
        "nodes": nodes,
        "gpus_per_node": gpus,
        "nominal_gpus": queues or {"a": nodes * gpus},
    }
    return read_site("cluster.json", json.dumps(content))


def comes(  # noqa: PLR0917 - a line of a trace, in its order
    key: str,
    at: float,
    runs_s: float,
    gpus: int = 1,
    queue: str = "a",
    pods: int = 1,
    **more: object,
) -> Arrival:
    pod_sets = (PodSet("main", pods, {GPU: gpus}),)
    return Arrival(Workload(key, key, queue, 0, at, pod_sets, **more), runs_s, queue)


def of(*arrivals: Arrival) -> Trace:
    return trace("small", arrivals)


def waited(tape: Tape) -> dict[str, float]:
    return {stay.key: stay.waited_s for stay in tape.stays}
