"""Ask every page several times as an admin's browser does; count queries, take times.

Source: ``product.md`` 7.10 and issue 8: server p95 at most 300 ms (floor 1 s), at most 12 queries
whatever the rows, figures at most 10 ms.
"""

import time
from argparse import ArgumentParser
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from finops.billing import rebuild_draft
from gpuplatform.common import clock
from gpuplatform.common.memory import settle
from gpuplatform.common.periods import month_at
from gpuplatform.doors.bench_pages.rows import Size, write
from queues.models import PlatformRole, User
from scheduling.bench.report import Figure, Goal, Report
from scheduling.bench.scratch import scratch_database

GOAL_MS, FLOOR_MS, FIGURE_MS, MOST_QUERIES = 300.0, 1_000.0, 10.0, 12
JOB = "00000000-0000-0000-0000-000000000001"
PAGES = (
    *("/", "/queues/", "/queues/cq-0001/", "/queues/cq-0001/edit/", "/cohorts/pool-1/"),
    *("/workloads/", "/workloads/?q=job-0000", f"/workloads/{JOB}/", "/nodes/"),
    *("/nodes/node-0001/", "/flavors/", "/flavors/h100/", "/fair-share/", "/borrowing/"),
    *("/replays/", "/replays/new/", "/teams/", "/teams/team-001/", "/people/", "/alerts/"),
    *("/audit/", "/cost/", "/cost/by/?window=24h", "/bills/", "/budgets/", "/prices/"),
    *("/mappings/", "/sources/", "/drift/", "/account/", "/submit/", "/agents/"),
    *("/search/?q=job", "/admission-checks/", "/api/v1/workloads/", "/api/v1/nodes/"),
    *("/api/v1/cluster-queues/", "/api/v1/availability/", "/api/v1/fair-share/"),
)
FIGURES = (
    *("/charts/quota-use/", "/charts/quota-use/?queue=cq-0001", "/charts/borrowed/"),
    *("/charts/fragments/", "/cost/team.json", "/cost/idle.json"),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """One page: its slowest usual time, its queries, the size of its answer."""

    path: str
    p95_ms: float
    queries: int
    bytes: int

    def __str__(self) -> str:
        kib = self.bytes / 1024
        return f"p95 {self.p95_ms:8.0f} ms  {self.queries:3} queries  {kib:7.0f} KiB"


def add_arguments(parser: ArgumentParser) -> None:
    """Take how large the platform is, and how often each page is asked for."""
    parser.add_argument("--queues", type=int, default=1_000)
    parser.add_argument("--workloads", type=int, default=100_000, help="that run or wait")
    parser.add_argument("--history", type=int, default=100_000, help="workloads that have ended")
    parser.add_argument("--nodes", type=int, default=512)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--page", action="append", help="only pages that begin so")


def run(options: dict[str, Any]) -> Report:
    """Write the platform, ask for its pages, and report them, the slowest first."""
    names = ("queues", "workloads", "history", "nodes")
    size = Size(**{name: options[name] for name in names})
    chosen = tuple(options["page"] or ("/",))
    with scratch_database() as env:
        now = clock.now()
        write(size, now)
        rebuild_draft(month_at(now).name, now=now)
        client = _admin()
        settle()  # as the process does that answers pages
        pages = _measured(client, PAGES, chosen, options["repeat"])
        figures = _measured(client, FIGURES, chosen, options["repeat"])
    return _report(size, env, pages, figures)


def _admin() -> Client:
    user = User.objects.create_user("bench")
    PlatformRole.objects.create(user=user, role="admin")
    client = Client(SERVER_NAME="localhost")
    client.force_login(user)
    return client


def _measured(
    client: Client, paths: Iterable[str], chosen: tuple[str, ...], repeat: int
) -> list[Measured]:
    wanted = [path for path in paths if path.startswith(chosen)]
    found = [_measure(client, path, repeat) for path in wanted]
    return sorted(found, key=lambda one: -one.p95_ms)


def _measure(client: Client, path: str, repeat: int) -> Measured:
    with CaptureQueriesContext(connection) as captured:  # and the first one warms up
        answer = client.get(path)
        queries = len(captured)  # the next request forgets them
    assert answer.status_code == HTTPStatus.OK, f"{path}: {answer.status_code}"
    times = sorted(_timed(client, path) for _ in range(repeat))
    p95 = times[min(len(times) - 1, round(0.95 * (len(times) - 1)))]
    return Measured(path, p95 * 1_000, queries, len(answer.content))


def _timed(client: Client, path: str) -> float:
    began = time.perf_counter()
    client.get(path)
    return time.perf_counter() - began


def _report(
    size: Size, env: dict[str, Figure], pages: list[Measured], figures: list[Measured]
) -> Report:
    work: dict[str, Figure] = {one.path: str(one) for one in (*pages, *figures)}
    goals = []
    if pages:
        worst = max(one.p95_ms for one in pages)
        goals += [
            Goal("ms-page-p95-worst", worst, GOAL_MS),
            Goal("ms-page-p95-worst-floor", worst, FLOOR_MS),
            Goal("queries-page-worst", max(one.queries for one in pages), MOST_QUERIES),
        ]
    if figures:
        goals.append(Goal("ms-figure-p95-worst", max(one.p95_ms for one in figures), FIGURE_MS))
    told = {"queues": size.queues, "workloads": size.workloads, "history": size.history}
    whole = [sum(one.p95_ms for one in (*pages, *figures)) / 1_000]
    env = {**told, "nodes": size.nodes, **env}
    return Report("pages", env, work, whole, goals, unit="wall seconds, one p95 of each page")
