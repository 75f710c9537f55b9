"""Who stands on a node, and what it would throw away if they had to leave it now."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from scheduling.engine.snapshot import Snapshot, Workload
from scheduling.engine.standing import standing
from scheduling.engine.tenure import lost_gpu_hours
from scheduling.engine.usage import is_gpu, paired
from scheduling.pricing import Held, worths


@dataclass(frozen=True, slots=True)
class Mover:
    """A workload with pods on the node: how many there, and the GPU-hours that are at stake.

    ``cost`` is what those hours were worth at their own prices; None where one has no price.
    """

    name: str
    pods: int
    gpu_hours: float
    cost: Decimal | None


def movers(node: str, snapshot: Snapshot) -> list[Mover]:
    """Return who stands on a node, by name; what is lost counts since the last checkpoint."""
    found = []
    for work in snapshot.workloads:
        held = [a for a in standing(work) if a.nodes.get(node)]
        if held:
            pods = sum(one.nodes[node] for one in held)
            lost = lost_gpu_hours(work, snapshot.now)
            found.append(Mover(work.name, pods, lost, _worth(work, snapshot.now)))
    return sorted(found, key=lambda mover: mover.name)


def total_cost(found: Iterable[Mover]) -> Decimal | None:
    """Return what all of them would throw away; None where a part has no price."""
    costs = [mover.cost for mover in found]
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) if len(known) == len(costs) else None


def _worth(work: Workload, now: float) -> Decimal | None:
    """Return the worth of what the whole gang did since its last checkpoint."""
    parts = worths(_held(work, now))
    known = [part for part in parts if part is not None]
    return sum(known, Decimal(0)) if len(known) == len(parts) else None


def _held(work: Workload, now: float) -> Sequence[Held]:
    assert work.admission is not None
    since = max(work.admission.admitted_at, work.last_checkpoint_at or 0.0)
    span = datetime.fromtimestamp(min(since, now), UTC), datetime.fromtimestamp(now, UTC)
    return [
        Held(assignment.flavors[resource], amount * assignment.count, *span)
        for pod_set, assignment in paired(work, standing(work))
        for resource, amount in pod_set.requests.items()
        if is_gpu(resource) and resource in assignment.flavors
    ]
