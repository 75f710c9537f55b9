"""What the platform asks of a cluster, real or simulated.

``converge`` says what should stand; ``observe`` says what stood and what became of it. Both are
about gangs, named by their admission: the same workload admitted twice is two gangs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from scheduling.engine.terms import Outcome


@dataclass(frozen=True, slots=True)
class PlacedPods:
    """Identical pods on one node; ``node`` "" leaves the choice to the cluster (quota only)."""

    pod_set: str
    node: str
    count: int


@dataclass(frozen=True, slots=True)
class Gang:
    """What should be in the cluster on the strength of one admission.

    ``evicted_at`` set: its pods should be gone. ``expected_duration_s`` None: it runs until it
    is stopped by request.
    """

    admission: int
    workload: str
    admitted_at: datetime
    pods: tuple[PlacedPods, ...]
    started_at: datetime | None = None
    evicted_at: datetime | None = None
    expected_duration_s: int | None = None


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the cluster knows of one gang, with the instants at which it happened.

    ``outcome`` is set when the gang ended by itself. ``released_at`` is the instant at which its
    last pod was gone, by whichever cause.
    """

    admission: int
    started_at: datetime | None = None
    outcome: Outcome | None = None
    released_at: datetime | None = None


class ClusterBackend(Protocol):
    """A cluster. Both calls may be repeated at will."""

    def converge(self, desired: Sequence[Gang]) -> None:
        """Make the cluster hold these gangs and no others of ours."""

    def observe(self) -> Sequence[Sighting]:
        """Return what is known of every gang that stands or has just ended."""
