"""Nodes that leave, come back, are drained or lose GPUs under work."""

from datetime import timedelta
from typing import Any

import pytest

from scheduling.engine.terms import Status
from scheduling.models import Node
from scheduling.services import delete_node, set_cordon
from tests.scheduling.life.living import after, last, settle
from tests.scheduling.loop.world import NOON, nodes, queue, status, story, usage, work

pytestmark = pytest.mark.django_db
FIRST = "h100-node-01"


@pytest.fixture(autouse=True)
def platform(clock: Any) -> None:
    nodes(2)
    queue("datos", 8)


def where(gang: Any) -> dict[str, int]:
    return dict(last(gang).placements.values_list("node", "count"))


def test_usage_stops_at_the_loss_while_quota_is_held(clock: Any):
    gang = work("datos", "gang", pods=2, gpus=4)
    settle()
    after(clock, 595)
    clock.shift(timedelta(seconds=5))
    delete_node(FIRST, actor=None)
    after(clock, 30)  # noticed late
    assert status(gang) is Status.RUNNING  # it keeps its place for a minute
    assert usage(gang) == [
        ("nominal", "", 8, NOON, NOON + timedelta(seconds=600)),
        ("nominal", "", 4, NOON + timedelta(seconds=600), None),
    ]
    after(clock, 60)
    assert status(gang) is Status.PENDING
    assert [row[4] is None for row in usage(gang)] == [False, False]


def test_lost_pods_are_replaced_or_the_whole_gang_waits_again(clock: Any):
    nodes_more = Node.objects.create(
        name="spare",
        labels={"accelerator": "h100-sxm"},
        allocatable=Node.objects.first().allocatable,  # type: ignore[union-attr]
        schedulable=False,
    )
    mends = work("datos", "mends", pods=2, gpus=2, on_node_loss="replace")
    whole = work("datos", "whole", pods=2, gpus=2, on_node_loss="requeue")
    settle()
    for gang in (mends, whole):
        last(gang).placements.all().delete()
        for number in (1, 2):
            last(gang).placements.create(
                pod_set="worker",
                node=f"h100-node-0{number}",
                count=1,
                flavors={"nvidia.com/gpu": "h100-sxm"},
                requests={"nvidia.com/gpu": 2},
            )
    set_cordon(nodes_more.name, False, actor=None)
    delete_node(FIRST, actor=None)
    settle()
    assert story(mends).count("evicted") == 0
    assert where(mends) == {"h100-node-02": 1, "spare": 1}
    assert story(whole).count("evicted") == 1


def test_a_drained_node_is_left_once_the_grace_has_passed(clock: Any):
    gang = work("datos", "gang", pods=1, gpus=2)
    settle()
    (home,) = where(gang)
    set_cordon(home, True, actor=None, drain=True)
    after(clock, 30)
    assert (status(gang), list(where(gang))) == (Status.RUNNING, [home])
    after(clock, 60)
    settle()
    assert status(gang) is Status.RUNNING
    assert home not in where(gang)
    set_cordon(home, False, actor=None)
    node = Node.objects.get(name=home)
    assert (node.schedulable, node.draining) == (True, False)


def test_a_node_that_comes_back_in_time_carries_its_pods_again(clock: Any):
    gang = work("datos", "gang", pods=2, gpus=4)
    settle()
    Node.objects.filter(name=FIRST).update(ready=False)
    after(clock, 50)
    Node.objects.filter(name=FIRST).update(ready=True)
    after(clock, 600)
    assert status(gang) is Status.RUNNING
    assert "evicted" not in story(gang)


def test_nothing_new_comes_to_a_node_that_has_lost_gpus(clock: Any):
    gang = work("datos", "gang", pods=2, gpus=4)
    settle()
    Node.objects.update(allocatable={"cpu": 120_000, "nvidia.com/gpu": 2, "pods": 110})
    more = work("datos", "more", gpus=1)
    settle()
    assert (status(gang), status(more)) == (Status.RUNNING, Status.PENDING)
