"""What the platform asks of a cluster, real or simulated, and what a cluster tells it.

``converge`` says what should stand; ``observe`` says what stood and what became of it. Both are
about gangs, named by their admission: the same workload admitted twice is two gangs. Both say
how things are, not what has changed: a call that is lost, doubled or late does no harm, and a
cluster whose reports arrive one by one (numbered, from an agent) keeps the latest of each kind
and answers with them.

A gang runs in attempts. A restart is the next attempt of the same admission: its members stop and
start anew, quota and nodes stay. What is told of an earlier attempt is of no interest any more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from scheduling.engine.terms import Outcome
from scheduling.members import End, Member, MemberEnd

__all__ = ["ClusterBackend", "End", "Gang", "Member", "MemberEnd", "PlacedPods", "Sighting"]

GRACE_S = 30  # Kubernetes' own: how long a pod may take to stop


@dataclass(frozen=True, slots=True)
class PlacedPods:
    """Identical pods on one node; ``node`` "" leaves the choice to the cluster (quota only)."""

    pod_set: str
    node: str
    count: int

    def members(self) -> list[Member]:
        """Return each of these pods by name."""
        return [Member(self.pod_set, self.node, slot) for slot in range(self.count)]


@dataclass(frozen=True, slots=True)
class Gang:
    """What should be in the cluster on the strength of one admission.

    ``attempt``: which run of it, from 1; members of an earlier one should be gone.
    ``begun_at``: since when the attempt may start; None: since ``admitted_at``.
    ``started_at``: when all members of this attempt were ready, as far as the platform knows;
    ``unready_since``: since when they no longer are.
    ``evicted_at`` set: its pods should be gone, each within ``grace_s`` of being asked to stop.
    ``part_of``: the admission of the gang from which these pods were taken, which runs on with
    fewer pods; None: a gang of its own.
    ``expected_duration_s`` None: it runs until it is stopped by request.
    ``hints``: annotations of the workload that only a simulated cluster reads.
    """

    admission: int
    workload: str
    admitted_at: datetime
    pods: tuple[PlacedPods, ...]
    started_at: datetime | None = None
    evicted_at: datetime | None = None
    expected_duration_s: int | None = None
    attempt: int = 1
    begun_at: datetime | None = None
    grace_s: int = GRACE_S
    part_of: int | None = None
    unready_since: datetime | None = None
    hints: Mapping[str, str] = field(default_factory=dict)

    @property
    def since(self) -> datetime:
        """Return when this attempt was allowed to start."""
        return self.begun_at or self.admitted_at

    @property
    def size(self) -> int:
        """Return how many members should stand."""
        return sum(pods.count for pods in self.pods)


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the cluster knows of one gang, with the instants at which it happened.

    ``attempt`` says of which run it tells. ``started_at``: the first instant at which all its
    members were ready at once. ``unready_since``: since when they no longer are, those that are
    over left aside; None: they are, or never were. ``ready``: how many are ready now; None:
    nobody counted. ``ends``: every member of this attempt that is over, in any order.
    ``checkpoint_at``: up to when its progress is safe, if it said so.
    ``outcome`` is set when the whole gang ended by itself; a cluster that tells the ends of
    members may leave the verdict to the platform. ``released_at`` is the instant at which the
    last pod of the last attempt was gone, by whichever cause: only then quota and nodes are free.
    """

    admission: int
    started_at: datetime | None = None
    outcome: Outcome | None = None
    released_at: datetime | None = None
    attempt: int = 1
    unready_since: datetime | None = None
    ready: int | None = None
    ends: tuple[MemberEnd, ...] = ()
    checkpoint_at: datetime | None = None


class ClusterBackend(Protocol):
    """A cluster. Both calls may be repeated at will."""

    def converge(self, desired: Sequence[Gang]) -> None:
        """Make the cluster hold these gangs, each in its attempt, and no others of ours.

        A gang that is not named any more should be gone as if it were evicted. Members that are
        over in the named attempt stay over.
        """

    def observe(self) -> Sequence[Sighting]:
        """Return what is known of every gang that stands or has just ended.

        An end is told until ``converge`` names the gang no longer, or in a later attempt.
        """
