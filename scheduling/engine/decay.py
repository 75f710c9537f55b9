"""How the use of queues fades, and what of it a cycle remembers for the next."""

from collections.abc import Mapping
from dataclasses import dataclass, field

LOCAL_HALF_LIFE_S = 7 * 86400.0
SAMPLING_S = 300.0  # work that starts counts at once as if it had run for so long


@dataclass(frozen=True, slots=True)
class Decayed:
    """A queue's past use that fades: ``amount`` at ``at``, while ``rate`` was being held.

    In GPU-hours and GPUs.
    """

    amount: float
    rate: float
    at: float


@dataclass(frozen=True, slots=True)
class Consumed:
    """A local queue's usage that fades, by resource: ``amounts`` at ``at``, ``held`` since then.

    In canonical units: a moving average of what is held, not an amount of time.
    """

    amounts: Mapping[str, float]
    held: Mapping[str, int]
    at: float


@dataclass(frozen=True, slots=True)
class UsageDecay:
    """How the usage of local queues fades, and what it weighs (``admission.md`` 3.6).

    ``weights`` by resource, 1 where none is given; 0 leaves a resource out.
    """

    half_life_s: float = LOCAL_HALF_LIFE_S
    sampling_s: float = SAMPLING_S
    weights: Mapping[str, float] = field(default_factory=dict)
