"""Two who close at the same time: no number twice, none left out."""

from datetime import timedelta

import pytest
from django.db import connection

from finops import billing
from finops.closing.numbering import numbers
from finops.closing.steps import Asked, take_step
from finops.models import IssuedBill, NumberSeries, PeriodStep
from gpuplatform.common.problems import Rejected
from tests.conftest import person
from tests.finops import rows
from tests.finops.test_two_at_once import at_once

from .world import AFTER, JUNE, charged_june, step

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        connection.vendor == "sqlite", reason="only on PostgreSQL: SQLite has one writer anyway"
    ),
]
MAY = "2026-05"


def two_reviewed_months():
    fin, ada = person("fin", role="finance"), person("ada", role="admin")
    teams = charged_june()
    rows.use(teams["ia"], 1, rows.JUNE - timedelta(days=9), rows.JUNE - timedelta(days=8))
    billing.rebuild_draft(MAY, now=AFTER)
    for month in (MAY, JUNE):
        step("put_forward", fin, month=month)
        step("reviewed", fin, month=month)
    return ada


def test_two_months_closed_at_once_share_one_series_without_a_gap():
    ada = two_reviewed_months()
    results = at_once(
        *(
            lambda month=month: take_step(month, Asked("closed", ada), AFTER)
            for month in (MAY, JUNE)
        )
    )
    assert not any(isinstance(result, Rejected) for result in results), results
    issued = IssuedBill.objects.exclude(number=None)
    count = issued.count()
    assert sorted(issued.values_list("sequence", flat=True)) == list(range(1, count + 1))
    assert NumberSeries.objects.get().last == count == 3, "IA in May; Datos and IA in June"


def test_one_month_closed_twice_at_once_is_closed_once():
    ada = two_reviewed_months()
    at_once(*[lambda: take_step(JUNE, Asked("closed", ada), AFTER)] * 3)
    assert PeriodStep.objects.filter(step="closed").count() == 1
    assert NumberSeries.objects.get().last == 2


def test_a_closing_that_breaks_off_gives_its_numbers_back(monkeypatch):
    ada = two_reviewed_months()

    def breaks(*_args):
        raise RuntimeError("killed")

    with monkeypatch.context() as broken:
        broken.setattr("finops.closing.steps.freeze", breaks)
        with pytest.raises(RuntimeError):
            take_step(JUNE, Asked("closed", ada), AFTER)
    assert not NumberSeries.objects.filter(last__gt=0).exists()
    take_step(JUNE, Asked("closed", ada), AFTER)
    assert sorted(IssuedBill.objects.exclude(number=None).values_list("sequence", flat=True)) == [
        1,
        2,
    ]


def test_no_number_is_taken_where_nothing_is_charged():
    assert list(numbers("GPU-2026", 0)) == []
    assert not NumberSeries.objects.exists()
