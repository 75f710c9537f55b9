"""A kept world and a freshly read one lead to the same plan, whatever has happened between."""

from datetime import timedelta

import pytest
import time_machine
from django.db import transaction
from django.utils import timezone
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpuplatform.common.wakeup import request_cycle
from queues.models import ClusterQueue, FlavorQuota, LocalQueue
from scheduling import lifecycle, worker
from scheduling.engine.cycle import decide
from scheduling.engine.plan import Hold
from scheduling.kept import stable
from scheduling.loader import load
from scheduling.models import Node, Workload
from scheduling.scaling import change_workload
from scheduling.specs import PodSetChange, WorkloadChange
from scheduling.worker import Worker
from tests.scheduling.loop.world import NOON, RECLAIMS, nodes, queue, work

pytestmark = pytest.mark.django_db
TEAMS = ("datos", "ia", "vision")
steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("submit"),
            st.sampled_from(TEAMS),
            st.integers(1, 3),
            st.integers(1, 3),
            st.integers(0, 2),
            st.sampled_from([None, 30, 90, 400]),
            st.sampled_from([None, 1, 2]),
        ),
        st.tuples(st.just("wait"), st.integers(1, 59)),
        st.tuples(st.just("wait"), st.integers(1, 4000)),
        st.tuples(st.just("cancel"), st.integers(0, 5)),
        st.tuples(st.just("resize"), st.integers(0, 5), st.integers(1, 4)),
        st.tuples(st.just("quota"), st.sampled_from(TEAMS), st.integers(0, 6)),
        st.tuples(st.just("stop"), st.sampled_from(TEAMS), st.sampled_from(["None", "Hold"])),
        st.tuples(st.just("cordon"), st.booleans()),
        st.tuples(st.just("lose"), st.integers(1, 2)),
    ),
    min_size=3,
    max_size=14,
)


def compare(monkeypatch):
    """Let each cycle of a worker be decided on a fresh world as well."""
    decided = worker.soundly

    def both(kept, before, now):
        fresh = load(now).snapshot
        assert {w.key for w in fresh.workloads} == kept.state.workloads.keys()
        again = decide(fresh)
        desk = decided(kept, before, now)
        moves = tuple(d for d in again.decisions if not isinstance(d, Hold))
        assert tuple(desk.moves) == moves
        assert stable(kept.state.memory()) == stable(again.memory)
        return desk

    monkeypatch.setattr(worker, "soundly", both)


def act(step, number, clock) -> None:  # noqa: C901  # a case for each kind of step
    match step:
        case ("submit", team, pods, gpus, priority, seconds, least):
            row = work(
                team,
                f"job{number}",
                pods=pods,
                gpus=gpus,
                priority=priority,
                expected_duration_s=seconds,
                min_member=None if least is None else min(least, pods),
                elastic=least is None and pods > 1,
            )
            request_cycle(lifecycle.CHANGED, row.uid)
        case ("wait", seconds):
            clock.shift(timedelta(seconds=seconds))
        case ("cancel", index):
            for row in Workload.objects.order_by("created_at", "name")[index : index + 1]:
                lifecycle.cancel(row, at=timezone.now())
        case ("resize", index, pods):
            live = Workload.objects.filter(elastic=True, status__in=("pending", "running"))
            for row in live.order_by("created_at", "name")[index : index + 1]:
                asked = WorkloadChange(pod_sets=(PodSetChange("worker", pods, None),))
                change_workload(row.uid, asked, actor=None)
        case ("quota", team, nominal):
            FlavorQuota.objects.filter(cluster_queue__name=f"cq-{team}").update(nominal=nominal)
            ClusterQueue.objects.filter(name=f"cq-{team}").update(updated_at=timezone.now())
            request_cycle("cluster_queue", f"cq-{team}")
        case ("stop", team, policy):
            LocalQueue.objects.filter(namespace=f"ns-{team}").update(stop_policy=policy)
            request_cycle("local_queue", f"ns-{team}/lq")
        case ("cordon", on):
            Node.objects.filter(name="h100-node-01").update(schedulable=not on)
            request_cycle("node", "h100-node-01")
        case ("lose", number_of):
            Node.objects.filter(name=f"h100-node-0{number_of}").delete()
            request_cycle("node", f"h100-node-0{number_of}")


def follow(history, monkeypatch) -> None:
    with transaction.atomic(), time_machine.travel(NOON, tick=False) as clock:
        nodes(2)
        for team in TEAMS:
            queue(team, 3, cohort="llm", minimum_runtime_s=60 * (team == "ia"), **RECLAIMS)
        one = Worker()
        for number, step in enumerate(history):
            act(step, number, clock)
            if number % 2 == 0:
                one.turn()
        one.turn()
        transaction.set_rollback(True)


LOST_FROM_A_RESERVATION = [
    ("submit", "datos", 3, 2, 0, None, None),
    ("submit", "datos", 2, 1, 0, None, None),
    ("wait", 3),
    ("submit", "ia", 2, 2, 2, 400, 2),
    ("quota", "ia", 3),
    ("wait", 687),
    ("wait", 4000),
    ("lose", 2),
    ("wait", 678),
    ("submit", "vision", 1, 2, 2, 30, 2),
    ("wait", 54),
    ("lose", 1),
]
GROWN = [
    ("wait", 16),
    ("wait", 16),
    ("submit", "datos", 3, 2, 0, None, None),
    ("submit", "datos", 2, 1, 0, None, None),
    ("wait", 3),
    ("resize", 1, 4),
    ("lose", 1),
    ("stop", "ia", "Hold"),
    ("wait", 198),
    ("stop", "ia", "Hold"),
    ("submit", "datos", 2, 1, 0, None, 1),
    ("resize", 3, 3),
    ("lose", 2),
    ("cordon", True),
]
SHRUNK = [
    ("wait", 22),
    ("submit", "vision", 3, 1, 0, None, None),
    ("submit", "ia", 1, 1, 0, 30, 2),
    ("cancel", 4),
    ("lose", 1),
    ("wait", 438),
    ("resize", 0, 2),
    ("submit", "ia", 3, 3, 0, 30, None),
    ("quota", "datos", 1),
    ("submit", "ia", 1, 1, 0, 90, None),
    ("quota", "datos", 0),
    ("lose", 2),
]


@settings(max_examples=8, deadline=None)
@example(history=[("wait", 16), ("wait", 22), *LOST_FROM_A_RESERVATION])
@example(history=GROWN)
@example(history=SHRUNK)
@given(history=steps)
def test_after_any_history_both_decide_the_same(history):
    with pytest.MonkeyPatch.context() as patch:
        compare(patch)
        follow(history, patch)


@pytest.mark.long
@settings(max_examples=600, deadline=None)
@given(history=steps)
def test_after_very_many_histories_both_decide_the_same(history):
    with pytest.MonkeyPatch.context() as patch:
        compare(patch)
        follow(history, patch)
