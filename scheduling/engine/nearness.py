"""Which domains pods take: as close together as can be, and in slices where they ask for it.

Lexicographic (``placement.md`` 1.11, OURS): the closest tier that holds everybody; in it the
fewest domains of each level below, from the outermost to the host; then the least room left
over; then the name.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from scheduling.engine.slices import (
    Domain,
    Grain,
    Layer,
    Share,
    at_depth,
    grain_of,
    grown,
    share_out,
)
from scheduling.engine.topology import Path

Places = dict[Path, int]  # pods by the path of a host


@dataclass(frozen=True, slots=True)
class Wish:
    """How many pods, in which slices, and within which domain.

    ``depth``: at which the pods must share a domain (``must``) or should; None: anywhere.
    """

    count: int
    layers: tuple[Layer, ...] = ()
    depth: int | None = None
    must: bool = False


class Wood:
    """The rooms for the pods of one shape, and the choices among them. Takes nothing."""

    def __init__(self, capacity: Mapping[Path, int], layers: tuple[Layer, ...] = ()) -> None:
        self._layers = layers
        self.deepest = max((len(path) for path in capacity), default=0)
        self.grain: Grain = grain_of(layers, self.deepest)
        self.root: Domain = grown(capacity, self.grain)

    def largest(self, depth: int) -> int:
        """Return how many pods, in whole slices, the roomiest domain of that depth can hold."""
        return max((domain.room for domain in at_depth(self.root, depth)), default=0)

    def place(self, wish: Wish) -> Places | None:
        """Return a place for all pods of the wish; None: as it asks there is none."""
        if wish.count % self.grain[0]:
            return None
        if wish.depth is not None and wish.must:
            return self.together(wish.count, wish.depth)
        if wish.depth is None:
            return self.tightest(wish.count)
        return self.close(wish.count)

    def together(self, count: int, depth: int) -> Places | None:
        """Place all pods in one domain at ``depth`` or, better, below it."""
        for tier in range(self.deepest, depth - 1, -1):
            holders = [d for d in at_depth(self.root, tier) if d.room >= count]
            if holders:
                spreads = ((d, self.handed(d, count)) for d in holders)
                return min(spreads, key=self._merit)[1]
        return None

    def close(self, count: int) -> Places | None:
        """Place all pods in one domain, the lowest that holds them, else in several."""
        placed = self.together(count, 1)
        if placed is None and self.root.room >= count:
            return self.handed(self.root, count)
        return placed

    def tightest(self, count: int) -> Places | None:
        """Fill the tightest domains that take slices first, so that large rooms stay whole."""
        if self.root.room < count:
            return None
        depth = self._layers[0].depth if self._layers else self.deepest
        placed: Places = {}
        for domain in sorted(at_depth(self.root, depth), key=lambda d: (d.room, d.path)):
            gets = min(count, domain.room)
            if gets:
                placed |= self.handed(domain, gets)
            count -= gets
        return placed

    def handed(self, domain: Domain, count: int) -> Places:
        """Hand pods down from a domain to hosts.

        Down to the level of the slices all domains compete; below it each shares its own pods
        out, for what is in a slice stays in its domain.
        """
        pooled = self._layers[0].depth if self._layers else self.deepest
        shares: list[Share] = [(domain, count)]
        for depth in range(len(domain.path), self.deepest):
            if depth < pooled:
                shares = share_out((child for d, _ in shares for child in d.children), count)
            else:
                shares = [s for d, gets in shares for s in share_out(d.children, gets)]
        return {host.path: gets for host, gets in shares}

    def _merit(self, spread: tuple[Domain, Places]) -> tuple[tuple[int, ...], int, Path]:
        """Return how good it is to place pods so in one domain; smaller is better."""
        domain, placed = spread
        depths = range(len(domain.path) + 1, self.deepest + 1)
        used = tuple(len({path[:depth] for path in placed}) for depth in depths)
        return used, domain.room - sum(placed.values()), domain.path
