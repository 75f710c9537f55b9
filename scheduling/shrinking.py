"""Which pods leave where running work is brought to a smaller size, as rows.

The engine's rule takes them node by node. Pods in slices leave by whole slices, which only the
labels of the nodes can tell: so they leave their rows at once.
"""

from collections.abc import Mapping, Sequence

from django.db.models import QuerySet

from scheduling.engine.atlas import Atlas
from scheduling.engine.cutting import slice_domains
from scheduling.engine.parts import kept_in_slices
from scheduling.loader import load_snapshot
from scheduling.models import Placement, PodSet, Workload


def shrink_slices(row: Workload, pod_sets: Sequence[PodSet]) -> None:
    """Let whole slices leave of those pod sets that hold more pods than they ask for by now.

    Call it once the new counts are written. Costs nothing where no pod set comes in slices.
    """
    if not any(pod_set.slices for pod_set in pod_sets):
        return
    snapshot = load_snapshot()
    known = next((w for w in snapshot.workloads if w.key == str(row.uid)), None)
    if known is None or known.admission is None:
        return
    domains, roles = slice_domains(Atlas(snapshot)), {p.name: p for p in known.pod_sets}
    held = Placement.objects.filter(
        admission__workload=row, admission__released_at=None, admission__is_part=False
    )
    for assignment in known.admission.assignments:
        role = roles[assignment.pod_set]
        if role.count < assignment.count:
            left = kept_in_slices(role, assignment, role.count, domains)
            if left is not None:
                trim(held.filter(pod_set=role.name), left)


def trim(placed: QuerySet[Placement], left: Mapping[str, int]) -> None:
    """Leave so many pods of these on each node, those that came first with their devices."""
    placed.exclude(node__in=left).delete()
    for row in placed:
        if row.count != left[row.node]:
            row.count = left[row.node]
            row.devices = row.devices[: row.count]
            row.save(update_fields=["count", "devices"])
