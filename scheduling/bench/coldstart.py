"""How soon a worker that has just started can decide, and in how much memory.

The world is read by a process of its own, so that nothing of what wrote it counts.
Source: ``performance.md`` 5 P7.
"""

import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from scheduling.bench import worlds
from scheduling.bench.registry import Bench
from scheduling.bench.report import Goal, Report
from scheduling.bench.rows import write_platform, write_workloads
from scheduling.bench.scratch import scratch_database
from scheduling.engine.machines import GPU
from scheduling.engine.snapshot import Admission, Assignment, Workload

START = datetime(2026, 6, 1, 12, tzinfo=UTC)
QUEUES, GPUS, SHAPES = 1_000, 8, 40
GOAL_S, GOAL_MIB = 5.0, 400.0
READ = """
import json, sys, time
import django
from scheduling.bench.spent import most_mib
django.setup()
from django.db import connection
connection.settings_dict["NAME"] = sys.argv[1]
from datetime import datetime
from scheduling.kept import Kept
from scheduling.worker import undisturbed
now, bare = datetime.fromisoformat(sys.argv[2]), most_mib()
began, cpu = time.perf_counter(), time.process_time()
with undisturbed():
    kept = Kept.read(now)
wall, spent = time.perf_counter() - began, time.process_time() - cpu
read = most_mib()
began = time.perf_counter()
with undisturbed():
    moves = len(kept.advance(now).moves)
first = time.perf_counter() - began
print(json.dumps({
    "workloads": len(kept.state.workloads), "wall": wall, "cpu": spent, "first": first,
    "moves": moves, "bare_mib": bare, "read_mib": read, "mib": most_mib(),
}))
"""


def bench(pending: int, running: int, machines: int) -> Report:
    """Read a world of so many waiting and running gangs and nodes, as a new worker does."""
    with scratch_database() as env:
        _write(pending, running, machines)
        found = _read()
    assert found["workloads"] == pending + running, "the world was not read whole"
    work = {
        "pending": pending,
        "running": running,
        "nodes": machines,
        "queues": QUEUES,
        "moves of the first cycle": found["moves"],
        "s to read, CPU of the worker": found["cpu"],
        "s of the first cycle": found["first"],
        "MiB before": found["bare_mib"],
        "MiB when read": found["read_mib"],
    }
    goals = [
        Goal("s-cold-start", found["wall"], GOAL_S),
        Goal("worker-mib", found["mib"], GOAL_MIB),
    ]
    return Report("coldstart", env, work, [found["wall"]], goals, unit="wall seconds")


def _write(pending: int, running: int, machines: int) -> None:
    nodes = worlds.nodes(machines, GPUS)
    write_platform(worlds.platform(QUEUES, machines * GPUS // QUEUES, machines=nodes))
    names = [node.name for node in nodes]
    held = (_running(i, names[i % len(names)]) for i in range(running))
    waits = (_waiting(i) for i in range(pending))
    write_workloads([*held, *waits], START, {})
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")  # as autovacuum would have


def _running(i: int, node: str) -> Workload:
    gang = worlds.gang(f"runs-{i:06}", _queue(i), pods=1, gpus=GPUS // 2, age=7200.0)
    part = Assignment("main", 1, {GPU: worlds.FLAVOR}, {node: 1})
    return replace(gang, admission=Admission(0.0, (part,)))


def _waiting(i: int) -> Workload:
    return worlds.gang(f"waits-{i:06}", _queue(i), pods=1 + i % SHAPES, gpus=GPUS, age=3600.0)


def _queue(i: int) -> str:
    return f"cq-{i % QUEUES:04}"


def _read() -> dict[str, Any]:
    name = str(connection.settings_dict["NAME"])
    done = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", READ, name, START.isoformat()],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    if done.returncode:
        raise RuntimeError(f"the worker could not read its world:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--pending", type=int, default=100_000)
    parser.add_argument("--running", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=10_000)


BENCH = Bench(
    "coldstart",
    "a worker that has just started reads a large world",
    _add_arguments,
    lambda options: bench(options["pending"], options["running"], options["nodes"]),
)
