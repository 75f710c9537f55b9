"""No missed wake-up: whatever is written, through any door or by any task, the next cycle sees it.

The doors are those of the table of writes, the tasks those of Celery's registry: a new one is
looked at without a line here.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client

from gpuplatform.celery import app
from gpuplatform.common import clock
from gpuplatform.common.wakeup import CYCLE_TASK
from scheduling.kept import Kept
from scheduling.loader import load_snapshot
from scheduling.models import Agent, Node, Workload
from scheduling.reconciler import reconcile
from tests.matrix.world import World
from tests.matrix.writes import WRITES, Write
from tests.scheduling.loop.seeing import has_woken, unseen

pytestmark = pytest.mark.django_db
ROOMS = ("scheduling.", "finops.", "doors.")
WRITERS = [write for write in WRITES if "ok" in write.answers]
app.loader.import_default_modules()  # as a worker does: the tasks of all rooms
TASKS = sorted(name for name in app.tasks if name.startswith(ROOMS) and name != CYCLE_TASK)


def someone_who_may(write: Write) -> str:
    for who in ("ada", "fin", "lea"):
        if write.answer_to(who) == "ok":
            return who
    raise AssertionError(f"nobody may {write}")


@pytest.mark.parametrize("write", WRITERS, ids=str)
def test_the_next_cycle_sees_whatever_a_door_has_written(
    browser: Callable[..., Client], write: Write
) -> None:
    body = write.body_by(browser("ada"))
    before, kept = load_snapshot(), Kept.read(clock.now())
    write.send(browser(someone_who_may(write)), body)
    assert unseen(kept) == []
    if load_snapshot() != before:
        assert has_woken(), "it is seen, but a beat late"


def test_there_are_tasks_to_look_at() -> None:
    assert {"scheduling.watch", "scheduling.prune", "finops.measure_budgets"} <= set(TASKS)


@pytest.mark.parametrize("task", TASKS)
def test_the_next_cycle_sees_whatever_a_task_has_written(world: World, db: Any, task: str) -> None:
    kept = Kept.read(clock.now())
    app.tasks[task]()
    assert unseen(kept) == []


def end_a_gang() -> None:
    Workload.objects.filter(status="running").update(expected_duration_s=1)


def be_silent() -> None:
    Node.objects.update(ready=True)
    Agent.objects.update(heard_at=clock.now() - timedelta(hours=2), silent_since=None)


def be_late() -> None:
    Workload.objects.filter(status="running").update(max_execution_time_s=1)


@pytest.mark.parametrize("act", [end_a_gang, be_silent, be_late])
def test_the_next_cycle_sees_whatever_the_cluster_has_done(
    world: World, db: Any, settings: Any, act: Callable[[], None]
) -> None:
    settings.CLUSTER_BACKEND = "external" if act is be_silent else "simulated"
    act()
    kept = Kept.read(clock.now())
    with time_machine.travel(clock.now() + timedelta(hours=1), tick=False):
        before = load_snapshot()
        reconcile()
        assert load_snapshot() != before
        assert unseen(kept) == []
        assert has_woken()
