"""What work holds pod by pod, and which leave where it is brought to a smaller size, as rows.

How many pods stand is what was granted, not what is asked for: work may start with fewer.

The platform says which: node by node, by the engine's rule, or by whole slices, which only the
labels of the nodes can tell. They hold quota, nodes and devices until the backend has seen them
go, as pods do that were taken from a gang.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db.models import QuerySet

from scheduling.engine.atlas import Atlas
from scheduling.engine.cutting import slice_domains
from scheduling.engine.parts import kept_in_slices
from scheduling.engine.standing import shrunk
from scheduling.faces import Held
from scheduling.loader import load_snapshot
from scheduling.models import Admission, Placement, PodSet, Workload

WHY = "ScaledDown"
COPIED = ("flavors", "requests", "charges")


def held_of(row: Workload) -> QuerySet[Placement]:
    """Return where pods of a workload stand or are reserved, but for those on their way out."""
    return Placement.objects.filter(
        admission__workload=row,
        admission__released_at=None,
        admission__evicted_at=None,
        admission__is_part=False,
    )


def pods_held(row: Workload) -> Counter[str]:
    """Return how many pods of each pod set are granted; none where it holds nothing. 1 query."""
    found = Counter[str]()
    for pod_set, count in held_of(row).values_list("pod_set", "count"):
        found[pod_set] += count
    return found


def let_leave(row: Workload, pod_sets: Sequence[PodSet], at: datetime) -> None:
    """Let the pods leave that work holds beyond what it asks for by now.

    Of what is only reserved nothing stands anywhere, and nobody has to see it go. Call it once
    the new counts are written.
    """
    held, slices = held_of(row), _left_in_slices(row, pod_sets)
    leaving: list[tuple[Placement, int]] = []
    for pod_set in pod_sets:
        placed = held.filter(pod_set=pod_set.name)
        nodes = {one.node: one.count for one in placed}
        if sum(nodes.values()) > pod_set.count:
            leaving += _taken(placed, slices.get(pod_set.name) or shrunk(nodes, pod_set.count))
    if not leaving:
        return
    admission = leaving[0][0].admission
    part = None if admission.is_reserved else set_apart(admission, at, WHY)
    for placement, stays in leaving:
        if part is not None:
            _move(placement, stays, part)
        _keep(placement, stays)


def _left_in_slices(row: Workload, pod_sets: Sequence[PodSet]) -> dict[str, Mapping[str, int]]:
    """Return where pods in slices stay, by pod set. No query where none comes in slices."""
    if not any(pod_set.slices for pod_set in pod_sets):
        return {}
    snapshot = load_snapshot()
    known = next((w for w in snapshot.workloads if w.key == str(row.uid)), None)
    if known is None or known.admission is None:
        return {}
    domains, roles = slice_domains(Atlas(snapshot)), {p.name: p for p in known.pod_sets}
    left = {
        a.pod_set: kept_in_slices(roles[a.pod_set], a, roles[a.pod_set].count, domains)
        for a in known.admission.assignments
        if roles[a.pod_set].count < a.count
    }
    return {name: nodes for name, nodes in left.items() if nodes is not None}


def _taken(placed: QuerySet[Placement], left: Mapping[str, int]) -> list[tuple[Placement, int]]:
    """Return the placements from which pods leave, each with how many stay."""
    rows = placed.select_related("admission")
    return [(one, left.get(one.node, 0)) for one in rows if one.count > left.get(one.node, 0)]


def set_apart(held: Admission | Held, at: datetime, reason: str) -> Admission:
    """Return the admission of those pods of a gang that are on their way out; one for each gang.

    It stands until the backend has seen them go.
    """
    leaves = {"evicted_at": at, "eviction_reason": reason}
    known = {name: getattr(held, name) for name in ("cluster_queue", "admitted_at", "started_at")}
    part, _ = Admission.objects.update_or_create(
        workload_id=held.workload_id,
        is_part=True,
        released_at=None,
        defaults=leaves,
        create_defaults={**known, **leaves},
    )
    return part


def _move(placement: Placement, stays: int, part: Admission) -> None:
    """Let the pods that came last stand apart, and their devices with them."""
    goes, devices = placement.count - stays, placement.devices[stays:]
    known = Placement.objects.filter(
        admission=part, pod_set=placement.pod_set, node=placement.node
    ).first()
    other = known or Placement(
        admission=part,
        pod_set=placement.pod_set,
        node=placement.node,
        count=0,
        **{name: getattr(placement, name) for name in COPIED},
    )
    other.count += goes
    other.devices = [*other.devices, *devices]
    other.save()


def _keep(placement: Placement, stays: int) -> None:
    """Leave the pods on their node that came first, with their devices."""
    if stays:
        placement.count, placement.devices = stays, placement.devices[:stays]
        placement.save(update_fields=["count", "devices"])
    else:
        placement.delete()
