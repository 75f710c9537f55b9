"""Gangs: with how few pods work runs, and which of its pods are surplus.

A gang stands while ``min_member`` of its pods stand, of each role its minimum, and of each role
in subgroups so many whole ones: all of it at once. What stands above that is surplus.
Source: ``placement.md`` 1.1 (OURS), 0 (2).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import lcm

from scheduling.engine.snapshot import Assignment, PodSet, Workload

Counts = dict[str, int]  # pods by pod set


def slice_size(pod_set: PodSet) -> int:
    """Return how many pods make up a slice of the role, an outer one; 1 where there are none."""
    layers = pod_set.topology.layers if pod_set.topology else ()
    return layers[0].size if layers else 1


def together_size(pod_set: PodSet) -> int:
    """Return how many pods of a role come and go at once: a subgroup, a slice, or both whole."""
    return lcm(pod_set.subgroups.size if pod_set.subgroups else 1, slice_size(pod_set))


def floor_of(pod_set: PodSet) -> int | None:
    """Return how many pods of the role must stand; None: the role says nothing."""
    parts, least = pod_set.subgroups, pod_set.role_minimum
    if parts is None:
        return None if least is None else whole_parts(pod_set, least)
    whole = whole_parts(pod_set, max(parts.minimum * parts.size, pod_set.role_minimum or 0))
    return whole or pod_set.role_minimum


def least_members(workload: Workload) -> int:
    """Return how many pods must stand in all; where nobody says, what the roles say."""
    total = sum(pod_set.count for pod_set in workload.pod_sets)
    if workload.min_member is not None:
        return min(workload.min_member, total)
    return sum(_floors(workload).values())


def _floors(workload: Workload) -> Counts:
    """Return how many pods each role needs; all where neither it nor the gang says."""
    silent = None if workload.min_member is None else 0
    found = {}
    for pod_set in workload.pod_sets:
        floor = silent if (own := floor_of(pod_set)) is None else own
        found[pod_set.name] = pod_set.count if floor is None else min(pod_set.count, floor)
    return found


def may_lack_pods(workload: Workload) -> bool:
    """Return whether the gang runs with fewer pods than it asks for."""
    if workload.min_member is None and not any(
        p.role_minimum is not None or p.subgroups is not None for p in workload.pod_sets
    ):
        return False
    return minima(workload) != {p.name: p.count for p in workload.pod_sets}


def wanted(workload: Workload) -> Counts:
    """Return how many pods of each role the gang asks for."""
    return {pod_set.name: pod_set.count for pod_set in workload.pod_sets}


def minima(workload: Workload, there: Mapping[str, int] | None = None) -> Counts:
    """Return with how many pods of each role the gang runs, taken from those that are ``there``.

    Each role first gets its own minimum; what is then missing of the gang's is filled up role
    by role, in their order, by whole subgroups. ``there`` None: all that it asks for. Where
    those do not suffice, all of them are needed.
    """
    there = wanted(workload) if there is None else there
    kept = {name: min(floor, there.get(name, 0)) for name, floor in _floors(workload).items()}
    missing = least_members(workload) - sum(kept.values())
    for pod_set in workload.pod_sets:
        if missing <= 0:
            break
        has, most = kept[pod_set.name], there.get(pod_set.name, 0)
        kept[pod_set.name] = min(most, whole_parts(pod_set, has + min(missing, most - has)))
        missing -= kept[pod_set.name] - has
    return kept


def stands(workload: Workload, there: Mapping[str, int]) -> bool:
    """Return whether so many pods of each role are a running gang: every minimum is met."""
    if not may_lack_pods(workload):
        return all(there.get(p.name, 0) >= p.count for p in workload.pod_sets)
    roles = all(there.get(name, 0) >= floor for name, floor in _floors(workload).items())
    whole = all(_is_whole(p, there.get(p.name, 0)) for p in workload.pod_sets)
    return roles and whole and sum(there.values()) >= least_members(workload)


def smallest_gang(workload: Workload) -> Workload:
    """Return the gang with the pods alone without which it does not run, as work of its own."""
    return with_counts(workload, minima(workload))


def with_counts(workload: Workload, counts: Mapping[str, int]) -> Workload:
    """Return work that asks for exactly these pods of each role; roles without any are out."""
    pod_sets = tuple(
        replace(p, count=counts[p.name], min_count=None, role_minimum=None, subgroups=None)
        for p in workload.pod_sets
        if counts.get(p.name, 0) > 0
    )
    return replace(workload, pod_sets=pod_sets, min_member=None)


def step(pod_set: PodSet, count: int) -> int:
    """Return how many further pods of a role come together, where ``count`` of them stand.

    One pod, or what makes the next subgroup or slice whole; what is left behind the last whole
    one is a part of its own.
    """
    return min(pod_set.count, whole_parts(pod_set, count + 1)) - count


def next_steps(workload: Workload, there: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return what may be added next, role and pods: the role that lacks most of its pods first.

    Ties: the order of the roles.
    """
    lacking = [p for p in workload.pod_sets if there.get(p.name, 0) < p.count]
    order = sorted(lacking, key=lambda p: there.get(p.name, 0) / p.count)
    return [(p.name, step(p, there.get(p.name, 0))) for p in order]


def counted(assignments: Iterable[Assignment]) -> Counts:
    """Return how many pods of each role are granted."""
    return {assignment.pod_set: assignment.count for assignment in assignments}


def joined(workload: Workload, *several: Iterable[Assignment]) -> tuple[Assignment, ...]:
    """Return the assignments put together, in the order of the pod sets."""
    found: dict[str, list[Assignment]] = {}
    for assignments in several:
        for one in assignments:
            found.setdefault(one.pod_set, []).append(one)
    names = [p.name for p in workload.pod_sets if p.name in found]
    return tuple(_join(found[name]) for name in names)


def _join(parts: list[Assignment]) -> Assignment:
    if len(parts) == 1:
        return parts[0]
    nodes = dict.fromkeys(sorted({node for part in parts for node in part.nodes}), 0)
    devices: dict[str, tuple[tuple[int, ...], ...]] = {}
    for part in parts:
        for node, pods in part.nodes.items():
            nodes[node] += pods
        for node, each in part.devices.items():
            devices[node] = devices.get(node, ()) + tuple(each)
    count = sum(part.count for part in parts)
    return replace(parts[0], count=count, nodes=nodes, devices=dict(sorted(devices.items())))


def without(
    assignments: Iterable[Assignment], gone: Iterable[Assignment]
) -> tuple[Assignment, ...]:
    """Return what is left of assignments when some of their pods have gone."""
    going = {one.pod_set: one for one in gone}
    left = (_less(a, going[a.pod_set]) if a.pod_set in going else a for a in assignments)
    return tuple(a for a in left if a.count or a.nodes)


def _less(assignment: Assignment, gone: Assignment) -> Assignment:
    nodes = {n: pods - gone.nodes.get(n, 0) for n, pods in assignment.nodes.items()}
    devices = {n: _others(each, gone.devices.get(n, ())) for n, each in assignment.devices.items()}
    return replace(
        assignment,
        count=assignment.count - gone.count,
        nodes={node: pods for node, pods in nodes.items() if pods},
        devices={node: each for node, each in devices.items() if each},
    )


def _others(
    each: Iterable[tuple[int, ...]], gone: Iterable[tuple[int, ...]]
) -> tuple[tuple[int, ...], ...]:
    left = list(each)
    for one in gone:
        left.remove(one)
    return tuple(left)


def whole_parts(pod_set: PodSet, pods: int) -> int:
    """Return so many pods of a role, or more, that no subgroup or slice is begun and not whole."""
    size = together_size(pod_set)
    return min(pod_set.count, -(-pods // size) * size)


def _is_whole(pod_set: PodSet, pods: int) -> bool:
    return whole_parts(pod_set, pods) == pods
