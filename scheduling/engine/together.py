"""Placing what must be placed at once: a pod set, or all pod sets of a group.

A *unit* is one pod set, or all of one group, which share a domain and flavors
(``admission.md`` K63). Nothing is taken: the tables are as they were afterwards.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from scheduling.engine.atlas import Atlas
from scheduling.engine.capacity import Rooms
from scheduling.engine.groups import Member, place_group
from scheduling.engine.placement import assign_pod_set, largest_domain
from scheduling.engine.snapshot import Assignment, PodSet
from scheduling.engine.standing_room import StandingRoom, wish_of
from scheduling.engine.survivors import gathered, rejoin

Unit = tuple[PodSet, ...]
Option = Mapping[str, str]  # resource -> flavor


def units_of(pod_sets: Iterable[PodSet]) -> tuple[Unit, ...]:
    """Return what is placed at once, in the order of the first pod set of each."""
    units: dict[tuple[bool, str], list[PodSet]] = {}
    for pod_set in pod_sets:
        group = pod_set.topology.group if pod_set.topology else ""
        units.setdefault((bool(group), group or pod_set.name), []).append(pod_set)
    return tuple(tuple(unit) for unit in units.values())


def assign_unit(
    atlas: Atlas, rooms: Rooms, unit: Unit, options: Sequence[Option]
) -> tuple[Assignment, ...] | None:
    """Return an assignment for every pod set of a unit, in order; None: they do not all fit.

    ``options``: the flavors of each. It names no nodes where its flavors have none.
    """
    if len(unit) == 1:
        alone = assign_alone(atlas, rooms, unit[0], options[0])
        return None if alone is None else (alone,)
    levels = atlas.levels({flavor for option in options for flavor in option.values()})
    found = {p.name: Assignment(p.name, p.count, o) for p, o in zip(unit, options, strict=True)}
    members: list[Member] = []
    for pod_set, option in zip(unit, options, strict=True):
        if not pod_set.count or atlas.suitable(pod_set, option.values()).quota_only:
            continue
        wish = wish_of(levels, pod_set)
        if wish is None:
            return None
        members.append((StandingRoom(atlas, rooms, pod_set, option, levels), wish))
    firm = [(room, wish.firm) for room, wish in members]
    placed = place_group(rooms, firm) if members else ()
    if placed is None and any(wish.preferred for _, wish in members):
        placed = place_group(rooms, members)
    if placed is None:
        return None
    found |= {assignment.pod_set: assignment for assignment in placed}
    return tuple(found[pod_set.name] for pod_set in unit)


def assign_alone(atlas: Atlas, rooms: Rooms, pod_set: PodSet, option: Option) -> Assignment | None:
    """Return nodes for all pods of one pod set, beside the others where some stand already."""
    request = pod_set.topology
    if request is not None and pod_set.beside:
        kept, missing = pod_set.beside, pod_set.count
        return replace_in(atlas, rooms, pod_set, option, kept=kept, missing=missing)
    found = assign_pod_set(atlas, rooms, pod_set, option)
    if found is not None or request is None or request.preferred_slice is None:
        return found
    return _gathered(atlas, rooms, pod_set, option)


def _gathered(atlas: Atlas, rooms: Rooms, pod_set: PodSet, option: Option) -> Assignment | None:
    """Return nodes for pods whose preferred slices do not all find room whole."""
    levels = atlas.levels(option.values())
    wish = wish_of(levels, pod_set)
    if wish is None or wish.preferred is None:
        return None
    if largest_domain(atlas, rooms, pod_set, option.values()) < pod_set.count:
        return None
    room = StandingRoom(atlas, rooms, pod_set, option, levels)
    placed = gathered(room.capacity, {}, wish)
    return None if placed is None else room.assignment(placed)


def replace_in(
    atlas: Atlas,
    rooms: Rooms,
    pod_set: PodSet,
    option: Option,
    *,
    kept: Mapping[str, int],
    missing: int,
) -> Assignment | None:
    """Return nodes for ``missing`` pods beside those that are ``kept``, by node; None: no room.

    They go into the domain of the survivors where the pods must share one, complete broken
    slices in their own domains, and stand as near to the survivors as there is room. Without a
    topology request they go anywhere. ``rooms`` counts the survivors and not the lost ones.
    """
    if not missing or atlas.suitable(pod_set, option.values()).quota_only:
        return Assignment(pod_set.name, missing, option)
    if pod_set.topology is None or not kept:
        lost = replace(pod_set, count=missing, beside={})
        return assign_alone(atlas, rooms, lost, option)
    levels = atlas.levels(option.values())
    wish = wish_of(levels, pod_set)
    if wish is None:
        return None
    room = StandingRoom(atlas, rooms, pod_set, option, levels)
    standing = {room.paths[name]: n for name, n in kept.items() if n and name in room.paths}
    placed = rejoin(room.capacity, standing, replace(wish, count=missing))
    return None if placed is None else room.assignment(placed)
