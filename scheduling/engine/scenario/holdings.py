"""What is wrong in one workload: its pod sets, and what it claims to hold already."""

from collections import Counter
from collections.abc import Callable, Iterator

from scheduling.engine.kueue.rooms import HOSTS
from scheduling.engine.machines import Flavor
from scheduling.engine.scenario.fields import Problem
from scheduling.engine.scenario.script import Scenario
from scheduling.engine.snapshot import Assignment, PodSet, Workload

Unknown = Callable[[str, str], bool]  # name, part of the scenario
GROUP_SIZE = 2  # a leader and its workers (``admission.md`` K63)


def contradictions(work: Workload, scenario: Scenario, unknown: Unknown) -> Iterator[Problem]:
    """Yield what is wrong, with paths below the workload."""
    sets = {pod_set.name: pod_set for pod_set in work.pod_sets}
    yield from _double_sets(work)
    yield from _groups(work)
    for name, pods in work.reclaimable.items():
        yield from _reclaimed(name, pods, sets)
    if work.replaces and (unknown(work.replaces, "workloads") or work.replaces == work.name):
        yield Problem("replaces", f"unknown workload {work.replaces!r}")
    if work.admission is None:
        return
    held = Counter(assignment.pod_set for assignment in work.admission.assignments)
    for i, assignment in enumerate(work.admission.assignments):
        for problem in _held(assignment, sets, scenario, unknown):
            yield Problem(f"admission.pod_sets[{i}].{problem.path}", problem.message)
        if held[assignment.pod_set] > 1:
            path = f"admission.pod_sets[{i}].name"
            yield Problem(path, f"{assignment.pod_set!r} is there twice")
    for name in sorted(sets.keys() - held.keys()):
        yield Problem("admission.pod_sets", f"holds nothing for pod set {name!r}")


def _double_sets(work: Workload) -> Iterator[Problem]:
    seen = {""}
    for i, pod_set in enumerate(work.pod_sets):
        if pod_set.name and pod_set.name in seen:
            yield Problem(f"pod_sets[{i}].name", f"{pod_set.name!r} is there twice")
        seen.add(pod_set.name)


def _groups(work: Workload) -> Iterator[Problem]:
    members: dict[str, list[PodSet]] = {}
    for pod_set in work.pod_sets:
        if pod_set.topology is not None and pod_set.topology.group:
            members.setdefault(pod_set.topology.group, []).append(pod_set)
    for group, sets in sorted(members.items()):
        if len(sets) != GROUP_SIZE or min(pod_set.count for pod_set in sets) != 1:
            message = f"group {group!r} must be two pod sets, one of them of one pod"
            yield Problem("pod_sets", message)


def _reclaimed(name: str, pods: int, sets: dict[str, PodSet]) -> Iterator[Problem]:
    if name not in sets:
        yield Problem(f"reclaimable.{name}", f"unknown pod set {name!r}")
    elif pods > sets[name].count:
        yield Problem(f"reclaimable.{name}", "must not be above count")


def _held(
    held: Assignment, sets: dict[str, PodSet], scenario: Scenario, unknown: Unknown
) -> Iterator[Problem]:
    for resource, flavor in held.flavors.items():
        if unknown(flavor, "flavors"):
            yield Problem(f"flavors.{resource}", f"unknown flavor {flavor!r}")
    pod_set = sets.get(held.pod_set)
    if pod_set is None:
        if held.pod_set:
            yield Problem("name", f"unknown pod set {held.pod_set!r}")
        return
    if held.count > pod_set.count:
        yield Problem("count", "must not be above the count of the pod set")
    if held.nodes and sum(held.nodes.values()) != held.count:
        yield Problem("topology.domains", f"must hold {held.count} pods together")
    if _on_hosts(held, scenario):
        for name in held.nodes:
            if unknown(name, "nodes"):
                yield Problem("topology.domains", f"unknown node {name!r}")


def _on_hosts(held: Assignment, scenario: Scenario) -> bool:
    """Return whether the domains are nodes: the topology ends at hosts, or there is none."""
    levels = {topology.name: topology.levels for topology in scenario.topologies}
    flavors: dict[str, Flavor] = {flavor.name: flavor for flavor in scenario.flavors}
    used = (flavors[name].topology for name in held.flavors.values() if name in flavors)
    lowest = [levels[name][-1] for name in used if name and levels.get(name)]
    return all(level in HOSTS for level in lowest)
