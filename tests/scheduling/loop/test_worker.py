"""The long-lived worker: its kept world leads to what a fresh one leads to, and idles for nothing."""

from datetime import timedelta

import pytest

from gpuplatform.common.models import Lease
from scheduling import lifecycle
from scheduling.cycle import run_cycle
from scheduling.engine.terms import Status
from scheduling.models import Cycle, Node, Workload
from scheduling.worker import Worker
from tests.scheduling.loop.world import NOON, RECLAIMS, nodes, queue, status, story, usage, work

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def teams(clock):
    nodes(2)
    queue("datos", 4, cohort="llm", borrowing_limit=4, **RECLAIMS)
    queue("ia", 4, cohort="llm", **RECLAIMS)
    return clock


def test_it_admits_starts_ends_and_meters(teams):
    worker = Worker()
    gang = work("datos", "gang", pods=2, gpus=2, expected_duration_s=600)
    worker.turn()
    assert status(gang) is Status.RUNNING
    assert story(gang) == ["admitted", "started"]
    teams.shift(HOUR)
    worker.turn()
    assert status(gang) is Status.FINISHED
    assert usage(gang) == [("nominal", "", 4, NOON, NOON + HOUR / 6)]


def changed(row):
    """Note a change of a workload, as every writer does."""
    note_changes(lifecycle.CHANGED, [row.uid])
    return row


def holdings():
    """Return all that is held, metered and told, without what names rows of one run."""
    from scheduling.models import Placement, UsageInterval  # noqa: PLC0415

    placed = Placement.objects.filter(admission__released_at=None)
    return {
        "work": sorted(
            Workload.objects.values_list("name", "status", "gpus", "pending_reason", "position")
        ),
        "placed": sorted(placed.values_list("admission__workload__name", "node", "count")),
        "metered": sorted(
            UsageInterval.objects.values_list(
                *("workload__name", "holding", "lender", "amount", "started_at", "ended_at")
            ),
            key=repr,
        ),
    }
