from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finops.allocation.draft.facts import Period, PriceFact, Window
from finops.allocation.draft.metering import gpu_hours, gpu_hours_by_day, hours_between
from finops.allocation.draft.pricing import PriceList
from tests.finops.allocation.month_facts import END, JUNE, START, ZONES, june, price_lists, windows

MADRID = ZoneInfo("Europe/Madrid")
WEEK = Window(START, END)


def month(year: int, number: int, zone: str) -> Period:
    tz = ZoneInfo(zone)
    following = (year + number // 12, number % 12 + 1)
    return Period(datetime(year, number, 1, tzinfo=tz), datetime(*following, 1, tzinfo=tz), zone)


@pytest.mark.parametrize(
    ("period", "hours", "days"),
    [
        pytest.param(month(2026, 6, "UTC"), 720, 30, id="June in UTC"),
        pytest.param(month(2026, 10, "Europe/Madrid"), 745, 31, id="an hour twice"),
        pytest.param(month(2026, 3, "Europe/Madrid"), 743, 31, id="an hour never"),
        pytest.param(month(2026, 3, "America/Havana"), 743, 31, id="a midnight that is not there"),
        pytest.param(month(2026, 11, "America/Havana"), 721, 30, id="a midnight twice"),
        pytest.param(month(2011, 12, "Pacific/Apia"), 720, 30, id="a day that is not there"),
    ],
)
def test_a_month_has_the_hours_that_passed(period, hours, days) -> None:
    by_day = gpu_hours_by_day(1, period.start, None, period)

    assert hours_between(period.start, period.end) == hours
    assert sum(by_day.values()) == hours
    assert len(by_day) == days


def test_the_long_day_has_25_hours() -> None:
    by_day = gpu_hours_by_day(4, june(1), None, month(2026, 10, "Europe/Madrid"))

    assert by_day[date(2026, 10, 25)] == 100
    assert by_day[date(2026, 10, 24)] == 96


def test_hours_are_counted_by_instants_not_by_the_wall_clock() -> None:
    before = datetime(2026, 10, 25, 0, tzinfo=MADRID)
    assert hours_between(before, datetime(2026, 10, 26, 0, tzinfo=MADRID)) == 25


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [
        (june(1) - timedelta(days=1), june(1), 0),
        (june(1) - timedelta(days=1), june(2), 48),
        (june(30), None, 48),
        (june(30) + timedelta(days=1), None, 0),
        (june(1), june(1) + timedelta(microseconds=1), Fraction(2, 3_600_000_000)),
    ],
)
def test_an_interval_is_clipped_to_the_half_open_window(start, end, hours) -> None:
    assert gpu_hours(2, start, end, JUNE.window) == hours


@settings(max_examples=100)
@given(interval=windows(), cut=st.integers(1, 7 * 86_400 - 1), gpus=st.integers(0, 9))
def test_windows_side_by_side_add_up(interval, cut, gpus) -> None:
    middle = START + timedelta(seconds=cut)
    parts = (Window(START, middle), Window(middle, END))

    whole = gpu_hours(gpus, *interval, WEEK)
    assert sum(gpu_hours(gpus, *interval, part) for part in parts) == whole


@settings(max_examples=100)
@given(interval=windows(), zone=st.sampled_from(ZONES))
def test_days_add_up_to_the_interval(interval, zone) -> None:
    by_day = gpu_hours_by_day(3, *interval, Period(START, END, zone))

    assert sum(by_day.values()) == gpu_hours(3, *interval, WEEK)


def test_an_interval_is_cut_where_the_price_changes_or_is_missing() -> None:
    prices = PriceList(
        [
            PriceFact("h100", Decimal("1.50"), june(20), june(25)),
            PriceFact("h100", Decimal("1.40"), june(1), june(10)),
            PriceFact("a100", Decimal("0.90"), june(1)),
        ]
    )
    pieces = prices.pieces("h100", Window(june(9), june(30)))

    assert [(piece.hours / 24, piece.unit_price) for piece in pieces] == [
        (1, Decimal("1.40")),
        (10, None),
        (5, Decimal("1.50")),
        (5, None),
    ]
    assert prices.pieces("b200", Window(june(9), june(10)))[0].unit_price is None


@settings(max_examples=100)
@given(prices=price_lists(), interval=windows(), flavor=st.sampled_from(["a100", "h100"]))
def test_priced_pieces_cover_the_interval_without_gap_or_overlap(prices, interval, flavor) -> None:
    start, end = interval
    window = Window(start, end or start + timedelta(days=3))
    pieces = PriceList(prices).pieces(flavor, window)

    assert pieces[0].window.start == window.start
    assert pieces[-1].window.end == window.end
    for piece, following in pairwise(pieces):
        assert piece.window.end == following.window.start
    for piece in pieces:
        in_force = [
            price.gpu_hour
            for price in prices
            if price.flavor == flavor
            and price.start <= piece.window.start
            and (price.end is None or piece.window.end <= price.end)
        ]
        assert in_force == ([] if piece.unit_price is None else [piece.unit_price])


def test_the_start_of_utc_is_kept() -> None:
    period = month(2026, 10, "Europe/Madrid")
    assert period.start == datetime(2026, 9, 30, 22, tzinfo=UTC)
    assert period.start.tzinfo is UTC
