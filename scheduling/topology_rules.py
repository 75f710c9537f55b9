"""The rules of standing together: levels, slices, groups (``admission.md`` K61 to K63).

Shape first, then what the topologies of the world say of the levels that are named.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.problems import Problem
from queues.rules.words import check_name
from scheduling.engine.terms import TopologyMode
from scheduling.specs import SLICE_MODES, PodSetSpec, WorkloadSpec, subject_of
from scheduling.world import TIER, World

MOST_SLICE_LAYERS = 3
MODES = tuple(mode.value for mode in TopologyMode)

Named = tuple[str, str]  # the path of a field, and the level that it names


def check_together(spec: WorkloadSpec) -> Iterator[Problem]:
    """Yield what is wrong with requests, slices and groups, whatever the world is like."""
    for index, pod_set in enumerate(spec.pod_sets):
        path = f"pod_sets[{index}]"
        yield from _request(pod_set, f"{path}.topology")
        yield from _slices(pod_set, path)
        if pod_set.group:
            yield from check_name(pod_set.group, f"{path}.group")
    yield from _groups(spec)


def _problem(path: str, code: str, **numbers: Any) -> Problem:
    return Diagnostic(code, "", path, numbers).as_problem()


def _request(pod_set: PodSetSpec, path: str) -> Iterator[Problem]:
    asked = pod_set.topology
    if asked is None:
        return
    if asked.mode not in MODES:
        value = {"value": asked.mode[:64], "allowed": ", ".join(MODES)}
        yield _problem(f"{path}.mode", "BAD_VALUE", **value)
    elif asked.mode != TopologyMode.UNCONSTRAINED and not asked.level:
        yield _problem(f"{path}.level", "TOPOLOGY_LEVEL_MISSING")


def slice_path(pod_set: PodSetSpec, path: str, number: int) -> str:
    """Return the path of one slice request: ``slice`` where there is one, else a place in all."""
    return f"{path}.slice" if len(pod_set.slices) == 1 else f"{path}.slices[{number}]"


def _slices(pod_set: PodSetSpec, path: str) -> Iterator[Problem]:
    """Yield slices that are too many, too large, or do not make up whole ones."""
    layers = pod_set.slices
    if len(layers) > MOST_SLICE_LAYERS:
        limits = {"layers": len(layers), "limit": MOST_SLICE_LAYERS}
        yield _problem(f"{path}.slices", "TOO_MANY_SLICE_LAYERS", **limits)
    for number, layer in enumerate(layers):
        named = slice_path(pod_set, path, number)
        where = f"{named}.size"
        if layer.mode not in SLICE_MODES or (len(layers) > 1 and not layer.is_required):
            allowed = ", ".join(SLICE_MODES[: 1 if len(layers) > 1 else None])
            yield _problem(f"{named}.mode", "BAD_VALUE", value=layer.mode[:64], allowed=allowed)
        if not 1 <= layer.size <= max(1, pod_set.count):
            numbers = {"needed_pods": layer.size, "pods": pod_set.count, "pod_set": pod_set.name}
            yield _problem(where, "SUBGROUP_TOO_LARGE", **numbers)
        elif number == 0 and layer.is_required and (odd := _not_whole(pod_set, layer.size)):
            numbers = {"slice_size": layer.size, "pods": odd, "pod_set": pod_set.name}
            yield _problem(where, "SLICES_NOT_WHOLE", **numbers)
        elif number and layers[number - 1].size % layer.size:
            sizes = {"inner": layer.size, "outer": layers[number - 1].size}
            yield _problem(where, "SLICES_NOT_NESTED", **sizes)


def _not_whole(pod_set: PodSetSpec, size: int) -> int:
    """Return the count, or the minimum, that no whole number of slices makes up; else 0."""
    counts = (pod_set.count, pod_set.min_count or 0)
    return next((count for count in counts if count % size), 0)


def _groups(spec: WorkloadSpec) -> Iterator[Problem]:
    """Yield groups of one, and members that do not ask for the same domain."""
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for index, pod_set in enumerate(spec.pod_sets):
        if pod_set.group:
            groups[pod_set.group].append(index)
    for group, members in groups.items():
        first = spec.pod_sets[members[0]].topology
        if len(members) == 1:
            yield _problem(f"pod_sets[{members[0]}].group", "GROUP_OF_ONE", group=group[:64])
        for index in members:
            asked = spec.pod_sets[index].topology
            if asked is None or asked.mode == TopologyMode.UNCONSTRAINED or asked != first:
                path = f"pod_sets[{index}].topology"
                yield _problem(path, "GROUP_TOPOLOGY_DIFFERS", group=group[:64])


# ---- the world -------------------------------------------------------------------------------
def check_levels(spec: WorkloadSpec, world: World) -> Iterator[Diagnostic]:
    """Yield levels that nobody has, and slices wider than what they are part of, or as wide."""
    subject = subject_of(spec)
    for index, pod_set in enumerate(spec.pod_sets):
        named, queue = _named(pod_set, f"pod_sets[{index}]"), world.cluster_queue_of(spec)
        known = [(path, level, world.level_of(level, queue)) for path, level in named]
        for path, level, label in known:
            if label is None:
                number = level.removeprefix(TIER)  # as Volcano's jobs spell it
                shown = number if number.isdecimal() else level
                yield Diagnostic("UNKNOWN_TOPOLOGY_LEVEL", subject, path, {"level": shown[:64]})
        for (_, _, outer), (path, level, inner) in pairwise(known):
            if outer and inner and not world.is_within(inner, outer, queue):
                yield Diagnostic("SLICE_WIDER_THAN_TOPOLOGY", subject, path, {"level": level[:64]})
        slices = known[len(known) - len(pod_set.slices) :]
        for (_, _, outer), (path, level, inner) in pairwise(slices[:MOST_SLICE_LAYERS]):
            if inner and inner == outer:
                yield Diagnostic("SLICES_AT_ONE_LEVEL", subject, path, {"level": level[:64]})


def _named(pod_set: PodSetSpec, path: str) -> list[Named]:
    """Return the levels that a pod set names, the widest first as it should be."""
    asked = pod_set.topology
    named = [(f"{path}.topology.level", asked.level)] if asked and asked.level else []
    for number, layer in enumerate(pod_set.slices):
        named.append((f"{slice_path(pod_set, path, number)}.level", layer.level))
    return named
