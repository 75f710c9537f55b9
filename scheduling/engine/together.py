"""Placing what must be placed at once: a pod set, or all pod sets of a group.

A *unit* is one pod set, or all of one group, which share a domain and flavors
(``admission.md`` K63). Nothing is taken: the tables are as they were afterwards.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from scheduling.engine.atlas import Atlas
from scheduling.engine.groups import place_group
from scheduling.engine.nearness import Wood
from scheduling.engine.placement import Rooms, place_pod_set
from scheduling.engine.snapshot import PodSet
from scheduling.engine.standing_room import StandingRoom, wish_of
from scheduling.engine.survivors import rejoin

Unit = tuple[PodSet, ...]
Nodes = dict[str, int]  # pods by node


def units_of(pod_sets: Iterable[PodSet]) -> tuple[Unit, ...]:
    """Return what is placed at once, in the order of the first pod set of each."""
    units: dict[tuple[bool, str], list[PodSet]] = {}
    for pod_set in pod_sets:
        group = pod_set.topology.group if pod_set.topology else ""
        units.setdefault((bool(group), group or pod_set.name), []).append(pod_set)
    return tuple(tuple(unit) for unit in units.values())


def place_unit(
    atlas: Atlas, rooms: Rooms, unit: Unit, flavors: Sequence[Iterable[str]]
) -> tuple[Nodes, ...] | None:
    """Return nodes for every pod set of a unit, in order; None: they do not all fit.

    ``flavors``: those of each pod set. Nodes are empty where its flavors have none.
    """
    names = [tuple(sorted(set(one))) for one in flavors]
    if len(unit) == 1:
        alone = place_alone(atlas, rooms, unit[0], names[0])
        return None if alone is None else (alone,)
    levels = atlas.levels({name for one in names for name in one})
    members, indices = [], []
    for index, (pod_set, own) in enumerate(zip(unit, names, strict=True)):
        if not pod_set.count or atlas.suitable(pod_set, own).quota_only:
            continue
        wish = wish_of(levels, pod_set)
        if wish is None:
            return None
        members.append((StandingRoom(atlas, rooms, pod_set, own, levels), wish))
        indices.append(index)
    placed = place_group(rooms, members) if members else ()
    if placed is None:
        return None
    found: list[Nodes] = [{} for _ in unit]
    for index, places in zip(indices, placed, strict=True):
        found[index] = {path[-1]: pods for path, pods in sorted(places.items())}
    return tuple(found)


def place_alone(
    atlas: Atlas, rooms: Rooms, pod_set: PodSet, flavors: Iterable[str]
) -> Nodes | None:
    """Return nodes for all pods of one pod set, in slices and beside others where it asks so."""
    request = pod_set.topology
    if request is None or not (request.layers or pod_set.beside):
        return place_pod_set(atlas, rooms, pod_set, flavors)
    kept, missing = pod_set.beside, pod_set.count
    return replace_in(atlas, rooms, pod_set, flavors, kept=kept, missing=missing)


def replace_in(
    atlas: Atlas,
    rooms: Rooms,
    pod_set: PodSet,
    flavors: Iterable[str],
    *,
    kept: Mapping[str, int],
    missing: int,
) -> Nodes | None:
    """Return nodes for ``missing`` pods beside those that are ``kept``, by node; None: no room.

    They go into the domain of the survivors where the pods must share one, complete broken
    slices in their own domains, and stand as near to the survivors as there is room. Without a
    topology request they go anywhere. ``rooms`` counts the survivors and not the lost ones.
    """
    names = tuple(sorted(set(flavors)))
    if not missing or atlas.suitable(pod_set, names).quota_only:
        return {}
    if pod_set.topology is None:
        return place_pod_set(atlas, rooms, replace(pod_set, count=missing), names)
    levels = atlas.levels(names)
    wish = wish_of(levels, pod_set)
    if wish is None:
        return None
    ground = StandingRoom(atlas, rooms, pod_set, names, levels)
    standing = {ground.paths[name]: n for name, n in kept.items() if n and name in ground.paths}
    placed = rejoin(ground.capacity, standing, replace(wish, count=missing))
    return None if placed is None else {p[-1]: pods for p, pods in sorted(placed.items())}


def largest_room(atlas: Atlas, rooms: Rooms, pod_set: PodSet, flavors: Iterable[str]) -> int:
    """Return how many pods, in whole slices, the roomiest domain at the asked level can hold.

    Where no level is asked for: all domains together.
    """
    names = tuple(sorted(set(flavors)))
    levels = atlas.levels(names)
    wish = wish_of(levels, pod_set)
    if wish is None:
        return 0
    ground = StandingRoom(atlas, rooms, pod_set, names, levels)
    wood = Wood(ground.capacity, wish.layers)
    return wood.largest(wish.depth if wish.must and wish.depth else 0)
