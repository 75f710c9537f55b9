"""What loans and evictions were worth: every GPU-hour at the price of its own hour."""

import csv
import io
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.urls import reverse

from finops.models import Price
from queues.models import Team
from scheduling.models import WorkloadEvent
from tests.finops.rows import price
from tests.scheduling.loop import world
from tests.scheduling.loop.world import NOON

from .conftest import decide

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def reclaimed(db: None) -> Any:
    """Datos borrows IA's 8 GPUs at noon; IA takes them back at two; at one the price doubles."""
    with time_machine.travel(NOON, tick=False) as clock:
        world.nodes(4, gpus=4)
        world.queue("datos", 8, cohort="llm", reclaim_within_cohort="Any")
        world.queue("ia", 8, cohort="llm", reclaim_within_cohort="Any")
        price("3", valid_from=NOON - HOUR, valid_to=NOON + HOUR)
        price("6", valid_from=NOON + HOUR)
        world.work("datos", "kept", pods=2, gpus=4)
        decide()
        clock.move_to(NOON + HOUR / 60)
        taken = world.work("datos", "taken", pods=2, gpus=4)
        decide()
        clock.move_to(NOON + 2 * HOUR)
        owner = world.work("ia", "owner", pods=2, gpus=4)
        decide()
        decide()
        yield taken, owner


def rows_of(browser: Any, page: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(browser.get(reverse(page) + "?format=csv").text)))


WORTH = Decimal(8 * 59) / 60 * 3 + Decimal(8) * 6  # 59 minutes at 3, an hour at 6


def test_an_eviction_costs_what_it_threw_away_at_the_prices_of_its_hours(
    reclaimed: Any, ada: Any, signed_in: Any
):
    (row,) = rows_of(signed_in(ada), "evictions")
    assert (row["workload"], row["for_workload"]) == tuple(str(one) for one in reclaimed)
    assert (row["reason"], row["gpus"]) == ("InCohortReclamation", "8")
    assert float(row["lost_gpu_hours"]) == pytest.approx(8 * 119 / 60, abs=1e-6)
    assert Decimal(row["worth"]) == WORTH.quantize(Decimal("0.01"))
    page = signed_in(ada).get(reverse("evictions")).text
    assert "1 eviction threw away 15.9 GPU-hours" in page
    assert f"€{WORTH:.2f}" in page
    assert "The owner took its lent quota back." in page


def test_a_loan_is_worth_its_hours_at_the_prices_of_these_hours(
    reclaimed: Any, ada: Any, signed_in: Any
):
    (loan,) = rows_of(signed_in(ada), "borrowing")
    assert (loan["worth"], loan["currency"]) == (f"{WORTH:.2f}", "EUR")
    assert f"€{WORTH:.2f}" in signed_in(ada).get(reverse("borrowing")).text


def test_what_has_no_price_for_a_part_of_its_time_has_no_worth(
    reclaimed: Any, ada: Any, signed_in: Any
):
    Price.objects.order_by("valid_from").first().delete()
    for page in ("evictions", "borrowing"):
        assert {row["worth"] for row in rows_of(signed_in(ada), page)} == {""}


def test_whoever_sees_no_prices_sees_no_worth(reclaimed: Any, ian: Any, signed_in: Any):
    for page in ("evictions", "borrowing"):
        assert {row["worth"] for row in rows_of(signed_in(ian), page)} == {""}
        assert "Worth" not in signed_in(ian).get(reverse(page)).text


def test_either_side_sees_the_eviction_and_not_the_name_of_the_other(
    reclaimed: Any, lea: Any, ian: Any, signed_in: Any
):
    taken, owner = reclaimed
    (lost,) = rows_of(signed_in(lea), "evictions")
    assert (lost["workload"], lost["for_workload"]) == (str(taken), "")
    (won,) = rows_of(signed_in(ian), "evictions")
    assert (won["workload"], won["for_workload"]) == ("", str(owner))
    page = signed_in(lea).get(reverse("evictions")).text
    assert "a workload of another team" in page
    assert reverse("workload", args=[owner.uid]) not in page


def test_the_window_and_the_filters_narrow_it(reclaimed: Any, ada: Any, signed_in: Any):
    browser = signed_in(ada)
    there = browser.get(reverse("evictions"), {"team": "datos", "reason": "Preempted"})
    assert len(there.context["rows"]) == 1
    assert not browser.get(reverse("evictions"), {"team": "ia"}).context["rows"]
    WorkloadEvent.objects.filter(kind="evicted").update(at=NOON - 20 * 24 * HOUR)
    assert not browser.get(reverse("evictions"), {"days": "7"}).context["rows"]
    assert len(browser.get(reverse("evictions"), {"days": "30"}).context["rows"]) == 1


def test_teams_are_offered_by_the_names_that_the_page_shows(
    reclaimed: Any, ada: Any, signed_in: Any
):
    Team.objects.filter(name="datos").update(display_name="Data Office")
    page = signed_in(ada).get(reverse("evictions"))
    assert ("datos", "Data Office") in page.context["choices"]["team"]
    assert '<option value="datos">Data Office</option>' in page.text
