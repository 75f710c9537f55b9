"""Levels, forecasts and unusual days: pure, with the numbers of finops.md 6."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from finops.budget_judging import forecast, level_of, unusual
from finops.models import Budget, BudgetState
from finops.selectors.budgets import BudgetRow

JUNE = (datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC))
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("spent", "limit", "level"),
    [
        ("49.99", "100", 0),
        ("50", "100", 50),
        ("99.99", "100", 80),
        ("100", "100", 100),
        ("119", "100", 100),
        ("500", "100", 120),
        ("0", "0", 100),
        ("0.01", "0", 120),
        ("-3", "100", 0),
    ],
)
def test_the_highest_threshold_that_is_reached(spent, limit, level):
    assert level_of(Decimal(spent), Decimal(limit), [50, 80, 100, 120]) == level


def test_a_forecast_goes_on_as_it_went_and_needs_three_days():
    now = JUNE[0] + 10 * DAY
    assert forecast(Decimal(100), JUNE, JUNE[0] + 3 * DAY - DAY / 9, {}) is None
    found = forecast(Decimal(100), JUNE, now, {})
    assert (found.expected, found.low, found.high) == (300, 300, 300)


def test_the_band_is_wider_the_more_days_differ():
    days = {date(2026, 6, n + 1): Decimal(10 + (n % 2) * 4) for n in range(10)}
    found = forecast(sum(days.values()), JUNE, JUNE[0] + 10 * DAY, days)
    assert found.expected == 360
    assert found.high - found.expected == found.expected - found.low
    assert 12 < found.high - found.expected < 16  # 1.28 x 2.1 x sqrt(20)


def test_after_four_weeks_a_weekday_weighs_as_it_did():
    first = date(2026, 5, 4)  # Monday; nothing at weekends
    days = {
        first + n * DAY: Decimal(10 if (first + n * DAY).weekday() < 5 else 0) for n in range(28)
    }
    found = forecast(Decimal(0), JUNE, datetime(2026, 6, 27, tzinfo=UTC), days)
    assert found.expected == 20, "Saturday, Sunday, Monday, Tuesday"


@pytest.mark.parametrize(
    ("amount", "before", "is_unusual"),
    [
        ("200", ["100", "101", "99", "100"], True),
        ("30", ["100", "101", "99", "100"], True),  # less is unusual as well
        ("115", ["100", "101", "99", "100"], False),  # not 20
        ("121", ["10", "200", "100", "150"], False),  # the weekday is never the same
        ("1020", ["1000", "1000", "1000", "1000"], False),  # not 20 %
        ("40", ["0", "0", "0", "0"], True),
        ("400", ["100", "100", "100"], False),  # not four weeks
    ],
)
def test_a_day_is_unusual_for_its_weekday(amount, before, is_unusual):
    day = date(2026, 6, 29)
    amounts = {day - (n + 1) * 7 * DAY: Decimal(text) for n, text in enumerate(before)}
    found = unusual(day, {**amounts, day: Decimal(amount)})
    assert bool(found) == is_unusual


@pytest.mark.parametrize(("limit", "spent", "percent"), [(0, 5, 100), (0, 0, 100), (4, 5, 125)])
def test_of_a_limit_of_nothing_everything_is_gone_and_no_more(limit, spent, percent):
    budget = Budget(name="none", limit=Decimal(limit))
    row = BudgetRow(budget, BudgetState(budget=budget, spent=Decimal(spent)))
    assert row.whole_percent == percent
