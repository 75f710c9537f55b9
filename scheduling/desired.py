"""What should stand in the cluster on the strength of what is held, from rows."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from scheduling.backends.base import Gang, PlacedPods
from scheduling.backends.simulated import PREFIX
from scheduling.holders import Holder, Stand, read_holders, read_stands

NO_HINTS: Mapping[str, str] = {}


def desired_gangs() -> tuple[Gang, ...]:
    """Return what should stand in the cluster, in two queries."""
    return tuple(gangs_of(*read_open()).values())


def read_open() -> tuple[list[Holder], list[Stand]]:
    """Return what is held, and where. 2 queries."""
    return read_holders(), read_stands()


def gangs_of(rows: Iterable[Holder], stands: Iterable[Stand]) -> dict[int, Gang]:
    """Return the gangs that the cluster should know; what is only reserved is none."""
    rows, placed = list(rows), defaultdict[int, list[PlacedPods]](list)
    for stand in stands:
        placed[stand.admission_id].append(PlacedPods(stand.pod_set, stand.node, stand.pods))
    whole = {row.workload_id: row.pk for row in rows if not row.is_part}
    return {
        row.pk: Gang(
            admission=row.pk,
            workload=str(row.workload_id),
            admitted_at=row.admitted_at,
            pods=tuple(placed[row.pk]),
            started_at=row.started_at,
            evicted_at=row.evicted_at,
            expected_duration_s=row.workload.expected_duration_s,
            attempt=row.attempt,
            begun_at=row.begun_at,
            grace_s=row.workload.grace_s,
            part_of=whole.get(row.workload_id) if row.is_part else None,
            unready_since=row.unready_since,
            hints=_hints(row.workload.annotations),
        )
        for row in rows
        if not row.is_reserved
    }


def _hints(annotations: Mapping[str, str]) -> Mapping[str, str]:
    if not annotations:
        return NO_HINTS
    return {key: text for key, text in annotations.items() if key.startswith(PREFIX)}
