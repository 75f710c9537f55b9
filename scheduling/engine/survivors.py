"""Pods that join others of their pod set: replaced after a node was lost, or added later.

What stands stays where it is. Where the pods must share a domain, the new ones go into the
domain of the survivors; a slice that was broken is completed in its own domain; everything
else goes as near to the survivors as there is room (``placement.md`` 1.11 and T6c, K67).
Slices that only should share a domain do so as far as there is room for whole ones.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from scheduling.engine.company import Places, at_depth, beside, company_of, grown, inside
from scheduling.engine.slices import Layer, grain_of, whole
from scheduling.engine.topology import Path


@dataclass(frozen=True, slots=True)
class Wish:
    """How many pods, in which slices, and at which level they must share a domain (0: none).

    ``preferred``: slices that should share a domain, where none must.
    """

    count: int
    layers: tuple[Layer, ...] = ()
    level: int = 0
    preferred: Layer | None = None

    @property
    def firm(self) -> "Wish":
        """Return the wish with its preferred slices as if they were required."""
        if self.preferred is None:
            return self
        return replace(self, layers=(self.preferred,), preferred=None)


def rejoin(capacity: Mapping[Path, int], kept: Mapping[Path, int], wish: Wish) -> Places | None:
    """Return places for ``wish.count`` pods beside those that are ``kept``, by host; or None.

    With nobody kept they stand as near to each other as there is room, in any domain. Cost:
    O(hosts x levels), once for each broken slice and once for the rest.
    """
    if wish.preferred is None:
        return _rejoined(capacity, kept, wish)
    return _rejoined(capacity, kept, wish.firm) or gathered(capacity, kept, wish)


def gathered(capacity: Mapping[Path, int], kept: Mapping[Path, int], wish: Wish) -> Places | None:
    """Place slices that should share a domain: each whole in the closest tier with room for it.

    No slice is ever a reason to wait: what has no room as a whole goes in parts. With nobody
    kept, of the domains that hold all pods that one is taken which has room for most whole slices.
    Cost: O(hosts x levels) for each tier.
    """
    wanted = wish.preferred
    assert wanted is not None
    home = _home(kept, wish.level) if kept else _roomiest(capacity, wish, wanted)
    placed: Counter[Path] = Counter()
    for tier in range(wanted.level, wish.level - 1, -1):
        left, missing = _left(capacity, placed), wish.count - placed.total()
        layers = (Layer(tier, wanted.size),) if tier > wish.level else ()
        domain = inside(grown(left, grain_of(layers)), home)
        pods = (
            min(domain.room, whole(missing, wanted.size) if layers else missing) if domain else 0
        )
        found = _near(left, layers, kept, pods, home) if pods else {}
        placed.update(found or {})
    return dict(placed) if placed.total() == wish.count else None


def _roomiest(capacity: Mapping[Path, int], wish: Wish, wanted: Layer) -> Path:
    """Return the domain that holds all and most whole slices; of equals the tightest, by name."""
    slices = {d.path: d.room for d in at_depth(grown(capacity, grain_of([wanted])), wish.level)}
    holders = [d for d in at_depth(grown(capacity, ()), wish.level) if d.room >= wish.count]

    def merit(path: Path, room: int) -> tuple[int, int, Path]:
        return -min(slices.get(path, 0), whole(wish.count, wanted.size)), room, path

    return min((merit(d.path, d.room) for d in holders), default=(0, 0, ()))[2]


def _rejoined(capacity: Mapping[Path, int], kept: Mapping[Path, int], wish: Wish) -> Places | None:
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
        home = _home(kept, wish.level)
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
    held: Counter[Path] = Counter()
    for path, pods in standing.items():
        held[path[: layer.level]] += pods
    missing = ((path, -pods % layer.size) for path, pods in sorted(held.items()))
    return [(path, pods) for path, pods in missing if pods]


def _home(kept: Mapping[Path, int], level: int) -> Path:
    """Return the domain of a level in which most of the pods stand; ties by name."""
    homes: Counter[Path] = Counter()
    for path, pods in kept.items():
        homes[path[:level]] += pods
    return min(homes, key=lambda path: (-homes[path], path), default=())


def _near(
    capacity: Mapping[Path, int],
    layers: tuple[Layer, ...],
    kept: Mapping[Path, int],
    count: int,
    bound: Path,
) -> Places | None:
    """Place pods in the lowest domain that holds all who are kept and has room, within a bound."""
    root = grown(capacity, grain_of(layers))
    standing = {path: pods for path, pods in kept.items() if path[: len(bound)] == bound}
    common = _common(standing) if standing else bound
    for depth in range(len(common), len(bound) - 1, -1):
        domain = inside(root, common[:depth])
        if domain is not None and domain.room >= count:
            return beside(domain, company_of(standing), count)
    return None


def _common(paths: Iterable[Path]) -> Path:
    """Return the lowest domain that holds all of these hosts."""
    first, last = min(paths), max(paths)
    depth = 0
    while depth < len(first) and first[depth] == last[depth]:
        depth += 1
    return first[:depth]
