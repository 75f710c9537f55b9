"""How a queue searches its flavors, and how long its work is safe."""

from dataclasses import dataclass

from scheduling.engine.terms import FlavorPreference, FlavorSearch


@dataclass(frozen=True, slots=True)
class Fungibility:
    """How a queue searches its flavors. Kueue's defaults."""

    when_can_borrow: FlavorSearch = FlavorSearch.MAY_STOP_SEARCH
    when_can_preempt: FlavorSearch = FlavorSearch.TRY_NEXT_FLAVOR
    preference: FlavorPreference = FlavorPreference.BORROWING_OVER_PREEMPTION


@dataclass(frozen=True, slots=True)
class MinimumRuntime:
    """How long a queue's admitted work is safe from preemption (``decisions.md`` 4.9).

    ``yields_to_own``: higher priority of its own queue may evict it even before.
    """

    seconds: float = 0.0
    yields_to_own: bool = False


KUEUE_SEARCH = Fungibility()
UNPROTECTED = MinimumRuntime()
