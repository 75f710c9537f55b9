"""Gang placement: on which nodes, all pods or none.

Nothing is scanned here: the views (``views.py``) know how many pods fit where, and catch up with
what has changed since they were last asked.
"""

from collections.abc import Iterable, Mapping

from scheduling.engine.atlas import NO_LEVEL, Atlas, Site
from scheduling.engine.capacity import Rooms
from scheduling.engine.search import Placed, largest, together
from scheduling.engine.snapshot import Assignment, PodSet
from scheduling.engine.views import View


def assign_pod_set(
    atlas: Atlas, rooms: Rooms, pod_set: PodSet, option: Mapping[str, str]
) -> Assignment | None:
    """Return nodes, and devices where they are told apart, for all pods under one option.

    Nothing is taken yet. The assignment names only nodes that get a pod, none where the flavors
    have no nodes. None when not all pods fit as the topology request demands.

    Cost: O(pods x log nodes + domains weighed), and O(log nodes) for each node that has changed
    since pods like these were last placed. Infeasible: O(1) beside those.
    """
    site = atlas.site(pod_set, option.values())
    if not pod_set.count or site.quota_only:
        return Assignment(pod_set.name, pod_set.count, option)
    view = _view(atlas, rooms, site)
    return _assignment(atlas, view, pod_set, option, _place(site, view, pod_set.count))


def assign_in_one(
    atlas: Atlas, rooms: Rooms, pod_set: PodSet, option: Mapping[str, str]
) -> Assignment | None:
    """Return nodes for pods in slices where one domain of their innermost level holds them all.

    Then every slice has its domain whichever pods it consists of. None: no such domain.
    """
    site = atlas.site(pod_set, option.values())
    if not pod_set.count or site.quota_only or site.whole is None:
        return None
    view = _view(atlas, rooms, site)
    return _assignment(atlas, view, pod_set, option, together(view, pod_set.count, site.whole))


def _assignment(
    atlas: Atlas, view: View, pod_set: PodSet, option: Mapping[str, str], placed: Placed | None
) -> Assignment | None:
    if placed is None:
        return None
    names = atlas.ground.names
    order = sorted(placed)
    nodes = {names[number]: placed[number] for number in order}
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


def largest_domain(atlas: Atlas, rooms: Rooms, pod_set: PodSet, flavors: Iterable[str]) -> int:
    """Return how many pods the roomiest domain at the required level can hold."""
    site = atlas.site(pod_set, flavors)
    if site.level is None or site.level == NO_LEVEL:
        return 0
    return largest(_view(atlas, rooms, site), site.level)


def _view(atlas: Atlas, rooms: Rooms, site: Site) -> View:
    tables = [room.holes for room in rooms]
    return atlas.views.view(site.field, site.pod, site.policy, tables)


def _place(site: Site, view: View, count: int) -> Placed | None:
    if site.level == NO_LEVEL:
        return None
    if site.level is None:
        return view.by_merit(count)
    return together(view, count, site.level)
