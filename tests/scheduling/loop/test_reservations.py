"""A gang that finds no room: what is promised to it, what that costs, and who is told."""

from datetime import timedelta

import pytest
from django.test import override_settings
from django.urls import reverse

from finops.models import Price
from scheduling.cycle import run_cycle
from scheduling.engine.terms import Status
from scheduling.loader import load_snapshot
from scheduling.reconciler import reconcile
from tests.scheduling.loop.world import NOON, nodes, queue, status, work

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def two_nodes(clock):
    """Two nodes of four GPUs: one job runs for ten minutes on each, of half an hour on one."""
    nodes(2)
    queue("datos", 8)
    work("datos", "long", gpus=2, expected_duration_s=1_800)
    work("datos", "short", pods=2, gpus=1, expected_duration_s=600)
    run_cycle()
    reconcile()
    return clock


def test_a_gang_is_told_its_start_and_nobody_later_takes_its_room(two_nodes, admin_client):
    gang = work("datos", "gang", pods=2, gpus=4, expected_duration_s=600)
    late = work("datos", "late", pods=3, gpus=1, expected_duration_s=7_200)
    brief = work("datos", "brief", gpus=1, expected_duration_s=300)
    run_cycle()
    assert (status(gang), status(late), status(brief)) == (
        Status.PENDING,
        Status.PENDING,
        Status.ADMITTED,
    )
    assert gang.blockers[0]["code"] == "PROMISED"
    assert late.blockers[0]["code"] == "RESERVED"
    assert late.blockers[0]["facts"]["reserved_for"] == str(gang.uid)

    two_nodes.shift(5 * MINUTE)
    reconcile()
    run_cycle()
    for _ in range(5):
        two_nodes.shift(5 * MINUTE)
        reconcile()
        run_cycle()
    assert status(gang) is Status.ADMITTED, "half an hour after the longest job began"
    held = gang.events.get(kind="admitted").facts["held_idle_gpu_hours"]
    assert 1.0 < held < 4.0


def test_rest_and_pages_show_what_is_reserved_and_what_it_costs(two_nodes, admin_client):
    gang = work("datos", "gang", pods=2, gpus=4)
    run_cycle()
    two_nodes.shift(MINUTE)
    told = admin_client.get(f"/api/v1/workloads/{gang.uid}/").json()["reservation"]
    assert told["promised"] is True
    assert told["starts_at"].startswith("2026-06-01T12:30:00")
    assert told["nodes"] == ["h100-node-01", "h100-node-02"]
    assert told["idle_gpus"] == 4
    assert told["idle_gpu_hours"] == pytest.approx(4 / 60, abs=0.01)
    assert told["cost"] is None, "nobody has set a price"
    page = admin_client.get(reverse("nodes")).content.decode()
    assert "Room reserved for gangs" in page
    assert "kept free for a gang that waits, 4" in page
    assert page.count("is-kept") == 5, "four GPUs, and the key"
    rows = admin_client.get(reverse("nodes"), {"format": "json"}).json()
    assert [(row["free"], row["kept"]) for row in rows] == [(0, 2), (0, 2)]
    told = admin_client.get("/api/v1/nodes/").json()["results"]
    sums = [(row["gpus_used"], row["gpus_free"], row["gpus_kept"]) for row in told]
    assert sums == [(row["used"], row["free"], row["kept"]) for row in rows]
    page = admin_client.get(reverse("workload", args=[gang.uid])).content.decode()
    assert "Starts by" in page
    assert "at today" not in page


@pytest.mark.parametrize(
    ("prices", "cost"),
    [
        ({"*": "3"}, "6.00"),
        ({"*": "3", "h100-sxm": "1.4"}, "2.80"),
        ({"other": "1"}, None),
        ({}, None),
    ],
    ids=["the price for all", "the flavor's own", "another flavor's", "none"],
)
def test_what_is_held_idle_is_told_in_money_wherever_it_is_shown(
    two_nodes, admin_client, prices, cost
):
    for flavor, amount in prices.items():
        columns = {"unit": "gpu_hour", "subject": flavor, "amount": amount}
        Price.objects.create(valid_from=NOON - MINUTE, **columns)
        Price.objects.create(
            **{**columns, "amount": 99}, valid_from=NOON - 2 * MINUTE, valid_to=NOON - MINUTE
        )
    gang = work("datos", "gang", pods=2, gpus=4)
    run_cycle()
    two_nodes.shift(30 * MINUTE)  # four GPUs: two GPU-hours
    told = admin_client.get(f"/api/v1/workloads/{gang.uid}/").json()["reservation"]
    assert told["cost"] == (cost and {"amount": cost, "currency": "EUR"})
    (line,) = admin_client.get(reverse("reservations"), {"format": "json"}).json()
    assert (line["workload"], line["idle_gpu_hours"]) == ("ns-datos/gang", 2.0)
    assert line["cost"] == cost
    pages = [reverse("nodes"), reverse("workload", args=[gang.uid])]
    for page in (admin_client.get(url).content.decode() for url in pages):
        assert (f"€{cost}" in page) == (cost is not None)


@override_settings(STARVATION_TIMEOUT_S="60", RESERVATION_MIN_GPUS="8")
def test_settings_say_who_starves_and_when_and_a_limit_stands_for_a_missing_duration(clock):
    nodes(1)
    queue("datos", 8)
    work("datos", "limited", gpus=1, max_execution_time_s=900)
    snapshot = load_snapshot()
    assert snapshot.workloads[0].duration_s == 900
    patience = snapshot.patience
    assert (patience.after_s, patience.minimum, patience.elders_after_s) == (60.0, 8, 10_080.0)
    with override_settings(STARVATION_TIMEOUT_S="-1"):
        assert load_snapshot().patience.after_s is None
