"""How much running work may be moved so that a blocked gang fits: the bounds of consolidation."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Moving:
    """The bounds of one consolidation. Source: ``placement.md`` 1.6 (Consolidation), 6 (22).

    ``lost_gpu_hours``: the progress that it may throw away, of all that is moved; None: any.
    ``gangs``: how many it may move at most. ``times``: for each GPU that is asked for, how many
    may be moved.
    """

    lost_gpu_hours: float | None = None
    gangs: int = 16
    times: int = 2
