"""Gang placement: on which nodes, all pods or none.

Nothing is scanned here: the views (``views.py``) know how many pods fit where, and catch up with
what has changed since they were last asked.
"""

from collections.abc import Iterable, Mapping

from scheduling.engine.atlas import NO_LEVEL, Atlas, Site
from scheduling.engine.capacity import Rooms
from scheduling.engine.search import Placed, largest, loosely, together
from scheduling.engine.slices import grain_of
from scheduling.engine.snapshot import Assignment, PodSet
from scheduling.engine.views import View


def assign_pod_set(
    atlas: Atlas, rooms: Rooms, pod_set: PodSet, option: Mapping[str, str]
) -> Assignment | None:
    """Return nodes, and devices where they are told apart, for all pods under one option.

    Nothing is taken yet. The assignment names only nodes that get a pod, none where the flavors
    have no nodes. None when not all pods fit as the topology request demands, slices that are
    only preferred included.

    Cost: O(pods x log nodes + domains weighed), and O(log nodes) for each node that has changed
    since pods like these were last placed. Infeasible: O(1) beside those.
    """
    site = atlas.site(pod_set, option.values())
    if not pod_set.count or site.quota_only:
        return Assignment(pod_set.name, pod_set.count, option)
    view = _view(atlas, rooms, site)
    placed = _place(site, view, pod_set.count)
    if placed is None:
        return None
    names = atlas.ground.names
    order = sorted(placed)
    nodes = {names[number]: placed[number] for number in order}
    if not atlas.ground.tells_apart:
        return Assignment(pod_set.name, pod_set.count, option, nodes)
    seats = {names[n]: seats for n in order if (seats := view.seats(n, placed[n]))}
    return Assignment(pod_set.name, pod_set.count, option, nodes, seats)


def place_pod_set(
    atlas: Atlas, rooms: Rooms, pod_set: PodSet, flavors: Iterable[str]
) -> dict[str, int] | None:
    """Return the pods on each node, as :func:`assign_pod_set` chooses them; None: no room."""
    site = atlas.site(pod_set, flavors)
    if not pod_set.count or site.quota_only:
        return {}
    placed = _place(site, _view(atlas, rooms, site), pod_set.count)
    return None if placed is None else {atlas.ground.names[n]: p for n, p in placed.items()}


def fitting_pods(atlas: Atlas, rooms: Rooms, pod_set: PodSet, flavors: Iterable[str]) -> int:
    """Return how many pods like these fit one by one, wherever they stand."""
    return _view(atlas, rooms, atlas.site(pod_set, flavors)).total


def largest_domain(
    atlas: Atlas, rooms: Rooms, pod_set: PodSet, flavors: Iterable[str], slices: int | None = None
) -> int:
    """Return how many pods, in whole slices, the roomiest domain at the required level can hold.

    Where no level is required: all domains together. ``slices``: how many of the layers of
    slices count, the innermost ones; None: all.
    """
    site = atlas.site(pod_set, flavors)
    if site.level == NO_LEVEL:
        return 0
    layers = site.layers if slices is None else site.layers[len(site.layers) - slices :]
    return largest(_view(atlas, rooms, site), site.level or 0, grain_of(layers))


def _view(atlas: Atlas, rooms: Rooms, site: Site) -> View:
    tables = [room.holes for room in rooms]
    return atlas.views.view(site.field, site.pod, site.policy, tables)


def _place(site: Site, view: View, count: int) -> Placed | None:
    if site.level == NO_LEVEL:
        return None
    layers, grain = site.layers, site.grain
    if site.preferred is not None:
        layers = (site.preferred,)
        grain = grain_of(layers)
    if site.level is not None:
        return together(view, count, site.level, grain)
    if layers:
        return loosely(view, count, layers[0].level, grain)
    return view.by_merit(count)
