"""How many workloads a second come in one by one: a token, all checks, a server, connections.

The server is the product's own, started by the bench on a database of its own. Source:
``decisions.md`` 9 and the goals of ``performance.md`` 5.
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from urllib.parse import quote

import httpx
from django.db import connection

from queues.choices import Role
from queues.models import PlatformRole, User
from queues.services import issue_token
from scheduling.bench import worlds
from scheduling.bench.registry import Bench
from scheduling.bench.report import Figure, Goal, Report
from scheduling.bench.rows import NAMESPACE, write_platform
from scheduling.bench.scratch import scratch_database
from scheduling.bench.spent import seconds_of
from scheduling.engine.machines import GPU
from scheduling.models import Workload

QUEUES, NODES, GPUS = 100, 100, 8
GOAL_PER_S, FLOOR_PER_S, GOAL_P95_MS = 150.0, 75.0, 80.0
PATH, STARTS_S, WARM = "/api/v1/workloads/", 60.0, 5
OFTEN = "1000000"  # the throttle is asked, and lets everybody through


def bench(requests: int, connections: int, processes: int) -> Report:
    """Submit so many workloads over so many connections to so many processes."""
    with scratch_database() as env:
        machines = worlds.nodes(NODES, GPUS)
        write_platform(worlds.platform(QUEUES, NODES * GPUS // QUEUES, machines=machines))
        token = _token()
        with _server(processes) as (port, server):
            clients = [_Client(port, token) for _ in range(connections)]
            for client in clients:  # a server has read its addresses when it is first asked
                _send(client, range(WARM))
            before, began = _spent(server), time.perf_counter()
            with ThreadPoolExecutor(connections) as threads:
                shares = [range(i, requests, connections) for i in range(connections)]
                late = [ms for found in threads.map(_send, clients, shares) for ms in found]
            wall = time.perf_counter() - began
            spent = {whose: after - before[whose] for whose, after in _spent(server).items()}
            for client in clients:
                client.wire.close()
        kept = Workload.objects.count()
        assert kept == requests + connections * WARM, "workloads are missing"
    p95 = quantiles(late, n=20)[-1]
    env |= {"connections": connections, "processes": processes}
    work: dict[str, Figure] = {
        "requests": requests,
        "ms p50": median(late),
        **{f"{whose} CPU ms of a request": s / requests * 1000 for whose, s in spent.items()},
    }
    rate = requests / wall
    goals = [
        Goal("requests-per-second", rate, GOAL_PER_S, at_least=True),
        Goal("requests-per-second-floor", rate, FLOOR_PER_S, at_least=True),
        Goal("ms-p95", p95, GOAL_P95_MS),
    ]
    return Report("submit", env, work, [wall], goals, unit="wall seconds of all requests")


def _token() -> str:
    user = User.objects.create_user("bench")
    PlatformRole.objects.create(user=user, role=Role.ADMIN.value)
    life = timedelta(days=1)
    return issue_token(user, "bench", ["workloads:submit", "read"], actor=None, ttl=life)[1]


class _Client:
    """A connection that stays open. Its share of the cores is small: the server needs them."""

    def __init__(self, port: int, token: str) -> None:
        self.wire = HTTPConnection("127.0.0.1", port, timeout=60)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def post(self, body: dict[str, Any], key: str) -> None:
        """Submit a workload; it must be taken in."""
        headers = {**self.headers, "Idempotency-Key": key}
        self.wire.request("POST", PATH, json.dumps(body), headers)
        answer = self.wire.getresponse()
        text = answer.read()
        assert answer.status == HTTPStatus.CREATED, text
        assert json.loads(text)["name"] == body["name"], text


def _send(client: _Client, numbers: range) -> list[float]:
    """Submit one workload after the other; return how long each took, in ms."""
    found = []
    for i in numbers:
        began = time.perf_counter()
        name = f"one-{secrets.token_hex(6)}"
        body = {
            "name": name,
            "namespace": NAMESPACE,
            "queue": f"cq-{i % QUEUES:04}",
            "expected_duration_s": 60,
            "pod_sets": [{"name": "main", "count": 1 + i % 4, "requests": {GPU: 1 + i % 8}}],
        }
        client.post(body, key=name)
        found.append((time.perf_counter() - began) * 1000)
    return found


@contextmanager
def _server(processes: int) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Yield the port of a server on the bench's database, and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "gpuplatform.asgi:application"]
    command += ["--lifespan=off", "--log-level=error", f"--timeout-keep-alive={STARTS_S:.0f}"]
    command += [f"--port={port}", f"--workers={processes}"]
    more = {"DATABASE_URL": _database(), "CELERY_BROKER_URL": "memory://"}
    more |= {"API_BURST": OFTEN, "API_PER_S": OFTEN, "LOG_LEVEL": "ERROR"}
    with subprocess.Popen(command, env={**os.environ, **more}) as server:  # noqa: S603
        try:
            _wait(f"http://127.0.0.1:{port}")
            yield port, server
        finally:
            server.terminate()


def _wait(address: str) -> None:
    until = time.monotonic() + STARTS_S
    while True:
        try:
            httpx.get(f"{address}/readyz", timeout=5)
        except httpx.HTTPError:
            assert time.monotonic() < until, "the server did not start"
            time.sleep(0.1)
        else:
            return


def _database() -> str:
    """Return the address of the bench's database, which this process is connected to."""
    said = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{said['NAME']}"
    who = f"{quote(str(said['USER']))}:{quote(str(said['PASSWORD']), safe='')}"
    return f"postgresql://{who}@{said['HOST']}:{said['PORT']}/{said['NAME']}"


def _spent(server: "subprocess.Popen[bytes]") -> dict[str, float]:
    """Return the CPU seconds by whose they are; 0 where nobody tells."""
    return {
        "server's": sum(map(seconds_of, [server.pid, *_children(server.pid)])),
        "database's": sum(map(seconds_of, _sessions())),
        "client's": time.process_time(),
    }


def _children(number: int) -> list[int]:
    try:
        text = Path(f"/proc/{number}/task/{number}/children").read_text("utf-8")
    except OSError:
        return []
    return [int(child) for child in text.split()]


def _sessions() -> list[int]:
    """Return the processes of the database that serve this bench; they are kept by the server."""
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        return [number for (number,) in cursor.fetchall()]


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--processes", type=int, default=2, help="of the web server")


BENCH = Bench(
    "submit",
    "workloads submitted one by one to a running server",
    _add_arguments,
    lambda options: bench(options["requests"], options["connections"], options["processes"]),
)
