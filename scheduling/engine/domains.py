"""The tree of domains over the nodes that a pod set may use; it never changes.

Level 0 is everything, level 1 the outermost level of the topology, and so on; below the last
level stand the hosts. Innermost levels whose domains hold one node each are the hosts
themselves. Domains of a level are numbered in the order of their paths, nodes in that of the
ground: so a number settles ties as the name would.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from scheduling.engine.topology import Path


class Domains:
    """Which node stands in which domain of each level, and what each domain consists of.

    ``of[level][node]`` is the domain of a node inside the topology. ``parts[level][domain]`` lists
    its domains of the next level, and at the last ``depth`` its nodes. ``paths`` names them.
    ``parent[level][domain]`` is the domain of the level above that it is part of. The largest
    domain of a level has ``widest[level]`` nodes.
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
        self.parent: list[list[int]] = [[0] * len(self.paths[0])]
        for level in range(self.depth):
            above = {name: domain for domain, name in enumerate(self.paths[level])}
            self.parent.append([above[path[:level]] for path in self.paths[level + 1]])
            for domain, up in enumerate(self.parent[-1]):
                self.parts[level][up].append(domain)
        for number in inside:
            self.parts[self.depth][self.of[self.depth][number]].append(number)
        self.widest = [max(Counter(of.values()).values(), default=0) for of in self.of]


def _depth(inside: Sequence[int], paths: Mapping[int, Path], levels: int) -> int:
    """Return how many levels have a domain with several nodes, up to the innermost such one."""
    depth = levels
    while depth and len({paths[number][:depth] for number in inside}) == len(inside):
        depth -= 1
    return depth
