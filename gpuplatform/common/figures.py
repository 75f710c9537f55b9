"""Plotly figures in the house's look: one template, traces styled by what they mean.

A figure is plain data (``{"data", "layout", "config"}``) that ``static/js/charts.js`` hands to
Plotly; it is built without importing plotly, and the tests read it back with plotly itself.
Colours come from ``static/plotly-template.json``, which repeats the tokens of ``app.css``.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.utils.translation import get_language, gettext

Trace = dict[str, Any]
Figure = dict[str, Any]
THEMES = ("light", "dark")


@cache
def _look() -> dict[str, Any]:
    path = Path(settings.BASE_DIR) / "static" / "plotly-template.json"
    look: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return look


def theme_of(request: HttpRequest) -> str:
    """Return ``light`` or ``dark``: what the page asks for, else the cookie, else light."""
    wanted = request.GET.get("theme") or request.COOKIES.get("theme", "")
    return wanted if wanted in THEMES else "light"


def role(theme: str, name: str) -> Trace:
    """Return the style of a role, e.g. used, borrowed, lent, idle, pending, nominal."""
    style: Trace = json.loads(json.dumps(_look()["roles"][theme][name]))
    style.pop("band", None)
    return style


def team_color(theme: str, number: int) -> str:
    """Return the colour of the team with this number (from 1); grey from the eleventh on."""
    colors: list[str] = _look()["teams"][theme]
    if 1 <= number <= len(colors):
        return colors[number - 1]
    other: str = _look()["team_other"][theme]
    return other


def area(theme: str, name: str, x: Sequence[str], y: Sequence[float], label: str) -> Trace:
    """Return a filled step area of a role, stacked on the areas before it."""
    marker = role(theme, name)["marker"]
    color, pattern = marker["color"], marker.get("pattern")
    return {
        "type": "scatter",
        "mode": "lines",
        "name": label,
        "x": list(x),
        "y": list(y),
        "stackgroup": "use",
        "line": {"width": 0, "color": color, "shape": "hv"},
        "fillcolor": color,
        **({"fillpattern": {"fillmode": "overlay", **pattern}} if pattern else {}),
    }


def line(theme: str, name: str, x: Sequence[str], y: Sequence[float], label: str) -> Trace:
    """Return a step line of a role, e.g. the nominal quota."""
    style = role(theme, name)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": label,
        "x": list(x),
        "y": list(y),
        "line": {"shape": "hv", **style["line"]},
    }


def bar(theme: str, name: str, x: Sequence[str], y: Sequence[float], label: str) -> Trace:
    """Return stacked bars of a role."""
    return {"type": "bar", **role(theme, name), "name": label, "x": list(x), "y": list(y)}


def figure(
    theme: str,
    traces: Sequence[Trace],
    *,
    y_title: str,
    view: str,
    x_title: str = "",
    **layout: Any,
) -> Figure:
    """Return a whole figure.

    Args:
        theme: ``light`` or ``dark``.
        traces: in the order of the bar grammar: used, borrowed, lent, idle, pending.
        y_title: what is measured, with its unit.
        view: key of the view; Plotly keeps the reader's zoom for as long as it is the same.
        x_title: what the horizontal axis shows; for times its zone.
        layout: more keys of the layout.
    """
    return {
        "data": list(traces),
        "layout": {
            "template": _look()[f"gpuplatform_{theme}"],
            "uirevision": view,
            "separators": _look()["separators"][get_language() or "en"],
            "xaxis": {"title": {"text": x_title or gettext("time, UTC")}},
            "yaxis": {"title": {"text": y_title}},
            **layout,
        },
        "config": _look()["config"],
    }


def plain(value: Any) -> Any:
    """Return a value that JSON and Plotly both understand: no Decimal, no aware datetime."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S")
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def figure_response(value: Figure) -> JsonResponse:
    """Return a figure as the answer to ``charts.js``."""
    return JsonResponse(plain(value))
