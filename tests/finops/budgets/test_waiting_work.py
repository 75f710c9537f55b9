"""Work of a team whose hard budget is gone waits for the next window, or for a larger budget."""

from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine

from finops.budgets.saving import BudgetSpec, delete_budget, save_budget
from finops.models import Budget, BudgetState
from queues.models import Team
from scheduling.engine.terms import Status
from scheduling.models import AdmissionCheck, WorkloadEvent
from tests.scheduling.life.living import after, reasons, settle
from tests.scheduling.loop.world import NOON, nodes, queue, status, work

pytestmark = pytest.mark.django_db
WINDOW = timedelta(hours=12)  # what is left of it


@pytest.fixture
def clock():
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture
def waits(clock, fin):
    """Work of datos, whose budget of the day is gone."""
    nodes(1)
    queue("datos", 4)
    AdmissionCheck.objects.create(name="money", kind="budget", queues=["*"])
    save(fin, 100)
    window = {"starts_at": NOON - WINDOW, "ends_at": NOON + WINDOW}
    BudgetState.objects.update_or_create(
        budget=Budget.objects.get(), defaults={**window, "spent": Decimal(100), "level": 100}
    )
    row = work("datos", "train", gpus=2)
    settle()
    return row


def save(fin, limit, **more):
    told = {"scope": "team", "subject": "datos", "measure": "money", "duration": "1d"}
    return save_budget(
        BudgetSpec("day", **{**told, "limit": Decimal(limit), "is_hard": True, **more}), fin
    )


def test_it_is_sent_back_to_the_queue_and_told_why_and_until_when(waits):
    assert (status(waits), waits.requeue_at) == (Status.PENDING, NOON + WINDOW)
    assert ("evicted", "AdmissionCheck") in reasons(waits)
    event = WorkloadEvent.objects.get(workload=waits, kind="evicted")
    assert "the next window begins, at 2026-06-02 00:00 UTC" in event.facts["message"]
    assert not waits.admissions.filter(released_at=None).exists()


def test_it_starts_when_the_next_window_begins(waits, clock):
    after(clock, WINDOW.total_seconds() - 1)
    assert status(waits) is Status.PENDING
    after(clock, 2)
    assert status(waits) is Status.RUNNING


@pytest.mark.parametrize("change", ["raised", "soft", "deleted"])
def test_it_starts_as_soon_as_the_budget_lets_it(waits, fin, change):
    if change == "deleted":
        delete_budget("day", fin)
    else:
        save(fin, 200) if change == "raised" else save(fin, 100, is_hard=False)
    settle()
    assert status(waits) is Status.RUNNING


def test_a_budget_that_stays_gone_sends_it_back_again_and_others_rest_on(waits, fin, clock):
    rests = work("datos", "rests", gpus=1)
    type(rests).objects.filter(pk=rests.pk).update(requeue_at=NOON + WINDOW)
    clock.shift(timedelta(hours=1))
    save(fin, 99)
    BudgetState.objects.update(spent=Decimal(100), level=100)
    settle()
    assert (status(waits), waits.requeue_at) == (Status.PENDING, NOON + WINDOW)
    assert reasons(waits).count(("evicted", "AdmissionCheck")) == 2
    rests.refresh_from_db()
    assert rests.requeue_at == NOON + WINDOW  # no check had sent it back
    assert Team.objects.get(name="datos").pk == waits.team_id
