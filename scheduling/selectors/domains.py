"""The map of tiers: domains of every topology, what they hold, and the most that is free in one.

What is free counts on nodes that take pods. What of it a gang can use is the engine's answer
(``engine.fragments``), by flavor: CPU, memory and single devices count there as well.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduling.engine.fragments import HOST, Fragments
from scheduling.engine.machines import GPU
from scheduling.selectors.fragments import level_words
from scheduling.selectors.nodes import HOSTNAME, NodeRow, Places

Path = tuple[str, ...]
DOMAIN_COLUMNS = (
    *("topology", "flavor", "level", "domain", "nodes", "nodes_out", "gpus", "used", "free"),
    *("kept", "is_largest"),
)
TIER_COLUMNS = (
    *("topology", "flavor", "level", "nodes_outside", "gpus", "free", "largest_free"),
    *("largest_domain", "largest_gangs", "domains"),
)


@dataclass(frozen=True, slots=True)
class Domain:
    """One domain of a tier, by its path from the outermost level. Amounts are GPUs.

    ``nodes_out``: those that take no pods; ``kept``: what is free, but kept for a gang that waits.
    """

    path: Path
    nodes: int
    nodes_out: int
    gpus: int
    used: int
    free: int
    kept: int

    @property
    def name(self) -> str:
        """Return the path in one word, as ``block-a/rack-2``."""
        return "/".join(self.path)


@dataclass(frozen=True, slots=True)
class Tier:
    """One level of a topology with its domains, for one flavor.

    ``nodes_outside``: nodes of the flavor that lack a label of this tier or of one above it.
    ``gangs``: by GPUs of one pod, the most pods of a gang that one domain takes now.
    """

    topology: str
    flavor: str
    level: str
    domains: tuple[Domain, ...]
    nodes_outside: int
    gangs: Mapping[int, int]

    @property
    def words(self) -> str:
        """Return the level as people say it."""
        return level_words(HOST if self.level == HOSTNAME else self.level)

    @property
    def gpus(self) -> int:
        """Return the capacity of all domains."""
        return sum(domain.gpus for domain in self.domains)

    @property
    def free(self) -> int:
        """Return what is free in all domains together."""
        return sum(domain.free for domain in self.domains)

    @property
    def largest(self) -> Domain | None:
        """Return the domain with the most free GPUs, the first by name; None where none is."""
        return max(self.domains, key=lambda domain: domain.free, default=None)


def tiers(places: Places, rows: Iterable[NodeRow], pieces: Iterable[Fragments]) -> list[Tier]:
    """Return every tier: topologies by name, then flavors, then levels, outermost first."""
    by_flavor: dict[str, list[NodeRow]] = defaultdict(list)
    for row in rows:
        by_flavor[row.flavor].append(row)
    gangs = {piece.flavor: piece.gangs for piece in pieces if piece.resource == GPU}
    found = []
    flavors = [one for one in places.flavors if places.levels.get(one.topology)]
    for flavor in sorted(flavors, key=lambda one: (one.topology, one.name)):
        levels, own = places.levels[flavor.topology], by_flavor[flavor.name]
        for depth, level in enumerate(levels, 1):
            inside = _by_path(own, levels[:depth])
            key = HOST if level == HOSTNAME else level
            most = {size: n[key] for size, n in gangs.get(flavor.name, {}).items() if key in n}
            domains = tuple(_domain(path, inside[path]) for path in sorted(inside))
            outside = len(own) - sum(map(len, inside.values()))
            found.append(Tier(flavor.topology, flavor.name, level, domains, outside, most))
    return found


def _by_path(rows: Iterable[NodeRow], levels: Sequence[str]) -> dict[Path, list[NodeRow]]:
    found: dict[Path, list[NodeRow]] = defaultdict(list)
    for row in rows:
        if all(level in row.node.labels for level in levels):
            found[tuple(row.node.labels[level] for level in levels)].append(row)
    return found


def _domain(path: Path, rows: Sequence[NodeRow]) -> Domain:
    return Domain(
        path,
        nodes=len(rows),
        nodes_out=sum(not row.is_usable for row in rows),
        gpus=sum(row.gpus for row in rows),
        used=sum(row.used for row in rows),
        free=sum(row.free for row in rows),
        kept=sum(row.kept for row in rows),
    )


def domain_cells(found: Iterable[Tier]) -> Iterable[dict[str, Any]]:
    """Yield domains as rows of an export."""
    for tier in found:
        for domain in tier.domains:
            yield {
                "topology": tier.topology,
                "flavor": tier.flavor,
                "level": tier.level,
                "domain": domain.name,
                **_amounts(domain),
                "is_largest": domain is tier.largest,
            }


def tier_cells(found: Iterable[Tier]) -> Iterable[dict[str, Any]]:
    """Yield tiers as objects of an export, each with its domains."""
    for tier in found:
        largest = tier.largest
        yield {
            "topology": tier.topology,
            "flavor": tier.flavor,
            "level": tier.level,
            "nodes_outside": tier.nodes_outside,
            "gpus": tier.gpus,
            "free": tier.free,
            "largest_free": largest.free if largest else 0,
            "largest_domain": largest.name if largest else None,
            "largest_gangs": {str(size): pods for size, pods in tier.gangs.items()},
            "domains": [{"domain": one.name, **_amounts(one)} for one in tier.domains],
        }


def _amounts(domain: Domain) -> dict[str, int]:
    names = ("nodes", "nodes_out", "gpus", "used", "free", "kept")
    return {name: getattr(domain, name) for name in names}
