"""Large gangs from their submission until every placement is a row: quota, nodes, persistence.

Source: ``performance.md`` 5 P2b; the peers need 20 to 170 s for the same (2.2).
"""

import time
from argparse import ArgumentParser
from collections import Counter
from datetime import UTC, datetime

from gpuplatform.common import clock
from scheduling.bench import worlds
from scheduling.bench.registry import Bench
from scheduling.bench.report import Figure, Goal, Report
from scheduling.bench.rows import write_platform, write_workloads
from scheduling.bench.scratch import scratch_database
from scheduling.bench.spent import Spent
from scheduling.engine.terms import Status
from scheduling.models import Placement, Workload, WorkloadEvent
from scheduling.worker import Worker

START = datetime(2026, 6, 1, 12, tzinfo=UTC)
CASES = ((500, 20), (20, 500), (1, 10_000))  # gangs, pods of each
NODES, GPUS, QUEUE = 1_000, 16, "cq-0000"
GOAL_S, FLOOR_S = 3.0, 10.0


def bench() -> Report:
    """Run every case on an empty cluster of its own."""
    work: dict[str, Figure] = {"nodes": NODES}
    goals, walls = list[Goal](), list[float]()
    for gangs, pods in CASES:
        with scratch_database() as env:
            wall = _case(gangs, pods, work)
        walls.append(wall)
        goals.append(Goal(f"s-{gangs}x{pods}-floor", wall, FLOOR_S))
        goals.append(Goal(f"s-{gangs}x{pods}", wall, GOAL_S))
    env = {"profile": "recommended", "policy": "fragmentation", **env}
    return Report("gangs", env, work, walls, goals, unit="wall seconds")


def _case(gangs: int, pods: int, work: dict[str, Figure]) -> float:
    """Submit all gangs at once and let the worker decide until all of them run."""
    write_platform(worlds.platform(1, NODES * GPUS, machines=worlds.nodes(NODES, GPUS)))
    worker = Worker()
    with clock.at(START):
        worker.turn()  # it runs already when they come
        spent = Spent()
        began = time.perf_counter()
        load = [worlds.gang(f"gang-{i:04}", QUEUE, pods) for i in range(gangs)]
        write_workloads(load, START, {}, told=True)
        submitted = time.perf_counter() - began
        worker.turn()
        wall = time.perf_counter() - began
    running = Workload.objects.filter(status=Status.RUNNING.value).count()
    placed = Counter[str]()
    for node, count in Placement.objects.values_list("node", "count"):
        placed[node] += count
    assert running == gangs, f"{gangs - running} gangs were not started"
    assert placed.total() == gangs * pods, "pods are missing"
    assert max(placed.values()) <= GPUS, "a node holds more than it has"
    name = f"{gangs}x{pods}"
    work[f"{name}: s until submitted"] = submitted
    work[f"{name}: placements written"] = Placement.objects.count()
    work[f"{name}: events written"] = WorkloadEvent.objects.count()
    work.update({f"{name}: {what}": seconds for what, seconds in spent.so_far().items()})
    return wall


def _add_arguments(_parser: ArgumentParser) -> None:
    pass


BENCH = Bench(
    "gangs",
    "large gangs from submission to placed rows",
    _add_arguments,
    lambda _options: bench(),
)
