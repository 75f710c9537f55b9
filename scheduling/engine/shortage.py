"""What a topology lacks for a unit that has room enough on single nodes, with the numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduling.engine.atlas import Atlas
from scheduling.engine.capacity import Rooms
from scheduling.engine.company import at_depth, grown
from scheduling.engine.placement import largest_domain
from scheduling.engine.slices import grain_of
from scheduling.engine.snapshot import PodSet, SliceLayer
from scheduling.engine.standing_room import StandingRoom, wish_of
from scheduling.engine.terms import TopologyMode
from scheduling.engine.together import Option, Unit, assign_unit
from scheduling.engine.topology import Path

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


def shortage(atlas: Atlas, rooms: Rooms, unit: Unit, options: Sequence[Option]) -> Shortage | None:
    """Return what domains or slices lack for a unit; None: as far as they go there is room."""
    for pod_set, option in zip(unit, options, strict=True):
        found = _alone(atlas, rooms, pod_set, option)
        if found is not None:
            return found
    if len(unit) == 1 or assign_unit(atlas, rooms, unit, options) is not None:
        return None
    return _group(atlas, rooms, unit, options)


def _alone(atlas: Atlas, rooms: Rooms, pod_set: PodSet, option: Option) -> Shortage | None:
    """Return the shortage of one pod set: of its slices, inner ones first, or of its domain."""
    request = pod_set.topology
    if request is None or not pod_set.count or _is_nodeless(atlas, pod_set, option):
        return None
    flavors, asked = option.values(), request.layers
    required = request.mode is TopologyMode.REQUIRED
    for slices in range(len(asked) + 1):
        fits = largest_domain(atlas, rooms, pod_set, flavors, slices)
        if (slices or required) and fits < pod_set.count:
            layer = asked[len(asked) - slices] if slices else None
            facts = _slices(layer, pod_set.count, fits) if layer else {}
            where = request.level if required else None
            level = where or (layer.level if layer else "")
            return Shortage((pod_set,), level, pod_set.count, fits, facts)
    return None


def _is_nodeless(atlas: Atlas, pod_set: PodSet, option: Option) -> bool:
    return atlas.suitable(pod_set, option.values()).quota_only


def _slices(layer: SliceLayer, pods: int, fits: int) -> dict[str, str | int]:
    return {
        "cause": SLICES,
        "slice_level": layer.level,
        "slice_size": layer.size,
        "slices": -(-pods // layer.size),
        "fits_slices": fits // layer.size,
    }


def _group(atlas: Atlas, rooms: Rooms, unit: Unit, options: Sequence[Option]) -> Shortage | None:
    """Return the shortage of a group of which each pod set by itself would have room.

    In each domain the room is counted for every pod set as if the others were not there, so
    the group as a whole lacks at least one pod.
    """
    levels = atlas.levels({flavor for option in options for flavor in option.values()})
    fits: dict[Path, int] = {}
    level, pods = "", sum(pod_set.count for pod_set in unit)
    for pod_set, option in zip(unit, options, strict=True):
        wish = wish_of(levels, pod_set)
        if wish is None or not wish.level:
            return None
        level = pod_set.topology.level or "" if pod_set.topology else ""
        room = StandingRoom(atlas, rooms, pod_set, option, levels)
        root = grown(room.capacity, grain_of(wish.layers))
        for domain in at_depth(root, wish.level):
            fits[domain.path] = fits.get(domain.path, 0) + min(domain.room, pod_set.count)
    most = min(max(fits.values(), default=0), pods - 1)
    facts = {"cause": GROUP, "group": ", ".join(pod_set.name for pod_set in unit)}
    return Shortage(unit, level, pods, most, facts)
