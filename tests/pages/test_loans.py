"""Loans as people see them: one loan stays one loan, however its lenders change."""

import csv
import io
from datetime import timedelta

import pytest
import time_machine
from django.urls import reverse

from scheduling.models import UsageInterval
from tests.scheduling.loop import world
from tests.scheduling.loop.world import NOON

from .conftest import decide

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def resplit(db):
    """Datos borrows 8 of IA and Bio from noon; from one o'clock IA works, so Bio lends more."""
    with time_machine.travel(NOON, tick=False) as clock:
        world.nodes(8, gpus=4)
        world.queue("datos", 8, cohort="llm")
        world.queue("ia", 12, cohort="llm")
        world.queue("bio", 12, cohort="llm")
        train = world.work("datos", "train", pods=4, gpus=4)
        decide()
        clock.move_to(NOON + HOUR)
        world.work("ia", "own", pods=2, gpus=4)
        decide()
        clock.move_to(NOON + 3 * HOUR)
        yield train


def ledger(browser):
    return list(
        csv.DictReader(io.StringIO(browser.get(reverse("borrowing") + "?format=csv").text))
    )


def test_an_open_loan_is_one_row_and_as_old_as_the_loan(resplit, ada, signed_in):
    answer = signed_in(ada).get(reverse("borrowing"))
    (loan,) = answer.context["current"]
    assert (loan.borrower, loan.gpus, loan.since) == ("cq-datos", 8, NOON)
    assert sum(part.gpus for part in loan.parts) == 8
    assert {part.name for part in loan.parts} == {"cq-ia", "cq-bio"}
    assert "now from" in answer.text


def test_the_ledger_tells_a_new_split_from_a_return(resplit, ada, signed_in):
    rows = ledger(signed_in(ada))
    closed = [row["ended_by"] for row in rows if row["to"]]
    assert closed
    assert set(closed) <= {"moved", "changed"}
    UsageInterval.objects.filter(ended_at=None, holding="borrowed").update(
        ended_at=NOON + 2 * HOUR
    )
    assert "returned" in {row["ended_by"] for row in ledger(signed_in(ada))}


def test_a_gap_makes_it_another_loan(resplit, ada, signed_in):
    rows = UsageInterval.objects.filter(holding="borrowed", ended_at=NOON + HOUR)
    rows.update(ended_at=NOON + HOUR / 2)
    (loan,) = signed_in(ada).get(reverse("borrowing")).context["current"]
    assert loan.since == NOON + HOUR


def test_names_lead_to_the_pages_that_the_reader_has(resplit, ada, lea, signed_in):
    page = signed_in(ada).get(reverse("borrowing")).text
    assert f'href="{reverse("queue", args=["cq-ia"])}"' in page
    page = signed_in(lea).get(reverse("borrowing")).text
    assert f'href="{reverse("queue", args=["cq-datos"])}"' in page
    assert f'href="{reverse("queue", args=["cq-ia"])}"' not in page
    assert "cq-ia" in page
