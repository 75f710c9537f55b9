"""Admission checks: quota is reserved first, and work starts once everybody agrees (K48)."""

from collections.abc import Iterator
from typing import Any

import pytest

from gpuplatform.common.models import Lease
from gpuplatform.common.problems import Rejected
from queues.models import ClusterQueue, LocalQueue
from scheduling import checks
from scheduling.checks import Opinion
from scheduling.desired import desired_gangs
from scheduling.engine.terms import CheckVerdict, Status
from scheduling.models import AdmissionCheck, Cycle
from scheduling.reconciler import reconcile
from scheduling.scaling import change_workload
from scheduling.selectors.discretion import Discretion
from scheduling.selectors.waiting import blocker_lines
from scheduling.services import cancel_workload
from scheduling.specs import PodSetChange, WorkloadChange
from scheduling.switching import answer_check
from tests.scheduling.life.living import after, last, reasons, settle
from tests.scheduling.loop.world import NOON, nodes, queue, status, story, usage, work

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def platform(clock: Any) -> None:
    nodes(1)
    queue("datos", 4)
    queue("ia", 4)
    AdmissionCheck.objects.create(name="approval", kind="manual", queues=["cq-datos"])


def say(workload: Any, verdict: CheckVerdict, **more: Any) -> None:
    answer_check(workload.pk, "approval", verdict, actor=None, **more)
    settle()


def test_quota_is_reserved_and_nothing_starts_before_somebody_agrees(clock: Any):
    asks, free = work("datos", "asks", gpus=3), work("ia", "free", gpus=2)
    settle()
    assert (status(asks), asks.pending_reason) == (Status.PENDING, "UnsatisfiedAdmissionChecks")
    assert last(asks).is_reserved
    assert desired_gangs() == ()  # no cluster hears of it
    assert status(free) is Status.PENDING  # the node is kept for who reserved it
    assert usage(asks) == [("nominal", "", 3, NOON, None)]
    after(clock, 60)
    say(asks, CheckVerdict.READY, message="as agreed")
    assert (status(asks), asks.admitted_at) == (Status.RUNNING, last(asks).begun_at)
    assert not last(asks).is_reserved
    assert [kind for kind in story(asks) if "loan" not in kind] == [
        "quota_reserved",
        "check_answered",
        "admitted",
        "started",
    ]


def test_work_of_other_queues_is_not_asked():
    free = work("ia", "free")
    settle()
    assert status(free) is Status.RUNNING
    AdmissionCheck.objects.update(queues=["*"])
    asks = work("ia", "asks")
    settle()
    assert last(asks).is_reserved


def told(workload: Any) -> list[tuple[str, str]]:
    lines = blocker_lines(workload, Discretion(None))
    return [(line.sentence.partition(";")[0], line.next_step) for line in lines]


def test_who_waits_for_answers_is_told_of_which_and_who_gives_them():
    AdmissionCheck.objects.create(name="budget", kind="elsewhere", queues=["cq-datos"])
    asks = work("datos", "asks", gpus=3)
    settle()
    asks.refresh_from_db()
    manual = "A platform admin answers it on the workload's page."
    by_itself = "It starts as soon as all its checks have agreed."
    assert told(asks) == [
        ("The check approval has not agreed yet", manual),
        ("The check budget has not agreed yet", by_itself),
    ]
    say(asks, CheckVerdict.READY)
    assert told(asks) == [("The check budget has not agreed yet", by_itself)]


def test_waiting_for_an_answer_writes_nothing():
    work("datos", "asks")
    settle()
    before = Lease.objects.get().fence, Cycle.objects.count()
    assert not reconcile().moved
    assert (Lease.objects.get().fence, Cycle.objects.count()) == before


def test_who_is_rejected_is_deactivated_and_gives_everything_back():
    asks, waits = work("datos", "asks", gpus=4), work("datos", "waits", gpus=4)
    settle()
    say(asks, CheckVerdict.REJECTED, message="no budget")
    assert (status(asks), asks.inactive_reason) == (Status.INACTIVE, "AdmissionCheckRejected")
    assert last(waits).is_reserved
    assert usage(asks) == []
    assert asks.checks.get().state == "Pending"  # who comes back is asked anew


def test_who_is_asked_to_come_later_rests_and_is_asked_again(clock: Any):
    asks, younger = work("datos", "asks", gpus=4), work("datos", "younger", gpus=4)
    settle()
    say(asks, CheckVerdict.RETRY, retry_after_s=300)
    assert (status(asks), asks.pending_reason) == (Status.PENDING, "BackingOff")
    assert ("evicted", "AdmissionCheck") in reasons(asks)
    assert last(younger).is_reserved
    assert asks.checks.get().retries == 1
    say(younger, CheckVerdict.REJECTED)
    after(clock, 299)
    assert last(asks).released_at is not None
    after(clock, 1)
    assert last(asks).is_reserved
    assert asks.checks.get().state == "Pending"


@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
@pytest.mark.parametrize("door", [ClusterQueue, LocalQueue])
def test_a_stopped_queue_drops_what_is_only_reserved(policy: str, door: Any):
    asks, runs = work("datos", "asks", gpus=2), work("ia", "runs")
    settle()
    door.objects.update(stop_policy=policy)
    settle()
    assert (status(asks), asks.pending_reason) == (Status.PENDING, "OnHold")
    assert last(asks).released_at is not None
    assert usage(asks) == []
    assert "evicted" not in story(asks) or policy == "HoldAndDrain"
    assert (status(runs) is Status.RUNNING) is (policy == "Hold")
    door.objects.update(stop_policy="None")
    settle()
    assert last(asks).is_reserved


def test_a_reservation_may_be_preempted():
    ClusterQueue.objects.update(within_cluster_queue="LowerPriority")
    asks = work("datos", "asks", gpus=4)
    settle()
    urgent = work("datos", "urgent", gpus=4, priority=9)
    settle()
    assert status(asks) is Status.PENDING
    assert ("evicted", "Preempted") in reasons(asks)
    assert last(urgent).is_reserved


def test_a_check_that_is_gone_keeps_nobody():
    asks = work("datos", "asks")
    settle()
    AdmissionCheck.objects.all().delete()
    settle()
    assert status(asks) is Status.RUNNING


def test_a_reserved_gang_gets_more_as_room_allows_and_still_says_what_it_waits_for():
    blocker = work("ia", "blocker", gpus=2)
    settle()
    gang = work("datos", "gang", pods=3, min_member=1)
    settle()
    assert status(gang) is Status.PENDING
    assert (gang.gpus, gang.pending_reason) == (2, "UnsatisfiedAdmissionChecks")
    assert gang.growth["reason"]  # why the third pod waits
    cancel_workload(blocker.pk, actor=None)
    settle()
    assert status(gang) is Status.PENDING
    assert (gang.gpus, gang.pending_reason) == (3, "UnsatisfiedAdmissionChecks")
    say(gang, CheckVerdict.READY)
    assert (status(gang), gang.gpus) == (Status.RUNNING, 3)


def test_a_reserved_gang_that_is_made_smaller_gives_nodes_back_at_once():
    gang = work("datos", "gang", pods=4, elastic=True)
    settle()
    change_workload(gang.pk, WorkloadChange((PodSetChange("worker", 2),)), actor=None)
    settle()
    assert status(gang) is Status.PENDING
    assert last(gang).is_reserved
    assert gang.admissions.count() == 1  # nothing stood there that would have to leave
    assert sum(one.count for one in last(gang).placements.all()) == 2
    other = work("ia", "other", gpus=2)
    settle()
    assert status(other) is Status.RUNNING


class Budget:
    """A kind of check as another room would register it."""

    name, label, watches = "budget", "Budget", True
    said: dict[str, Opinion] = {}

    def opinions(self, check: Any, workloads: Any, now: Any) -> dict[Any, Opinion]:
        assert check.parameters == {"period": "month"}
        return {w.pk: self.said[w.name] for w in workloads if w.name in self.said}

    def refused(self, now: Any) -> dict[int, Any]:
        return {}


@pytest.fixture
def budget() -> Iterator[type[Budget]]:
    AdmissionCheck.objects.create(
        name="money", kind="budget", queues=["cq-ia"], parameters={"period": "month"}
    )
    Budget.said = {}
    real = checks.KINDS["budget"]
    checks.register(Budget())
    yield Budget
    checks.register(real)


def test_another_room_may_answer(budget: type[Budget]):
    asks = work("ia", "asks")
    settle()
    assert last(asks).is_reserved
    budget.said["asks"] = Opinion(CheckVerdict.READY, "40 EUR left")
    settle()
    assert status(asks) is Status.RUNNING
    assert asks.checks.get().message == "40 EUR left"
    budget.said["asks"] = Opinion(CheckVerdict.REJECTED, "spent")  # it watches running work
    settle()
    assert status(asks) is Status.INACTIVE
    with pytest.raises(Rejected) as caught:
        answer_check(asks.pk, "money", CheckVerdict.READY, actor=None)
    assert caught.value.problems[0].code == "CHECK_NEEDS_NO_ANSWER"


def test_only_checks_that_wait_for_it_are_answered():
    free = work("ia", "free")
    settle()
    with pytest.raises(Rejected) as caught:
        answer_check(free.pk, "approval", CheckVerdict.READY, actor=None)
    assert caught.value.problems[0].code == "NO_SUCH_CHECK"
