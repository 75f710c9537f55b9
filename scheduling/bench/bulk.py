"""How many workloads a second the bulk door takes in: everything of REST but the network.

Source: ``performance.md`` 5 P8.
"""

import json
import time
from argparse import ArgumentParser

from django.urls import reverse
from rest_framework.test import APIRequestFactory, force_authenticate

from queues.models import User
from scheduling.bench import worlds
from scheduling.bench.registry import Bench
from scheduling.bench.report import Goal, Report
from scheduling.bench.rows import NAMESPACE, write_platform
from scheduling.bench.scratch import scratch_database
from scheduling.bench.spent import Spent
from scheduling.bulk import MOST
from scheduling.bulk_api import WorkloadsBulkView
from scheduling.engine.machines import GPU
from scheduling.models import Workload

QUEUES, NODES, GPUS, GOAL = 100, 100, 8, 3_000.0
PATH = "/api/v1/workloads/bulk/"


def bench(calls: int) -> Report:
    """Submit so many times as many workloads as a call may carry."""
    walls = list[float]()
    with scratch_database() as env:
        machines = worlds.nodes(NODES, GPUS)
        write_platform(worlds.platform(QUEUES, NODES * GPUS // QUEUES, machines=machines))
        user = User.objects.create_superuser("bench")
        reverse("api-workloads")  # a server has read its addresses when it is first asked
        spent, view, factory = Spent(), WorkloadsBulkView.as_view(), APIRequestFactory()
        for number in range(calls):
            text = json.dumps({"workloads": [_item(number, i) for i in range(MOST)]})
            request = factory.post(PATH, text, content_type="application/json")
            force_authenticate(request, user=user)
            began = time.perf_counter()
            answer = view(request).render()
            walls.append(time.perf_counter() - began)
            assert answer.data["accepted"] == MOST, "not all were accepted"
        kept = Workload.objects.count()
        assert kept == calls * MOST, "workloads are missing"
        work = {"calls": calls, "workloads": kept, **spent.so_far()}
    rate = calls * MOST / sum(walls)
    goals = [Goal("workloads-per-second", rate, GOAL, at_least=True)]
    return Report("bulk", env, work, walls, goals, unit="wall seconds of a call")


def _item(call: int, i: int) -> dict[str, object]:
    return {
        "name": f"call-{call:03}-{i:04}",
        "namespace": NAMESPACE,
        "queue": f"cq-{i % QUEUES:04}",
        "priority": 0,
        "expected_duration_s": 60,
        "pod_sets": [
            {"name": "main", "count": 1 + i % 4, "requests": {GPU: 1 + i % 8}},
        ],
    }


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--calls", type=int, default=10)


BENCH = Bench(
    "bulk",
    "many workloads through the bulk door of REST",
    _add_arguments,
    lambda options: bench(options["calls"]),
)
