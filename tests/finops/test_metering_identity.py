"""Capacity is what was held, lent, idle and promised to nobody: of our own rows, at every instant.

Source: ``finops.md`` 5. Histories are played by the worker as it runs; what the rows then say is
reckoned here once more, instant by instant, and must be what bills are made of.
"""

import itertools
from collections import defaultdict
from datetime import timedelta
from fractions import Fraction

import pytest
import time_machine
from django.db import transaction
from django.utils import timezone
from hypothesis import example, given, settings
from hypothesis import strategies as st

from finops.allocation.bill import chargeback
from finops.allocation.facts import Period, instant
from finops.loader import load_window, policy_of
from finops.models import BillingPeriod
from scheduling.backends.simulated import STOP
from scheduling.engine.machines import GPU
from scheduling.models import (
    CapacityInterval,
    Node,
    Placement,
    QuotaInterval,
    UsageInterval,
    Workload,
)
from scheduling.worker import Worker
from tests.scheduling.loop.test_kept_world import TEAMS, act
from tests.scheduling.loop.world import NOON, RECLAIMS, nodes, queue

pytestmark = pytest.mark.django_db
MICROSECOND = timedelta(microseconds=1)
HOUR = 3_600_000_000
SLOW = {STOP: "41"}  # pods take their time to go

submissions = st.tuples(
    st.just("submit"),
    st.sampled_from(TEAMS),
    st.integers(1, 6),
    st.just(1),
    st.integers(0, 2),
    st.sampled_from([None, 30, 90, 400]),
    st.sampled_from([None, 1, 2]),
)
steps = st.one_of(
    submissions,
    submissions,
    st.tuples(st.just("wait"), st.integers(1, 300)),
    st.tuples(st.just("cancel"), st.integers(0, 5)),
    st.tuples(st.just("resize"), st.integers(0, 5), st.integers(1, 4)),
    st.tuples(st.just("quota"), st.sampled_from(TEAMS), st.integers(0, 6)),
    st.tuples(st.just("cordon"), st.booleans()),
    st.tuples(st.just("lose"), st.integers(1, 2)),
)
histories = st.lists(steps, min_size=4, max_size=12)
# A gang takes the whole cohort, loses surplus to its lenders, and quotas change under it.
SURPLUS = [
    ("submit", "datos", 6, 1, 0, None, 1),
    ("wait", 100),
    ("submit", "ia", 2, 1, 1, 90, None),
    ("wait", 7),
    ("quota", "vision", 6),
    ("submit", "vision", 3, 1, 2, None, 2),
    ("wait", 211),
    ("quota", "datos", 0),
    ("lose", 2),
    ("wait", 50),
]


@settings(max_examples=4, deadline=None)
@given(history=histories)
@example(history=SURPLUS)
def test_capacity_is_held_lent_idle_and_promised_to_nobody(history):
    follow(history)


@pytest.mark.long
@settings(max_examples=80, deadline=None)
@given(history=histories)
def test_so_it_is_in_many_histories(history):
    follow(history)


def follow(history):
    with transaction.atomic(), time_machine.travel(NOON, tick=False) as clock:
        nodes(2)
        for team in TEAMS:
            queue(team, 3, cohort="llm", **RECLAIMS)
        worker = Worker()
        worker.turn()
        for number, step in enumerate(history):
            act(step, number, clock)
            Workload.objects.update(annotations=SLOW, grace_s=60)
            worker.decide()
            assert_nobodys_pods_are_metered_to_nobody()
            clock.shift(MICROSECOND * 1_000_003)
            worker.turn()
            assert_nobodys_pods_are_metered_to_nobody()
        clock.shift(timedelta(minutes=7))
        end = timezone.now()
        reckoned = assert_identity_at_every_instant(end)
        assert_bills_stand_on_the_same(reckoned, end)
        transaction.set_rollback(True)


def assert_nobodys_pods_are_metered_to_nobody():
    """What stands on a node is metered now, pods on their way out included."""
    metered, standing = defaultdict(int), defaultdict(int)
    for row in UsageInterval.objects.filter(ended_at=None):
        metered[row.admission_id] += row.amount
    known = set(Node.objects.values_list("name", flat=True))
    for row in Placement.objects.filter(admission__released_at=None, node__in=known):
        standing[row.admission_id] += row.count * row.requests[GPU]
    assert metered == standing


def assert_identity_at_every_instant(end):
    """Return the integrals by name, in GPU-microseconds."""
    usage, capacity, quotas = (
        list(table.objects.all()) for table in (UsageInterval, CapacityInterval, QuotaInterval)
    )
    every = [*usage, *capacity, *quotas]
    edges = sorted(
        {r.started_at for r in every} | {r.ended_at for r in every if r.ended_at} | {end}
    )
    sums = defaultdict(Fraction)
    for start, stop in itertools.pairwise(edges):
        now = {
            name: [r for r in rows if r.started_at <= start and (r.ended_at or end) > start]
            for name, rows in (("usage", usage), ("capacity", capacity), ("quotas", quotas))
        }
        for name, amount in at_one_instant(**now).items():
            sums[name] += amount * ((stop - start) // MICROSECOND)
    return sums


def at_one_instant(usage, capacity, quotas):
    """Return capacity, use, net idle, what is in no quota, and use beyond capacity."""
    there = sum(row.amount for row in capacity)
    held, nominal, lendable = defaultdict(int), {}, {}
    for row in usage:
        held[row.cluster_queue] += row.amount
    borrowed = {
        n: sum(r.amount for r in usage if r.cluster_queue == n and r.holding == "borrowed")
        for n in held
    }
    for row in quotas:
        nominal[row.cluster_queue] = row.nominal
        free = max(0, row.nominal - held[row.cluster_queue])
        lendable[row.cluster_queue] = (
            free if row.lending_limit is None else min(free, row.lending_limit)
        )
    # Whose ground it is: own quota first, all else on loan, and no lender lends what it has not.
    for name, amount in held.items():
        assert borrowed.get(name, 0) == max(0, amount - nominal.get(name, 0))
    by_lender = defaultdict(int)
    for row in usage:
        if row.lender:
            by_lender[row.lender] += row.amount
    for name, amount in by_lender.items():
        assert amount <= lendable[name]
    used, lent = sum(held.values()), min(sum(borrowed.values()), sum(lendable.values()))
    assert sum(by_lender.values()) == lent
    net_idle = Fraction(sum(max(0, n - held[name]) for name, n in nominal.items()) - lent)
    net_idle = min(net_idle, Fraction(max(0, there - used)))  # overcommitted cohorts
    over = max(0, used - there)
    unquota = there + over - used - net_idle
    assert min(net_idle, unquota) >= 0
    if there >= sum(nominal.values()) and not over and lent == sum(borrowed.values()):
        assert unquota == there - sum(nominal.values())
    return {
        "capacity": there,
        "used": used,
        "net_idle": net_idle,
        "unquota": unquota,
        "over": over,
        "borrowed": sum(borrowed.values()),
        "lent": lent,
    }


def assert_bills_stand_on_the_same(reckoned, end):
    window = Period(instant(NOON), instant(end), "UTC", "EUR")
    month = load_window(window, policy_of(BillingPeriod()))
    memo = chargeback(month.under("separate")).memo
    for name in ("capacity", "used", "net_idle", "unquota", "over"):
        billed = sum((getattr(row, name) for row in memo.metering), Fraction(0))
        assert (name, billed) == (name, reckoned[name] / HOUR)
    for name in ("borrowed", "lent"):
        billed = sum((getattr(row, name) for row in memo.queues), Fraction(0))
        assert (name, billed) == (name, reckoned[name] / HOUR)
