"""What has ended is forgotten in time, and what bills rest on stays."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from scheduling.models import PodSet, UsageInterval, Workload, WorkloadEvent
from scheduling.retention import forget_finished, forget_stories
from scheduling.services import cancel_workload
from tests.scheduling.life.living import after, settle
from tests.scheduling.loop.world import nodes, queue, work

pytestmark = pytest.mark.django_db
DAY = 86_400


@pytest.fixture(autouse=True)
def platform(clock: Any) -> None:
    nodes(1)
    queue("datos", 4)


def names() -> set[str]:
    return set(Workload.objects.values_list("name", flat=True))


def test_everything_is_kept_unless_somebody_says_otherwise(clock: Any):
    work("datos", "done", expected_duration_s=60)
    settle()
    after(clock, 400 * DAY)
    assert (forget_finished(timezone.now()), forget_stories(timezone.now())) == (0, 0)
    assert names() == {"done"}


def test_its_own_time_comes_before_that_of_the_platform(clock: Any, settings: Any):
    settings.FINISHED_KEPT_DAYS = 30
    work("datos", "short", expected_duration_s=60, ttl_s=3600)
    work("datos", "long", expected_duration_s=60, ttl_s=90 * DAY)
    work("datos", "plain", expected_duration_s=60)
    work("datos", "runs")
    settle()
    after(clock, 60)
    for days, kept in ((0.03, 4), (0.05, 3), (29.8, 3), (30.1, 2), (90.1, 1)):
        forget_finished(timezone.now() + timedelta(days=days))
        assert len(names()) == kept, days
    assert names() == {"runs"}


def test_what_was_metered_stays_for_the_bills(clock: Any):
    done = work("datos", "done", expected_duration_s=3600, ttl_s=1, labels={"project": "x"})
    never = work("datos", "never", queue_name="nowhere", ttl_s=1)
    settle()
    cancel_workload(never.pk, actor=None)
    after(clock, 2 * 3600)
    assert forget_finished(timezone.now()) == 2
    assert names() == set()
    row = Workload.everything.get()
    assert (row.name, row.labels, row.archived_at) == ("done", {"project": "x"}, timezone.now())
    assert UsageInterval.objects.get().workload_id == done.pk
    assert not WorkloadEvent.objects.exists()
    assert PodSet.objects.count() == 1
    work("datos", "done")  # its name is free


def test_what_still_holds_something_is_not_forgotten(clock: Any):
    work("datos", "slow", ttl_s=0, annotations={"gpuplatform.io/simulate-stop-seconds": "20"})
    settle()
    cancel_workload(Workload.objects.get().pk, actor=None)
    settle()
    assert forget_finished(timezone.now()) == 0
    after(clock, 20)
    assert forget_finished(timezone.now()) == 1


def test_old_stories_of_ended_work_go_and_those_of_live_work_stay(clock: Any, settings: Any):
    settings.EVENTS_KEPT_DAYS = 10
    work("datos", "done", expected_duration_s=60)
    runs = work("datos", "runs")
    settle()
    after(clock, 60)
    after(clock, 11 * DAY)
    assert forget_stories(timezone.now()) > 0
    assert set(WorkloadEvent.objects.values_list("workload", flat=True)) == {runs.pk}
