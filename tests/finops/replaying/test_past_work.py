"""Past work becomes a trace of the engine's own workloads."""

from datetime import timedelta

import pytest

from scheduling.loader import load_platform
from scheduling.models import Workload
from scheduling.replay.player import play
from scheduling.replay.site import emptied
from scheduling.retention import forget_finished
from scheduling.selectors.past_traces import count_past, past_trace, span_between
from tests.finops.replaying.past import HOUR, MONDAY, NEXT_MONDAY, busy_week, platform, ran
from tests.scheduling.loop import world

pytestmark = pytest.mark.django_db


def past(since=MONDAY, until=NEXT_MONDAY):
    site = emptied(load_platform(NEXT_MONDAY))
    return site, past_trace(site, since, until, NEXT_MONDAY)


def test_a_replay_under_the_same_quotas_waits_as_long_as_it_really_was():
    platform()
    busy_week()
    site, found = past()
    tape = play(site, found.trace, counted=span_between(MONDAY, NEXT_MONDAY))
    played = {stay.key: (stay.waited_s, stay.finished_s) for stay in tape.stays}
    was = {stay.key: (stay.waited_s, stay.finished_s) for stay in found.was}
    assert played == was
    assert sorted(waited for waited, _end in was.values()) == [0, 0, 10 * 3600]


def test_gangs_keep_their_pods_requests_and_places():
    platform()
    ran("datos", "placed", 1, 2, topology={"node_selector": {"accelerator": "h100-sxm"}}, pods=3)
    _site, found = past()
    (pod_set,) = found.trace.arrivals[0].workload.pod_sets
    assert (pod_set.count, dict(pod_set.requests)) == (3, {"nvidia.com/gpu": 1})
    assert pod_set.node_selector == {"accelerator": "h100-sxm"}


def test_work_that_came_before_is_played_but_is_none_of_the_window():
    platform()
    ran("datos", "before", 1, 40)
    ran("ia", "inside", 30, 1)
    ran("ia", "over", 2, 1)
    _site, found = past(since=MONDAY + 24 * HOUR)
    assert [one.workload.name for one in found.trace.arrivals] == [
        "ns-datos/before",
        "ns-ia/inside",
    ]
    assert [stay.team for stay in found.was] == ["ia"]
    assert count_past(MONDAY + 24 * HOUR, NEXT_MONDAY) == 2


def test_a_late_run_of_old_work_fills_the_window_that_it_really_filled():
    platform()
    row = ran("datos", "evicted", 1, 48, waited=60)  # ran until hour 109
    evicted = MONDAY + 10 * HOUR
    row.admissions.create(
        cluster_queue="cq-datos",
        admitted_at=MONDAY + HOUR,
        started_at=MONDAY + HOUR,
        evicted_at=evicted,
        released_at=evicted,
    )
    site, found = past(since=MONDAY + 50 * HOUR)
    (arrival,) = found.trace.arrivals
    assert arrival.workload.created_at == evicted.timestamp()
    tape = play(site, found.trace, counted=span_between(MONDAY, NEXT_MONDAY))
    assert [stay.finished_s - evicted.timestamp() for stay in tape.stays] == [48 * 3600]


def test_what_cannot_be_played_is_counted():
    platform()
    world.work("datos", "waits", created_at=MONDAY + HOUR)
    gone = ran("ia", "gone", 3, 1)
    gone.admissions.update(cluster_queue="cq-gone")
    _site, found = past()
    assert (found.trace.arrivals, found.left_out) == ((), {"never_ran": 1, "no_queue": 1})


def test_archived_work_is_still_played(settings):
    platform()
    busy_week()
    settings.FINISHED_KEPT_DAYS = 1.0
    assert forget_finished(NEXT_MONDAY + timedelta(days=10)) == 3
    assert not Workload.objects.exists()
    assert len(past()[1].trace.arrivals) == 3


@pytest.mark.parametrize("number", [3, 30])
def test_reading_costs_a_fixed_number_of_queries(number, django_assert_num_queries):
    platform()
    for one in range(number):
        ran("datos", f"w{one}", one, 1)
    site = emptied(load_platform(NEXT_MONDAY))
    with django_assert_num_queries(3):
        past_trace(site, MONDAY, NEXT_MONDAY, NEXT_MONDAY)
