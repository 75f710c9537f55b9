"""What GPU-hours cost, as far as this room may ask: money is another room's.

Whoever knows prices registers at start-up (``decisions.md`` 6: scheduling declares the protocol).
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple, Protocol


class Held(NamedTuple):
    """GPUs of one flavor held in ``[since, until)``."""

    flavor: str
    gpus: int
    since: datetime
    until: datetime


class GpuHourPrices(Protocol):
    """Knows what GPU-hours cost, in the platform's currency."""

    def at(self, flavors: Collection[str], at: datetime) -> Mapping[str, Decimal]:
        """Return what one GPU-hour costs at an instant; a flavor without a price is left out."""
        ...

    def worth(self, held: Sequence[Held]) -> list[Decimal | None]:
        """Return what each was worth at the prices in force, to the cent; None: unpriced."""
        ...


_registered: list[GpuHourPrices] = []


def register_prices(prices: GpuHourPrices) -> None:
    """Let this be asked from now on, in place of whoever was registered before."""
    _registered[:] = [prices]


def gpu_hour_prices(flavors: Collection[str], at: datetime) -> Mapping[str, Decimal]:
    """Return what one GPU-hour costs by flavor; nothing where nobody knows prices."""
    return _registered[0].at(flavors, at) if _registered and flavors else {}


def worths(held: Sequence[Held]) -> list[Decimal | None]:
    """Return what each was worth, to the cent, in the same order; None where that is unknown."""
    return _registered[0].worth(held) if _registered and held else [None] * len(held)
