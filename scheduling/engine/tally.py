"""How many pods of one kind each domain can hold, kept up to date node by node."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence

from scheduling.engine.domains import Domains


class Tally:
    """The room of every domain, in pods of one kind.

    ``rooms[level][domain]`` is that room; ``hosts[domain]`` says of each domain of the last
    level how many of its nodes hold how many pods.
    """

    def __init__(self, domains: Domains) -> None:
        self.domains = domains
        self.rooms = [[0] * len(names) for names in domains.paths]
        self.hosts: list[dict[int, int]] = [{} for _ in domains.paths[-1]]
        self._pods = dict.fromkeys(domains.of[-1], 0)  # by number, as counted
        self._summed = [0] * len(self.hosts)  # the rooms of the last level, as those above know
        self._dirty: list[set[int]] = [set() for _ in domains.paths]
        self._ranked: list[list[int]] = [[] for _ in domains.paths]  # room, then domain, as one
        self._as_ranked = [[0] * len(names) for names in domains.paths]

    def count(self, numbers: Iterable[int], fits: Mapping[int, int], holes: Sequence[int]) -> None:
        """Count these nodes anew; each holds as many pods as fit in its hole."""
        leaf_of, counted, rooms = self.domains.of[-1], self._pods, self.rooms[-1]
        touched: set[int] = set()
        for number in numbers:
            was, now = counted.get(number), fits[holes[number]]
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
        """Let the domains above know what these hold now."""
        for leaf in leaves:
            room = self.rooms[-1][leaf]
            more, self._summed[leaf] = room - self._summed[leaf], room
            self._dirty[-1].add(leaf)
            for level, domain in enumerate(self.domains.above[leaf] if more else ()):
                self.rooms[level][domain] += more
                self._dirty[level].add(domain)

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
