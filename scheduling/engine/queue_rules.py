"""How a queue searches its flavors, how long its work is safe, and the doors to it."""

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


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """A project's door to a ClusterQueue.

    ``consumption`` is its decayed usage, weighted, where nobody remembers it for the snapshot:
    with ``Snapshot.usage_decay`` it is worked out from the memory and ``fair_weight``.
    """

    name: str
    cluster_queue: str
    consumption: float = 0.0
    fair_weight: float = 1.0
