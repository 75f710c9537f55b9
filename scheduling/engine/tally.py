"""How many pods of one kind each domain can hold, kept up to date node by node."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence

from scheduling.engine.domains import Domains
from scheduling.engine.slices import Grain, grain_at, whole


class Tally:
    """The room of every domain, in pods of one kind, counted in whole grains of its level.

    ``rooms[level][domain]`` is that room; ``hosts[domain]`` says of each domain of the last
    level how many of its nodes hold how many pods.
    """

    def __init__(self, domains: Domains, grain: Grain = ()) -> None:
        self.domains = domains
        self._grain = tuple(grain_at(grain, level) for level in range(domains.depth + 2))
        self.rooms = [[0] * len(names) for names in domains.paths]
        self.hosts: list[dict[int, int]] = [{} for _ in domains.paths[-1]]
        self._pods = dict.fromkeys(domains.of[-1], 0)  # by number, as counted
        self._raw = [[0] * len(names) for names in domains.paths]  # what the parts hold together
        self._dirty: list[set[int]] = [set() for _ in domains.paths]
        self._ranked: list[list[int]] = [[] for _ in domains.paths]  # room, then domain, as one
        self._as_ranked = [[0] * len(names) for names in domains.paths]

    def count(self, numbers: Iterable[int], pods: Sequence[int]) -> None:
        """Count these nodes anew; ``pods``: how many each holds, by number."""
        leaf_of, counted, rooms = self.domains.of[-1], self._pods, self._raw[-1]
        grain = self._grain[-1]
        touched: set[int] = set()
        for number in numbers:
            was, now = counted.get(number), pods[number]
            if grain > 1:
                now = whole(now, grain)
            if was is None or was == now:  # None: outside the topology
                continue
            counted[number], leaf = now, leaf_of[number]
            rooms[leaf] += now - was
            touched.add(leaf)
            hosts = self.hosts[leaf]
            if was:
                hosts[was] -= 1
            if now:
                hosts[now] = hosts.get(now, 0) + 1
        self._sum_up(touched)

    def _sum_up(self, leaves: Iterable[int]) -> None:
        """Let these domains and those above hold what their parts hold together, in grains."""
        depth, raw, rooms, grains = self.domains.depth, self._raw, self.rooms, self._grain
        for leaf in leaves:
            more, chain = 0, (*self.domains.above[leaf], leaf)
            for level in range(depth, -1, -1):
                domain, grain = chain[level], grains[level]
                raw[level][domain] += more
                room = raw[level][domain]
                if grain > 1:
                    room = whole(room, grain)
                more = room - rooms[level][domain]
                if not more:
                    break
                rooms[level][domain] = room
                self._dirty[level].add(domain)

    def grain(self, level: int) -> int:
        """Return the grain of a level; behind the last one that of the hosts."""
        return self._grain[level]

    def pods(self, number: int) -> int:
        """Return how many pods a node inside the topology can hold, in whole grains."""
        return self._pods[number]

    @property
    def total(self) -> int:
        """Return how many pods all domains can hold together."""
        return self.rooms[0][0] if self.rooms[0] else 0

    def largest(self, level: int) -> int:
        """Return how many pods the roomiest domain of the level can hold."""
        ranked = self._rank(level)
        return ranked[-1] // len(self.rooms[level]) if ranked else 0

    def at_least(self, level: int, pods: int) -> Iterator[int]:
        """Yield the domains that can hold so many, the tightest first, of equals by number."""
        ranked, size = self._rank(level), len(self.rooms[level])
        for place in range(bisect_left(ranked, pods * size), len(ranked)):
            yield ranked[place] % size

    def _rank(self, level: int) -> list[int]:
        """Return the domains with room, by room; those that changed find their place again."""
        ranked, dirty, known = self._ranked[level], self._dirty[level], self._as_ranked[level]
        rooms, size = self.rooms[level], len(self.rooms[level])
        for domain in dirty:
            room, old = rooms[domain], known[domain]
            if room == old:
                continue
            known[domain] = room
            if old:
                del ranked[bisect_left(ranked, old * size + domain)]
            if room:
                insort(ranked, room * size + domain)
        dirty.clear()
        return ranked
