"""How fast work is admitted and ended with everything written: the large load, all at once.

The running product on a database and a clock of its own: cycles decide and write, the simulated
cluster starts and ends, and the story, the usage and the reasons of each workload are rows.
Source: ``performance.md`` 5 P2.
"""

import gc
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from gpuplatform.common import clock
from scheduling.bench.kueue_load import Load, read_load
from scheduling.bench.report import Goal, Report
from scheduling.bench.rows import write_platform, write_workloads
from scheduling.bench.scratch import scratch_database
from scheduling.bench.spent import Spent
from scheduling.engine.terms import Status
from scheduling.models import Admission, Cycle, UsageInterval, Workload, WorkloadEvent
from scheduling.worker import Worker

START = datetime(2026, 6, 1, 12, tzinfo=UTC)
GOAL, FLOOR = 5_000.0, 2_000.0  # workloads a second; Kueue's own test: 42
MS_PER_SECOND = 50  # of the load's time: runtimes are whole seconds in rows


def bench(data: Mapping[str, Any], workloads: int | None = None) -> Report:
    """Admit and end every workload of the load; all of them wait when the clock starts."""
    load = read_load(data, all_pending=True, workloads=workloads)
    with scratch_database() as env:
        _write(load)
        spent = Spent()
        wall, turns = _drain(len(load.arrivals))
        work = {**turns, **_written(), "workloads": len(load.arrivals), **spent.so_far()}
    rate = len(load.arrivals) / wall
    goals = [
        Goal("workloads-per-second", rate, GOAL, at_least=True),
        Goal("workloads-per-second-floor", rate, FLOOR, at_least=True),
    ]
    env = {"profile": "recommended", "policy": "none: no nodes", **env}
    return Report(f"drain {load.name}", env, work, [wall], goals, unit="wall seconds")


def _write(load: Load) -> None:
    write_platform(load.platform)
    lasts = {key: runtime // MS_PER_SECOND for key, runtime in load.runtime_ms.items()}
    write_workloads((work for _, work in load.arrivals), START, lasts)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")  # as autovacuum would have


def _drain(wanted: int) -> tuple[float, Counter[str]]:
    worker, now, wall, work = Worker(), START, 0.0, Counter[str]()
    gc.collect()
    while work["finished"] < wanted:
        with clock.at(now):
            began = time.perf_counter()
            worker.turn()
            wall += time.perf_counter() - began
        work.update(turns=1)
        work["finished"] = Workload.objects.filter(status=Status.FINISHED.value).count()
        now = max(_next_end() or now, now + timedelta(milliseconds=1))
    return wall, work


def _next_end() -> datetime | None:
    running = Workload.objects.filter(status=Status.RUNNING.value).order_by()
    spans = running.values_list("started_at", "expected_duration_s").distinct()
    ends = [start + timedelta(seconds=lasts) for start, lasts in spans if start and lasts]
    return min(ends, default=None)


def _written() -> dict[str, int]:
    """Return how many rows stand in the tables at the end, and check that nothing is missing."""
    done = Workload.objects.filter(status=Status.FINISHED.value).count()
    open_rows = UsageInterval.objects.filter(ended_at=None).count()
    assert done == Workload.objects.count(), "work was lost"
    assert not open_rows, "something is metered that has ended"
    evictions = Admission.objects.exclude(eviction_reason="").count()
    return {
        "cycles": Cycle.objects.count(),
        "admissions": Admission.objects.count(),
        "evictions": evictions,
        "events": WorkloadEvent.objects.count(),
        "intervals": UsageInterval.objects.count(),
    }
