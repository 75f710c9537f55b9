"""Domains and levels: which nodes stand close enough together.

A node's path is the values of the level labels from the outermost one down, and its own name
at the end: the host is always the innermost domain (``decisions.md`` 5: tier 0). The same rack
name in two blocks is two racks (K60).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from scheduling.engine.machines import Flavor, Node, Topology
from scheduling.engine.snapshot import Snapshot

HOSTNAME = "kubernetes.io/hostname"
Path = tuple[str, ...]


def topology_of(snapshot: Snapshot, flavors: Iterable[Flavor]) -> Topology | None:
    """Return the topology that the flavors declare; else the only one there is, if it is one."""
    for flavor in flavors:
        if flavor.topology is not None:
            return snapshot.topologies.get(flavor.topology)
    return next(iter(snapshot.topologies.values())) if len(snapshot.topologies) == 1 else None


def path_of(node: Node, levels: tuple[str, ...]) -> Path | None:
    """Return where the node stands; None when it lacks a level's label.

    A node always knows its own name, whether or not it carries the hostname label.
    """
    values = [node.labels.get(level, node.name if level == HOSTNAME else "") for level in levels]
    return (*values, node.name) if all(values) else None


class _Choice(NamedTuple):
    """A domain that can hold the whole gang; smaller is better (``placement.md`` 1.11, OURS)."""

    hosts: int
    left_over: int
    domain: Path


class Hosts:
    """The hosts that can take pods of one pod set: how many each, and where they stand."""

    def __init__(self, capacity: Mapping[str, int], paths: Mapping[str, Path]) -> None:
        self._capacity = {paths[name]: pods for name, pods in capacity.items() if pods > 0}

    def largest(self, depth: int) -> int:
        """Return how many pods the roomiest domain of that depth can hold."""
        domains = _by_domain(self._capacity, depth)
        return max((sum(inside.values()) for inside in domains.values()), default=0)

    def together(self, count: int, depth: int) -> dict[str, int] | None:
        """Place all pods in one domain at ``depth`` (1: outermost level) or closer.

        The closest tier that can hold everybody wins, in it the fewest hosts, then the
        tightest domain, then its name. None: no domain can. Cost: O(hosts x levels).
        """
        deepest = max((len(path) for path in self._capacity), default=0)
        for tier in range(deepest, depth - 1, -1):
            choices = [
                self._weigh(domain, inside, count)
                for domain, inside in _by_domain(self._capacity, tier).items()
                if sum(inside.values()) >= count
            ]
            if choices:
                return min(choices, key=lambda choice: choice[0])[1]
        return None

    def close(self, count: int, depth: int) -> dict[str, int] | None:
        """Place the pods at ``depth`` if one domain can, else higher, else in several.

        At the top the largest domains are taken until one can hold the rest (K61).
        """
        for tier in range(depth, 0, -1):
            placed = self.together(count, tier)
            if placed is not None:
                return placed
        if sum(self._capacity.values()) < count:
            return None
        return self._spread(self._capacity, 0, count)

    def _weigh(
        self, domain: Path, inside: Mapping[Path, int], count: int
    ) -> tuple[_Choice, dict[str, int]]:
        placed = self._spread(inside, len(domain), count)
        return _Choice(len(placed), sum(inside.values()) - count, domain), placed

    def _spread(self, inside: Mapping[Path, int], depth: int, count: int) -> dict[str, int]:
        """Share ``count`` pods among the children: largest first, best fit for the rest."""
        if len(inside) == 1:
            return {path[-1]: count for path in inside}
        children = _by_domain(inside, depth + 1)
        shares = share_out({d: sum(pods.values()) for d, pods in children.items()}, count)
        placed: dict[str, int] = {}
        for domain, share in shares.items():
            placed.update(self._spread(children[domain], depth + 1, share))
        return placed


def _by_domain(capacity: Mapping[Path, int], depth: int) -> dict[Path, dict[Path, int]]:
    domains: dict[Path, dict[Path, int]] = {}
    for path, pods in capacity.items():
        domains.setdefault(path[:depth], {})[path] = pods
    return domains


def share_out(rooms: Mapping[Path, int], count: int) -> dict[Path, int]:
    """Fill the largest rooms until one can hold the rest, and that one as tightly as possible."""
    shares: dict[Path, int] = {}
    order = sorted(rooms, key=lambda domain: (-rooms[domain], domain))
    while count:
        first = order[0]
        if rooms[first] >= count:
            snug = min((d for d in order if rooms[d] >= count), key=lambda d: (rooms[d], d))
            shares[snug] = count
            break
        shares[order.pop(0)] = rooms[first]
        count -= rooms[first]
    return shares
