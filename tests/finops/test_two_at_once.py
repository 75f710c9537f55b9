"""Two processes at the same money: one after the other, never half and never double."""

import threading
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
from django.db import connection

from finops import billing, services
from finops.models import Bill, BillingPeriod, Price
from finops.specs import PriceSpec
from gpuplatform.common.problems import Rejected

from . import rows

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        connection.vendor == "sqlite", reason="only on PostgreSQL: SQLite has one writer anyway"
    ),
]
AFTER = rows.JULY + timedelta(days=1)


def at_once(*works: Callable[[], object]) -> list[object]:
    """Run works in threads that start together; return what each gave or raised."""
    gate = threading.Barrier(len(works))
    results: list[object] = [None] * len(works)

    def run(position: int) -> None:
        gate.wait()
        try:
            results[position] = works[position]()
        except Rejected as refusal:
            results[position] = refusal
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_two_rebuilds_at_once_leave_one_set_of_bills():
    rows.june()
    at_once(*[lambda: billing.rebuild_draft("2026-06", now=AFTER)] * 3)
    assert BillingPeriod.objects.count() == 1
    assert Bill.objects.count() == 4
    assert sum(bill.total for bill in Bill.objects.all()) == Decimal("4032.00")


def test_of_two_prices_from_the_same_instant_one_wins_and_one_is_refused():
    rows.flavor("a100")
    spec = PriceSpec("gpu_hour", "a100", Decimal(1), valid_from=rows.JUNE)
    other = PriceSpec("gpu_hour", "a100", Decimal(2), valid_from=rows.JUNE)
    results = at_once(
        lambda: services.set_price(spec, None), lambda: services.set_price(other, None)
    )
    assert Price.objects.count() == 1
    assert sum(isinstance(result, Rejected) for result in results) == 1


def test_windows_set_at_once_never_overlap():
    rows.flavor("a100")
    days = [timedelta(days=n) for n in (0, 3, 5)]
    specs = [
        PriceSpec(
            "gpu_hour",
            "a100",
            Decimal(n + 1),
            valid_from=rows.JUNE + start,
            valid_to=rows.JUNE + start + timedelta(days=4),
        )
        for n, start in enumerate(days)
    ]
    at_once(*[lambda spec=spec: services.set_price(spec, None) for spec in specs])
    kept = list(Price.objects.order_by("valid_from"))
    for earlier, later in pairwise(kept):
        assert earlier.valid_to <= later.valid_from
