"""A small cluster in manifests, and what must hold of it whatever was killed."""

from collections import Counter
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.integration.stack import Stack, as_text

GPU = "nvidia.com/gpu"


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
