"""Work that is content with fewer pods, and got fewer: what stands counts, not what was asked."""

import pytest

from gpuplatform.common import clock as platform_clock
from gpuplatform.common.problems import Rejected
from scheduling.cycle import run_cycle
from scheduling.engine.standing import standing
from scheduling.loader import load_snapshot
from scheduling.models import PodSet
from scheduling.reconciler import reconcile
from scheduling.scaling import change_workload
from scheduling.serializers import WorkloadSerializer
from scheduling.specs import PodSetChange, WorkloadChange
from tests.scheduling.loop.world import nodes, queue, status, work

pytestmark = pytest.mark.django_db


def content_with(least, pods, gpus=1, **columns):
    row = work("datos", "train", pods=pods, gpus=gpus, **columns)
    PodSet.objects.filter(workload=row).update(min_count=least)
    run_cycle()
    reconcile()
    row.refresh_from_db()
    return row


@pytest.fixture
def part(clock):
    """Four pods of 4 GPUs are wanted, one is enough, two have room."""
    nodes(2, gpus=4)
    queue("datos", 16)
    row = content_with(1, pods=4, gpus=4)
    assert (status(row), row.gpus) == ("running", 8)
    return row


def report(row, finished=None, **fields):
    over = () if finished is None else (PodSetChange("worker", None, finished),)
    change_workload(row.uid, WorkloadChange(over, **fields), actor=None)
    row.refresh_from_db()


def pods_charged(row):
    work_of = {one.key: one for one in load_snapshot().workloads}
    return sum(a.count for a in standing(work_of[str(row.uid)]))


@pytest.mark.parametrize("said", ["checkpoint", "finished"])
def test_a_report_changes_nothing_of_how_many_gpus_stand(part, said):
    if said == "checkpoint":
        report(part, last_checkpoint_at=platform_clock.now())
    else:
        report(part, finished=1)
    assert part.gpus == 8
    assert pods_charged(part) == (2 if said == "checkpoint" else 1)


def test_no_more_pods_are_over_than_stand(part):
    with pytest.raises(Rejected) as refused:
        report(part, finished=3)
    (problem,) = refused.value.problems
    assert (problem.path, problem.code) == ("pod_sets[0].finished", "OUT_OF_RANGE")
    assert problem.numbers | {"low": 0, "high": 2} == problem.numbers
    assert pods_charged(part) == 2
    report(part, finished=2)
    assert part.events.get(kind="pods_finished").facts == {"pods": 2, "of_pods": 2}


def test_of_a_gang_that_lacks_surplus_no_more_are_over_than_stand(clock):
    nodes(2, gpus=4)
    queue("datos", 5)
    row = content_with(None, pods=8, min_member=2)
    assert row.gpus == 5
    with pytest.raises(Rejected):
        report(row, finished=6)
    report(row, finished=5)
    assert row.gpus == 5


@pytest.mark.parametrize(
    ("columns", "least", "needed"),
    [({}, 2, 2), ({}, None, 8), ({"min_member": 3}, None, 3), ({"min_member": 8}, 2, 8)],
)
def test_the_pods_that_are_needed_are_told(clock, columns, least, needed):
    nodes(1, gpus=4)
    queue("datos", 8)
    row = content_with(least, pods=8, **columns)
    told = WorkloadSerializer(row).data["pods"]
    assert told == {"wanted": 8, "standing": 4 if needed < 8 else 0, "minimum": needed}


def test_of_elastic_work_that_grows_what_runs_is_needed(clock):
    nodes(1, gpus=4)
    queue("datos", 4)
    work("datos", "other", gpus=2)
    row = content_with(None, pods=2, elastic=True)
    change_workload(row.uid, WorkloadChange((PodSetChange("worker", 4),)), actor=None)
    row.refresh_from_db()
    told = WorkloadSerializer(row).data["pods"]
    assert told == {"wanted": 4, "standing": 2, "minimum": 2}
