"""Work that starts in part, changes its size while it runs, or is over pod by pod."""

from datetime import timedelta

import pytest

from gpuplatform.common.problems import Rejected
from queues.models import ClusterQueue, ResourceFlavor, Topology, TopologyLevel
from scheduling.backends.simulated import STOP
from scheduling.cycle import run_cycle
from scheduling.desired import desired_gangs
from scheduling.engine.machines import GPU
from scheduling.lifecycle import cancel
from scheduling.models import Admission, Node, Placement, PodSet, UsageInterval, Workload
from scheduling.reconciler import reconcile
from scheduling.scaling import change_workload
from scheduling.specs import PodSetChange, WorkloadChange
from tests.scheduling.loop.world import NOON, nodes, queue, status, story, usage, work

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def step():
    reconcile()
    run_cycle("test")
    reconcile()


def pods(row):
    """Return on which nodes how many pods stay, as the cluster is told."""
    own = (gang for gang in desired_gangs() if gang.workload == str(row.uid))
    (gang,) = (gang for gang in own if gang.part_of is None)
    return {placed.node[-2:]: placed.count for placed in gang.pods}


def resize(row, count=None, **changes):
    change = WorkloadChange((PodSetChange("worker", count, **changes),))
    change_workload(row.uid, change, actor=None)
    row.refresh_from_db()


def worker(row):
    found = PodSet.objects.get(workload=row)
    return found.count, found.wanted, found.finished


def elastic(count=4, **columns):
    return work("datos", "train", pods=count, gpus=1, elastic=True, **columns)


# ---- partial admission -------------------------------------------------------------------------
@pytest.fixture
def part(clock):
    """A gang of 4 that is content with 2, where 3 GPUs are left."""
    nodes(1, gpus=4)
    queue("datos", 4)
    other = work("datos", "other", gpus=1, expected_duration_s=3_600)
    row = work("datos", "train", pods=4, gpus=1)
    PodSet.objects.filter(workload=row).update(min_count=2)
    step()
    assert status(other) == "running"
    return row


def test_a_gang_that_is_content_with_fewer_pods_starts_with_what_fits(part):
    assert (status(part), part.gpus, worker(part)[0]) == ("running", 3, 4)
    assert pods(part) == {"01": 3}
    assert usage(part) == [("nominal", "", 3, NOON, None)]
    admitted = part.events.get(kind="admitted")
    assert (admitted.facts["pods"], admitted.facts["of_pods"]) == (3, 4)
    assert admitted.facts["gpus"] == 3


def test_what_started_in_part_waits_again_for_the_whole(part, clock):
    clock.shift(2 * HOUR)
    ClusterQueue.objects.update(stop_policy="HoldAndDrain")
    step()
    assert (status(part), part.gpus) == ("pending", 4)
    assert part.events.get(kind="evicted").facts["gpus"] == 3
    ClusterQueue.objects.update(stop_policy="None")
    step()
    assert (status(part), part.gpus) == ("running", 4)
    assert "pods" not in part.events.filter(kind="admitted").last().facts


# ---- fewer pods ---------------------------------------------------------------------------------
@pytest.fixture
def running(clock):
    """An elastic gang of 4 pods on two nodes of 3 and 2 GPUs."""
    (first,) = nodes(1, gpus=3)
    smaller = {**first.allocatable, GPU: 2}
    Node.objects.create(name="h100-node-02", labels=first.labels, allocatable=smaller)
    queue("datos", 8)
    row = elastic()
    step()
    assert sum(pods(row).values()) == 4
    return row


def test_fewer_pods_are_fewer_at_once_and_metered_to_the_instant(running, clock):
    Workload.objects.filter(pk=running.pk).update(annotations={STOP: "10"})
    clock.shift(HOUR)
    resize(running, 2)
    assert (status(running), running.gpus, worker(running)) == ("running", 2, (2, None, 0))
    clock.shift(timedelta(seconds=20))  # the worker was busy
    run_cycle("test")
    assert sum(pods(running).values()) == 2
    reconcile()
    gone = NOON + HOUR + timedelta(seconds=10)
    assert usage(running) == [
        ("nominal", "", 4, NOON, NOON + HOUR),
        ("nominal", "", 2, NOON + HOUR, None),
        ("nominal", "", 2, NOON + HOUR, gone),
    ]
    assert story(running) == ["admitted", "started", "scaled", "surplus_left"]


def test_pods_that_leave_hold_quota_and_nodes_until_they_are_gone(running, clock):
    Workload.objects.filter(pk=running.pk).update(grace_s=60, annotations={STOP: "60"})
    waiting = work("datos", "more", pods=2, gpus=1)
    resize(running, 2)
    for _ in range(2):
        clock.shift(timedelta(seconds=20))
        step()
        assert status(waiting) == "pending"
    clock.shift(timedelta(seconds=60))
    step()
    assert status(waiting) == "running"


def test_pods_that_leave_take_their_own_devices_along(running):
    Placement.objects.filter(node="h100-node-01").update(devices=[[0], [2]])
    Placement.objects.filter(node="h100-node-02").update(devices=[[0], [1]])
    resize(running, 3)
    resize(running, 1)
    rows = Placement.objects.filter(admission__workload=running).order_by("-admission__is_part")
    held = [(row.admission.is_part, row.node[-2:], row.count, row.devices) for row in rows]
    assert sorted(held) == [
        (False, "01", 1, [[0]]),
        (True, "01", 1, [[2]]),
        (True, "02", 2, [[1], [0]]),
    ]


def test_of_equal_nodes_the_last_by_name_is_left_first(running):
    assert pods(running) == {"01": 2, "02": 2}
    resize(running, 2)
    run_cycle("test")
    assert pods(running) == {"01": 2}


def test_what_came_free_is_used_in_the_same_cycle(running):
    waiting = work("datos", "more", pods=2, gpus=1)
    run_cycle("test")
    assert status(waiting) == "pending"
    resize(running, 3)
    step()
    assert status(waiting) == "running"
    assert Admission.objects.filter(workload=running, is_part=False).count() == 1


# ---- more pods ----------------------------------------------------------------------------------
def test_more_pods_join_those_that_run(running, clock):
    before = pods(running)
    clock.shift(HOUR)
    resize(running, 5)
    assert (running.gpus, worker(running)) == (4, (4, 5, 0))
    step()
    assert (status(running), running.gpus, worker(running)) == ("running", 5, (5, None, 0))
    assert all(pods(running)[node] >= count for node, count in before.items())
    assert sum(pods(running).values()) == 5
    assert running.started_at == NOON
    assert usage(running) == [
        ("nominal", "", 4, NOON, NOON + HOUR),
        ("nominal", "", 5, NOON + HOUR, None),
    ]
    assert story(running)[-2:] == ["growth_asked", "grown"]


def test_pods_that_do_not_fit_are_waited_for_while_the_others_run(running, clock):
    other = work("datos", "other", gpus=1, expected_duration_s=3_600)
    step()
    assert status(other) == "running"
    resize(running, 5)
    step()
    assert (status(running), worker(running)) == ("running", (4, 5, 0))
    assert {blocker["code"] for blocker in running.growth["blockers"]} == {"GANG_NO_FIT"}
    clock.shift(HOUR)
    step()
    assert (status(running), worker(running)) == ("running", (5, None, 0))
    assert running.growth == {}


def test_a_wish_for_more_can_be_taken_back(running):
    work("datos", "other", gpus=1)
    step()
    resize(running, 5)
    run_cycle("test")
    resize(running, 4)
    assert (worker(running), running.growth) == ((4, None, 0), {})
    run_cycle("test")
    assert (status(running), worker(running)) == ("running", (4, None, 0))


def test_an_eviction_makes_it_wait_with_all_that_it_asked_for(running):
    work("datos", "other", gpus=1)
    step()
    resize(running, 5)
    run_cycle("test")
    ClusterQueue.objects.update(stop_policy="HoldAndDrain")
    step()
    assert (status(running), running.gpus, worker(running)) == ("pending", 5, (5, None, 0))
    assert running.growth == {}


def test_it_can_end_while_it_waits_for_more(running, clock):
    work("datos", "other", gpus=1)
    step()
    resize(running, 5)
    run_cycle("test")
    clock.shift(HOUR)
    cancel(running, at=NOON + HOUR)
    step()
    assert status(running) == "finished"
    assert not UsageInterval.objects.filter(workload=running, ended_at=None).exists()


def test_a_pending_one_changes_in_place(clock):
    nodes(1, gpus=4)
    queue("datos", 4)
    row = elastic(2, queue_name="nowhere")
    resize(row, 3)
    assert (row.gpus, worker(row), row.resized_at) == (3, (3, None, 0), None)


# ---- pods that are over -------------------------------------------------------------------------
def test_pods_that_are_over_give_their_quota_back(running, clock):
    ClusterQueue.objects.get().quotas.update(nominal=4)
    waiting = work("datos", "more", gpus=1)
    run_cycle("test")
    assert status(waiting) == "pending"
    clock.shift(HOUR)
    resize(running, finished=1)
    step()
    assert status(waiting) == "running"
    assert sum(pods(running).values()) == 4  # nobody knows which node has come free
    assert usage(running) == [
        ("nominal", "", 4, NOON, NOON + HOUR),
        ("nominal", "", 3, NOON + HOUR, None),
    ]


def test_what_runs_anew_has_nothing_over(running):
    change_workload(running.uid, WorkloadChange(last_checkpoint_at=NOON), actor=None)
    resize(running, finished=2)
    run_cycle("test")
    ClusterQueue.objects.update(stop_policy="HoldAndDrain")
    step()
    ClusterQueue.objects.update(stop_policy="None")
    step()
    assert (status(running), running.gpus, worker(running)) == ("running", 4, (4, None, 0))
    assert running.last_checkpoint_at is None
    assert sum(row.amount for row in UsageInterval.objects.filter(ended_at=None)) == 4


def test_no_more_pods_are_over_than_there_are(running):
    resize(running, finished=3)
    resize(running, 2)
    run_cycle("test")
    assert worker(running) == (2, None, 2)


# ---- what cannot be -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        (WorkloadChange((PodSetChange("driver", 2),)), "POD_SET_NOT_FOUND", "pod_sets[0].name"),
        (WorkloadChange((PodSetChange("worker", 0),)), "POD_COUNT", "pod_sets[0].count"),
        (WorkloadChange((PodSetChange("worker", 9),)), "NEVER_FITS_QUEUE", "pod_sets"),
        (WorkloadChange((PodSetChange("worker", 6),)), "NEVER_FITS_CLUSTER", "pod_sets"),
        (WorkloadChange((PodSetChange("worker", None, 5),)), "OUT_OF_RANGE", "pod_sets[0].fin"),
        (WorkloadChange(last_checkpoint_at=NOON + HOUR), "OUT_OF_RANGE", "last_checkpoint_at"),
        (WorkloadChange(last_checkpoint_at=NOON - HOUR), "OUT_OF_RANGE", "last_checkpoint_at"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(running, change, code, path):
    running.refresh_from_db()
    before = running.version, worker(running)
    with pytest.raises(Rejected) as refused:
        change_workload(running.uid, change, actor=None)
    problem = refused.value.problems[0]
    assert (problem.code, problem.path[: len(path)]) == (code, path)
    running.refresh_from_db()
    assert (running.version, worker(running)) == before


def test_over_is_over(running):
    resize(running, finished=2)
    with pytest.raises(Rejected) as refused:
        resize(running, finished=1)
    assert [p.code for p in refused.value.problems] == ["OUT_OF_RANGE"]


@pytest.mark.parametrize(
    ("columns", "change", "code"),
    [
        ({"elastic": False}, PodSetChange("worker", 2), "NOT_ELASTIC"),
        ({"status": "pending"}, PodSetChange("worker", None, 1), "NOT_RUNNING"),
        (
            {"status": "finished", "outcome": "succeeded"},
            PodSetChange("worker", 2),
            "already_finished",
        ),
    ],
)
def test_only_live_elastic_work_changes_its_size(running, columns, change, code):
    type(running).objects.filter(pk=running.pk).update(**columns)
    with pytest.raises(Rejected) as refused:
        change_workload(running.uid, WorkloadChange((change,)), actor=None)
    assert [p.code for p in refused.value.problems] == [code]


def test_the_same_size_again_is_no_change(running):
    running.refresh_from_db()
    before = running.version, len(story(running))
    resize(running, 4)
    assert (running.version, len(story(running))) == before


# ---- reports while more pods are asked for ------------------------------------------------------
def test_a_report_of_progress_leaves_the_age_of_a_growth_as_it_is(clock):
    nodes(2, gpus=4)
    queue("datos", 8)
    row = elastic(count=4)
    step()
    resize(row, 6)
    since = row.growth["since"]
    clock.shift(HOUR)
    change_workload(row.uid, WorkloadChange(last_checkpoint_at=NOON + HOUR), actor=None)
    row.refresh_from_db()
    assert row.growth["since"] == since
    resize(row, 7)
    assert row.growth["since"] > since, "more pods are a new wish"


def test_one_pod_set_is_changed_once(clock):
    nodes(1, gpus=4)
    queue("datos", 4)
    row = elastic(count=2)
    step()
    twice = WorkloadChange((PodSetChange("worker", 1), PodSetChange("worker", 3)))
    with pytest.raises(Rejected) as refused:
        change_workload(row.uid, twice, actor=None)
    assert [(p.path, p.code) for p in refused.value.problems] == [
        ("pod_sets[1].name", "POD_SET_TWICE")
    ]
    assert worker(row)[0] == 2


def test_a_checkpoint_is_not_unmade_by_an_older_one(clock):
    nodes(1, gpus=4)
    queue("datos", 4)
    row = elastic(count=2)
    step()
    clock.shift(2 * HOUR)
    change_workload(row.uid, WorkloadChange(last_checkpoint_at=NOON + HOUR), actor=None)
    earlier = WorkloadChange(last_checkpoint_at=NOON + HOUR / 2)
    with pytest.raises(Rejected, match="OUT_OF_RANGE"):
        change_workload(row.uid, earlier, actor=None)
    row.refresh_from_db()
    assert row.last_checkpoint_at == NOON + HOUR


# ---- slices ----------------------------------------------------------------------------------
@pytest.fixture
def sliced(clock):
    """Three racks with a node of 3 GPUs and one of 1; twelve pods in slices of 4."""
    for number, row in enumerate(nodes(6)):
        row.labels = {**row.labels, "rack": f"r{number // 2}"}
        row.allocatable = {**row.allocatable, GPU: 1 if number % 2 else 3}
        row.save()
    floor = Topology.objects.create(name="floor")
    TopologyLevel.objects.create(topology=floor, position=0, node_label="rack")
    ResourceFlavor.objects.update(topology="floor")
    queue("datos", 24)
    slices = {"topology_mode": "unconstrained", "slices": [{"level": "rack", "size": 4}]}
    row = elastic(12, topology=slices)
    step()
    return row


def test_fewer_pods_are_whole_slices_less(sliced):
    assert pods(sliced) == {"01": 3, "02": 1, "03": 3, "04": 1, "05": 3, "06": 1}
    resize(sliced, 8)
    after = pods(sliced)
    assert sorted(after.values()) == [1, 1, 3, 3]
    assert {(int(number) - 1) // 2 for number in after} in ({0, 1}, {0, 2}, {1, 2})
    step()
    assert pods(sliced) == after, "the cycle moves nobody"


def test_a_size_that_cuts_a_slice_is_refused(sliced):
    with pytest.raises(Rejected) as refused:
        resize(sliced, 7)
    assert [(p.path, p.code) for p in refused.value.problems] == [
        ("pod_sets[0].count", "SLICES_NOT_WHOLE")
    ]
