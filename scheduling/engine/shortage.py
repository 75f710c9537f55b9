"""What a topology lacks for a unit that has room enough on single nodes, with the numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from scheduling.engine.atlas import Atlas
from scheduling.engine.nearness import Wood
from scheduling.engine.placement import Rooms
from scheduling.engine.slices import at_depth
from scheduling.engine.snapshot import PodSet, SliceLayer
from scheduling.engine.standing_room import StandingRoom, wish_of
from scheduling.engine.terms import TopologyMode
from scheduling.engine.together import Unit, largest_room, place_unit

SLICES, GROUP = "Slices", "Group"  # causes, as the registry of reasons names them


@dataclass(frozen=True, slots=True)
class Shortage:
    """How many pods of ``pod_sets`` the roomiest domain of a level can hold, as they ask.

    ``facts``: for slices which ones there is no room for; for a group its pod sets.
    """

    pod_sets: Unit
    level: str
    pods: int
    fits: int
    facts: Mapping[str, str | int] = field(default_factory=dict)


def shortage(
    atlas: Atlas, rooms: Rooms, unit: Unit, flavors: Sequence[Iterable[str]]
) -> Shortage | None:
    """Return what domains or slices lack for a unit; None: as far as they go there is room."""
    for pod_set, own in zip(unit, flavors, strict=True):
        found = _alone(atlas, rooms, pod_set, tuple(own))
        if found is not None:
            return found
    if len(unit) == 1 or place_unit(atlas, rooms, unit, flavors) is not None:
        return None
    return _group(atlas, rooms, unit, flavors)


def _alone(
    atlas: Atlas, rooms: Rooms, pod_set: PodSet, flavors: tuple[str, ...]
) -> Shortage | None:
    """Return the shortage of one pod set: of its domain, else of its innermost slices first."""
    request = pod_set.topology
    if request is None or not pod_set.count or atlas.suitable(pod_set, flavors).quota_only:
        return None
    for layers in (request.layers[n:] for n in range(len(request.layers), -1, -1)):
        bare = replace(request, slice_level=None, slice_size=1, slices=layers)
        bounded = layers or request.mode is TopologyMode.REQUIRED
        fits = largest_room(atlas, rooms, replace(pod_set, topology=bare), flavors)
        if bounded and fits < pod_set.count:
            level = request.level if request.mode is TopologyMode.REQUIRED else None
            facts = _slices(layers[0], pod_set.count, fits) if layers else {}
            return Shortage(
                (pod_set,),
                level or (layers[0].level if layers else ""),
                pod_set.count,
                fits,
                facts,
            )
    return None


def _slices(layer: SliceLayer, pods: int, fits: int) -> dict[str, str | int]:
    return {
        "cause": SLICES,
        "slice_level": layer.level,
        "slice_size": layer.size,
        "slices": -(-pods // layer.size),
        "fits_slices": fits // layer.size,
    }


def _group(
    atlas: Atlas, rooms: Rooms, unit: Unit, flavors: Sequence[Iterable[str]]
) -> Shortage | None:
    """Return the shortage of a group of which each pod set by itself would have room.

    In each domain the room is counted for every pod set as if the others were not there, so
    the group as a whole lacks at least one pod.
    """
    names = [tuple(sorted(set(own))) for own in flavors]
    levels = atlas.levels({name for own in names for name in own})
    fits: dict[object, int] = {}
    level, pods = "", sum(pod_set.count for pod_set in unit)
    for pod_set, own in zip(unit, names, strict=True):
        wish = wish_of(levels, pod_set)
        if wish is None or not wish.must or not wish.depth:
            return None
        level = pod_set.topology.level or "" if pod_set.topology else ""
        wood = Wood(StandingRoom(atlas, rooms, pod_set, own, levels).capacity, wish.layers)
        for domain in at_depth(wood.root, wish.depth):
            fits[domain.path] = fits.get(domain.path, 0) + min(domain.room, pod_set.count)
    most = min(max(fits.values(), default=0), pods - 1)
    return Shortage(
        unit, level, pods, most, {"cause": GROUP, "group": ", ".join(p.name for p in unit)}
    )
