"""What a nomination says: a flavor and a mode for each resource of each pod set."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduling.engine.grades import Grade, Mode
from scheduling.engine.kueue.rooms import Demand, Placement
from scheduling.engine.snapshot import Assignment, FlavorResource, Workload
from scheduling.engine.terms import PendingReason


class Pick(NamedTuple):
    """The flavor of one resource."""

    flavor: str
    grade: Grade


Picks = Mapping[str, Mapping[str, Pick]]  # pod set -> resource -> pick

HARDNESS = (
    PendingReason.TOPOLOGY_PLACEMENT_FAILED,
    PendingReason.WAITING_FOR_QUOTA,
    PendingReason.EXCEEDS_MAX_QUOTA,
    PendingReason.NO_MATCHING_FLAVOR,
)


@dataclass(frozen=True, slots=True)
class Nomination:
    """An assignment that one workload would like, judged against one picture.

    ``workload`` carries the counts that are asked for. ``tried`` is how far each flavor search
    came, by "pod set/resource", where it did not reach the end.
    """

    workload: Workload
    picks: Picks
    usage: Counter[FlavorResource]
    tried: Mapping[str, int]
    reason: PendingReason | None = None  # of a NoFit
    demands: tuple[Demand, ...] = ()
    placement: Placement | None = None
    lacking: frozenset[str] = field(default_factory=frozenset)  # pod sets without room
    told: bool = True  # whether Kueue says the reason of the NoFit

    @property
    def mode(self) -> Mode:
        """Return NO_FIT, PREEMPT (whatever kind) or FIT."""
        if self.reason is not None:
            return Mode.NO_FIT
        fits = all(
            pick.grade.mode is Mode.FIT for picks in self.picks.values() for pick in picks.values()
        )
        return Mode.FIT if fits and not self.lacking else Mode.PREEMPT

    @property
    def level(self) -> int:
        """Return from how far up the workload borrows; 0: not at all."""
        return max(
            (pick.grade.level for picks in self.picks.values() for pick in picks.values()),
            default=0,
        )

    @property
    def wanting(self) -> frozenset[str]:
        """Return the pod sets that do not simply fit."""
        short = (
            pod_set
            for pod_set, picks in self.picks.items()
            if any(pick.grade.mode is not Mode.FIT for pick in picks.values())
        )
        return self.lacking.union(short)

    @property
    def contested(self) -> frozenset[FlavorResource]:
        """Return the columns in which room must be made."""
        return frozenset(
            FlavorResource(pick.flavor, resource)
            for pod_set, picks in self.picks.items()
            for resource, pick in picks.items()
            if pick.grade.mode is not Mode.FIT or pod_set in self.lacking
        )

    @property
    def flavors(self) -> dict[str, dict[str, str]]:
        """Return the flavor of each resource, by pod set."""
        return {
            pod_set: {resource: pick.flavor for resource, pick in picks.items()}
            for pod_set, picks in self.picks.items()
        }

    @property
    def assignments(self) -> tuple[Assignment, ...]:
        """Return where the workload would stand."""
        placement, flavors = self.placement or {}, self.flavors
        return tuple(
            Assignment(p.name, p.count, flavors.get(p.name, {}), placement.get(p.name, {}))
            for p in self.workload.pod_sets
        )
