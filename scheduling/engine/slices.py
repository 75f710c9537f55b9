"""A tree of domains with the room for pods of one shape, counted in whole slices.

The *grain* of a depth is how many pods must go into one domain of that depth together: 16 where
a block takes slices of 16, 4 in its racks where those consist of slices of 4. A room is always
a multiple of its grain, so whatever the rooms promise can be handed down without cutting a
slice (``admission.md`` 3.7, K62).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduling.engine.topology import Path

Grain = tuple[int, ...]  # by depth; 0: the whole cluster
MOST_SUMS = 4096  # how many sums of rooms are looked at for the snuggest set of domains


class Layer(NamedTuple):
    """Slices of ``size`` pods, each inside one domain at ``depth`` (1: outermost level)."""

    depth: int
    size: int


@dataclass(slots=True)
class Domain:
    """A domain, and how many pods may be handed to it; the host is a domain without children."""

    path: Path
    room: int = 0
    children: list["Domain"] = field(default_factory=list)


Share = tuple[Domain, int]  # a domain and the pods that it gets


def grain_of(layers: Iterable[Layer], depths: int) -> Grain:
    """Return the grain of every depth from 0 to ``depths``: of the outermost slice not above."""
    grain = [1] * (depths + 1)
    for layer in reversed(list(layers)):
        grain[: layer.depth + 1] = [layer.size] * (layer.depth + 1)
    return tuple(grain)


def grown(capacity: Mapping[Path, int], grain: Grain) -> Domain:
    """Return the whole cluster as a tree, with only the domains that can take pods.

    ``capacity``: pods by the path of a host. Cost: O(hosts x levels).
    """
    known: dict[Path, Domain] = {(): Domain(())}
    deepest = len(grain) - 1
    for path in sorted(path for path, pods in capacity.items() if pods >= grain[deepest]):
        known[path] = Domain(path, _whole(capacity[path], grain[deepest]))
        below = known[path]
        for depth in range(deepest - 1, -1, -1):
            above, is_known = known.get(path[:depth]), path[:depth] in known
            if above is None:
                above = known[path[:depth]] = Domain(path[:depth])
            above.children.append(below)
            if is_known:
                break
            below = above
    return _rolled_up(known[()], grain)


def _rolled_up(domain: Domain, grain: Grain) -> Domain:
    if domain.children:
        rooms = [_rolled_up(child, grain).room for child in domain.children]
        domain.room = _whole(sum(rooms), grain[len(domain.path)])
    return domain


def _whole(pods: int, grain: int) -> int:
    return pods // grain * grain


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


def share_out(rooms: Iterable[Domain], count: int) -> list[Share]:
    """Give ``count`` pods to as few domains as can be, and of those to the snuggest.

    The rooms must suffice. All but the last are filled. Of equal sets the one with the larger
    rooms, then the smaller names. Above ``MOST_SUMS`` combinations the set is not the snuggest
    for certain: the largest rooms are taken, and the last of them as tightly as possible.
    """
    order = sorted((d for d in rooms if d.room), key=lambda d: (-d.room, d.path))
    fewest, total = 0, 0
    while total < count:
        total += order[fewest].room
        fewest += 1
    chosen = _largest_but_last(order, fewest, count)
    if sum(d.room for d in chosen) > count and fewest > 1:
        chosen = _snuggest(order, fewest, count, sum(d.room for d in chosen)) or chosen
    shares: list[Share] = []
    for domain in chosen:
        shares.append((domain, min(domain.room, count)))
        count -= shares[-1][1]
    return shares


def _largest_but_last(order: Sequence[Domain], fewest: int, count: int) -> list[Domain]:
    """Return the largest domains, and for the rest the tightest one that can hold it."""
    if not fewest:
        return []
    first = list(order[: fewest - 1])
    rest = count - sum(d.room for d in first)
    holders = [d for d in order[fewest - 1 :] if d.room >= rest]
    return [*first, min(holders, key=lambda d: (d.room, d.path))]


def _snuggest(order: Sequence[Domain], fewest: int, count: int, most: int) -> list[Domain] | None:
    """Return the ``fewest`` domains whose rooms sum up to least, but not below ``count``.

    ``most`` is a sum that is known to be possible. ``sums[n]`` is the set of sums of n rooms, a
    bit for each.
    """
    items = _at_most_alike(order, fewest)
    if len(items) * fewest > MOST_SUMS:
        return None
    mask, sums = (1 << (most + 1)) - 1, [1] + [0] * fewest
    history = [tuple(sums)]
    for item in items:
        for n in range(fewest, 0, -1):
            sums[n] |= (sums[n - 1] << item.room) & mask
        history.append(tuple(sums))
    enough = sums[fewest] >> count
    total = count + (enough & -enough).bit_length() - 1
    return _traced(items, history, fewest, total)


def _traced(
    items: Sequence[Domain], history: Sequence[tuple[int, ...]], n: int, total: int
) -> list[Domain]:
    chosen: list[Domain] = []
    for index in range(len(items) - 1, -1, -1):
        if n and not history[index][n] >> total & 1:  # not to be had without this one
            chosen.append(items[index])
            n, total = n - 1, total - items[index].room
    return chosen[::-1]


def _at_most_alike(order: Iterable[Domain], most: int) -> list[Domain]:
    """Return the domains with no more than ``most`` of any one room: further ones add nothing."""
    seen: dict[int, int] = {}
    kept = []
    for domain in order:
        seen[domain.room] = seen.get(domain.room, 0) + 1
        if seen[domain.room] <= most:
            kept.append(domain)
    return kept
