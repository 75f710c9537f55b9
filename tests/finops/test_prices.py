"""Prices: what may be set, what follows what, and that a used price is never edited."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from finops import services
from finops.models import BillingPeriod, Price
from finops.selectors.prices import PriceBook, price_rows
from finops.specs import PriceSpec
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.problems import Rejected

from . import rows

pytestmark = pytest.mark.django_db
START = datetime(2026, 6, 1, tzinfo=UTC)
LATER = START + timedelta(days=10)


@pytest.fixture(autouse=True)
def flavors():
    for name in (rows.FLAVOR, "a100"):
        rows.flavor(name)


def spec(amount="1.40", **fields):
    fields = {"unit": "gpu_hour", "subject": rows.FLAVOR, "valid_from": START, **fields}
    return PriceSpec(amount=Decimal(amount), **fields)


def codes(refusal):
    return [(problem.path, problem.code) for problem in refusal.value.problems]


def test_a_new_price_closes_the_open_one_at_its_start_and_both_stay(ada):
    services.set_price(spec("1.40"), ada, "first price")
    services.set_price(spec("1.60", valid_from=LATER), ada, "energy went up")
    found = Price.objects.order_by("valid_from").values_list("amount", "valid_from", "valid_to")
    assert list(found) == [(Decimal("1.40"), START, LATER), (Decimal("1.60"), LATER, None)]
    entry = AuditEntry.objects.filter(action="price.set").first()
    assert (entry.actor, entry.reason) == (ada, "energy went up")
    assert entry.before["amount"] == "1.40000000"
    assert entry.after["amount"] in {"1.60", "1.60000000"}


def test_the_price_in_force_said_again_changes_nothing(ada):
    first = services.set_price(spec(), ada)
    assert services.set_price(spec(valid_from=LATER), ada) == first
    assert Price.objects.count() == 1
    assert AuditEntry.objects.filter(action="price.set").count() == 1


@pytest.mark.parametrize(
    ("wrong", "path", "code"),
    [
        (spec("-0.01"), "amount", "NEGATIVE"),
        (spec("NaN"), "amount", "BAD_TYPE"),
        (spec("1e12"), "amount", "OUT_OF_RANGE"),
        (spec("0.000000001"), "amount", "TOO_PRECISE"),
        (spec(currency="XXY"), "currency", "BAD_VALUE"),
        (spec(currency="USD"), "currency", "CURRENCY_MISMATCH"),
        (spec(unit="gpu_minute"), "unit", "BAD_VALUE"),
        (spec(subject=""), "subject", "REQUIRED"),
        (spec(subject="x" * 254), "subject", "TOO_LONG"),
        (spec(subject="h100-sxmm"), "subject", "FLAVOR_NOT_FOUND"),
        (spec(valid_to=START), "valid_to", "WINDOW_BACKWARDS"),
        (spec("2", valid_from=START), "valid_from", "PRICE_OVERLAPS"),
        (spec("2", valid_from=START - timedelta(days=1)), "valid_to", "PRICE_OVERLAPS"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_price_that_breaks_a_rule_is_refused_and_changes_nothing(wrong, path, code):
    services.set_price(spec(), None)
    with pytest.raises(Rejected) as refusal:
        services.set_price(wrong, None)
    assert codes(refusal) == [(path, code)]
    assert Price.objects.count() == 1


def test_a_price_may_fill_a_gap_before_another(ada):
    services.set_price(spec(valid_from=LATER), ada)
    services.set_price(spec("1.20", valid_to=LATER), ada)
    assert [row.gap_after for row in price_rows(LATER)] == [False, False]


def test_a_price_cannot_reach_back_into_a_closed_month():
    BillingPeriod.objects.create(
        name="2026-06", starts_at=rows.JUNE, ends_at=rows.JULY, status="closed"
    )
    with pytest.raises(Rejected) as refusal:
        services.set_price(spec(), None)
    assert codes(refusal) == [("valid_from", "PERIOD_CLOSED")]
    services.set_price(spec(valid_from=rows.JULY), None)


def test_several_prices_are_set_all_or_none():
    with pytest.raises(Rejected) as refusal:
        services.set_prices([spec(), spec("-1", subject="a100")], None)
    assert codes(refusal) == [("prices[1].amount", "NEGATIVE")]
    assert not Price.objects.exists()


def test_a_flavor_without_a_price_of_its_own_has_the_price_for_all():
    services.set_price(spec("2.00", subject="*"), None)
    services.set_price(spec("1.40"), None)
    book = PriceBook(LATER)
    assert book.gpu_hour(rows.FLAVOR).amount == Decimal("1.40")
    assert book.gpu_hour("a100").amount == Decimal(2)
    assert PriceBook(START - timedelta(days=1)).gpu_hour("a100") is None
