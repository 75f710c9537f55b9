"""What a GPU-hour costs now, as far as this room may ask: money is another room's.

Whoever knows prices registers at start-up (``decisions.md`` 6: scheduling declares the protocol).
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Protocol


class GpuHourPrices(Protocol):
    """Knows what one GPU-hour of each flavor costs at an instant, in the platform's currency."""

    def __call__(self, flavors: Collection[str], at: datetime) -> Mapping[str, Decimal]:
        """Return the prices by flavor; a flavor without one is left out."""
        ...


_registered: list[GpuHourPrices] = []


def register_prices(prices: GpuHourPrices) -> None:
    """Let this be asked from now on, in place of whoever was registered before."""
    _registered[:] = [prices]


def gpu_hour_prices(flavors: Collection[str], at: datetime) -> Mapping[str, Decimal]:
    """Return what one GPU-hour costs by flavor; nothing where nobody knows prices."""
    return _registered[0](flavors, at) if _registered and flavors else {}
