"""Windows of budgets: LiteLLM's grammar as a table of cases, and that windows tile time."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finops.budgets.windows import BadDurationError, parse, window_at

NOW = datetime(2026, 6, 17, 13, 47, 20, tzinfo=UTC)  # a Wednesday
FIRST = date(2026, 6, 2)


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("duration", "start", "end"),
    [
        ("30s", "2026-06-17T13:47:00", "2026-06-17T13:47:30"),
        ("1m", "2026-06-17T13:47:00", "2026-06-17T13:48:00"),  # a minute, not a month
        ("15m", "2026-06-17T13:45:00", "2026-06-17T14:00:00"),
        ("1h", "2026-06-17T13:00:00", "2026-06-17T14:00:00"),
        ("1hr", "2026-06-17T13:00:00", "2026-06-17T14:00:00"),
        ("hourly", "2026-06-17T13:00:00", "2026-06-17T14:00:00"),
        ("6h", "2026-06-17T12:00:00", "2026-06-17T18:00:00"),
        ("10h", "2026-06-17T10:00:00", "2026-06-17T20:00:00"),
        ("13h", "2026-06-17T13:00:00", "2026-06-18T00:00:00"),  # ends with its day
        ("24h", "2026-06-17T00:00:00", "2026-06-18T00:00:00"),
        ("daily", "2026-06-17T00:00:00", "2026-06-18T00:00:00"),
        ("1d", "2026-06-17T00:00:00", "2026-06-18T00:00:00"),
        ("7d", "2026-06-15T00:00:00", "2026-06-22T00:00:00"),  # Monday
        ("1w", "2026-06-15T00:00:00", "2026-06-22T00:00:00"),
        ("weekly", "2026-06-15T00:00:00", "2026-06-22T00:00:00"),
        ("30d", "2026-06-01T00:00:00", "2026-07-01T00:00:00"),  # the calendar's month
        ("monthly", "2026-06-01T00:00:00", "2026-07-01T00:00:00"),
        ("1mo", "2026-06-01T00:00:00", "2026-07-01T00:00:00"),
        ("10d", "2026-06-12T00:00:00", "2026-06-22T00:00:00"),  # from the first day
        ("2w", "2026-06-16T00:00:00", "2026-06-30T00:00:00"),
        ("28d", "2026-06-02T00:00:00", "2026-06-30T00:00:00"),
    ],
)
def test_durations_are_read_as_litellm_resets(duration, start, end):
    window = window_at(duration, NOW, "UTC", FIRST)
    assert (window.start, window.end) == (at(start), at(end))


def test_days_are_local_ones_with_their_clock_changes():
    october = window_at("1mo", datetime(2026, 10, 9, tzinfo=UTC), "Europe/Madrid", FIRST)
    assert (october.end - october.start) == timedelta(hours=745)
    changing = window_at("1d", datetime(2026, 10, 25, 12, tzinfo=UTC), "Europe/Madrid", FIRST)
    assert (changing.end - changing.start) == timedelta(hours=25)


@pytest.mark.parametrize(
    "duration",
    ["", "0d", "2mo", "12mo", "-1d", "1.5h", "d", "1y", "1 d", "36h", "401d", "58w", "²d", "1mo1"],
)
def test_what_is_no_duration_is_refused_in_words(duration):
    with pytest.raises(BadDurationError, match=r"window|is not like|month"):
        parse(duration)


@given(
    count=st.integers(1, 60),
    unit=st.sampled_from(["s", "m", "h", "d", "w"]),
    now=st.datetimes(datetime(2025, 1, 1), datetime(2027, 12, 31)),  # noqa: DTZ001
    zone=st.sampled_from(["UTC", "Europe/Madrid", "Asia/Kolkata"]),
)
def test_windows_hold_their_instant_and_follow_each_other(count, unit, now, zone):
    now = now.replace(tzinfo=UTC)
    try:
        window = window_at(f"{count}{unit}", now, zone, FIRST)
    except BadDurationError:
        return
    assert window.start <= now < window.end
    following = window_at(f"{count}{unit}", window.end, zone, FIRST)
    before = window_at(f"{count}{unit}", window.start - timedelta(microseconds=1), zone, FIRST)
    assert (following.start, before.end) == (window.end, window.start)
