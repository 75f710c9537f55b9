"""Work that is moved in the running product: told in both stories, and back before anybody."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.urls import reverse

from scheduling.cycle import run_cycle
from scheduling.engine.moving import Moving
from scheduling.engine.terms import Status
from scheduling.lifecycle import cancel
from scheduling.models import Placement
from scheduling.readers import moving_of
from scheduling.reconciler import reconcile
from tests.scheduling.loop.world import NOON, nodes, queue, status, story, work

pytestmark = pytest.mark.django_db


def on(workload) -> set[str]:
    held = Placement.objects.filter(
        admission__workload=workload, admission__released_at=None, admission__evicted_at=None
    )
    return set(held.values_list("node", flat=True))


@pytest.fixture
def scattered(clock, settings):
    """Two nodes of four GPUs, on each of them a job of two."""
    settings.CONSOLIDATION_GPU_HOURS = "-1"
    nodes(2)
    queue("datos", 8)
    first = [work("datos", f"first-{n}", gpus=2) for n in (1, 2)]
    run_cycle()
    second = work("datos", "second", gpus=2)
    run_cycle()
    reconcile()
    first[0].refresh_from_db()
    cancel(first[0], at=NOON)
    reconcile()
    return first[1], second


def test_a_blocked_gang_is_told_who_moves_and_the_mover_where_it_goes_on(scattered, admin_client):
    first, second = scattered
    gang = work("datos", "gang", gpus=4)
    report = run_cycle()
    (mover,) = [one for one in (first, second) if status(one) is Status.PENDING]
    (stays,) = {first, second} - {mover}
    (target,) = on(stays)
    assert f"moves {mover} to {target} for {gang}" in report.lines
    event = mover.events.get(kind="evicted")
    assert (event.reason, event.other, event.facts["moves_to"]) == ("Consolidated", gang, target)
    assert gang.events.get(kind="consolidating").other == mover

    rival = work("datos", "rival", gpus=2)  # it would fit where the mover goes
    reconcile()
    run_cycle()
    assert [status(one) for one in (gang, mover, rival)] == [
        Status.ADMITTED,
        Status.ADMITTED,
        Status.PENDING,
    ]
    assert on(mover) == {target}
    assert story(mover)[-1] == "admitted"
    page = admin_client.get(reverse("workload", args=[gang.uid])).content.decode()
    assert "1 workload was moved to other nodes for it" in page
    page = admin_client.get(reverse("workload", args=[mover.uid])).content.decode()
    assert "It moves so that a larger gang fits." in page
    assert f"It goes on at {target}." in page


def test_by_default_nobody_moves(scattered, settings):
    settings.CONSOLIDATION_GPU_HOURS = ""
    first, second = scattered
    work("datos", "gang", gpus=4)
    run_cycle()
    assert {status(first), status(second)} == {Status.RUNNING}


@pytest.mark.parametrize(
    ("setting", "bounds"), [("", None), ("-1", Moving(None)), ("12.5", Moving(12.5))]
)
def test_the_setting_bounds_what_a_move_may_lose(settings, setting, bounds):
    settings.CONSOLIDATION_GPU_HOURS = setting
    assert moving_of(settings) == bounds


def test_a_wrong_setting_stops_the_start(settings):
    settings.CONSOLIDATION_GPU_HOURS = "plenty"
    with pytest.raises(ImproperlyConfigured, match="CONSOLIDATION_GPU_HOURS"):
        moving_of(settings)
