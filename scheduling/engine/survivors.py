"""Pods that join others of their pod set: replaced after a node was lost, or added later.

What stands stays where it is. Where the pods must share a domain, the new ones go into the
domain of the survivors; a slice that was broken is completed in its own domain; everything
else goes as near to the survivors as there is room (``placement.md`` 1.11 and T6c, K67).
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from scheduling.engine.nearness import Places, Wish, Wood
from scheduling.engine.slices import Domain, Layer, Share, inside, share_out
from scheduling.engine.topology import Path


def rejoin(capacity: Mapping[Path, int], kept: Mapping[Path, int], wish: Wish) -> Places | None:
    """Return places for ``wish.count`` pods beside those that are ``kept``, by host; or None.

    Cost: O(hosts x levels), once for each broken slice and once for the rest.
    """
    if not kept:
        return Wood(capacity, wish.layers).place(wish)
    placed: Counter[Path] = Counter()
    for index in range(len(wish.layers) - 1, -1, -1):
        layer, finer = wish.layers[index], wish.layers[index + 1 :]
        for domain, missing in _broken(layer, _sum(kept, placed)):
            found = _near(_left(capacity, placed), finer, kept, missing, domain)
            if found is None:
                return None
            placed.update(found)
    return _rest(capacity, kept, placed, wish)


def _rest(
    capacity: Mapping[Path, int], kept: Mapping[Path, int], placed: Counter[Path], wish: Wish
) -> Places | None:
    """Place what is left once the broken slices are whole: whole slices, near the others."""
    missing = wish.count - placed.total()
    if missing < 0 or (wish.layers and missing % wish.layers[0].size):
        return None
    if missing:
        home = _home(kept, wish.depth if wish.must else 0)
        found = _near(_left(capacity, placed), wish.layers, kept, missing, home)
        if found is None:
            return None
        placed.update(found)
    return dict(placed)


def _sum(kept: Mapping[Path, int], placed: Mapping[Path, int]) -> Counter[Path]:
    total = Counter(kept)
    total.update(placed)
    return total


def _left(capacity: Mapping[Path, int], placed: Mapping[Path, int]) -> dict[Path, int]:
    return {path: pods - placed.get(path, 0) for path, pods in capacity.items()}


def _broken(layer: Layer, standing: Mapping[Path, int]) -> list[tuple[Path, int]]:
    """Return the domains in which a slice lacks pods, and how many."""
    inside_: Counter[Path] = Counter()
    for path, pods in standing.items():
        inside_[path[: layer.depth]] += pods
    missing = ((path, -pods % layer.size) for path, pods in sorted(inside_.items()))
    return [(path, pods) for path, pods in missing if pods]


def _home(kept: Mapping[Path, int], depth: int | None) -> Path:
    """Return the domain at a depth in which most of the pods stand; ties by name."""
    homes: Counter[Path] = Counter()
    for path, pods in kept.items():
        homes[path[: depth or 0]] += pods
    return min(homes, key=lambda path: (-homes[path], path))


def _near(
    capacity: Mapping[Path, int],
    layers: tuple[Layer, ...],
    kept: Mapping[Path, int],
    count: int,
    bound: Path,
) -> Places | None:
    """Place pods in the lowest domain that holds all who are kept and has room, within a bound."""
    wood = Wood(capacity, layers)
    standing = {path: pods for path, pods in kept.items() if path[: len(bound)] == bound}
    common = _common(standing)
    for depth in range(len(common), len(bound) - 1, -1):
        domain = inside(wood.root, common[:depth])
        if domain is not None and domain.room >= count:
            return _beside(domain, _company(standing), count)
    return None


def _common(paths: Iterable[Path]) -> Path:
    """Return the lowest domain that holds all of these hosts."""
    first, last = min(paths), max(paths)
    depth = 0
    while depth < len(first) and first[depth] == last[depth]:
        depth += 1
    return first[:depth]


def _company(standing: Mapping[Path, int]) -> Counter[Path]:
    """Return how many pods stand in every domain."""
    company: Counter[Path] = Counter()
    for path, pods in standing.items():
        for depth in range(len(path) + 1):
            company[path[:depth]] += pods
    return company


def _beside(domain: Domain, company: Mapping[Path, int], count: int) -> Places:
    """Hand pods down: to the child with most company that holds all, else to any that does.

    Where none does, the children with company are filled first.
    """
    if not domain.children:
        return {domain.path: count}
    holders = [child for child in domain.children if child.room >= count]
    if holders:
        best = min(holders, key=lambda d: (-company.get(d.path, 0), d.room, d.path))
        return _beside(best, company, count)
    placed: Places = {}
    for child, gets in _filled(domain.children, company, count):
        placed |= _beside(child, company, gets)
    return placed


def _filled(children: Iterable[Domain], company: Mapping[Path, int], count: int) -> list[Share]:
    """Fill those with company, most of it first; what is left goes to as few others as can be."""
    near = [child for child in children if company.get(child.path)]
    shares: list[Share] = []
    for child in sorted(near, key=lambda d: (-company[d.path], d.path)):
        gets = min(child.room, count)
        if gets:
            shares.append((child, gets))
            count -= gets
    others = [child for child in children if not company.get(child.path)]
    return [*shares, *(share_out(others, count) if count else ())]
