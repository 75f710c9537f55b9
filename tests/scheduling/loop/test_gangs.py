"""Gangs with minima in the running product: they grow, lose surplus, and are metered as held."""

from datetime import timedelta

import pytest

from queues.models import Cohort, LocalQueue
from scheduling.cycle import run_cycle
from scheduling.engine.terms import Status
from scheduling.loader import load_snapshot
from scheduling.models import Admission, Node, Placement, PodSet
from scheduling.reconciler import reconcile
from scheduling.scaling import change_workload
from scheduling.selectors.workloads import least_pods
from scheduling.serializers import WorkloadSerializer
from scheduling.specs import PodSetChange, WorkloadChange
from tests.scheduling.loop.world import NOON, RECLAIMS, nodes, queue, status, story, usage, work

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def standing(workload) -> int:
    held = Placement.objects.filter(
        admission__workload=workload, admission__released_at=None, admission__evicted_at=None
    )
    return sum(held.values_list("count", flat=True))


def settle() -> None:
    for _ in range(6):
        reconcile()
        run_cycle()


def test_a_gang_starts_with_what_fits_and_grows_when_there_is_room(clock):
    nodes(2)
    queue("datos", 8)
    other = work("datos", "other", pods=3, expected_duration_s=1800)
    gang = work("datos", "gang", pods=8, min_member=2)
    report = run_cycle()
    assert "admitted ns-datos/gang (5x1 GPUs, 5 of 8 pods) on h100-node-01..02" in report.lines
    gang.refresh_from_db()
    assert (gang.gpus, gang.growth["reason"]) == (5, "WaitingForQuota")
    told = WorkloadSerializer(gang).data
    assert told["pods"] == {"wanted": 8, "standing": 5, "minimum": 2}
    assert told["growth"]["blockers"][0]["code"] == "QUOTA_NOMINAL"
    clock.move_to(NOON + HOUR)
    settle()
    assert (status(other), status(gang)) == (Status.FINISHED, Status.RUNNING)
    assert (standing(gang), gang.gpus, gang.growth) == (8, 8, {})
    assert gang.events.get(kind="grown").facts == {"pods": 8, "from_pods": 5, "gpus": 8}
    assert usage(gang) == [
        ("nominal", "", 5, NOON, NOON + HOUR),
        ("nominal", "", 8, NOON + HOUR, None),
    ]


def test_surplus_is_taken_pod_by_pod_and_metered_until_it_has_left(clock):
    nodes(2)
    queue("datos", 8, **RECLAIMS)
    gang = work("datos", "gang", pods=8, min_member=4)
    run_cycle()
    reconcile()
    clock.move_to(NOON + HOUR)
    first = work("datos", "first", pods=3)
    report = run_cycle()
    assert (report.resized, report.evicted) == (1, 0)
    assert "took 3x1 GPUs from ns-datos/gang (InClusterQueue) for ns-datos/first" in report.lines
    assert (standing(gang), status(gang), status(first)) == (5, Status.RUNNING, Status.PENDING)
    parts = [w for w in load_snapshot().workloads if w.part_of]
    assert [w.part_of for w in parts] == [str(gang.uid)]
    assert sum(amount for _, _, amount, _, end in usage(gang) if end is None) == 8
    settle()
    assert (standing(gang), status(first)) == (5, Status.RUNNING)
    assert story(gang)[-2:] == ["surplus_taken", "surplus_left"]
    assert gang.events.get(kind="surplus_taken").other == first
    assert [u[2] for u in usage(gang) if u[4] is None] == [5]
    assert not Admission.objects.filter(is_part=True, released_at=None).exists()


def test_a_gang_below_its_minimum_leaves_whole(clock):
    nodes(2)
    queue("datos", 8, **RECLAIMS)
    gang = work("datos", "gang", pods=8, min_member=6)
    run_cycle()
    reconcile()
    urgent = work("datos", "urgent", pods=4, priority=5)
    settle()
    assert (status(gang), status(urgent)) == (Status.PENDING, Status.RUNNING)
    assert "surplus_taken" not in story(gang)


def test_a_gang_behind_a_held_local_queue_runs_on_and_gets_no_more(clock):
    nodes(2)
    queue("datos", 8)
    other = work("datos", "other", pods=4, expected_duration_s=60)
    gang = work("datos", "gang", pods=8, min_member=2)
    run_cycle()
    LocalQueue.objects.update(stop_policy="Hold")
    clock.move_to(NOON + HOUR)
    settle()
    assert (status(other), status(gang), standing(gang)) == (Status.FINISHED, Status.RUNNING, 4)
    LocalQueue.objects.update(stop_policy="None")
    settle()
    assert standing(gang) == 8


def test_subgroups_and_roles_of_the_rows_are_followed(clock):
    nodes(2)
    queue("datos", 8)
    gang = work("datos", "gang", pods=9, role_minima={"worker": 6})
    PodSet.objects.filter(workload=gang).update(subgroup_size=3, min_subgroups=1)
    run_cycle()
    assert standing(gang) == 6
    assert least_pods(gang) == 6


def test_a_gang_with_a_minimum_is_brought_to_another_size_without_asking_for_a_copy(clock):
    nodes(2)
    queue("datos", 8)
    gang = work("datos", "gang", pods=4, min_member=2, elastic=True)
    run_cycle()
    reconcile()
    change_workload(gang.uid, WorkloadChange((PodSetChange("worker", 6),)), actor=None)
    settle()
    assert (standing(gang), status(gang)) == (6, Status.RUNNING)
    change_workload(gang.uid, WorkloadChange((PodSetChange("worker", 3),)), actor=None)
    settle()
    assert standing(gang) == 3
    gang.refresh_from_db()
    assert gang.gpus == 3


def test_nothing_starts_on_nothing_when_the_last_node_is_gone(clock):
    """Neither who runs nor who waits is admitted by quota alone from then on."""
    nodes(1)
    queue("datos", 8)
    runs, waits = work("datos", "runs", gpus=4), work("datos", "waits", gpus=4)
    run_cycle()
    reconcile()
    assert (status(runs), status(waits)) == (Status.RUNNING, Status.PENDING)
    Node.objects.all().delete()
    for _ in range(3):
        clock.shift(61)  # longer than a gang that lost a node keeps its place
        reconcile()
        run_cycle()
    assert (status(runs), status(waits)) == (Status.PENDING, Status.PENDING)


def test_each_loss_of_a_node_is_told_with_that_node_alone(clock):
    """Also where it comes back and is lost again."""
    rows = nodes(3)
    queue("datos", 12)
    gang = work("datos", "gang", pods=3, gpus=4, min_member=1)
    settle()
    for lost in (rows[1], rows[2]):
        lost.delete()
        settle()
    again = nodes_again(rows[1])
    settle()
    assert standing(gang) == 2
    again.delete()
    settle()
    told = gang.events.filter(kind="members_lost").order_by("id")
    names = [event.facts["lost"] for event in told]
    assert names == [["h100-node-02"], ["h100-node-03"], ["h100-node-02"]]


def nodes_again(gone: Node) -> Node:
    return Node.objects.create(name=gone.name, labels=gone.labels, allocatable=gone.allocatable)


def test_a_running_gang_takes_surplus_up_to_its_fair_share_where_the_cohort_says_so(clock):
    nodes(1)
    rights = {"reclaim_within_cohort": "Any"}
    for name in ("datos", "ia"):
        queue(name, 2, cohort="llm", **rights)
    Cohort.objects.update(fairness="share", reclaim_to="fair_share")
    first = work("datos", "first", pods=4, min_member=1)
    run_cycle()
    second = work("ia", "second", pods=4, min_member=1)
    settle()
    settle()
    assert (standing(first), standing(second)) == (2, 2)
    taken = first.events.filter(kind="surplus_taken")
    assert [event.other for event in taken] == [second] * taken.count()
    assert sum(event.facts["taken"] for event in taken) == 2
