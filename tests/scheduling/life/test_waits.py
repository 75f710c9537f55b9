"""How long work waits, and what its story does not repeat."""

from typing import Any

import pytest
from django.utils import timezone

from queues.access import Actor
from queues.models import ResourceFlavor
from scheduling import switching
from scheduling.selectors.overview import longest_wait
from scheduling.selectors.pages import Pages
from tests.scheduling.life.living import after, settle
from tests.scheduling.loop.world import FLAVOR, nodes, queue, story, work

pytestmark = pytest.mark.django_db
EVERYBODY = Actor(None, frozenset({"admin"}))


def test_a_wait_begins_anew_with_an_eviction(clock: Any):
    nodes(1)
    queue("datos", 4)
    old = work("datos", "old", gpus=4)
    settle()
    after(clock, 3600)
    work("datos", "young", gpus=8, queue_name="nowhere")
    after(clock, 600)
    switching.set_active(old.pk, active=False, actor=None)
    switching.set_active(old.pk, active=True, actor=None)
    old.refresh_from_db()
    found = longest_wait(EVERYBODY, Pages(EVERYBODY))
    assert found is not None
    assert found.workload.name == "young"
    assert found.workload.waits_since == found.workload.created_at
    assert old.waits_since == timezone.now()


@pytest.mark.parametrize("subgroups", [{}, {"subgroup_size": 2, "min_subgroups": 1}])
def test_a_gang_by_quota_alone_grows_once(clock: Any, subgroups: dict[str, int]):
    ResourceFlavor.objects.create(name=FLAVOR, node_labels={"accelerator": FLAVOR})
    queue("datos", 4)
    gang = work("datos", "gang", pods=6, min_member=2, topology=subgroups)
    first = work("datos", "first", gpus=2, priority=9, expected_duration_s=60)
    for _ in range(5):
        settle()
    after(clock, 61)
    for _ in range(5):
        after(clock, 2)
    assert story(first)[-1] == "finished"
    assert story(gang).count("grown") == 1
