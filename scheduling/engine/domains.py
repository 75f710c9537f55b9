"""The tree of domains over the nodes that a pod set may use; it never changes.

Level 0 is everything, level 1 the outermost level of the topology, and so on; below the last
level stand the hosts. Innermost levels whose domains hold one node each are the hosts
themselves. Domains of a level are numbered in the order of their paths, nodes in that of the
ground: so a number settles ties as the name would.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from scheduling.engine.topology import Path


class Domains:
    """Which node stands in which domain of each level, and what each domain consists of.

    ``of[level][node]`` is the domain of a node inside the topology. ``parts[level][domain]`` lists
    its domains of the next level, and at the last ``depth`` its nodes. ``paths`` names them.
    ``above`` holds for each domain of the last level those that it is part of, outermost first.
    """

    def __init__(self, nodes: Sequence[int], paths: Mapping[int, Path], levels: int) -> None:
        inside = [number for number in nodes if number in paths]
        self.depth = _depth(inside, paths, levels)
        self.of: list[dict[int, int]] = []
        self.paths: list[list[Path]] = []
        self.parts: list[list[list[int]]] = []
        for level in range(self.depth + 1):
            names = sorted({paths[number][:level] for number in inside})
            known = {name: domain for domain, name in enumerate(names)}
            self.paths.append(names)
            self.of.append({number: known[paths[number][:level]] for number in inside})
            self.parts.append([[] for _ in names])
        for level in range(self.depth):
            above = {name: domain for domain, name in enumerate(self.paths[level])}
            for domain, path in enumerate(self.paths[level + 1]):
                self.parts[level][above[path[:level]]].append(domain)
        for number in inside:
            self.parts[self.depth][self.of[self.depth][number]].append(number)
        self.above = [self._above(path) for path in self.paths[-1]]

    def _above(self, path: Path) -> tuple[int, ...]:
        levels = self.paths[: self.depth]
        return tuple(bisect_left(names, path[:level]) for level, names in enumerate(levels))


def _depth(inside: Sequence[int], paths: Mapping[int, Path], levels: int) -> int:
    """Return how many levels have a domain with several nodes, up to the innermost such one."""
    depth = levels
    while depth and len({paths[number][:depth] for number in inside}) == len(inside):
        depth -= 1
    return depth
