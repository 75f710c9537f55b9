"""/metrics: for whom, what it says, and that the dashboard asks for nothing else."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client.parser import text_string_to_metric_families

from gpuplatform.doors.metrics import kept
from scheduling.cycle import run_cycle
from scheduling.reconciler import reconcile
from tests.house.test_rooms import ROOT
from tests.scheduling.loop.world import FLAVOR, nodes, queue, work

pytestmark = pytest.mark.django_db
DASHBOARD = ROOT / "docs" / "grafana" / "gpuplatform.json"
GPU = "nvidia.com/gpu"


@pytest.fixture(autouse=True)
def platform(db: None) -> Iterator[None]:
    nodes(2)
    queue("datos", 4, cohort="all")
    queue("ia", 4, cohort="all")
    work("datos", "big", gpus=3)
    work("datos", "loan", gpus=3)
    work("datos", "waits", gpus=4)
    run_cycle()
    reconcile()
    kept.forget()
    yield
    kept.forget()


def read(settings: Any) -> dict[tuple[str, ...], float]:
    """Return every sample by its name and its labels' values."""
    settings.METRICS_TOKEN = "secret"
    answer = Client().get("/metrics", headers={"Authorization": "Bearer secret"})
    assert answer.status_code == 200
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def test_it_tells_quota_use_loans_and_who_waits(settings: Any) -> None:
    found = read(settings)
    column = ("cq-datos", "all", FLAVOR, GPU)
    assert found["gpuplatform_cluster_queue_nominal_quota", *column] == 4
    assert found["gpuplatform_cluster_queue_resource_usage", *column] == 6
    assert found["gpuplatform_cluster_queue_borrowed", *column] == 2
    assert found["gpuplatform_cluster_queue_lent", "cq-ia", "all", FLAVOR, GPU] == 2
    assert found["gpuplatform_pending_workloads", "cq-datos"] == 1
    assert found["gpuplatform_admitted_workloads_total", "cq-datos"] == 2
    assert found["gpuplatform_node_gpus", FLAVOR, "used"] == 6
    assert found["gpuplatform_node_gpus", FLAVOR, "free"] == 2
    assert found["gpuplatform_cycle_age_seconds",] >= 0


@pytest.mark.parametrize(
    ("token", "allow", "given", "code"),
    [
        ("", [], "", 404),
        ("", [], "Bearer ", 404),
        ("secret", [], "Bearer wrong", 404),
        ("secret", [], "Bearer secret", 200),
        ("", ["10.0.0.0/8"], "", 404),
        ("", ["10.0.0.0/8", "127.0.0.0/8"], "", 200),
    ],
)
def test_it_is_there_for_a_token_or_a_named_network(
    settings: Any, token: str, allow: list[str], given: str, code: int
) -> None:
    settings.METRICS_TOKEN, settings.METRICS_ALLOW = token, allow
    assert Client().get("/metrics", headers={"Authorization": given}).status_code == code


def test_asked_again_at_once_it_reads_nothing(settings: Any) -> None:
    first = read(settings)
    with CaptureQueriesContext(connection) as queries:
        assert read(settings) == first
    assert len(queries) == 0


def test_the_dashboard_asks_for_what_is_told(settings: Any) -> None:
    settings.METRICS_TOKEN = "secret"
    text = Client().get("/metrics", headers={"Authorization": "Bearer secret"}).content.decode()
    told = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = {
        name
        for panel in panels
        for target in panel["targets"]
        for name in re.findall(r"gpuplatform_\w+", target["expr"])
    }
    assert asked == told
