"""What a cycle decided. Every pending workload gets exactly one decision."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from scheduling.engine.shares import Compared
from scheduling.engine.snapshot import Assignment, Memory
from scheduling.engine.terms import (
    BlockerCode,
    EvictionReason,
    PendingReason,
    PreemptionReason,
)


@dataclass(frozen=True, slots=True)
class Blocker:
    """One thing that stands in the way of a pending workload, with its numbers.

    ``needed`` and ``available`` are in canonical units of ``resource``; None where the blocker
    is not about an amount. ``where`` names the queue, cohort, flavor, level or node; ``facts``
    carries what else the sentence of this code needs (``{"ahead": 3}``).
    """

    code: BlockerCode
    resource: str = ""
    needed: int | None = None
    available: int | None = None
    where: str = ""
    facts: Mapping[str, str | int] = field(default_factory=dict)


def can_never_start(reason: str, codes: Iterable[str]) -> bool:
    """Return whether no departure of others can ever let work start that waits for this.

    ``reason``: the summary word; ``codes``: those of its blockers.
    """
    never = (PendingReason.NO_MATCHING_FLAVOR, PendingReason.EXCEEDS_MAX_QUOTA)
    return reason in never or BlockerCode.IMPOSSIBLE in codes


@dataclass(frozen=True, slots=True)
class Admit:
    """Start the whole gang on these nodes. ``borrows``: GPUs etc. above nominal, by resource.

    ``replaces``: the running workload that ends in this moment, because this one is a grown copy
    of it and takes over its pods where they stand; or "".
    """

    workload: str
    assignments: tuple[Assignment, ...]
    borrows: Mapping[str, int] = field(default_factory=dict)
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Evict:
    """Take quota and nodes from an admitted workload.

    ``lost_gpu_hours``: progress that is thrown away, since its last checkpoint or its start.
    ``moves_to``: where it starts again as soon as it has left; none: it waits like anybody.
    ``shares``: by fair sharing, what was compared; None by another right.
    """

    workload: str
    reason: EvictionReason
    preemptor: str | None = None
    right: PreemptionReason | None = None
    lost_gpu_hours: float = 0.0
    moves_to: tuple[Assignment, ...] = ()
    shares: Compared | None = None


@dataclass(frozen=True, slots=True)
class Grow:
    """Give a running gang further pods: surplus for which there is room.

    ``assignments``: where all its pods stand from now on, those that ran where they were.
    ``borrows``: what of them all lies above nominal, by resource.
    """

    workload: str
    assignments: tuple[Assignment, ...]
    borrows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shrink:
    """Take surplus from a running gang, which runs on without it.

    ``pods``: how many of which pod set leave which nodes. Until they have left they hold quota
    and nodes, as a workload of their own: :func:`scheduling.engine.parts.leaver`.
    """

    workload: str
    reason: EvictionReason
    pods: tuple[Assignment, ...]
    preemptor: str | None = None
    right: PreemptionReason | None = None
    lost_gpu_hours: float = 0.0


@dataclass(frozen=True, slots=True)
class Hold:
    """Keep a workload pending, and say why. ``position`` counts from 1 inside its queue.

    Work that can never start stands in nobody's way and has no position. Of a running gang: why
    it has not all its pods yet.
    """

    workload: str
    reason: PendingReason
    blockers: tuple[Blocker, ...]
    position: int | None = None


Move = Admit | Evict | Grow | Shrink
Decision = Move | Hold


@dataclass(frozen=True, slots=True)
class Plan:
    """The decisions of one cycle in the order in which they were taken, and its memory.

    ``work`` counts what the cycle did (``heads``, ``nodes_scanned``, ``trials`` ...).
    ``look_again_at``: the first instant at which time alone can change a decision: running work
    loses the protection of its minimum runtime, or a claim ends. None: never.
    """

    decisions: tuple[Decision, ...]
    memory: Memory = field(default_factory=Memory)
    work: Mapping[str, int] = field(default_factory=dict)
    look_again_at: float | None = None
