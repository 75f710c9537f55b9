"""Months in a time zone, and amounts as text."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from django.utils import translation

from gpuplatform.common.money import digits, parse_decimal, plain, rounded
from gpuplatform.common.pages import csv_rows, json_rows
from gpuplatform.common.periods import month, month_at, month_before, months_between
from gpuplatform.common.templatetags import money as tags


@pytest.mark.parametrize(
    ("name", "zone", "hours"),
    [
        ("2026-06", "UTC", 720),
        ("2026-03", "Europe/Madrid", 743),
        ("2026-10", "Europe/Madrid", 745),
        ("2028-02", "UTC", 696),
        ("2026-12", "Asia/Kolkata", 744),
    ],
)
def test_a_month_has_the_hours_that_pass_in_its_zone(name, zone, hours):
    found = month(name, zone)
    assert found.hours == hours
    assert month_at(found.starts_at, zone) == found
    assert month_at(found.ends_at, zone).starts_at == found.ends_at
    assert month_before(month_at(found.ends_at, zone)) == found


def test_a_month_begins_at_local_midnight_and_ends_on_its_last_day():
    june = month("2026-06", "Europe/Madrid")
    assert june.starts_at == datetime(2026, 5, 31, 22, tzinfo=UTC)
    assert (june.first_day, june.last_day) == (date(2026, 6, 1), date(2026, 6, 30))


def test_months_between_two_instants_are_all_that_have_a_part():
    found = months_between(datetime(2026, 11, 30, tzinfo=UTC), datetime(2027, 2, 1, tzinfo=UTC))
    assert [one.name for one in found] == ["2026-11", "2026-12", "2027-01"]


@pytest.mark.parametrize("name", ["2026-00", "2026-13", "26-06", "2026-6", "", "2026-06-01"])
def test_what_is_not_a_month_is_refused(name):
    with pytest.raises(ValueError, match="is not a month"):
        month(name)


@pytest.mark.parametrize(
    ("text", "amount"),
    [(1.4e-06, "0.0000014"), ("0.025", "0.025"), (4, "4"), (" 1.50 ", "1.50"), ("-2", "-2")],
)
def test_numbers_of_any_spelling_are_read_exactly(text, amount):
    assert parse_decimal(text) == Decimal(amount)


@pytest.mark.parametrize("text", ["", "1,40", "NaN", "inf", True, None, "1" * 41, "1.4 EUR", "٣"])
def test_what_is_not_a_number_is_refused(text):
    with pytest.raises(ValueError, match="is not a number"):
        parse_decimal(text)


def test_single_values_round_halves_away_from_zero_and_lose_needless_zeros():
    assert rounded(Decimal("0.125")) == Decimal("0.13")
    assert rounded(Decimal("-0.125")) == Decimal("-0.13")
    assert plain(Decimal("1.40000000")) == "1.40"
    assert plain(Decimal("0.00000140")) == "0.0000014"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Decimal("0E-8"), "0.00000000"),
        (Decimal("1E+1"), "10"),
        (Decimal("1.40000000"), "1.40000000"),
        (1e-07, "0.0000001"),
        (2.5, "2.5"),
    ],
)
def test_files_hold_plain_decimals(number, text):
    assert digits(number) == text
    rows = [{"amount": number}]
    assert csv_rows("x", ["amount"], rows).content.decode().splitlines()[1] == text
    assert text in json_rows("x", ["amount"], rows).content.decode() or isinstance(number, float)


def test_people_read_money_in_their_language_with_a_true_minus():
    amount = Decimal("-1512.5")
    with translation.override("en"):
        assert tags.money(amount) == "\N{MINUS SIGN}1,512.50"
        assert tags.with_currency(Decimal("2468.57")) == "€2,468.57"
        assert tags.whole_currency(Decimal("4032.00")) == "€4,032"
        assert tags.unit_price(Decimal("1.40240000")) == "1.4024"
        assert tags.gpu_hours(Decimal(1080)) == "1,080.0"
        assert tags.percent(Decimal("0.61")) == "61 %"
        assert tags.percent(Decimal("-0.001")) == "0 %"
        assert tags.money(None) == "-"
    with translation.override("de"):
        assert tags.money(amount) == "\N{MINUS SIGN}1.512,50"
