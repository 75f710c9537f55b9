"""How many pods of one kind each domain can hold, kept up to date node by node."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from scheduling.engine.domains import Domains
from scheduling.engine.slices import Grain, grain_at, whole


class Tally:
    """The room of every domain, in pods of one kind, counted in whole grains of its level.

    ``rooms[level][domain]`` is that room.
    """

    def __init__(self, domains: Domains, grain: Grain = ()) -> None:
        self.domains = domains
        self._grain = tuple(grain_at(grain, level) for level in range(domains.depth + 2))
        self.rooms = [[0] * len(names) for names in domains.paths]
        self._pods = dict.fromkeys(domains.of[-1], 0)  # by number, as counted
        self._hosts: dict[int, Mapping[int, int]] = {}  # of domains that have been asked for
        self._raw = [[0] * len(names) for names in domains.paths]  # what the parts hold together
        self._dirty: list[set[int]] = [set() for _ in domains.paths]
        self._ranked: list[list[int]] = [[] for _ in domains.paths]  # room, then domain, as one
        self._as_ranked = [[0] * len(names) for names in domains.paths]

    def count(self, numbers: Iterable[int], holes: Sequence[int], fits: Mapping[int, int]) -> None:
        """Count these nodes anew; ``holes``: what is free on each, ``fits``: how many fit there.

        Nodes outside the topology are left out.
        """
        counted, leaf_of, grain = self._pods, self.domains.of[-1], self._grain[-1]
        inside = list(counted.keys() & numbers)
        before = map(counted.__getitem__, inside)
        now: Iterable[int] = map(fits.__getitem__, map(holes.__getitem__, inside))
        if grain > 1:
            now = [whole(pods, grain) for pods in now]
        more: dict[int, int] = {}
        for number, was, pods in zip(inside, before, now, strict=True):
            if was != pods:
                counted[number], leaf = pods, leaf_of[number]
                more[leaf] = more.get(leaf, 0) + pods - was
        for leaf in more.keys() & self._hosts.keys():
            del self._hosts[leaf]
        self._sum_up(more)

    def _sum_up(self, more: Mapping[int, int]) -> None:
        """Let these domains of the last level, and those above, hold so many pods more.

        In each level the parts of a domain hold together what is then cut to its grain.
        """
        for level in range(self.domains.depth, -1, -1):
            if not more:
                break
            raw, rooms, grain = self._raw[level], self.rooms[level], self._grain[level]
            parent = self.domains.parent[level]
            above: dict[int, int] = {}
            for domain, pods in more.items():
                raw[domain] += pods
                room = whole(raw[domain], grain) if grain > 1 else raw[domain]
                if room != rooms[domain]:
                    up = parent[domain]
                    above[up] = above.get(up, 0) + room - rooms[domain]
                    rooms[domain] = room
            self._dirty[level].update(more)
            more = above

    def hosts(self, leaf: int) -> Mapping[int, int]:
        """Return how many nodes of a domain of the last level hold how many pods, if any."""
        found = self._hosts.get(leaf)
        if found is None:
            found = Counter(map(self._pods.__getitem__, self.domains.parts[-1][leaf]))
            found.pop(0, None)
            self._hosts[leaf] = found
        return found

    def grain(self, level: int) -> int:
        """Return the grain of a level; behind the last one that of the hosts."""
        return self._grain[level]

    def pods(self, number: int) -> int:
        """Return how many pods a node inside the topology can hold, in whole grains."""
        return self._pods[number]

    def roomy(self, numbers: Iterable[int]) -> dict[int, int]:
        """Return those of the nodes that can hold any, with how many; all inside the topology."""
        counted = self._pods
        return {number: pods for number in numbers if (pods := counted[number])}

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
