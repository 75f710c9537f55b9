"""How many pods of one kind each domain can hold, kept up to date node by node."""

from bisect import bisect_left, insort
from collections.abc import Iterator

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
        self._dirty: list[set[int]] = [set() for _ in domains.paths]
        self._ranked: list[list[int]] = [[] for _ in domains.paths]  # room, then domain, as one
        self._as_ranked = [[0] * len(names) for names in domains.paths]

    def change(self, number: int, was: int, now: int) -> None:
        """Note that a node holds ``now`` pods instead of ``was``."""
        chain = self.domains.chains.get(number)
        if chain is None:
            return
        more = now - was
        for rooms, dirty, domain in zip(self.rooms, self._dirty, chain, strict=True):
            rooms[domain] += more
            dirty.add(domain)
        hosts = self.hosts[chain[-1]]
        if was:
            hosts[was] -= 1
        if now:
            hosts[now] = hosts.get(now, 0) + 1

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
