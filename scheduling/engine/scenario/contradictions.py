"""What is wrong between the parts of a scenario: names that are double, unknown, in a circle."""

from collections.abc import Iterable, Iterator

from scheduling.engine.quota import cohorts_in_cycles
from scheduling.engine.scenario.fields import Problem
from scheduling.engine.scenario.script import Event, EventKind, Scenario
from scheduling.engine.snapshot import Flavor

_OF_WORK = (EventKind.FINISH, EventKind.DELETE, EventKind.SET_PRIORITY)
_OF_QUEUES = (EventKind.SET_QUOTA, EventKind.SET_STOP_POLICY)


def contradictions(scenario: Scenario, path: str) -> Iterator[Problem]:
    """Yield every problem with its path, below ``path``."""
    names = _names(scenario)
    for found in (
        _doubles(scenario, names),
        _circles(scenario),
        _strangers(scenario, names),
        _unknown_flavors(scenario, set(names["flavors"])),
        _lost_events(scenario, names),
    ):
        for problem in found:
            yield Problem(f"{path}.{problem.path}" if path else problem.path, problem.message)


def _names(scenario: Scenario) -> dict[str, list[str]]:
    return {
        "topologies": [one.name for one in scenario.topologies],
        "nodes": [one.name for one in scenario.nodes],
        "flavors": [one.name for one in scenario.flavors],
        "cohorts": [one.name for one in scenario.cohorts],
        "cluster_queues": [one.name for one in scenario.queues],
        "local_queues": [one.name for one in scenario.doors],
        "workloads": [one.name for one in scenario.workloads],
    }


def _doubles(scenario: Scenario, names: dict[str, list[str]]) -> Iterable[Problem]:
    for part, found in names.items():
        seen: set[str] = set()
        for i, name in enumerate(found):
            if name in seen:
                yield Problem(f"{part}[{i}].name", f"{name!r} is there twice")
            seen.add(name)
    known = set(names["workloads"])
    for i, event in enumerate(scenario.events):
        if event.kind is EventKind.SUBMIT:
            if event.name in known:
                yield Problem(f"events[{i}].workload.name", f"{event.name!r} is there twice")
            known.add(event.name)


def _circles(scenario: Scenario) -> Iterable[Problem]:
    circular = cohorts_in_cycles({cohort.name: cohort for cohort in scenario.cohorts})
    for i, cohort in enumerate(scenario.cohorts):
        if cohort.name in circular:
            yield Problem(f"cohorts[{i}].parent", "the cohort is above itself")


def _strangers(scenario: Scenario, names: dict[str, list[str]]) -> Iterable[Problem]:
    for i, door in enumerate(scenario.doors):
        if door.cluster_queue not in names["cluster_queues"]:
            message = f"unknown cluster queue {door.cluster_queue!r}"
            yield Problem(f"local_queues[{i}].cluster_queue", message)
    for i, flavor in enumerate(scenario.flavors):
        if flavor.topology is not None and flavor.topology not in names["topologies"]:
            yield Problem(f"flavors[{i}].topology", _unknown_topology(flavor))


def _unknown_topology(flavor: Flavor) -> str:
    return f"unknown topology {flavor.topology!r}"


def _unknown_flavors(scenario: Scenario, known: set[str]) -> Iterable[Problem]:
    for i, queue in enumerate(scenario.queues):
        for j, group in enumerate(queue.groups):
            for k, flavor in enumerate(group.flavors):
                if flavor.flavor not in known:
                    path = f"cluster_queues[{i}].resource_groups[{j}].flavors[{k}].name"
                    yield Problem(path, f"unknown flavor {flavor.flavor!r}")
    for i, cohort in enumerate(scenario.cohorts):
        for name in sorted({fr.flavor for fr in cohort.quotas} - known):
            yield Problem(f"cohorts[{i}].resource_groups", f"unknown flavor {name!r}")


def _lost_events(scenario: Scenario, names: dict[str, list[str]]) -> Iterable[Problem]:
    """Yield the events that name a workload, queue or flavor that never exists."""
    workloads = {*names["workloads"]}
    workloads |= {e.name for e in scenario.events if e.kind is EventKind.SUBMIT}
    for i, event in enumerate(scenario.events):
        if event.kind in _OF_WORK and event.name not in workloads:
            yield Problem(f"events[{i}].workload", f"unknown workload {event.name!r}")
        if _names_a_queue(event) and event.name not in names["cluster_queues"]:
            yield Problem(f"events[{i}].cluster_queue", f"unknown cluster queue {event.name!r}")
        if event.column is not None and event.column.flavor not in names["flavors"]:
            yield Problem(f"events[{i}].flavor", f"unknown flavor {event.column.flavor!r}")


def _names_a_queue(event: Event) -> bool:
    return event.kind in _OF_QUEUES and not event.of_cohort
