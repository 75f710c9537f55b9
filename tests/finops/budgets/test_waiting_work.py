"""Work of a team whose hard budget is gone waits for the next window, or for a larger budget."""

from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine

from finops.budgets.measuring import measure_budgets
from finops.budgets.saving import BudgetSpec, delete_budget, save_budget
from finops.models import Budget, BudgetState
from gpuplatform.common.models import Change
from gpuplatform.common.wakeup import request_cycle
from queues.models import Team
from scheduling.cycle import run_cycle
from scheduling.engine.terms import Status
from scheduling.lifecycle import CHANGED
from scheduling.models import AdmissionCheck, WorkloadEvent
from scheduling.reconciler import reconcile
from scheduling.worker import Worker
from tests.scheduling.life.living import after, reasons, settle
from tests.scheduling.loop.world import NOON, RECLAIMS, nodes, queue, status, work

pytestmark = pytest.mark.django_db
WINDOW = timedelta(hours=12)  # what is left of it
STANDS = (Status.ADMITTED, Status.RUNNING)


@pytest.fixture
def clock():
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture
def broke(clock, fin):
    """Let the day's budget of datos be gone, and its check be asked of all work."""
    nodes(1)
    queue("datos", 4, cohort="all", **RECLAIMS)
    AdmissionCheck.objects.create(name="money", kind="budget", queues=["*"])
    save(fin, 100)
    window = {"starts_at": NOON - WINDOW, "ends_at": NOON + WINDOW}
    BudgetState.objects.update_or_create(
        budget=Budget.objects.get(), defaults={**window, "spent": Decimal(100), "level": 100}
    )


@pytest.fixture
def waits(broke):
    """Work of datos, whose budget of the day is gone."""
    row = work("datos", "train", gpus=2)
    settle()
    return row


def save(fin, limit, **more):
    told = {"scope": "team", "subject": "datos", "measure": "money", "duration": "1d"}
    return save_budget(
        BudgetSpec("day", **{**told, "limit": Decimal(limit), "is_hard": True, **more}), fin
    )


def test_it_waits_for_its_budget_and_never_holds_quota(waits):
    waits.refresh_from_db()
    assert (status(waits), waits.pending_reason) == (Status.PENDING, "BackingOff")
    (blocker,) = waits.blockers
    assert blocker["code"] == "BUDGET_BLOCK"
    assert blocker["facts"]["until"] == int((NOON + WINDOW).timestamp())
    assert not waits.admissions.exists()
    assert "evicted" not in dict(reasons(waits))


BODY = {
    "name": "asked",
    "namespace": "ns-datos",
    "queue": "lq",
    "pod_sets": [{"name": "main", "count": 1, "requests": {"nvidia.com/gpu": 1}}],
}


def test_a_dry_run_and_new_work_say_so_before_any_cycle(broke, ada, signed_in):
    browser, json = signed_in(ada), "application/json"
    told = browser.post("/api/v1/workloads/?dry_run=All", BODY, json).json()["forecast"]
    assert (told["code"], told["numbers"]["blocker"]) == ("WOULD_WAIT", "BUDGET_BLOCK")
    where = browser.post("/api/v1/workloads/", BODY, json)["Location"]
    new = browser.get(where).json()
    assert (new["pending_reason"], new["blockers"][0]["code"]) == ("BackingOff", "BUDGET_BLOCK")
    sentence = new["blockers"][0]["sentence"]
    assert sentence in browser.get(f"/workloads/{new['uid']}/").text.replace("&#x27;", "'")
    settle()
    looked_at = browser.get(where).json()
    assert looked_at["blockers"] == new["blockers"]


@pytest.mark.parametrize("keeps", [True, False], ids=["kept world", "read anew"])
def test_nobody_is_evicted_for_work_without_a_budget(broke, fin, keeps):
    queue("ia", 0, cohort="all")
    borrower = work("ia", "fills", gpus=4)
    turn = Worker().turn if keeps else settle
    turn()
    late = work("datos", "late", gpus=4, priority=1)
    request_cycle(CHANGED, late.pk)
    turn()
    assert (status(late), status(borrower) in STANDS) == (Status.PENDING, True)
    assert [one["code"] for one in late.blockers] == ["BUDGET_BLOCK"]
    assert not WorkloadEvent.objects.filter(kind="evicted").exists()
    save(fin, 200)
    turn()
    assert WorkloadEvent.objects.get(kind="evicted").workload == borrower, "now it has its right"


def test_a_budget_that_is_gone_by_the_time_quota_is_reserved_sends_it_back(waits, fin, clock):
    save(fin, 200)
    request_cycle(CHANGED, waits.pk)
    assert run_cycle().admitted == 1
    BudgetState.objects.update(spent=Decimal(200))
    reconcile()
    event = WorkloadEvent.objects.get(workload=waits, kind="evicted")
    assert "is gone: 200 of 200 EUR" in event.facts["message"]
    assert "the next window begins, at 2026-06-02 00:00 UTC" in event.facts["message"]
    settle()
    assert (status(waits), waits.requeue_at) == (Status.PENDING, NOON + WINDOW)


def test_a_kept_world_follows_what_is_measured(waits, clock):
    worker = Worker()
    worker.turn()
    before = Change.objects.count()
    BudgetState.objects.update(starts_at=NOON - 2 * WINDOW, ends_at=NOON + 2 * WINDOW)
    measure_budgets()
    assert Change.objects.count() == before + 1, "it is asked anew once it has room again"
    measure_budgets()
    assert Change.objects.count() == before + 1
    worker.turn()
    assert status(waits) is not Status.PENDING


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


def test_a_budget_that_stays_gone_keeps_it_waiting_and_others_rest_on(waits, fin, clock):
    rests = work("datos", "rests", gpus=1)
    type(rests).objects.filter(pk=rests.pk).update(requeue_at=NOON + WINDOW)
    clock.shift(timedelta(hours=1))
    save(fin, 99)
    BudgetState.objects.update(spent=Decimal(100), level=100)
    settle()
    assert status(waits) is Status.PENDING
    rests.refresh_from_db()
    assert rests.requeue_at == NOON + WINDOW  # no check had sent it back
    assert Team.objects.get(name="datos").pk == waits.team_id
