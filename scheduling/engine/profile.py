"""One engine, two profiles: the rules that may be switched (``decisions.md`` 4)."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Profile:
    """Which rules are in force. Each switch is read in one place, named with it.

    The defaults are the product's own behaviour, ``recommended``.
    """

    name: str = "recommended"
    drain: bool = True  # scenario/loop.py: go on until nobody fits; else one head of each queue
    contested_only: bool = True  # candidates.py: no-borrowing rules look at what is short alone
    borrowed_columns: bool = True  # candidates.py: victims use a column that their queue borrows
    minimum_runtime: bool = True  # candidates.py: who was admitted only lately is no victim
    cheapest_eviction: bool = True  # candidates.py: who loses the fewest GPU-hours goes first
    own_quota_safe: bool = True  # fair_victims.py: whoever borrows takes nobody's own quota
    scan_memory: bool = False  # kueue/flavors.py: go on where the last flavor search stopped
    park_shapes: bool = False  # kueue/heads.py: what did not fit parks its equals untried
    sticky_preemptor: bool = False  # kueue/heads.py: who evicted stays in front of its queue
    hold_back: bool = False  # kueue/cycle.py: who finds no victims keeps its share this cycle

    @classmethod
    def recommended(cls) -> Self:
        """Return the product's default: drain, joint flavors, placement, claims."""
        return cls()

    @classmethod
    def kueue(cls) -> Self:
        """Return Kueue's recorded semantics, one head for each queue and cycle."""
        return cls(
            name="kueue",
            drain=False,
            contested_only=False,
            borrowed_columns=False,
            minimum_runtime=False,
            cheapest_eviction=False,
            own_quota_safe=False,
            scan_memory=True,
            park_shapes=True,
            sticky_preemptor=True,
            hold_back=True,
        )


RECOMMENDED = Profile.recommended()
