"""With how many pods a gang starts, as its rows or its spec say it, in the engine's words.

Source: ``decisions.md`` 5 (gang), ``placement.md`` 1.1 (OURS). A pod set's ``min_count`` alone is
partial admission: so many pods or more are granted once and for all. In a gang with minima of
its own it is one more minimum of a role, and what is missing is added later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scheduling.engine.snapshot import PodSet, Subgroups, Workload


@dataclass(frozen=True, slots=True)
class Role:
    """What a row or a spec says of the size of one pod set."""

    name: str
    count: int
    min_count: int | None = None
    subgroup_size: int | None = None
    min_subgroups: int | None = None


def has_minima(
    min_member: int | None, role_minima: Mapping[str, int], roles: Sequence[Role]
) -> bool:
    """Return whether the gang starts with fewer pods than it asks for, and grows later."""
    if min_member is not None and min_member < sum(role.count for role in roles):
        return True
    if any(role_minima.get(role.name, role.count) < role.count for role in roles):
        return min_member is None
    parts = [role for role in roles if role.subgroup_size and role.min_subgroups]
    return min_member is None and any(
        (role.subgroup_size or 0) * (role.min_subgroups or 0) < role.count for role in parts
    )


def with_minima(
    workload: Workload,
    min_member: int | None,
    role_minima: Mapping[str, int],
    roles: Sequence[Role],
) -> Workload:
    """Return the engine's workload with what its rows or spec say of minima."""
    own = has_minima(min_member, role_minima, roles)
    said = {role.name: role for role in roles}
    pod_sets = (_sized(p, said[p.name], own, min_member, role_minima) for p in workload.pod_sets)
    return replace(workload, pod_sets=tuple(pod_sets), min_member=min_member if own else None)


def _sized(
    pod_set: PodSet,
    role: Role,
    own: bool,
    min_member: int | None,
    role_minima: Mapping[str, int],
) -> PodSet:
    if not own:  # all at once, unless a pod set is content with fewer
        return replace(pod_set, min_count=role.min_count if min_member is None else None)
    parts = None
    if role.subgroup_size:
        parts = Subgroups(role.subgroup_size, role.min_subgroups or 0)
    least = role_minima.get(role.name, role.min_count)
    return replace(pod_set, min_count=None, role_minimum=least, subgroups=parts)
