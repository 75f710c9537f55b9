"""Questions to OpenCost: a day at a time, in parts where a whole one is too much for it.

Idle is asked for so that it can be compared, and never shared by OpenCost: the split is ours.
Words like ``lastmonth`` and the ``accumulate`` switch are never used (finops.md 1.2, 1.3).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from finops.sources.failures import Note, SourceError, TransientError
from finops.sources.http import Asker
from finops.sources.opencost import Dimensions, added_up, cost_rows
from finops.sources.opencost_assets import asset_rows, assets_added_up, list_prices
from finops.sources.rows import Asset, Cost, ListPrice, Reading, Row, iron_measures
from finops.sources.windows import Window, zulu

AWAY = frozenset({"SOURCE_UNREACHABLE"})
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class OpenCostReader:
    """Reads one OpenCost. ``cluster`` names the cluster where answers do not."""

    asker: Asker
    dimensions: Dimensions
    cluster: str = ""
    resolution: str = ""  # Go duration; "" leaves it to OpenCost

    def read(self, window: Window) -> Reading:
        """Return what a window cost, with capacity and price list where they are to be had.

        Raises:
            SourceError: no costs, or none that can be used.
        """
        costs, notes = self._costs(window)
        assets, no_assets = self._wanted(lambda: self._assets(window), "SOURCE_NO_ASSETS")
        prices, no_prices = self._wanted(self._price_list, "SOURCE_NO_PRICE_LIST")
        rows: tuple[Row, ...] = (*costs, *assets)
        notes = (*notes, *no_assets, *no_prices)
        return Reading(rows, iron_measures(rows), notes, prices)

    def _costs(self, window: Window) -> tuple[tuple[Cost, ...], tuple[Note, ...]]:
        """Return the rows of a window; where a whole one fails, in parts of six hours."""
        try:
            return self._allocation(window)
        except TransientError as error:
            if error.code in AWAY:
                raise
        rows: list[Cost] = []
        notes: list[Note] = []
        empty = 0
        for part in window.slices():
            try:
                found, noted = self._allocation(part)
            except SourceError as error:
                if error.code != "SOURCE_NO_DATA":
                    raise
                empty += 1
            else:
                rows.extend(found)
                notes.extend(noted)
        if not rows:
            raise SourceError("SOURCE_NO_DATA")
        if empty:
            notes.append(Note("SOURCE_EMPTY_PARTS", {"parts": empty}))
        return added_up(rows), tuple(notes)

    def _allocation(self, window: Window) -> tuple[tuple[Cost, ...], tuple[Note, ...]]:
        query = {
            "window": f"{zulu(window.start)},{zulu(window.end)}",
            "aggregate": self.dimensions.aggregate,
            "includeIdle": "true",
            "shareIdle": "false",
            "includeAggregatedMetadata": "true",
        }
        if self.resolution:
            query["resolution"] = self.resolution
        body = self.asker.get("allocation", **query)
        return cost_rows(body, window, self.dimensions, self.cluster)

    def _assets(self, window: Window) -> tuple[Asset, ...]:
        try:
            return self._assets_of(window)
        except TransientError as error:
            if error.code in AWAY:
                raise
        return assets_added_up(row for part in window.slices() for row in self._assets_of(part))

    def _assets_of(self, window: Window) -> tuple[Asset, ...]:
        body = self.asker.get("assets", window=f"{zulu(window.start)},{zulu(window.end)}")
        return asset_rows(body, window, self.cluster)

    def _price_list(self) -> tuple[ListPrice, ...]:
        return list_prices(self.asker.get("allNodePricing"))

    @staticmethod
    def _wanted(
        ask: Callable[[], tuple[Answer, ...]], otherwise: str
    ) -> tuple[tuple[Answer, ...], tuple[Note, ...]]:
        """Return what costs can do without, or a note that it is not there."""
        try:
            found = ask()
        except SourceError as error:
            return (), (Note(otherwise, {"code": error.code}),)
        return found, () if found else (Note(otherwise, {"code": "SOURCE_NO_DATA"}),)
