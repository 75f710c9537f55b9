"""Waiting for ready, and the longest execution, on the real loop (``admission.md`` K52, K54)."""

from datetime import timedelta
from typing import Any

import pytest

from queues.models import ClusterQueue
from scheduling import switching
from scheduling.backends.simulated import START
from scheduling.engine.terms import Status
from scheduling.models import Cycle
from scheduling.reconciler import reconcile
from scheduling.services import cancel_workload
from tests.scheduling.life.living import after, last, reasons, settle
from tests.scheduling.loop.world import NOON, nodes, queue, status, story, usage, work

pytestmark = pytest.mark.django_db
LEFT = ["admitted", "evicted", "released"]
NEVER = {"annotations": {START: "never"}}


@pytest.fixture(autouse=True)
def platform(clock: Any) -> None:
    nodes(1)
    queue("datos", 4)


def minutes(count: float):
    return NOON + timedelta(minutes=count)


def test_who_is_not_ready_in_time_rests_and_is_tried_again(clock: Any):
    stuck = work("datos", "stuck", gpus=4, **NEVER)
    settle()
    assert status(stuck) is Status.ADMITTED
    after(clock, 1799)
    assert status(stuck) is Status.ADMITTED
    other = work("datos", "other", gpus=4)  # younger, and of the same priority
    after(clock, 1)
    assert status(stuck) is Status.PENDING
    assert (stuck.pending_reason, stuck.requeue_at) == ("BackingOff", minutes(31))
    assert (stuck.waiting_since, stuck.queued_at, stuck.requeues) == (*[minutes(30)] * 2, 1)
    assert last(stuck).released_at == minutes(30)
    assert status(other) is Status.RUNNING  # nobody waits behind who rests
    assert [kind for kind in story(stuck) if "loan" not in kind] == LEFT
    other.delete()
    after(clock, 59)
    assert status(stuck) is Status.PENDING
    after(clock, 1)
    assert status(stuck) is Status.ADMITTED
    assert last(stuck).admitted_at == minutes(31)


def test_the_cycle_says_when_to_look_again(clock: Any):
    work("datos", "stuck", **NEVER)
    settle()
    assert reconcile().look_again_at == minutes(30)
    after(clock, 1800)
    assert Cycle.objects.latest("id").look_again_at == minutes(31)


def test_it_is_metered_until_its_pods_have_gone(clock: Any):
    stuck = work("datos", "stuck", gpus=2, **NEVER)
    settle()
    after(clock, 4000)  # noticed late, written when it was due
    assert usage(stuck)[0] == ("nominal", "", 2, NOON, minutes(30))


def test_after_the_limit_somebody_has_to_reactivate_it(clock: Any, settings: Any):
    settings.REQUEUE_LIMIT = 1
    stuck = work("datos", "stuck", **NEVER)
    settle()
    after(clock, 1800)
    after(clock, 60)
    after(clock, 1800)
    assert status(stuck) is Status.INACTIVE
    assert stuck.inactive_reason == "RequeuingLimitExceeded"
    assert last(stuck).released_at is not None
    switching.set_active(stuck.pk, active=True, actor=None)
    settle()
    assert status(stuck) is Status.ADMITTED
    assert (stuck.requeues, stuck.inactive_reason, stuck.queued_at) == (0, "", None)


@pytest.mark.parametrize(("rule", "first"), [("Eviction", "younger"), ("Creation", "stuck")])
def test_its_place_is_that_of_its_eviction_or_of_its_submission(clock, settings, rule, first):
    settings.REQUEUE_TIMESTAMP = rule
    stuck = work("datos", "stuck", gpus=4, **NEVER)
    settle()
    after(clock, 1799)
    blocker = work("datos", "blocker", gpus=4, priority=9)  # nobody knows until when it runs
    younger = work("datos", "younger", gpus=4)
    after(clock, 1)
    after(clock, 300)
    cancel_workload(blocker.pk, actor=None)
    settle()  # the rest is over, and what blocked both has gone
    states = {row.name: status(row) for row in (stuck, younger)}
    assert status(blocker) is Status.FINISHED
    assert [name for name, state in states.items() if state is not Status.PENDING] == [first]


def test_the_longest_execution_counts_over_evictions(clock: Any):
    long = work("datos", "long", gpus=4, max_execution_time_s=1000)
    settle()
    after(clock, 600)
    switching.set_active(long.pk, active=False, actor=None)
    settle()
    assert (status(long), long.executed_s) == (Status.INACTIVE, 600.0)
    long.executed_s = 600.0  # an eviction keeps it; a reactivation begins anew
    switching.set_active(long.pk, active=True, actor=None)
    settle()
    after(clock, 999)
    assert status(long) is Status.RUNNING
    after(clock, 1)
    assert status(long) is Status.INACTIVE
    assert long.inactive_reason == "MaximumExecutionTimeExceeded"
    assert ("deactivated", "MaximumExecutionTimeExceeded") in reasons(long)


def test_time_before_a_preemption_counts(clock: Any):
    ClusterQueue.objects.update(within_cluster_queue="LowerPriority")
    long = work("datos", "long", gpus=4, max_execution_time_s=1000)
    settle()
    after(clock, 600)
    work("datos", "urgent", gpus=4, priority=9, expected_duration_s=100)
    settle()
    assert (status(long), long.executed_s) == (Status.PENDING, 600.0)
    after(clock, 100)
    assert status(long) is Status.RUNNING
    after(clock, 399)
    assert status(long) is Status.RUNNING
    after(clock, 1)
    assert (status(long), long.executed_s) == (Status.INACTIVE, 1000.0)
