"""Members that end while their gang runs: restarted in place, kept, or the end of it."""

from typing import Any

import pytest
from django.utils import timezone

from scheduling.backends import base, simulated
from scheduling.backends.base import End, Member, MemberEnd, Sighting
from scheduling.backends.simulated import FAILURES, STOP
from scheduling.engine.terms import EvictionReason, Outcome, Status
from scheduling.models import MemberEnd as EndRow
from scheduling.models import Node
from scheduling.reconciler import reconcile
from scheduling.services import cancel_workload
from tests.scheduling.life.living import after, last, reasons, settle
from tests.scheduling.loop.world import nodes, queue, status, story, usage, work

pytestmark = pytest.mark.django_db
NODE = "h100-node-01"


@pytest.fixture(autouse=True)
def platform(clock: Any) -> None:
    nodes(2)
    queue("datos", 8)


def failing(script: str, /, **columns: Any):
    return work("datos", "gang", pods=2, gpus=4, annotations={FAILURES: script}, **columns)


def test_a_gang_starts_anew_on_the_same_quota_and_nodes(clock: Any):
    gang = failing("60:137")
    settle()
    places = set(last(gang).placements.values_list("node", flat=True))
    after(clock, 60)
    admission = last(gang)
    assert status(gang) is Status.RUNNING
    assert (admission.attempt, gang.retries, admission.released_at) == (2, 1, None)
    assert set(admission.placements.values_list("node", flat=True)) == places
    assert reasons(gang)[-3:] == [
        ("member_failed", ""),
        ("restarted", "MemberFailed"),
        ("started", ""),
    ]
    assert len([row for row in usage(gang) if row[4] is None]) == 1  # metered without a gap
    (end,) = EndRow.objects.all()
    assert (end.attempt, end.end, end.exit_code) == (1, "failed", 137)
    assert reconcile().moved is False  # a second look finds nothing


def test_after_so_many_restarts_it_has_failed(clock: Any):
    gang = failing("10:1,10:1,10:1", max_retries=2)
    settle()
    for _ in range(3):
        after(clock, 10)
    assert (status(gang), gang.outcome) == (Status.FINISHED, "failed")
    assert reasons(gang)[-2:] == [("finished", "RetryLimitExceeded"), ("released", "failed")]
    assert last(gang).released_at == gang.finished_at
    assert usage(gang)[-1][4] == gang.finished_at


def test_it_may_fail_with_its_first_member(clock: Any):
    gang = failing("60:3", on_failure="fail")
    settle()
    after(clock, 61)
    assert (status(gang), gang.outcome) == (Status.FINISHED, "failed")
    assert ("finished", "MemberFailed") in reasons(gang)


def test_it_may_go_on_without_those_that_failed(clock: Any):
    gang = failing("60:3", on_failure="keep")
    settle()
    after(clock, 61)
    assert status(gang) is Status.RUNNING
    assert gang.pod_sets.get().finished == 1  # what is over for good gives its quota back
    assert [kind for kind in story(gang) if kind.startswith("member")] == ["member_failed"]
    assert [row[2] for row in usage(gang) if row[4] is None] == [4]


class Told(simulated.SimulatedBackend):
    """A cluster that says of the one gang what the test lets it say."""

    saying: dict[str, Any] = {}

    def observe(self) -> list[Sighting]:
        return [
            base.Sighting(gang.admission, gang.started_at or gang.since, **self.saying)
            for gang in self._gangs
            if gang.evicted_at is None
        ]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, settings: Any) -> dict[str, Any]:
    """What the cluster says."""
    said: dict[str, Any] = {}
    monkeypatch.setattr(Told, "saying", said)
    monkeypatch.setattr("scheduling.backends.SimulatedBackend", Told)
    return said


def over(how: End, clock: Any, slot: int = 0, node: str = NODE, code: int | None = None):
    return MemberEnd(Member("worker", node, slot), how, timezone.now(), code)


def test_when_all_members_have_finished_it_has_succeeded(clock: Any, told: dict[str, Any]):
    gang = work("datos", "gang", pods=2, gpus=2)
    settle()
    told["ends"] = (over(End.FINISHED, clock, 0),)
    after(clock, 10)
    assert (status(gang), gang.pod_sets.get().finished) == (Status.RUNNING, 1)
    told["ends"] += (over(End.FINISHED, clock, 1),)
    after(clock, 10)
    assert (status(gang), gang.outcome) == (Status.FINISHED, "succeeded")


def test_a_member_that_went_with_its_node_is_no_failure(clock: Any, told: dict[str, Any]):
    gang = work("datos", "gang", pods=2, gpus=2)
    settle()
    Node.objects.filter(name=NODE).update(ready=False)
    told["ends"] = (over(End.LOST, clock, 0),)
    settle()
    assert (status(gang), gang.retries) == (Status.RUNNING, 0)
    Node.objects.filter(name=NODE).update(ready=True)  # the node is well, and the pod was taken
    told["attempt"] = 1
    settle()
    gang.refresh_from_db()
    assert gang.retries == 1


def test_readiness_that_is_lost_too_long_sends_it_back(clock: Any, told: dict[str, Any]):
    gang = work("datos", "gang", pods=2, gpus=2)
    settle()
    after(clock, 100)
    told["unready_since"] = timezone.now()
    after(clock, 5)
    assert (status(gang), story(gang)[-1]) == (Status.RUNNING, "readiness_lost")
    told["unready_since"] = None
    after(clock, 5)
    assert story(gang)[-1] == "readiness_back"
    told["unready_since"] = timezone.now()
    after(clock, 1800)
    assert status(gang) is Status.PENDING
    assert ("evicted", EvictionReason.PODS_READY_TIMEOUT.value) in reasons(gang)


def test_reports_of_an_earlier_attempt_are_of_no_interest(clock: Any, told: dict[str, Any]):
    gang = work("datos", "gang", pods=2, gpus=2)
    settle()
    told["ends"] = (over(End.FAILED, clock, 0, code=1),)
    assert reconcile().moved
    gang.refresh_from_db()
    assert (gang.status, gang.retries) == ("admitted", 1)
    settle()  # the cluster still tells of the first attempt
    assert (status(gang), gang.retries) == (Status.ADMITTED, 1)
    told.update(attempt=2, ends=())
    settle()
    assert status(gang) is Status.RUNNING


@pytest.mark.parametrize(
    ("action", "expected"),
    [("RestartJob", Status.PENDING), ("AbortJob", Status.INACTIVE), ("TerminateJob", "failed")],
)
def test_policies_about_evicted_pods_are_followed(clock: Any, action: str, expected: str):
    rows = [{"action": action, "events": ["PodEvicted"], "exit_code": None, "pod_set": ""}]
    gang = work("datos", "gang", pods=2, gpus=4, policies=rows)
    settle()
    Node.objects.all().delete()
    settle()
    assert expected in (status(gang), gang.outcome)
    assert last(gang).released_at is not None
    assert story(gang).count("evicted") == 1


def test_quota_is_held_until_pods_that_stop_slowly_have_gone(clock: Any):
    slow = {"annotations": {STOP: "20"}}
    gang = work("datos", "gang", pods=2, gpus=4, priority=0, **slow)
    settle()
    type(gang).objects.filter(pk=gang.pk).update(grace_s=15)
    cancel_workload(gang.pk, actor=None)
    waits = work("datos", "waits", pods=2, gpus=4)
    settle()
    assert (status(gang), gang.outcome) == (Status.FINISHED, Outcome.CANCELLED)
    assert status(waits) is Status.PENDING
    after(clock, 14)
    assert status(waits) is Status.PENDING
    after(clock, 1)  # its grace is shorter than it would like
    assert status(waits) is Status.RUNNING
