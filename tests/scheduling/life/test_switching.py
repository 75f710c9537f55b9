"""What people decide about live work: stop it, resume it, open its gates, save its progress."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from gpuplatform.common.models import AuditEntry
from gpuplatform.common.problems import Rejected
from scheduling import switching
from scheduling.engine.terms import Status
from scheduling.services import cancel_workload
from scheduling.specs import WorkloadChange
from tests.scheduling.life.living import after, last, settle
from tests.scheduling.loop.world import nodes, queue, status, story, work

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def platform(clock: Any) -> None:
    nodes(1)
    queue("datos", 4)


def switch(row: Any, active: bool) -> None:
    switching.set_active(row.pk, active, actor=None)
    settle()


def test_a_deactivated_workload_gives_back_and_is_not_tried_until_it_is_reactivated():
    row, waits = work("datos", "row", gpus=4), work("datos", "waits", gpus=4)
    settle()
    switch(row, active=False)
    assert (status(row), row.inactive_reason) == (Status.INACTIVE, "UserRequest")
    assert last(row).released_at is not None
    assert status(waits) is Status.RUNNING
    switch(row, active=False)  # twice is once
    cancel_workload(waits.pk, actor=None)
    settle()
    assert status(row) is Status.INACTIVE
    switch(row, active=True)
    assert status(row) is Status.RUNNING
    kinds = [kind for kind in story(row) if "loan" not in kind]
    assert kinds[2:5] == ["deactivated", "released", "reactivated"]
    actions = AuditEntry.objects.order_by("id").values_list("action", flat=True)
    assert {"workload.deactivated", "workload.reactivated"} <= set(actions)


def test_waiting_work_may_be_deactivated_as_well():
    row = work("datos", "row", queue_name="nowhere")
    switch(row, active=False)
    assert status(row) is Status.INACTIVE
    switch(row, active=True)
    assert status(row) is Status.PENDING


def test_what_has_ended_is_neither_stopped_nor_resumed():
    row = work("datos", "row")
    cancel_workload(row.pk, actor=None)
    for active in (True, False):
        with pytest.raises(Rejected) as caught:
            switching.set_active(row.pk, active, actor=None)
        assert [(p.path, p.code) for p in caught.value.problems] == [("active", "NOT_ACTIVE")]


def test_a_gate_keeps_work_out_until_it_is_opened():
    row = work("datos", "row", gates=["a.example/one", "a.example/two"])
    settle()
    assert (status(row), row.pending_reason) == (Status.PENDING, "AdmissionGated")
    assert [blocker["code"] for blocker in row.blockers] == ["GATED"]
    switching.open_gates(row.pk, ("a.example/two",), actor=None)
    settle()
    assert status(row) is Status.PENDING
    switching.open_gates(row.pk, (), actor=None)
    settle()
    assert status(row) is Status.RUNNING
    assert story(row)[:2] == ["gate_opened", "gate_opened"]


def test_a_gate_can_be_opened_and_not_be_added():
    row = work("datos", "row", gates=["a.example/one"])
    with pytest.raises(Rejected) as caught:
        switching.open_gates(row.pk, ("a.example/one", "b.example/two"), actor=None)
    assert [p.code for p in caught.value.problems] == ["GATE_ADDED"]


def test_a_change_does_all_or_nothing():
    row = work("datos", "row", gates=["a.example/one"])
    asked = WorkloadChange(active=False, gates=("b.example/two",))
    with pytest.raises(Rejected):
        switching.change(row.pk, asked, actor=None)
    assert status(row) is Status.PENDING
    switching.change(row.pk, WorkloadChange(active=False, gates=()), actor=None)
    assert (status(row), row.gates) == (Status.INACTIVE, [])


def test_a_checkpoint_saves_progress_and_is_never_unmade(clock: Any):
    row = work("datos", "row", gpus=4)
    settle()
    after(clock, 3600)
    saved = switching.report_checkpoint(row.pk, None, actor=None)
    assert saved.last_checkpoint_at == timezone.now()
    assert story(row)[-1] == "checkpoint"
    with pytest.raises(Rejected) as caught:
        switching.report_checkpoint(row.pk, timezone.now() - timedelta(hours=1), actor=None)
    assert [p.code for p in caught.value.problems] == ["OUT_OF_RANGE"]
    after(clock, 1800)
    switch(row, active=False)
    with pytest.raises(Rejected) as caught:
        switching.report_checkpoint(row.pk, None, actor=None)
    assert [p.code for p in caught.value.problems] == ["NOT_RUNNING"]
