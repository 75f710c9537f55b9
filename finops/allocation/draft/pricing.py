"""Time x effective-dated price, cut at every change of price."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from finops.allocation.draft.facts import PriceFact, Window
from finops.allocation.draft.metering import clip, hours_between
from finops.allocation.money import ZERO


@dataclass(frozen=True, slots=True)
class PricedPiece:
    """A stretch of time with one price per GPU-hour; None = no price was in force."""

    window: Window
    unit_price: Decimal | None

    @property
    def hours(self) -> Fraction:
        """Hours of the stretch."""
        return hours_between(self.window.start, self.window.end)

    def cost(self, gpu_hours: Fraction) -> Fraction:
        """Return what ``gpu_hours`` cost at this price; without one 0, and a finding says so."""
        return ZERO if self.unit_price is None else gpu_hours * Fraction(self.unit_price)


class PriceList:
    """Prices by flavor; those of one flavor must not overlap (``Facts`` checks)."""

    def __init__(self, prices: Iterable[PriceFact]) -> None:
        self._by_flavor: dict[str, list[PriceFact]] = defaultdict(list)
        for price in sorted(prices, key=lambda price: price.start):
            self._by_flavor[price.flavor].append(price)

    def pieces(self, flavor: str, window: Window) -> list[PricedPiece]:
        """Cut ``window`` where the price of ``flavor`` changes or is missing."""
        pieces: list[PricedPiece] = []
        cursor = window.start
        for price in self._from(flavor, window.start):
            part = clip(price.start, price.end, window)
            if part is None:
                if price.start >= window.end:
                    break
                continue
            if cursor < part.start:
                pieces.append(PricedPiece(Window(cursor, part.start), None))
            pieces.append(PricedPiece(part, price.gpu_hour))
            cursor = part.end
        if cursor < window.end:
            pieces.append(PricedPiece(Window(cursor, window.end), None))
        return pieces

    def _from(self, flavor: str, instant: datetime) -> list[PriceFact]:
        """Return the prices from the one in force at ``instant`` (if any) on."""
        prices = self._by_flavor.get(flavor, [])
        first = bisect_right(prices, instant, key=lambda price: price.start)
        return prices[max(0, first - 1) :]
