"""Domains and levels: which nodes stand close enough together.

A node's path is the values of the level labels from the outermost one down, and its own name
at the end: the host is always the innermost domain (``decisions.md`` 5: tier 0). The same rack
name in two blocks is two racks (K60).
"""

from collections.abc import Iterable

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
