"""Alerts: raised when something begins to hold, cleared when it ends; drift beside them."""

from typing import Any

import pytest

from scheduling.engine.machines import GPU
from scheduling.loader import load_platform
from scheduling.models import Alert, Node
from scheduling.selectors.alerts import current_findings, held_outside
from scheduling.watch import watch
from tests.scheduling.life.living import after, settle
from tests.scheduling.loop.world import NOON, nodes, queue, work

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def platform(clock: Any) -> None:
    nodes(2)
    queue("datos", 8)


def found() -> dict[str, dict[str, Any]]:
    return {one.code: dict(one.numbers) for one in current_findings(load_platform(NOON))}


def test_promises_and_machines_that_agree_raise_nothing():
    assert found() == {}
    assert watch() == 0
    assert not Alert.objects.exists()


def test_drift_tells_promised_declared_healthy_placeable_and_unmanaged():
    Node.objects.filter(name="h100-node-01").update(ready=False)
    Node.objects.filter(name="h100-node-02").update(unmanaged={GPU: 1})
    work("datos", "outside", gpus=2, queue_name="")
    settle()
    assert held_outside() != {}
    drift = found()["DRIFT"]
    names = ("promised", "declared", "healthy", "placeable", "unmanaged", "missing")
    assert [drift[name] for name in names] == [8, 8, 4, 1, 3, 7]
    (said,) = [
        one.sentence for one in current_findings(load_platform(NOON)) if one.code == "DRIFT"
    ]
    assert said == (
        "Of h100-sxm 8 GPUs are promised and 1 can be placed: of 8 that are declared, 4 are on"
        " nodes that are not ready, 0 on cordoned ones, and pods outside every queue hold 3 GPUs."
    )
    assert found()["NODES_NOT_READY"]["names"] == "h100-node-01"
    assert found()["UNMANAGED_USE"]["unmanaged"] == 3


def test_drift_tells_what_is_cordoned_apart_from_what_is_not_ready():
    Node.objects.filter(name="h100-node-01").update(schedulable=False)
    drift = found()["DRIFT"]
    assert [drift[name] for name in ("declared", "healthy", "cordoned", "away")] == [8, 8, 4, 0]


def test_an_alert_is_raised_once_and_cleared_when_it_ends(clock: Any):
    Node.objects.filter(name="h100-node-01").update(ready=False)
    assert watch() == 3  # not ready, drift, and more promised than there is
    assert watch() == 0
    after(clock, 60)
    Node.objects.update(ready=False)
    assert watch() == 0  # the same, with other numbers
    alert = Alert.objects.get(code="DRIFT")
    assert (alert.raised_at, alert.cleared_at, alert.facts["placeable"]) == (NOON, None, 0)
    after(clock, 60)
    Node.objects.update(ready=True)
    assert watch() == 3
    assert not Alert.objects.filter(cleared_at=None).exists()
    alert.refresh_from_db()
    assert (alert.cleared_at - alert.raised_at).total_seconds() == 120
    Node.objects.update(ready=False)
    watch()
    assert Alert.objects.filter(code="DRIFT").count() == 2  # it holds anew


def test_a_node_that_lost_gpus_under_its_work_is_told():
    work("datos", "job", pods=1, gpus=4)
    settle()
    assert "NODE_OVERCOMMITTED" not in found()
    Node.objects.update(allocatable={"cpu": 120_000, "memory": 960 * 2**30, GPU: 3, "pods": 110})
    assert found()["NODE_OVERCOMMITTED"] == {"resource": GPU, "amount": 4, "have": 3}
