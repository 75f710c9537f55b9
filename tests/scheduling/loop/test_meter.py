"""What is metered is what was held, to the microsecond, whatever happened and whoever noticed."""

from collections import defaultdict
from datetime import datetime, timedelta

import pytest
import time_machine
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from queues.models import ClusterQueue, FlavorQuota
from queues.services import save_cohort
from queues.specs import CohortSpec
from scheduling import lifecycle
from scheduling.cycle import run_cycle
from scheduling.engine.machines import GPU
from scheduling.models import (
    Admission,
    CapacityInterval,
    Node,
    QuotaInterval,
    UsageInterval,
    Workload,
)
from scheduling.reconciler import reconcile
from scheduling.services import delete_node
from tests.scheduling.loop.world import NOON, RECLAIMS, nodes, queue, usage, work

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
TEAMS = ("datos", "ia", "plataforma")


def edit_quota(name: str, nominal: int) -> None:
    row = ClusterQueue.objects.get(name=name)
    FlavorQuota.objects.filter(cluster_queue=row).update(nominal=nominal)
    ClusterQueue.objects.filter(pk=row.pk).update(
        version=F("version") + 1, updated_at=timezone.now()
    )


def cordon(cordoned: bool) -> None:
    Node.objects.update(
        schedulable=not cordoned, version=F("version") + 1, updated_at=timezone.now()
    )


def test_an_edited_quota_turns_own_use_into_a_loan_at_the_instant_of_the_edit(clock):
    nodes(1)
    queue("datos", 2, cohort="llm")
    queue("ia", 2, cohort="llm")
    job = work("datos", "job", gpus=2)
    run_cycle()
    clock.shift(10 * MINUTE)
    edit_quota("cq-datos", 1)
    clock.shift(MINUTE)
    run_cycle()
    edited = NOON + 10 * MINUTE
    assert usage(job) == [
        ("nominal", "", 2, NOON, edited),
        ("borrowed", "cq-ia", 1, edited, None),
        ("nominal", "", 1, edited, None),
    ]
    rows = QuotaInterval.objects.filter(cluster_queue="cq-datos").order_by("started_at")
    assert [(r.nominal, r.started_at, r.ended_at) for r in rows] == [
        (2, NOON, edited),
        (1, edited, None),
    ]


def test_a_cohort_that_comes_below_another_begins_a_new_promise_and_leaves_the_old_one(clock):
    nodes(1)
    queue("datos", 2, cohort="llm")
    run_cycle()
    clock.shift(10 * MINUTE)
    save_cohort(CohortSpec("all"), actor=None)
    save_cohort(CohortSpec("llm", parent="all"), actor=None)
    clock.shift(MINUTE)
    run_cycle()
    rows = QuotaInterval.objects.order_by("started_at")
    assert [(r.cohort, r.root, r.started_at, r.ended_at) for r in rows] == [
        ("llm", "llm", NOON, NOON + 10 * MINUTE),
        ("llm", "all", NOON + 10 * MINUTE, None),
    ]
    clock.shift(MINUTE)
    run_cycle()
    assert rows.count() == 2


def test_what_was_metered_past_an_end_that_nobody_had_noticed_is_taken_back(clock):
    nodes(1)
    queue("datos", 2, cohort="llm")
    queue("ia", 2, cohort="llm")
    job = work("datos", "job", gpus=2, expected_duration_s=60)
    neighbour = work("datos", "neighbour", gpus=1)
    run_cycle()
    reconcile()
    clock.shift(2 * MINUTE)
    edit_quota("cq-datos", 1)
    clock.shift(MINUTE)
    run_cycle()  # a split of something that is over already
    assert len(usage(job)) == 3
    reconcile()
    assert usage(job) == [("nominal", "", 2, NOON, NOON + MINUTE)]
    assert usage(neighbour) == [
        ("borrowed", "cq-ia", 1, NOON, NOON + MINUTE),
        ("nominal", "", 1, NOON + MINUTE, None),
    ]


def test_capacity_follows_nodes_that_are_cordoned_and_leave(clock):
    (node,) = nodes(1)
    run_cycle()
    clock.shift(MINUTE)
    cordon(True)
    clock.shift(MINUTE)
    run_cycle()
    node.delete()
    clock.shift(MINUTE)
    run_cycle()
    rows = CapacityInterval.objects.order_by("started_at")
    assert [(r.flavor, r.amount, r.healthy, r.started_at, r.ended_at) for r in rows] == [
        ("h100-sxm", 4, True, NOON, NOON + MINUTE),
        ("h100-sxm", 4, False, NOON + MINUTE, NOON + 3 * MINUTE),
    ]
    assert {r.resource for r in rows} == {GPU}


def test_a_node_that_left_while_no_worker_looked_is_paid_until_it_left(clock):
    nodes(1)
    run_cycle()
    clock.shift(10 * MINUTE)
    delete_node(Node.objects.get().name, actor=None)
    clock.shift(timedelta(days=30))
    run_cycle()
    row = CapacityInterval.objects.get()
    assert (row.started_at, row.ended_at) == (NOON, NOON + 10 * MINUTE)


def test_a_cycle_that_finds_nothing_new_writes_no_interval(clock):
    nodes(2)
    queue("datos", 8)
    work("datos", "job", gpus=2)
    run_cycle()

    def rows() -> list[object]:
        tables = (UsageInterval, CapacityInterval, QuotaInterval)
        return [list(table.objects.order_by("id").values()) for table in tables]

    before = rows()
    clock.shift(MINUTE)
    run_cycle()
    reconcile()
    run_cycle()
    assert rows() == before


def test_the_bill_goes_to_the_team_of_the_queue(clock):
    nodes(1)
    row = queue("datos", 4)
    work("datos", "job", team=None)
    run_cycle()
    metered = UsageInterval.objects.get()
    assert (metered.team, metered.cluster_queue, metered.namespace) == (
        row.team,
        "cq-datos",
        "ns-datos",
    )


# ---- the law -----------------------------------------------------------------------------------
submissions = st.tuples(
    st.just("submit"),
    st.sampled_from(TEAMS),
    st.integers(1, 4),
    st.integers(0, 2),
    st.sampled_from([None, 30, 90, 400]),
)
steps = st.lists(
    st.one_of(
        submissions,
        st.tuples(st.just("wait"), st.integers(1, 200)),
        st.tuples(st.just("cancel"), st.integers(0, 5)),
        st.tuples(st.just("quota"), st.sampled_from(TEAMS), st.integers(0, 4)),
        st.tuples(st.just("cordon"), st.booleans()),
        st.tuples(st.just("cycle")),
        st.tuples(st.just("look")),
    ),
    min_size=3,
    max_size=14,
)


@settings(max_examples=25, deadline=None)
@given(history=steps)
def test_held_time_and_metered_time_are_the_same(history):
    with transaction.atomic(), time_machine.travel(NOON, tick=False) as clock:
        nodes(1)
        for team in TEAMS:
            queue(team, 2, cohort="llm", **RECLAIMS)
        for number, step in enumerate(history):
            play(step, number, clock)
            if number % 3 == 0:
                reconcile()
                run_cycle()
        reconcile()
        end = NOON + timedelta(days=1)
        assert metered(end) == held(end)
        assert_whole_at_every_instant()
        transaction.set_rollback(True)


def play(step, number, clock) -> None:
    match step:
        case ("submit", team, gpus, priority, seconds):
            work(team, f"job{number}", gpus=gpus, priority=priority, expected_duration_s=seconds)
        case ("wait", seconds):
            clock.shift(timedelta(seconds=seconds))
        case ("cancel", index):
            for workload in Workload.objects.order_by("created_at", "name")[index : index + 1]:
                lifecycle.cancel(workload, at=timezone.now())
        case ("quota", team, nominal):
            edit_quota(f"cq-{team}", nominal)
        case ("cordon", cordoned):
            cordon(cordoned)
        case ("cycle",):
            run_cycle()
        case ("look",):
            reconcile()


def held(end: datetime) -> dict[int, timedelta]:
    """Return GPU-time between admission and release, by admission."""
    return {
        row.pk: ((row.released_at or end) - row.admitted_at) * row.workload.gpus
        for row in Admission.objects.select_related("workload")
        if (row.released_at or end) > row.admitted_at
    }


def metered(end: datetime) -> dict[int, timedelta]:
    """Return GPU-time of the usage rows, by admission."""
    found: defaultdict[int, timedelta] = defaultdict(timedelta)
    for row in UsageInterval.objects.all():
        found[row.admission_id] += ((row.ended_at or end) - row.started_at) * row.amount
    return dict(found)


def assert_whole_at_every_instant() -> None:
    """Every admission is metered with all of its GPUs from its first instant to its last."""
    for admission in Admission.objects.select_related("workload"):
        rows = list(admission.usage.all())
        edges = sorted({r.started_at for r in rows} | {r.ended_at for r in rows if r.ended_at})
        for instant in edges:
            if admission.released_at is None or instant < admission.released_at:
                alive = [
                    r
                    for r in rows
                    if r.started_at <= instant and (r.ended_at is None or instant < r.ended_at)
                ]
                assert sum(r.amount for r in alive) == admission.workload.gpus
