"""How busy the GPUs of work were, as far as this room may ask: sources are another room's.

Whoever reads them registers at start-up, as prices do (``scheduling.pricing``).
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Protocol
from uuid import UUID

from scheduling.counters import Measured


class GpuUse(Protocol):
    """Knows how busy the GPUs of workloads were."""

    def __call__(
        self, workloads: Collection[UUID] | None, start: datetime | None, end: datetime
    ) -> Mapping[UUID, Measured]:
        """Return what was measured of workloads (None: of all) in the days of a window.

        Work of which nothing was measured is left out: that is not the same as idle.
        """
        ...


_registered: list[GpuUse] = []


def register_use(use: GpuUse) -> None:
    """Let this be asked from now on, in place of whoever was registered before."""
    _registered[:] = [use]


def gpu_use(
    workloads: Collection[UUID] | None, start: datetime | None, end: datetime
) -> Mapping[UUID, Measured]:
    """Return how busy the GPUs of workloads were; nothing where nobody measures."""
    return _registered[0](workloads, start, end) if _registered else {}
