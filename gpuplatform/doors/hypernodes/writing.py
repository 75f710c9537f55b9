"""Topologies out as HyperNodes: a document for each domain, lower tiers first."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpuplatform.doors.hypernodes.specs import (
    GROUP,
    KIND,
    NODE,
    TOPOLOGY,
    VERSION,
)
from queues.labels import tier_of
from queues.models import Topology
from queues.rules.flavors import HOSTNAME
from scheduling.models import Node

Path = tuple[str, ...]


def hypernodes() -> Iterator[Mapping[str, Any]]:
    """Yield every domain of every topology as a HyperNode.

    Those of ``hypernodes`` are what was imported; domains of others are named after their
    topology and all domains around them, and count their tiers from the hosts.
    """
    nodes = list(Node.objects.order_by("name").values_list("name", "labels"))
    for row in Topology.objects.prefetch_related("levels").order_by("name"):
        levels = [one.node_label for one in row.levels.all() if one.node_label != HOSTNAME]
        if row.name == TOPOLOGY:
            yield from _own(levels, nodes)
        else:
            yield from _named(row.name, levels, nodes)


def _own(levels: Sequence[str], nodes: Sequence[tuple[str, dict[str, str]]]) -> Iterator[Any]:
    rising = levels[::-1]
    for number, key in enumerate(rising):
        domains: dict[str, dict[tuple[str, str], None]] = {}
        for name, labels in nodes:
            if key in labels:
                below = [labels[one] for one in rising[:number] if one in labels]
                member = (KIND, below[-1]) if below else (NODE, name)
                domains.setdefault(labels[key], {})[member] = None
        for domain, members in sorted(domains.items()):
            yield _document(domain, *(tier_of(key) or (1, "")), members)


def _named(
    topology: str, levels: Sequence[str], nodes: Sequence[tuple[str, dict[str, str]]]
) -> Iterator[Any]:
    """Yield the domains of the nodes that have all levels."""
    whole = [(name, labels) for name, labels in nodes if all(key in labels for key in levels)]
    for depth in range(len(levels), 0, -1):
        domains: dict[Path, dict[tuple[str, str], None]] = {}
        for name, labels in whole:
            path = (topology, *(labels[key] for key in levels))
            is_last = depth == len(levels)
            member = (NODE, name) if is_last else (KIND, _called(path[: depth + 2]))
            domains.setdefault(path[: depth + 1], {})[member] = None
        last = levels[depth - 1].rpartition("/")[2]
        for path, members in sorted(domains.items()):
            yield _document(_called(path), len(levels) - depth + 1, last, members)


def _called(path: Path) -> str:
    return "-".join(path).lower().replace("_", "-")


def _document(
    name: str, tier: int, tier_name: str, members: Mapping[tuple[str, str], None]
) -> dict[str, Any]:
    spec: dict[str, Any] = {"tier": tier, **({"tierName": tier_name} if tier_name else {})}
    spec["members"] = [
        {"type": kind, "selector": {"exactMatch": {"name": one}}} for kind, one in members
    ]
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"name": name},
        "spec": spec,
    }
