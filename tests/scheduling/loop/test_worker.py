"""The long-lived worker: what it does, and what it leaves alone."""

from datetime import timedelta

import pytest

from scheduling.engine.terms import Status
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
