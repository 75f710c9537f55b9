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
    """Return who stands on a node, by name; what is lost counts since the last checkpoint.

    The prices of all of it are asked at once.
    """
    works = {w.name: w for w in snapshot.workloads if any(a.nodes.get(node) for a in standing(w))}
    kind, names = _flavor_of(node, snapshot), sorted(works)
    held = [_held(works[name], snapshot.now, kind) for name in names]
    prices = iter(worths([one for parts in held for one in parts]))
    found = []
    for name, parts in zip(names, held, strict=True):
        pods = sum(a.nodes.get(node, 0) for a in standing(works[name]))
        cost = _sum([next(prices) for _part in parts])
        found.append(Mover(name, pods, lost_gpu_hours(works[name], snapshot.now), cost))
    return found


def total_cost(found: Iterable[Mover]) -> Decimal | None:
    """Return what all of them would throw away; None where a part has no price."""
    return _sum([mover.cost for mover in found])


def _sum(costs: Sequence[Decimal | None]) -> Decimal | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) if len(known) == len(costs) else None


def _flavor_of(node: str, snapshot: Snapshot) -> str:
    """Return the flavor of a node, the first by name; "" where none names it."""
    labels = next((one.labels for one in snapshot.nodes if one.name == node), {})
    flavors = sorted(snapshot.flavors.items())
    return next((k for k, f in flavors if f.node_labels.items() <= labels.items()), "")


def _held(work: Workload, now: float, kind: str) -> Sequence[Held]:
    """Return what the whole gang has held since its last checkpoint.

    ``kind``: the flavor of what runs outside every quota, and so was promised none.
    """
    assert work.admission is not None
    since = max(work.admission.admitted_at, work.last_checkpoint_at or 0.0)
    span = datetime.fromtimestamp(min(since, now), UTC), datetime.fromtimestamp(now, UTC)
    return [
        Held(assignment.flavors.get(resource, kind), amount * assignment.count, *span)
        for pod_set, assignment in paired(work, standing(work))
        for resource, amount in pod_set.requests.items()
        if is_gpu(resource)
    ]
