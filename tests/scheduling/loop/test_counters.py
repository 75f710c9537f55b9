"""What a workload made of its GPUs, counted from its rows: preempted, lost, borrowed, waited."""

import itertools
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from queues.access import Actor
from scheduling import lifecycle
from scheduling.counters import Counters, Measured, Span, Stay, count
from scheduling.cycle import run_cycle
from scheduling.models import Admission, Workload
from scheduling.reconciler import reconcile
from scheduling.selectors.counters import counters_by, workload_counters
from scheduling.serializers import WorkloadSerializer
from scheduling.switching import report_checkpoint, set_active
from tests.scheduling.loop.world import NOON, RECLAIMS, nodes, queue, work

HOUR = timedelta(hours=1)
ALL = Actor(None, frozenset({"admin"}))
MICROSECONDS = 3_600_000_000


def at(hours):
    return NOON + hours * HOUR


def lost(since, until, gpus=None):
    return {"from": at(since).isoformat(), "to": at(until).isoformat(), "gpus": gpus}


CASES = [
    # stay, spans (gpus, from, to, holding), held, ready, borrowed, preempted, lost in GPU-hours
    (Stay(), [(4, 0, 2, "nominal")], (8, 0, 0, 0, 0)),
    (Stay(at(1)), [(4, 0, 2, "nominal"), (1, 0, 2, "borrowed")], (10, 5, 2, 0, 0)),
    (Stay(at(0), "Preempted", (lost(1, 2),)), [(4, 0, 3, "nominal")], (12, 12, 0, 12, 4)),
    (Stay(at(0), "Cancelled"), [(2, 0, 1, "nominal")], (2, 2, 0, 0, 0)),
    (Stay(at(0), "Deactivated", (lost(0, 1),)), [(2, 0, 1, "nominal")], (2, 2, 0, 0, 2)),
    (Stay(at(0), "", (lost(0, 1), lost(1, 2))), [(2, 0, 4, "nominal")], (8, 8, 0, 0, 4)),
    (Stay(at(0), "Preempted", (lost(-2, 0, 3),)), [(3, 0, 1, "nominal")], (3, 3, 0, 3, 6)),
    (Stay(at(0)), [(1, 0, None, "nominal")], (10, 10, 0, 0, 0)),  # still held: up to now
]


@pytest.mark.parametrize(("stay", "spans", "wanted"), CASES)
def test_counters_are_integrals_of_what_was_held(stay, spans, wanted):
    rows = [Span(n, at(a), None if b is None else at(b), kind) for n, a, b, kind in spans]
    whole = count(stay, rows, None, at(10))
    assert whole == Counters(*(n * MICROSECONDS for n in wanted))
    edges = [at(h) for h in (-5, 0.3, 1, 1.7, 10)]
    parts = [count(stay, rows, a, b) for a, b in itertools.pairwise(edges)]
    assert sum(parts, Counters()) == whole  # windows add up


def test_what_nobody_measured_is_not_zero():
    assert Counters(held=1).hours()["idle"] is None
    both = Counters(measured=Measured(idle=Decimal(1))) + Counters(held=MICROSECONDS)
    assert (both.hours()["idle"], both.hours()["held"]) == (1, 1)


# ---- from rows ----------------------------------------------------------------------------
def turn():
    for _ in range(3):
        reconcile()
        run_cycle()


@pytest.mark.django_db
def test_an_eviction_loses_what_was_done_since_the_last_checkpoint(clock):
    nodes(1)
    queue("datos", 2, cohort="llm", **RECLAIMS)
    queue("ia", 2, cohort="llm", **RECLAIMS)
    borrower = work("ia", "borrower", gpus=4)
    turn()
    clock.shift(2 * HOUR)
    report_checkpoint(borrower.uid, timezone.now(), actor=None)
    clock.shift(HOUR)
    work("datos", "owner", gpus=2, priority=1)
    turn()
    clock.shift(HOUR)
    borrower = Workload.objects.get(pk=borrower.pk)
    found = workload_counters(borrower, timezone.now())
    hours = {name: float(value) for name, value in found.hours.items() if value is not None}
    assert hours == {"held": 12, "ready": 12, "borrowed": 6, "preempted": 12, "lost": 4}
    assert found.pending_s == 3600
    told = WorkloadSerializer(borrower, context={"actor": ALL}).data["counters"]
    assert (told["lost_gpu_hours"], told["idle_gpu_hours"]) == ("4.000000", None)
    assert told["sources"]["lost"] == "scheduler"
    by_team = {n: c.hours() for n, c in counters_by(ALL, "team", NOON, timezone.now())}
    assert (by_team["ia"]["preempted"], by_team["datos"]["preempted"]) == (12, 0)
    assert by_team["ia"]["held"] + by_team["datos"]["held"] == 14


@pytest.mark.django_db
def test_work_that_is_cancelled_was_not_preempted_and_lost_nothing_by_the_platform(clock):
    nodes(1)
    queue("datos", 4)
    job = work("datos", "job", gpus=2)
    turn()
    clock.shift(HOUR)
    lifecycle.cancel(Workload.objects.get(pk=job.pk), at=timezone.now())
    turn()
    found = workload_counters(Workload.objects.get(pk=job.pk), timezone.now()).hours
    assert [found[name] for name in ("held", "preempted", "lost")] == [2, 0, 0]


@pytest.mark.django_db
def test_surplus_that_is_taken_loses_its_part_alone(clock):
    nodes(2)
    queue("datos", 8, **RECLAIMS)
    gang = work("datos", "gang", pods=8, min_member=4)
    turn()
    clock.shift(HOUR)
    work("datos", "first", pods=3)
    turn()
    found = workload_counters(Workload.objects.get(pk=gang.pk), timezone.now()).hours
    assert (found["held"], found["lost"]) == (8, 3)


@pytest.mark.django_db
def test_time_in_which_it_was_switched_off_is_no_waiting(clock):
    nodes(1)
    queue("datos", 1)
    job = work("datos", "job", gpus=4)  # never fits its quota
    for active in (False, True):
        clock.shift(HOUR)
        set_active(job.uid, active, actor=None)
    clock.shift(HOUR)
    job = Workload.objects.get(pk=job.pk)
    assert workload_counters(job, timezone.now()).pending_s == 7200
    assert not Admission.objects.exists()
