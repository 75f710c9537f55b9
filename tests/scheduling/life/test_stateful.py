"""Everything that may happen, in any order, on the real loop: the laws hold after each step."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection, transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gpuplatform.common import clock
from gpuplatform.common.problems import Rejected
from gpuplatform.common.wakeup import note_changes
from queues.models import ClusterQueue, FlavorQuota, LocalQueue
from scheduling import switching
from scheduling.backends.simulated import FAILURES, START
from scheduling.checks import MANUAL
from scheduling.cycle import run_cycle
from scheduling.engine.terms import CheckVerdict
from scheduling.models import AdmissionCheck, Node, Workload
from scheduling.reconciler import reconcile
from scheduling.services import cancel_workload, delete_node, set_cordon
from scheduling.worker import Worker
from tests.scheduling.life.laws import broken_laws
from tests.scheduling.loop.world import NOON, RECLAIMS, nodes, queue, work

TEAMS = ("datos", "ia")
BEHAVIOURS: tuple[dict[str, Any], ...] = (
    {},
    {"expected_duration_s": 100},
    {"expected_duration_s": 1000, "max_execution_time_s": 300},
    {"annotations": {START: "never"}},
    {"annotations": {FAILURES: "50:1,50:137"}, "max_retries": 1},
    {"annotations": {FAILURES: "50:1"}, "on_failure": "keep", "expected_duration_s": 200},
    {"annotations": {FAILURES: "50:1"}, "on_failure": "fail"},
    {"min_member": 1},
    {"gates": ["gates.example.com/one"]},
    {"on_node_loss": "requeue"},
)


class _Undone(Exception):
    """Leaves a transaction that must not stay."""


@contextmanager
def undone() -> Iterator[None]:
    """Let everything inside be gone afterwards."""
    with suppress(_Undone), transaction.atomic():
        yield
        raise _Undone


class Life(RuleBasedStateMachine):
    """Two queues that lend to each other, three nodes, and whatever people and machines do."""

    def __init__(self) -> None:
        super().__init__()
        self._scope = undone()
        self._scope.__enter__()
        self._clock = time_machine.travel(NOON, tick=False)
        self._now = self._clock.start()
        self._made = 0
        self._worker: Worker | None = None

    def teardown(self) -> None:
        self._clock.stop()
        self._scope.__exit__(None, None, None)

    @initialize(kept=st.booleans(), checked=st.booleans())
    def build(self, kept: bool, checked: bool) -> None:
        self._machines = [node.name for node in nodes(3)]
        for team in TEAMS:
            queue(team, 6, cohort="llm", **RECLAIMS)
        if checked:
            AdmissionCheck.objects.create(name="approval", kind=MANUAL, queues=["cq-ia"])
        self._worker = Worker() if kept else None

    # ---- what may happen -----------------------------------------------------------------------
    @rule(
        team=st.sampled_from(TEAMS),
        pods=st.integers(1, 3),
        gpus=st.sampled_from((1, 2, 4)),
        priority=st.sampled_from((0, 0, 5)),
        like=st.sampled_from(BEHAVIOURS),
    )
    def submit(self, team: str, pods: int, gpus: int, priority: int, like: dict[str, Any]) -> None:
        self._made += 1
        name = f"w{self._made}"
        self._note(work(team, name, pods=pods, gpus=gpus, priority=priority, **like))

    @precondition(lambda self: self._made)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        self._try(lambda: cancel_workload(self._some(data).pk, actor=None))

    @precondition(lambda self: self._made)
    @rule(data=st.data(), active=st.booleans())
    def switch(self, data: st.DataObject, active: bool) -> None:
        row = self._some(data)
        self._try(lambda: switching.set_active(row.pk, active, actor=None))

    @precondition(lambda self: self._made)
    @rule(data=st.data())
    def open_gate(self, data: st.DataObject) -> None:
        row = self._some(data)
        self._try(lambda: switching.open_gates(row.pk, (), actor=None))

    @rule(verdict=st.sampled_from((CheckVerdict.READY, CheckVerdict.RETRY, CheckVerdict.REJECTED)))
    def answer(self, verdict: CheckVerdict) -> None:
        waits = Workload.objects.filter(pending_reason="UnsatisfiedAdmissionChecks").first()
        if waits is not None:
            switching.answer_check(waits.pk, "approval", verdict, actor=None, retry_after_s=60)

    @precondition(lambda self: self._made)
    @rule(data=st.data())
    def save_progress(self, data: st.DataObject) -> None:
        row = self._some(data)
        self._try(lambda: switching.report_checkpoint(row.pk, None, actor=None))

    @rule(team=st.sampled_from(TEAMS), nominal=st.integers(0, 12))
    def edit_quota(self, team: str, nominal: int) -> None:
        FlavorQuota.objects.filter(cluster_queue__name=f"cq-{team}").update(nominal=nominal)
        self._touch(ClusterQueue.objects.get(name=f"cq-{team}"))

    @rule(
        team=st.sampled_from(TEAMS),
        door=st.sampled_from((ClusterQueue, LocalQueue)),
        policy=st.sampled_from(("None", "None", "Hold", "HoldAndDrain")),
    )
    def stop_or_resume(self, team: str, door: Any, policy: str) -> None:
        name = {"name": f"cq-{team}"} if door is ClusterQueue else {"namespace": f"ns-{team}"}
        door.objects.filter(**name).update(stop_policy=policy)
        self._touch(ClusterQueue.objects.get(name=f"cq-{team}"))

    @rule(data=st.data(), what=st.sampled_from(("gone", "away", "cordon", "drain", "back")))
    def change_node(self, data: st.DataObject, what: str) -> None:
        name = data.draw(st.sampled_from(self._machines))
        row = Node.objects.filter(name=name).first()
        if what == "back" and row is None:
            nodes_like = Node.objects.first()
            labels = nodes_like.labels if nodes_like else {"accelerator": "h100-sxm"}
            Node.objects.create(name=name, labels=labels, allocatable=ALLOCATABLE)
        elif what == "back" and row is not None:
            set_cordon(name, False, actor=None)
            Node.objects.filter(name=name).update(ready=True)
        elif row is not None and what == "gone":
            delete_node(name, actor=None)
        elif row is not None and what == "away":
            Node.objects.filter(name=name).update(ready=False)
        elif row is not None:
            set_cordon(name, True, actor=None, drain=what == "drain")
        self._touch(ClusterQueue.objects.first())

    @rule(seconds=st.sampled_from((1, 30, 70, 400, 2000)))
    def let_time_pass(self, seconds: int) -> None:
        self._now.shift(timedelta(seconds=seconds))

    # ---- what holds ----------------------------------------------------------------------------
    @invariant()
    def laws_hold(self) -> None:
        if not hasattr(self, "_machines"):
            return
        self._settle()
        assert broken_laws() == []

    def _settle(self) -> None:
        for _ in range(30):
            looked = reconcile()
            decided = self._worker.decide() if self._worker else run_cycle()
            assert not decided.refused, decided.refused
            if not (looked.moved or decided.moved):
                break
        else:
            raise AssertionError("it never comes to rest")
        if self._worker:
            self._worker.explain()
            if self._made % 5 == 0:
                self._worker.forget()  # the next step begins with a world read anew

    def _some(self, data: st.DataObject) -> Workload:
        number = data.draw(st.integers(1, self._made))
        return Workload.objects.get(name=f"w{number}")

    def _note(self, row: Workload) -> None:
        note_changes("workload", [row.pk])

    def _touch(self, row: Any) -> None:
        ClusterQueue.objects.filter(pk=row.pk).update(updated_at=clock.now())
        note_changes("cluster_queue", [row.name])

    @staticmethod
    def _try(act: Any) -> None:
        with suppress(Rejected):  # what it was about has ended, or does not run
            act()


ALLOCATABLE = {"cpu": 120_000, "memory": 960 * 2**30, "nvidia.com/gpu": 4, "pods": 110}
FEW = settings(
    max_examples=4,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
MANY = settings(FEW, max_examples=150, stateful_step_count=40)


@pytest.mark.django_db
def test_whatever_happens_the_laws_hold() -> None:
    run_state_machine_as_test(Life, settings=FEW)


@pytest.mark.long
@pytest.mark.django_db
def test_whatever_happens_for_long_the_laws_hold() -> None:
    assert connection.vendor in {"sqlite", "postgresql"}
    run_state_machine_as_test(Life, settings=MANY)
