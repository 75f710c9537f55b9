"""Victims domain by domain, where the pods must stand in one domain of a level.

In the order of candidates alone, the domain wins that comes free first, though another, in which
much is free already, may cost less. Source: ``placement.md`` 1.8 (OURS, 2).
"""

from collections.abc import Iterable, Sequence

from scheduling.engine.atlas import NO_LEVEL, Atlas, level_of
from scheduling.engine.candidates import Candidate
from scheduling.engine.flavors import Option
from scheduling.engine.snapshot import PodSet, Workload
from scheduling.engine.standing import standing
from scheduling.engine.tenure import lost_gpu_seconds
from scheduling.engine.topology import Path

MAX_DOMAINS = 8  # that are tried by themselves for one preemptor


def by_domain(
    atlas: Atlas, pod_set: PodSet, option: Option, candidates: Sequence[Candidate]
) -> list[tuple[Candidate, ...]]:
    """Return for each domain the candidates that stand in it, in their order.

    The domain of the first candidate comes first; none where no level is required. Whoever is
    taken whole takes its surplus along, wherever that stands.
    """
    works = [candidate.workload for candidate in candidates]
    groups = keys_by_domain(atlas, pod_set, option, works)
    return [tuple(c for c in candidates if _goes(c, keys)) for keys in groups]


def keys_by_domain(
    atlas: Atlas, pod_set: PodSet, option: Option, works: Iterable[Workload]
) -> list[set[str]]:
    """Return who stands in each domain of the level that is required, that of the first in front.

    None where no level is required, or all stand in one domain of it.
    """
    levels = atlas.levels(option.values())
    depth = level_of(pod_set, levels)
    if depth is None or depth in (0, NO_LEVEL):
        return []
    paths, found = atlas.paths(levels), dict[Path, set[str]]()
    for work in works:
        nodes = {node for one in standing(work) for node in one.nodes}
        for domain in sorted({paths[node][:depth] for node in nodes if node in paths}):
            found.setdefault(domain, set()).add(work.key)
    return list(found.values())[:MAX_DOMAINS] if len(found) > 1 else []


def _goes(candidate: Candidate, keys: set[str]) -> bool:
    return candidate.workload.key in keys or candidate.workload.part_of in keys


def price(victims: Sequence[Candidate], now: float) -> tuple[bool, int, float, int, str]:
    """Return what an eviction costs: whole gangs or surplus, priority, loss, how many, a key."""
    works = [victim.workload for victim in victims]
    whole = any(not work.part_of for work in works)
    lost = sum(lost_gpu_seconds(work, now) for work in works)
    highest = max(work.priority for work in works)
    return whole, highest, lost, len(works), min(work.key for work in works)
