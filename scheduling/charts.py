"""Figures of this room: rows to Plotly's JSON, in the house's look."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.utils.translation import gettext

from gpuplatform.common import figures
from gpuplatform.common.figures import Figure
from gpuplatform.common.locales import by_locale
from scheduling.engine.fragments import Fragments, Stranded
from scheduling.selectors.fragments import in_gpus
from scheduling.selectors.history import Borrower, HourlyUse, by_day

MOST_SERIES = 8  # further borrowers are drawn as one


def _instants(hours: Sequence[datetime]) -> list[str]:
    return [hour.strftime("%Y-%m-%dT%H:%M") for hour in hours]


def quota_use_figure(theme: str, use: HourlyUse, view: str) -> Figure:
    """Return GPUs in use as stacked steps under the line of what was promised."""
    x = _instants(use.hours)
    traces = [
        figures.area(theme, "used", x, use.own, gettext("within nominal")),
        figures.area(theme, "borrowed", x, use.borrowed, gettext("borrowed")),
        figures.line(theme, "nominal", x, use.nominal, gettext("nominal")),
    ]
    return figures.figure(theme, traces, y_title=gettext("GPUs, hourly mean"), view=view)


def borrowed_figure(
    theme: str, hours: Sequence[datetime], borrowers: Sequence[Borrower]
) -> Figure:
    """Return borrowed GPUs as stacked steps, one colour for each borrower's team."""
    x = _instants(hours)
    shown = [(b.queue, b.means, b.team or 0) for b in borrowers[:MOST_SERIES]]
    if rest := borrowers[MOST_SERIES:]:
        sums = [sum(values) for values in zip(*(b.means for b in rest), strict=True)]
        shown.append((gettext("others"), sums, 0))
    # Without any trace the axis would not be one of time.
    shown = shown or [(gettext("nobody"), [0.0] * len(x), 0)]
    traces = [_team_area(theme, x, *series) for series in shown]
    return figures.figure(
        theme, traces, y_title=gettext("borrowed GPUs, hourly mean"), view="borrowed"
    )


def _team_area(
    theme: str, x: list[str], name: str, means: Sequence[float], team: int
) -> dict[str, Any]:
    trace = figures.area(theme, "used", x, means, name)
    color = figures.team_color(theme, (team - 1) % 10 + 1 if team else 0)
    return trace | {"fillcolor": color, "line": {**trace["line"], "color": color}}


def use_table(use: HourlyUse) -> list[list[str]]:
    """Return the table beside the chart of use: GPU-hours of each day; [] where all is zero."""
    if use.is_empty:
        return []
    return [[day.day, *map(_hours, (day.own, day.borrowed, day.nominal))] for day in by_day(use)]


def borrowed_table(borrowers: Sequence[Borrower]) -> list[list[str]]:
    """Return the table beside the chart of loans: each borrower's GPU-hours, and its peak."""
    return [[b.queue, _hours(b.gpu_hours), by_locale(f"{b.most:,}")] for b in borrowers]


def use_head() -> list[str]:
    """Return the columns of :func:`use_table`."""
    return [
        gettext("Day, UTC"),
        gettext("GPU-hours within nominal"),
        gettext("GPU-hours borrowed"),
        gettext("GPU-hours promised"),
    ]


def borrowed_head() -> list[str]:
    """Return the columns of :func:`borrowed_table`."""
    return [gettext("Queue"), gettext("GPU-hours borrowed"), gettext("Most at once")]


OUT_OF_SERVICE = (Stranded.NOT_READY, Stranded.CORDONED, Stranded.TAINT)


def fragments_figure(theme: str, found: Sequence[Fragments]) -> Figure:
    """Return unused GPUs of each flavor as one bar: usable, stranded, out of service."""
    names = [_bar_name(piece, found) for piece in reversed(found)]
    parts = [_parts(piece) for piece in reversed(found)]
    labels = (gettext("usable"), gettext("stranded"), gettext("out of service"))
    traces = [
        _lying(figures.bar(theme, role, names, [float(in_gpus(p[i])) for p in parts], label))
        for i, (role, label) in enumerate(zip(("used", "borrowed", "idle"), labels, strict=True))
    ]
    return figures.figure(
        theme,
        traces,
        x_title=gettext("unused GPUs"),
        y_title="",
        view="fragments",
        hovermode="y unified",
        height=120 + 40 * len(names),
    )


def _lying(trace: dict[str, Any]) -> dict[str, Any]:
    """Turn a bar on its side: long names stand beside it, not under it."""
    turned = {"x": trace["y"], "y": trace["x"], "orientation": "h"}
    return {**trace, **turned, "hovertemplate": "%{x}"}


def _bar_name(piece: Fragments, found: Sequence[Fragments]) -> str:
    alone = sum(other.flavor == piece.flavor for other in found) == 1
    return piece.flavor if alone else f"{piece.flavor} {piece.resource.rsplit('/', 1)[-1]}"


def _parts(piece: Fragments) -> tuple[int, int, int]:
    out = sum(piece.stranded.get(cause, 0) for cause in OUT_OF_SERVICE)
    return piece.usable, piece.free - piece.usable - out, out


def fragments_head() -> list[str]:
    """Return the columns of :func:`fragments_table`."""
    return [
        gettext("Flavor"),
        gettext("Free GPUs"),
        gettext("Usable"),
        gettext("Stranded"),
        gettext("Out of service"),
    ]


def fragments_table(found: Sequence[Fragments]) -> list[list[str]]:
    """Return the table beside the figure; [] where nothing is there to be free."""
    return [
        [_bar_name(piece, found), *(f"{in_gpus(n)}" for n in (piece.free, *_parts(piece)))]
        for piece in found
    ]


def _hours(hours: float) -> str:
    return by_locale(f"{hours:,.1f}")
