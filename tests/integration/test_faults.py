"""Killed workers and too many workers: nothing half done, nothing twice, work goes on."""

import random
import subprocess
import time
from collections import Counter
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.integration.stack import BEAT, WORKER, Stack, as_text

pytestmark = pytest.mark.services
GPU = "nvidia.com/gpu"
LEASE_S = 10


def nodes(count: int) -> list[dict[str, Any]]:
    amounts = {"cpu": "120", "memory": "960Gi", GPU: "4", "pods": "110"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{n:02}", "labels": {"pool": "a"}},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for n in range(count)
    ]


def queue(nominal: int) -> list[dict[str, Any]]:
    kueue = "kueue.x-k8s.io/v1beta2"
    quota = {"name": "a", "resources": [{"name": GPU, "nominalQuota": nominal}]}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}},
        {
            "apiVersion": kueue,
            "kind": "ResourceFlavor",
            "metadata": {"name": "a"},
            "spec": {"nodeLabels": {"pool": "a"}},
        },
        {
            "apiVersion": kueue,
            "kind": "ClusterQueue",
            "metadata": {"name": "cq"},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": [GPU], "flavors": [quota]}],
            },
        },
        {
            "apiVersion": kueue,
            "kind": "LocalQueue",
            "metadata": {"name": "lq", "namespace": "ns"},
            "spec": {"clusterQueue": "cq"},
        },
    ]


def gang(name: str, pods: int, seconds: int | None = None) -> dict[str, Any]:
    annotations = {"gpuplatform.io/expected-duration-seconds": str(seconds)} if seconds else {}
    container = {"name": "main", "image": "train", "resources": {"requests": {GPU: "2"}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "labels": {"kueue.x-k8s.io/queue-name": "lq"},
            "annotations": annotations,
        },
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def declare(stack: Stack, documents: list[dict[str, Any]]) -> None:
    path = stack.home / "documents.yaml"
    path.write_text(as_text(documents))
    stack.manage("import_manifests", str(path))


def admitted(stack: Stack) -> int:
    return int(stack.one("SELECT count(DISTINCT workload_id) FROM scheduling_admission"))


def assert_whole(stack: Stack) -> None:
    """No gang is half applied, none is admitted twice, no node and no queue is overbooked.

    All is read in one snapshot of the database, because workers go on meanwhile.
    """
    with psycopg.connect(stack.database_url, row_factory=dict_row) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        assert_gangs_are_whole(connection)
        assert_nodes_and_meter_agree(connection)


def assert_gangs_are_whole(connection: psycopg.Connection) -> None:
    rows = connection.execute(
        "SELECT a.workload_id, a.evicted_at,"
        " (SELECT sum(count) FROM scheduling_placement p WHERE p.admission_id = a.id) AS placed,"
        " (SELECT sum(count) FROM scheduling_podset s WHERE s.workload_id = w.uid) AS asked"
        " FROM scheduling_admission a JOIN scheduling_workload w ON w.uid = a.workload_id"
        " WHERE a.released_at IS NULL"
    ).fetchall()
    holding = connection.execute(
        "SELECT uid FROM scheduling_workload WHERE status IN ('admitted', 'running')"
    ).fetchall()
    assert [row for row in rows if row["placed"] != row["asked"]] == []
    assert [w for w, n in Counter(row["workload_id"] for row in rows).items() if n > 1] == []
    live = {row["workload_id"] for row in rows if row["evicted_at"] is None}
    assert {row["uid"] for row in holding} == live


def assert_nodes_and_meter_agree(connection: psycopg.Connection) -> None:
    booked: Counter[str] = Counter()
    for row in connection.execute(
        "SELECT p.node, p.count, p.requests FROM scheduling_placement p"
        " JOIN scheduling_admission a ON a.id = p.admission_id WHERE a.released_at IS NULL"
    ):
        booked[row["node"]] += row["count"] * row["requests"][GPU]
    assert {node: gpus for node, gpus in booked.items() if gpus > 4} == {}
    metered = connection.execute(
        "SELECT coalesce(sum(amount), 0) AS gpus FROM scheduling_usageinterval"
        " WHERE ended_at IS NULL AND resource = %s",
        [GPU],
    ).fetchone()
    assert metered["gpus"] == sum(booked.values())


def blocked(stack: Stack) -> int:
    return int(
        stack.one(
            "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation"
            " WHERE NOT l.granted AND c.relname = 'scheduling_placement'"
        )
    )


@pytest.fixture
def cluster(stack: Stack) -> Stack:
    """Eight nodes of four GPUs, one queue that is promised all of them."""
    declare(stack, [*nodes(8), *queue(32)])
    return stack


def test_a_worker_killed_in_the_middle_of_a_cycle_leaves_nothing_and_the_next_one_goes_on(
    cluster: Stack,
) -> None:
    declare(cluster, [gang(f"gang-{n}", pods=4) for n in range(4)])
    with psycopg.connect(cluster.database_url) as lock:
        # The cycle has written admissions and waits here to write their placements.
        lock.execute("LOCK TABLE scheduling_placement IN SHARE MODE")
        worker = cluster.start(*WORKER)
        cluster.start(*BEAT, "-s", str(cluster.home / "beat"))
        cluster.until(lambda: blocked(cluster), "the worker stands in the middle of a cycle")
        worker.kill()
        worker.wait()
        assert admitted(cluster) == 0
        lock.rollback()
    assert_whole(cluster)
    assert admitted(cluster) == 0
    cluster.start(*WORKER)
    cluster.until(lambda: admitted(cluster) == 4, "all are admitted", LEASE_S + 30)
    assert_whole(cluster)


def test_two_workers_at_once_admit_each_gang_once(cluster: Stack) -> None:
    cluster.start(*WORKER, "-n", "one@%h")
    cluster.start(*WORKER, "-n", "two@%h")
    cluster.start(*BEAT, "-s", str(cluster.home / "beat"))
    for start in range(0, 12, 4):
        declare(cluster, [gang(f"gang-{n}", pods=2, seconds=1) for n in range(start, start + 4)])
        assert_whole(cluster)

    def finished() -> bool:
        return bool(
            cluster.one("SELECT count(*) = 12 FROM scheduling_workload WHERE status = 'finished'")
        )

    cluster.until(finished, "all have run", 60)
    assert_whole(cluster)
    assert cluster.one("SELECT count(*) FROM scheduling_admission") == 12
    fences = [
        row["fence"] for row in cluster.rows("SELECT fence FROM scheduling_cycle ORDER BY id")
    ]
    assert fences == sorted(fences)


@pytest.mark.long
def test_workers_killed_at_any_instant_change_nothing_but_the_delay(cluster: Stack) -> None:
    dice = random.Random(20_260_601)
    cluster.start(*BEAT, "-s", str(cluster.home / "beat"))
    declare(cluster, [gang(f"gang-{n}", pods=dice.randint(1, 8), seconds=2) for n in range(40)])
    for _ in range(12):
        workers: list[subprocess.Popen] = [cluster.start(*WORKER, "-n", f"{n}@%h") for n in "ab"]
        before = cluster.one("SELECT count(*) FROM scheduling_cycle")
        cluster.until(
            lambda before=before: cluster.one("SELECT count(*) FROM scheduling_cycle") > before,
            "a worker decides",
            LEASE_S + 30,
        )
        time.sleep(dice.uniform(0, 0.5))  # any instant
        for worker in workers:
            worker.kill()
            worker.wait()
        assert_whole(cluster)
    cluster.start(*WORKER)
    cluster.until(
        lambda: cluster.one(
            "SELECT count(*) = 40 FROM scheduling_workload WHERE status='finished'"
        ),
        "all have run",
        120,
    )
    assert_whole(cluster)
