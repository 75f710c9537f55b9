"""Past use decides whose turn it is: carried from cycle to cycle, and rebuilt from the rows."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queues.models import ClusterQueue, Cohort, LocalQueue
from scheduling.cycle import run_cycle
from scheduling.engine.history import brought_forward
from scheduling.engine.machines import GPU
from scheduling.engine.snapshot import HALF_LIFE_S
from scheduling.loader import load_snapshot
from scheduling.models import Cycle
from scheduling.past_use import hours_of
from scheduling.reconciler import reconcile
from tests.scheduling.loop.world import NOON, nodes, queue, status, work

pytestmark = pytest.mark.django_db
HALF_LIFE = timedelta(seconds=HALF_LIFE_S)
HOUR = timedelta(hours=1)
MEAN = 1 / 0.693147180559945  # hours held over half-life: 1 / ln 2


def step():
    reconcile()
    run_cycle("test")
    reconcile()


def two_teams(fairness="history"):
    """One node of 4 GPUs: each team owns 2; Datos has just used all 4 for ten hours."""
    Cohort.objects.create(name="llm", fairness=fairness)
    nodes(1, gpus=4)
    queue("datos", 2, cohort="llm")
    queue("ia", 2, cohort="llm")
    return work("datos", "past", gpus=4, expected_duration_s=36_000)


PROMISED, NOT_PROMISED = "2", "8"  # the smallest gang for which room is reserved


@pytest.mark.parametrize(
    ("fairness", "least", "first"),
    [
        ("none", NOT_PROMISED, "datos"),
        ("history", NOT_PROMISED, "ia"),
        ("history", PROMISED, "datos"),  # it was told its start before the other one asked
    ],
)
def test_who_used_less_goes_first_although_it_asked_later(clock, settings, fairness, least, first):
    settings.RESERVATION_MIN_GPUS = least
    two_teams(fairness)
    step()
    waiting = {"datos": work("datos", "old", gpus=4)}
    clock.shift(HOUR)
    waiting["ia"] = work("ia", "young", gpus=4)
    step()
    clock.shift(10 * HOUR)  # the ten hours are over
    step()
    assert {team for team, row in waiting.items() if status(row) == "running"} == {first}


def test_past_use_fades_so_that_the_order_turns_again(clock):
    two_teams()
    step()
    clock.shift(10 * HOUR)
    work("ia", "small", gpus=1, expected_duration_s=3_600)
    step()
    clock.shift(HOUR)
    step()
    used = load_snapshot().memory.history
    assert used["cq-datos"].amount > 39 > used["cq-ia"].amount > 0
    clock.shift(12 * HALF_LIFE)  # 40 GPU-hours are a hundredth by now
    work("ia", "large", gpus=4, expected_duration_s=3_600)
    step()
    clock.shift(HOUR)
    old, young = work("ia", "again", gpus=4), work("datos", "again", gpus=4)
    step()
    assert (status(old), status(young)) == ("pending", "running")


def hours():
    snapshot = load_snapshot()
    return {
        name: brought_forward(used, snapshot.now, snapshot.half_life_s)
        for name, used in snapshot.memory.history.items()
    }


def test_what_is_carried_is_what_the_intervals_say(clock):
    two_teams()
    step()
    for _ in range(40):
        clock.shift(timedelta(seconds=30))
        step()
    carried = hours()
    Cycle.objects.all().delete()
    assert hours() == pytest.approx(carried, rel=1e-9)
    assert carried.keys() == {"cq-datos"}
    clock.shift(10 * HOUR)
    step()
    assert hours()["cq-datos"] == pytest.approx(40, rel=0.03)


def test_after_a_pause_the_intervals_say_who_used_what(clock):
    two_teams()
    step()
    clock.shift(HALF_LIFE)  # nobody saw that the work was over after ten hours
    reconcile()
    run_cycle("test")
    assert hours() == {"cq-datos": pytest.approx(20, rel=0.03)}


def test_a_memory_of_before_there_was_history_is_completed(clock):
    two_teams()
    step()
    clock.shift(HOUR)
    step()
    last = Cycle.objects.first()
    del last.memory["history"]
    last.save()
    clock.shift(HOUR)
    assert load_snapshot().memory.history["cq-datos"].amount == pytest.approx(8, rel=0.01)


def test_the_rows_are_asked_once_and_never_again(clock):
    two_teams()
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            run_cycle("test")
        asked = [q["sql"] for q in queries if "usageinterval" in q["sql"] and "SELECT" in q["sql"]]
        old = [sql for sql in asked if '"ended_at" > ' in sql]
        assert bool(old) == (Cycle.objects.count() == 1)


@pytest.mark.parametrize(
    ("stretch", "expected"),
    [
        ((4, NOON - HOUR, None), 4 * (1 - 0.5 / 168 * 0.693)),
        ((4, NOON - 2 * HOUR, NOON - HOUR), 3.975),
        ((4, NOON, None), 0),
        ((4, NOON + HOUR, None), 0),
        ((2, NOON - 8 * HALF_LIFE, NOON - 7 * HALF_LIFE), 2 * 168 * MEAN * 0.5 / 128),
        ((1, NOON - 60 * HALF_LIFE, None), 168 * MEAN),
    ],
)
def test_hours_of_one_stretch(stretch, expected):
    assert hours_of([stretch], NOON) == pytest.approx(expected, rel=1e-3)


# ---- the local queues of a cluster queue that goes by usage ------------------------------------
@pytest.fixture
def by_usage(clock):
    """4 GPUs behind two doors; ``lq`` has held all of them for an hour, ``other`` waits next."""
    nodes(1, gpus=4)
    queue("datos", 4, admission_order="usage")
    LocalQueue.objects.create(namespace="ns-datos", name="other", cluster_queue="cq-datos")
    work("datos", "past", gpus=4, expected_duration_s=3_600)
    step()


def consumed():
    return {
        name: used.amounts.get(GPU, 0) for name, used in load_snapshot().memory.consumption.items()
    }


def starts(clock, **columns):
    """Return which of two doors is served first, when both wait and ``lq`` asked first."""
    first = {
        "lq": work("datos", "a", gpus=4, **columns),
        "other": work("datos", "b", gpus=4, queue_name="other"),
    }
    clock.shift(HOUR)
    step()
    return {name for name, row in first.items() if status(row) == "running"}


def test_the_door_that_used_less_goes_first_although_it_asked_later(by_usage, clock):
    assert starts(clock) == {"other"}


def test_higher_priority_goes_before_it_where_the_queue_says_so(by_usage, clock):
    ClusterQueue.objects.update(priority_first=True)
    assert starts(clock, priority=5) == {"lq"}


def test_by_priority_nothing_is_remembered(clock):
    nodes(1, gpus=4)
    queue("datos", 4)
    work("datos", "past", gpus=4)
    step()
    assert consumed() == {}


def test_without_a_memory_the_intervals_say_what_was_consumed(by_usage, clock):
    clock.shift(HOUR)
    step()
    clock.shift(HOUR)
    step()
    an_hour = 4 * (1 - 0.5 ** (1 / 168))  # what an hour of 4 GPUs adds to the average
    assert consumed() == {"ns-datos/lq": pytest.approx(an_hour, rel=0.1)}  # starting counts, too
    Cycle.objects.all().delete()
    assert consumed() == {"ns-datos/lq": pytest.approx(an_hour, rel=0.02)}


def test_a_queue_that_comes_to_go_by_usage_knows_its_past(clock):
    nodes(1, gpus=4)
    queue("datos", 4)
    work("datos", "past", gpus=4, expected_duration_s=3_600)
    step()
    clock.shift(HOUR)
    step()
    ClusterQueue.objects.update(admission_order="usage")
    assert consumed().keys() == {"ns-datos/lq"}


def test_a_weight_of_a_door_reaches_the_engine(by_usage):
    LocalQueue.objects.filter(name="lq").update(fair_weight=4)
    doors = load_snapshot().local_queues
    assert {name: door.fair_weight for name, door in doors.items()} == {
        "ns-datos/lq": 4.0,
        "ns-datos/other": 1.0,
    }
