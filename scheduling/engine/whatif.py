"""What an edit changes: the plans of two snapshots that differ by it, compared."""

from dataclasses import dataclass

from scheduling.engine.cycle import decide
from scheduling.engine.plan import Admit, Evict, Plan
from scheduling.engine.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Difference:
    """Keys of workloads whose next cycle is another one because of the edit, sorted.

    ``starts`` would not have started without it, ``waits`` would have. ``evicted`` would have
    stayed without it, ``spared`` would have been evicted.
    """

    starts: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()


def what_if(before: Snapshot, after: Snapshot) -> Difference:
    """Return what the next cycle does otherwise in ``after`` than in ``before``.

    Costs two cycles; changes nothing.
    """
    return difference(decide(before), decide(after))


def difference(before: Plan, after: Plan) -> Difference:
    """Return what one plan does and the other does not."""
    started, starts = (_keys(plan, Admit) for plan in (before, after))
    left, leaves = (_keys(plan, Evict) for plan in (before, after))
    return Difference(
        starts=tuple(sorted(starts - started)),
        waits=tuple(sorted(started - starts)),
        evicted=tuple(sorted(leaves - left)),
        spared=tuple(sorted(left - leaves)),
    )


def _keys(plan: Plan, kind: type[Admit] | type[Evict]) -> set[str]:
    return {decision.workload for decision in plan.decisions if isinstance(decision, kind)}
