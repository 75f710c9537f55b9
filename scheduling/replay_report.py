"""A report of replays that stands by itself: one HTML file, charts and tables, both themes.

Plotly's script comes from the installed package and stands inside, so that the file can be sent
to somebody and opened without a network. Colours follow the reader's theme.
"""

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from plotly.offline import get_plotlyjs

from scheduling.replay.figures import SIZES, Figures
from scheduling.replay.shape import HEAD, as_rows

STYLE = """
:root { color-scheme: light dark; --ink: #1a1c1f; --paper: #fff; --line: #c9ced6; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaed; --paper: #16181c; --line: #444b55; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: right;
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.chart { height: 24rem; }
"""
DRAW = """
const dark = matchMedia("(prefers-color-scheme: dark)");
function draw() {
  const ink = dark.matches ? "#e8eaed" : "#1a1c1f", line = dark.matches ? "#444b55" : "#c9ced6";
  for (const chart of CHARTS) {
    const axis = { gridcolor: line, zerolinecolor: line, automargin: true };
    const layout = { ...chart.layout, paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink },
      xaxis: { ...axis, ...chart.layout.xaxis }, yaxis: { ...axis, ...chart.layout.yaxis } };
    Plotly.react(chart.id, chart.data, layout, { displaylogo: false, showSendToCloud: false,
      responsive: true });
  }
}
draw();
dark.addEventListener("change", draw);
"""
COLORS = ("#3b7dd8", "#d9822b", "#3a9d6e", "#a35fc4", "#c94f5d", "#7a8794", "#b59a2a", "#2fa5b5")


def html_report(title: str, found: Sequence[Figures]) -> str:
    """Return the whole file."""
    charts = _charts(found)
    places = "".join(
        f'<h2>{escape(chart["title"])}</h2><div class="chart" id="{chart["id"]}"></div>'
        for chart in charts
    )
    data = json.dumps(charts).replace("<", "\\u003c")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title>"
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
        f"<h1>{escape(title)}</h1>{_table(HEAD, as_rows(found))}{places}"
        f"{_teams(found)}<script>{get_plotlyjs()}</script>"
        f"<script>const CHARTS = {data};{DRAW}</script></body></html>"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    table = f"<thead><tr>{top}</tr></thead><tbody>{lines}</tbody>"
    return f'<div class="scroll"><table>{table}</table></div>'


def _teams(found: Sequence[Figures]) -> str:
    """Return the mean wait of each team under each policy."""
    teams = sorted({team for one in found for team in one.by_team})
    rows = [[team, *(_seconds(one, team) for one in found)] for team in teams]
    head = ["", *(one.name for one in found)]
    return f"<h2>Mean wait of each team, seconds</h2>{_table(head, rows)}"


def _seconds(one: Figures, team: str) -> str:
    waits = one.by_team.get(team)
    return "-" if waits is None or not waits.workloads else f"{waits.mean_s:,.0f}"


def _charts(found: Sequence[Figures]) -> list[dict[str, Any]]:
    hour = 3600.0
    spread = ("mean", "p50", "p90", "p99")
    spreads = [[w.mean_s, w.p50_s, w.p90_s, w.p99_s] for w in (one.waits for one in found)]
    sizes = [[one.by_size[size].mean_s for size in SIZES] for one in found]
    queues = sorted({queue for one in found for queue in one.use_by_queue})
    lent = [
        [one.use_by_queue[q].borrowed_gpu_hours if q in one.use_by_queue else 0 for q in queues]
        for one in found
    ]
    in_hours = [[value / hour for value in row] for row in spreads]
    by_size = [[value / hour for value in row] for row in sizes]
    names = [one.name for one in found]
    return [
        _bars("waits", "Waits", names, spread, in_hours, "hours"),
        _bars("sizes", "Mean wait by gang size in GPUs", names, SIZES, by_size, "hours"),
        _bars("lent", "Borrowed GPU-hours by queue", names, queues, lent, "GPU-hours"),
    ]


def _bars(  # noqa: PLR0917 - the parts of one chart
    key: str,
    title: str,
    names: Sequence[str],
    x: Sequence[str],
    rows: Sequence[Sequence[float]],
    unit: str,
) -> dict[str, Any]:
    data = [
        {
            "type": "bar",
            "name": name,
            "x": list(x),
            "y": list(row),
            "marker": {"color": COLORS[number % len(COLORS)]},
        }
        for number, (name, row) in enumerate(zip(names, rows, strict=True))
    ]
    layout = {
        "barmode": "group",
        "showlegend": True,
        "legend": {"orientation": "h", "y": -0.12, "yanchor": "top"},
        "margin": {"t": 12},
        "xaxis": {"type": "category"},
        "yaxis": {"title": {"text": unit}},
    }
    return {"id": key, "title": title, "data": data, "layout": layout}
