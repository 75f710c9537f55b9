"""A closed month never changes: the database itself refuses, whoever asks."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction

from finops import billing, guards
from finops.models import (
    Acknowledgement,
    Adjustment,
    Bill,
    BillingPeriod,
    BillLine,
    Finding,
    Freeze,
    IssuedBill,
    PeriodStep,
)
from gpuplatform.common.problems import Rejected
from scheduling.models import QuotaInterval
from tests.finops import rows

from .world import AFTER, JUNE, charged_june, close, codes

pytestmark = pytest.mark.django_db
TABLES = (BillingPeriod, Bill, BillLine, Finding, PeriodStep, Acknowledgement, IssuedBill, Freeze)


def table_of(model):
    return model._meta.db_table  # noqa: SLF001  # Django's documented API


@pytest.fixture
def closed(fin, ada):
    charged_june()
    promise = QuotaInterval.objects.get(cluster_queue="cq-datos")
    promise.nominal = 4  # a finding: more is promised than there is
    promise.save()
    period = BillingPeriod.objects.get(name=JUNE)
    Acknowledgement.objects.create(
        period=period, code="x", by=fin, by_name="fin", reason="x, and why so"
    )
    return close(fin, ada)


def test_every_table_that_belongs_to_a_month_is_guarded():
    assert set(guards.CLOSED) == {table_of(model) for model in (*TABLES, Adjustment)}


@pytest.mark.parametrize("model", TABLES, ids=lambda model: model.__name__)
@pytest.mark.parametrize("operation", ["update", "delete"])
def test_no_row_of_a_closed_month_is_changed_or_taken_away(closed, model, operation):
    row = model.objects.first()
    column = {BillingPeriod: "status", Bill: "total", BillLine: "amount"}.get(model, "id")
    table = table_of(model)
    value = "'open'" if column == "status" else f"{column} + 1"
    statement = {
        "update": f"UPDATE {table} SET {column} = {value} WHERE id = %s",
        "delete": f"DELETE FROM {table} WHERE id = %s",
    }[operation]
    with pytest.raises(IntegrityError, match=guards.MESSAGE), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(statement, [row.pk])


@pytest.mark.parametrize("what", ["line", "bill", "finding", "adjustment"])
def test_no_row_comes_to_a_closed_month(closed, what):
    bill = Bill.objects.first()
    rows_of = {
        "line": lambda: BillLine.objects.create(bill=bill, number=99, amount=1, currency="EUR"),
        "bill": lambda: Bill.objects.create(period=closed, team=rows.make_team("new")),
        "finding": lambda: Finding.objects.create(period=closed, code="x", severity="info"),
        "adjustment": lambda: Adjustment.objects.create(
            period=closed, kind="manual", amount=1, currency="EUR", by_name="x"
        ),
    }
    with pytest.raises(IntegrityError, match=guards.MESSAGE), transaction.atomic():
        rows_of[what]()


def test_an_open_month_beside_it_changes_freely(closed):
    rows.use(rows.make_team("datos"), 1, rows.JULY, rows.JULY + timedelta(hours=5))
    july = billing.rebuild_draft("2026-07", now=rows.JULY + timedelta(days=2))
    billing.rebuild_draft("2026-07", now=rows.JULY + timedelta(days=3))
    assert july.status == "open"


def test_the_services_say_so_in_words(closed):
    for act in (
        lambda: billing.rebuild_draft(JUNE, now=AFTER),
        lambda: billing.choose_idle_policy(JUNE, "even", None),
    ):
        with pytest.raises(Rejected) as refusal:
            act()
        assert codes(refusal) == ["PERIOD_NOT_OPEN"]


def test_putting_the_guards_up_again_changes_nothing(closed):
    guards.put_up(using="default")
    guards.put_up(using="default")
    with pytest.raises(IntegrityError), transaction.atomic():
        closed.save()
