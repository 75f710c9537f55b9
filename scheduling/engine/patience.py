"""For whom room is reserved, and when: the settings of reservations (``decisions.md`` 4.10)."""

from dataclasses import dataclass

STARVATION_S = 3600.0
ELDERS = 168.0  # times as long as a gang, older work waits before it lets no younger one go first


@dataclass(frozen=True, slots=True)
class Patience:
    """Which waiting gangs get a reservation.

    ``after_s``: how long a gang has waited before nodes that empty are held for it; None: never.
    A promise by known ends needs no waiting. ``minimum``: how large it is at least, in GPUs; in
    pods where it asks for none. ``elders_after_s``: how long older work of no higher priority
    lets younger gangs go first; so it does not starve in its turn.
    """

    after_s: float | None = STARVATION_S
    minimum: int = 2
    elders_after_s: float = ELDERS * STARVATION_S


PATIENT = Patience()
