"""A tree of domains with the room for further pods of one kind, and the way down it to company.

Built for the few that need it: pods that join others, and pod sets of one group. All other
placements search the counters that are kept (``search.py``).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from scheduling.engine.sharing import share_out
from scheduling.engine.slices import Grain, grain_at, whole
from scheduling.engine.topology import Path

Places = dict[Path, int]  # pods by the path of a host


@dataclass(slots=True)
class Domain:
    """A domain, and how many pods may be handed to it; the host is a domain without children."""

    path: Path
    room: int = 0
    children: list["Domain"] = field(default_factory=list)


def grown(capacity: Mapping[Path, int], grain: Grain) -> Domain:
    """Return the whole cluster as a tree, with only the domains that can take pods.

    ``capacity``: pods by the path of a host. Cost: O(hosts x levels).
    """
    known: dict[Path, Domain] = {(): Domain(())}
    for path in sorted(path for path, pods in capacity.items() if pods):
        known[path] = below = Domain(path, whole(capacity[path], grain_at(grain, len(path))))
        for depth in range(len(path) - 1, -1, -1):
            above = known.get(path[:depth])
            if above is not None:
                above.children.append(below)
                break
            above = known[path[:depth]] = Domain(path[:depth], children=[below])
            below = above
    return _rolled_up(known[()], grain)


def _rolled_up(domain: Domain, grain: Grain) -> Domain:
    if domain.children:
        rooms = sum(_rolled_up(child, grain).room for child in domain.children)
        domain.room = whole(rooms, grain_at(grain, len(domain.path)))
    return domain


def at_depth(domain: Domain, depth: int) -> list[Domain]:
    """Return the domains of one depth inside ``domain`` (or itself), in the order of names."""
    found = [domain]
    for _ in range(depth - len(domain.path)):
        found = [child for one in found for child in one.children]
    return found


def inside(domain: Domain, path: Path) -> Domain | None:
    """Return the domain of that path; None: it takes no pods."""
    found: Domain | None = domain
    while found is not None and found.path != path:
        step = path[: len(found.path) + 1]
        found = next((child for child in found.children if child.path == step), None)
    return found


def company_of(standing: Mapping[Path, int]) -> Counter[Path]:
    """Return how many pods stand in every domain."""
    company: Counter[Path] = Counter()
    for path, pods in standing.items():
        for depth in range(len(path) + 1):
            company[path[:depth]] += pods
    return company


def beside(domain: Domain, company: Mapping[Path, int], count: int) -> Places:
    """Hand pods down: to the child with most company that holds all, else to any that does.

    Of equal ones to the tightest. Where none holds all, the children with company are filled
    first. The domain must have the room.
    """
    if not domain.children:
        return {domain.path: count}
    holders = [child for child in domain.children if child.room >= count]
    if holders:
        best = min(holders, key=lambda d: (-company.get(d.path, 0), d.room, d.path))
        return beside(best, company, count)
    children, placed = {child.path: child for child in domain.children}, Places()
    for path, gets in _filled(domain.children, company, count).items():
        placed |= beside(children[path], company, gets)
    return placed


def _filled(
    children: Iterable[Domain], company: Mapping[Path, int], count: int
) -> dict[Path, int]:
    """Fill those with company, most of it first; what is left goes to as few others as can be."""
    rooms = {child.path: child.room for child in children}
    near = sorted((p for p in rooms if company.get(p)), key=lambda p: (-company[p], p))
    shares: dict[Path, int] = {}
    for path in near:
        shares[path] = min(rooms[path], count)
        count -= shares[path]
    free = sorted(path for path, room in rooms.items() if room and not company.get(path))
    if count:
        shares |= share_out({path: rooms[path] for path in free}, count)
    return {path: gets for path, gets in shares.items() if gets}
