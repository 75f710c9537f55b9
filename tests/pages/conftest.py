"""A small platform that has already decided: a loan, somebody who waits, two teams."""

from types import SimpleNamespace
from typing import Any

import pytest

from queues.models import Namespace
from scheduling.cycle import run_cycle
from scheduling.models import Workload
from scheduling.reconciler import reconcile
from tests.scheduling.loop import world


def decide() -> None:
    run_cycle("test")
    reconcile()


@pytest.fixture
def platform(db: None) -> SimpleNamespace:
    """Datos holds 12 of its 8 GPUs and waits for 4 more; IA lends 4 and runs 2."""
    world.nodes(4, gpus=4)
    datos = world.queue("datos", 8, cohort="llm", borrowing_limit=4)
    ia = world.queue("ia", 8, cohort="llm")
    for queue in (datos, ia):
        Namespace.objects.create(name=f"ns-{queue.team.name}", team=queue.team)
    train = world.work("datos", "train", pods=3, gpus=4)
    secret = world.work("ia", "secret", gpus=2)
    decide()
    later = world.work("datos", "later", gpus=4)
    decide()
    for row in (train, secret, later):
        row.refresh_from_db()
    return SimpleNamespace(datos=datos, ia=ia, train=train, secret=secret, later=later)


def finished(team: str, count: int) -> list[Any]:
    """Return more history: workloads that have come and gone."""
    rows = [world.work(team, f"past-{index}") for index in range(count)]
    Workload.objects.filter(pk__in=[row.pk for row in rows]).update(
        status="finished", outcome="succeeded"
    )
    return rows
