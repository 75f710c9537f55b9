"""Decayed usage of local queues (``FORMAT.md`` 9): the arithmetic of both profiles.

Recorded scenarios count in cores and units and compare a plain sum; the product's own figure is
in ``doors.py``.
"""

import math
from collections.abc import Mapping

from scheduling.engine.machines import CPU

_CUT = 1e9  # products are cut, not rounded, to nine decimals
_MILLI = 1000


def natural(amounts: Mapping[str, float]) -> dict[str, float]:
    """Return canonical amounts in cores and whole units."""
    return {r: n / _MILLI if r == CPU else float(n) for r, n in amounts.items()}


def fading(seconds: float, half_life: float) -> float:
    """Return which part of the past is forgotten after so many seconds; 0 without half-life."""
    return 1.0 - 0.5 ** (seconds / half_life) if half_life > 0 else 0.0


def decayed(
    consumed: Mapping[str, float], running: Mapping[str, float], alpha: float
) -> dict[str, float]:
    """Return the consumption after a time in which ``alpha`` of it faded and work was running."""
    return {
        resource: _cut(consumed.get(resource, 0.0) * (1.0 - alpha))
        + _cut(running.get(resource, 0.0) * alpha)
        for resource in sorted({*consumed, *running})
    }


def charged(
    consumed: Mapping[str, float], asked: Mapping[str, float], alpha: float
) -> dict[str, float]:
    """Return the consumption with the entry charge of an admission."""
    return {
        resource: consumed.get(resource, 0.0) + _cut(asked.get(resource, 0.0) * alpha)
        for resource in sorted({*consumed, *asked})
    }


def figure(consumed: Mapping[str, float], weights: Mapping[str, float], weight: float) -> float:
    """Return the number that is compared: weighted sum over the local queue's weight."""
    if weight <= 0:
        return math.inf
    return sum(n * weights.get(resource, 1.0) for resource, n in consumed.items()) / weight


def _cut(amount: float) -> float:
    return math.floor(amount * _CUT) / _CUT
