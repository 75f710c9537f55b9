"""The look: the bar's grammar, hours of use, figures that Plotly accepts, one set of colours."""

import json
import re
from datetime import UTC, datetime, timedelta

import plotly.graph_objects as go
import pytest
from django.conf import settings
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from gpuplatform.common.bars import QuotaBar
from gpuplatform.common.templatetags.shapes import duration, stamp
from scheduling.selectors.history import (
    HOUR,
    HourlyUse,
    Stretch,
    Window,
    elapsed_of,
    gpu_hours,
    hourly_means,
    hours_of,
    most_at_once,
)

START = datetime(2026, 6, 1, tzinfo=UTC)
DAY = Window(START, START + timedelta(days=1))


# ---- the quota bar -----------------------------------------------------------------------------
def parts(bar):
    return [(segment.kind, segment.x, segment.width) for segment in bar.segments]


def test_a_borrower_goes_on_behind_the_nominal_tick():
    bar = QuotaBar("Datos", nominal=8, used=12, borrowed=4, pending=4, ceiling=16, scale=16)
    assert parts(bar) == [
        ("idle", 0, 50),
        ("used", 0, 50),
        ("borrowed", 50, 25),
        ("pending", 75, 25),
    ]
    assert (bar.nominal_x, bar.ceiling_x) == (50, 100)
    assert bar.sentence == "Datos: 12 of 8 used, 4 borrowed, 4 pending, ceiling 16"


def test_a_lender_shows_what_is_lent_inside_its_nominal():
    bar = QuotaBar("IA", nominal=8, used=5, lent=2, scale=8)
    assert parts(bar) == [("idle", 0, 100), ("used", 0, 62.5), ("lent", 62.5, 25)]
    assert bar.sentence == "IA: 5 of 8 used, 2 lent, 1 idle, no borrowing limit"
    assert bar.ceiling_x is None


def test_nothing_promised_is_zero_and_not_an_error():
    bar = QuotaBar("Riesgo", nominal=0, used=0, ceiling=0)
    assert (parts(bar), bar.used_text, bar.nominal_text) == ([], "0", "0")


@given(
    st.builds(
        QuotaBar,
        label=st.just("x"),
        nominal=st.integers(0, 512),
        used=st.integers(0, 1024),
        borrowed=st.integers(0, 512),
        lent=st.integers(0, 512),
        pending=st.integers(0, 2048),
        ceiling=st.none() | st.integers(0, 1024),
        scale=st.integers(0, 2048),
    )
)
def test_no_part_of_a_bar_leaves_it(bar):
    for segment in bar.segments:
        assert segment.width > 0
        assert 0 <= segment.x <= segment.x + segment.width <= 100.01


# ---- hours -------------------------------------------------------------------------------------
def test_a_stretch_spills_into_the_hours_it_covers_in_part():
    half = timedelta(minutes=30)
    held = Stretch(START + half, START + 3 * HOUR + half, 4)
    means = hourly_means([held], DAY, DAY.end)
    assert means[:5] == [2.0, 4.0, 4.0, 2.0, 0.0]


def test_what_is_still_held_is_drawn_at_its_height_in_the_running_hour():
    now = START + 23 * HOUR + timedelta(minutes=15)
    means = hourly_means([Stretch(START, None, 8)], DAY, now)
    assert means == [8.0] * 24
    assert gpu_hours(means, elapsed_of(DAY, now)) == pytest.approx(8 * 23.25)


def test_the_mean_counts_the_running_hour_for_what_is_over_of_it():
    hours = hours_of(DAY)
    use = HourlyUse(hours, [8.0] * 24, [0.0] * 24, [9.0] * 24, elapsed=0.1)
    assert (use.mean_used, use.mean_nominal) == pytest.approx((8.0, 9.0))
    late = HourlyUse(hours, [0.0] * 23 + [8.0], [0.0] * 24, [0.0] * 24, elapsed=0.1)
    assert late.mean_used == pytest.approx(0.8 / 23.1)


def test_most_at_once_is_no_mean_and_who_follows_on_another_is_not_beside_them():
    minute = timedelta(minutes=1)
    stretches = [
        Stretch(START, START + 2 * minute, 3),
        Stretch(START + 2 * minute, START + 3 * minute, 2),
        Stretch(START + 2 * minute, None, 2),
        Stretch(START - HOUR, START, 50),
    ]
    assert most_at_once(stretches, DAY, START + HOUR) == 4
    assert most_at_once([], DAY, START) == 0


@given(
    st.lists(
        st.tuples(st.integers(-2000, 2000), st.none() | st.integers(0, 3000), st.integers(1, 64)),
        max_size=20,
    )
)
def test_hours_add_up_to_exactly_what_was_held(rows):
    minute = timedelta(minutes=1)
    stretches = [
        Stretch(START + s * minute, None if d is None else START + (s + d) * minute, n)
        for s, d, n in rows
    ]
    held = sum(
        max((min(x.end or DAY.end, DAY.end) - max(x.start, DAY.start)) / HOUR, 0) * x.amount
        for x in stretches
    )
    assert sum(hourly_means(stretches, DAY, DAY.end)) == pytest.approx(held, abs=0.05)


# ---- words -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (7_860, "2 h 11 min"), (273_600, "3 d 4 h")],
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words
    assert duration(timedelta(seconds=seconds)) == words


def test_unknown_is_a_dash():
    assert (duration(None), stamp(None)) == ("-", "-")


# ---- figures -----------------------------------------------------------------------------------
@pytest.mark.django_db
@pytest.mark.parametrize("name", ["chart-quota-use", "chart-borrowed"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_plotly_accepts_the_figures(platform, ada, signed_in, name, theme):
    answer = signed_in(ada).get(reverse(name), {"theme": theme}).json()
    figure = go.Figure({"data": answer["data"], "layout": answer["layout"]})
    assert figure.data
    assert answer["config"]["showSendToCloud"] is False
    assert answer["config"]["displaylogo"] is False
    template = json.loads(
        (settings.BASE_DIR / "static" / "plotly-template.json").read_text(encoding="utf-8")
    )
    font = template[f"gpuplatform_{theme}"]["layout"]["font"]["color"]
    assert figure.layout.template.layout.font.color == font


def test_charts_and_pages_have_the_same_colours():
    css = (settings.BASE_DIR / "static" / "css" / "app.css").read_text(encoding="utf-8")
    look = json.loads(
        (settings.BASE_DIR / "static" / "plotly-template.json").read_text(encoding="utf-8")
    )
    tokens = dict(re.findall(r"--([\w-]+): light-dark\((#\w+, #\w+)\)", css))
    themes = ("light", "dark")
    names = {"nominal": "used", "borrowed": "borrowed", "lent": "lent", "idle": "idle"}
    for token, role in names.items():
        colors = [look["roles"][theme][role]["marker"]["color"] for theme in themes]
        assert tokens[token] == ", ".join(colors)
    for number in range(1, 11):
        colors = [look["teams"][theme][number - 1] for theme in themes]
        assert tokens[f"team-{number}"] == ", ".join(colors)
