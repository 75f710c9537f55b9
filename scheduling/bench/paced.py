"""From the commit of a submission to the commit of its decision, while many others wait.

Somebody else submits at a steady pace, from a process of its own, small work that fits beside a
backlog that does not; the running product decides, in real time. Source: ``performance.md`` 5 P3
and P4.
"""

import subprocess
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from statistics import median, quantiles
from typing import Any

from django.db import connection
from django.utils import timezone

from gpuplatform.common.models import Change
from scheduling.bench import worlds
from scheduling.bench.registry import Bench
from scheduling.bench.report import Figure, Goal, Report
from scheduling.bench.rows import write_platform, write_workloads
from scheduling.bench.scratch import scratch_database
from scheduling.bench.spent import Spent
from scheduling.cycle import CycleReport
from scheduling.models import Admission, Cycle, Workload
from scheduling.worker import Worker

GOALS_MS = {1_000: 50.0, 10_000: 100.0, 100_000: 250.0}  # by how many wait
MOST_GROWTH = 1.5  # of the work for a decision, with ten times as many waiting
QUEUES, EVENTS, PACE_S, SETTLES_S = 100, 200, 0.1, 300.0
COALESCED_S = 0.02  # as in ``scheduling.tasks``: what is asked for within it is answered at once
SUBMIT = """
import sys, time
import django
django.setup()
from django.db import connection, transaction
connection.settings_dict["NAME"] = sys.argv[1]
from django.utils import timezone
from scheduling.bench import worlds
from scheduling.bench.rows import write_workloads
events, pace, queues = int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
for i in range(events):
    one = worlds.gang(f"event-{i:05}", f"cq-{i % queues:04}", pods=1)
    with transaction.atomic():
        write_workloads([one], timezone.now(), {one.key: 2}, told=True)
    print(one.name.replace("/", "-"), time.time(), flush=True)
    time.sleep(pace)
"""


class Observed(Worker):
    """A worker of which it is noted when what it decided was committed."""

    def __init__(self) -> None:
        super().__init__()
        self.decided: dict[str, float] = {}
        self._newest = Admission.objects.order_by("-id").values_list("id", flat=True).first() or 0

    def decide(self) -> CycleReport:
        """Decide, and note by name whose admission is committed now."""
        report, now = super().decide(), time.time()
        if report.admitted:
            rows = Admission.objects.filter(id__gt=self._newest).order_by("id")
            for number, name in rows.values_list("id", "workload__name"):
                self.decided.setdefault(name, now)
                self._newest = number
        return report


def bench(pending: Sequence[int], events: int) -> Report:
    """Measure with each of these backlogs."""
    work, goals, walls = dict[str, Figure](), list[Goal](), list[float]()
    units: dict[int, float] = {}
    env: dict[str, Figure] = {}
    for waiting in pending:
        with scratch_database() as said:
            env |= said
            late, units[waiting], more = _case(waiting, events)
        p95 = quantiles(late, n=20)[-1]
        walls.append(median(late))
        work |= {f"{waiting} pending: {what}": figure for what, figure in more.items()}
        work[f"{waiting} pending: ms p50"] = median(late)
        goals.append(Goal(f"ms-p95-{waiting}", p95, GOALS_MS.get(waiting, max(GOALS_MS.values()))))
        if (tenth := units.get(waiting // 10)) is not None:
            goals.append(Goal(f"work-growth-{waiting}", units[waiting] / tenth, MOST_GROWTH))
    return Report("paced", env, work, walls, goals, unit="ms from commit to commit, median")


def _case(pending: int, events: int) -> tuple[list[float], float, dict[str, Figure]]:
    """Return how late each decision was, in ms, the counted work of one, and other figures."""
    write_platform(worlds.platform(QUEUES, 8))
    backlog = [worlds.gang(f"waits-{i:06}", f"cq-{i % QUEUES:04}", 200) for i in range(pending)]
    write_workloads(backlog, timezone.now() - timedelta(hours=1), {})
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")  # as autovacuum would have
    worker = Observed()
    _settle(worker)
    cycles, changes, spent = Cycle.objects.count(), Change.objects.count(), Spent()
    sent = _follow(worker, events)
    missing = sent.keys() - worker.decided.keys()
    assert not missing, f"{len(missing)} were not decided"
    late = [(worker.decided[name] - at) * 1000 for name, at in sent.items()]
    counted = Counter[str]()
    for units in Cycle.objects.order_by("id").values_list("work", flat=True)[cycles:]:
        counted.update(units)
    more: dict[str, Figure] = {
        "cycles": Cycle.objects.count() - cycles,
        "changes": Change.objects.count() - changes,
        **{f"work {what}": count for what, count in sorted(counted.items())},
        **spent.so_far(),
    }
    return late, counted.total() / events, more


def _settle(worker: Worker) -> None:
    """Let everybody who waits be told why, as in a platform that has run for a while."""
    until = time.monotonic() + SETTLES_S
    worker.turn()
    while (before := _told()) < _waiting() and time.monotonic() < until:
        worker.turn()
        if _told() == before:
            time.sleep(COALESCED_S)


def _told() -> int:
    return int(_pending().exclude(blockers=[]).count())


def _waiting() -> int:
    return int(_pending().count())


def _pending() -> Any:
    return Workload.objects.filter(status="pending").order_by()


def _follow(worker: Worker, events: int) -> dict[str, float]:
    """Decide while another process submits; return when each submission was committed."""
    name = str(connection.settings_dict["NAME"])
    command = [sys.executable, "-c", SUBMIT, name, str(events), str(PACE_S), str(QUEUES)]
    seen = Change.objects.order_by("-id").values_list("id", flat=True)
    newest = seen.first() or 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sender:  # noqa: S603
        while sender.poll() is None:
            last = seen.first() or 0
            if last > newest:  # as a message would wake it
                newest = last
                time.sleep(COALESCED_S)
                worker.turn()
            else:
                time.sleep(0.002)
        worker.turn()
        said = sender.stdout.read() if sender.stdout else ""
    return {name: float(at) for name, at in (line.split() for line in said.splitlines())}


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--pending", type=_numbers, default=tuple(GOALS_MS), metavar="1000,10000,100000"
    )
    parser.add_argument("--events", type=int, default=EVENTS)


BENCH = Bench(
    "paced",
    "from a submission to its decision, while many others wait",
    _add_arguments,
    lambda options: bench(options["pending"], options["events"]),
)
