"""Questions to Prometheus about a day: how busy GPUs were, and what their nodes cost."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from finops.sources.failures import Note, SourceError
from finops.sources.http import Asker
from finops.sources.prometheus import (
    IdleRule,
    Series,
    answered,
    finite,
    gpu_uses,
    month_to_date_query,
    node_prices,
    price_query,
    team_cost_query,
    unused_cost_query,
    unused_query,
    utilisation_query,
)
from finops.sources.rows import Reading, Row, use_measures
from finops.sources.windows import Window

MOST_POINTS = 10_000  # Prometheus refuses more than 11,000 of a series
PRICE_STEP_S = 3600


@dataclass(frozen=True, slots=True)
class PrometheusReader:
    """Reads one Prometheus. ``node_label`` is how DCGM's exporter calls the node."""

    asker: Asker
    node_label: str = "Hostname"
    step_s: int = 300
    team_label: str = "label_equipo"
    idle_below_percent: int = 5
    idle_after_s: int = 900

    def read(self, window: Window) -> Reading:
        """Return how busy each GPU was in a window, and what its node cost.

        Raises:
            SourceError: no sample of a GPU at all: a gap, and no idle GPU.
        """
        asked = self._with_edges(window)
        series, warned = self._range(utilisation_query(self.step_s), asked, self.step_s)
        rule = IdleRule(self.idle_below_percent, self.idle_after_s)
        uses, holes = gpu_uses(series, self.step_s, self.node_label, window, rule)
        if not uses:
            raise SourceError("SOURCE_NO_DATA")
        prices, price_notes = self._prices(window)
        rows: tuple[Row, ...] = (*uses, *prices)
        return Reading(rows, use_measures(rows), (*warned, *holes, *price_notes))

    def _with_edges(self, window: Window) -> Window:
        """Return a window and what lies about it: idle time may begin before midnight."""
        edge = timedelta(seconds=-(-self.idle_after_s // self.step_s) * self.step_s)
        return Window(window.start - edge, window.end + edge)

    def questions(self, now: datetime, month_began: datetime) -> dict[str, dict[str, str]]:
        """Return the articles' questions, put right, with what Prometheus answers now."""
        asked = {
            "cost_per_team": team_cost_query(self.team_label),
            "unused_gpus": unused_query(self.node_label),
            "unused_cost": unused_cost_query(self.node_label),
            "month_to_date": month_to_date_query(self.team_label, now - month_began),
        }
        return {name: self._instant(query, now) for name, query in asked.items()}

    def _prices(self, window: Window) -> tuple[tuple[Row, ...], tuple[Note, ...]]:
        try:
            series, warned = self._range(price_query(), window, PRICE_STEP_S)
        except SourceError as error:
            return (), (Note("SOURCE_NO_NODE_PRICE", {"code": error.code}),)
        rows, holes = node_prices(series)
        missing = () if rows else (Note("SOURCE_NO_NODE_PRICE", {"code": "SOURCE_NO_DATA"}),)
        return rows, (*warned, *holes, *missing)

    def _range(
        self, query: str, window: Window, step_s: int
    ) -> tuple[list[Series], tuple[Note, ...]]:
        """Return samples at the end of each step: the first a step after the window's beginning.

        So a sample stands for the step before it, and none belongs to two days.
        """
        if window.length / timedelta(seconds=step_s) > MOST_POINTS:
            raise SourceError("SOURCE_WRONG_SHAPE", problem=f"steps of {step_s} s")
        body = self.asker.get(
            "api/v1/query_range",
            query=query,
            start=int(window.start.timestamp()) + step_s,
            end=int(window.end.timestamp()),
            step=step_s,
        )
        return answered(body, "matrix")

    def _instant(self, query: str, now: datetime) -> dict[str, str]:
        """Return what a question comes to now, by its labels; NaN is left out."""
        body = self.asker.get("api/v1/query", query=query, time=int(now.timestamp()))
        series, _warned = answered(body, "vector")
        found = {}
        for one in series:
            value = finite(one.value[1]) if one.value else None
            if value is not None:
                found[", ".join(one.metric[name] for name in sorted(one.metric))] = f"{value:f}"
        return found
