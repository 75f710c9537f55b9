"""What is wrong between the parts of a scenario: names that are double, unknown, in a circle."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from scheduling.engine.scenario import holdings, tables
from scheduling.engine.scenario.fields import Problem
from scheduling.engine.scenario.script import Event, EventKind, Scenario
from scheduling.engine.snapshot import Workload
from scheduling.engine.tree import cohorts_in_cycles

_OF_QUEUES = (EventKind.SET_QUOTA, EventKind.SET_STOP_POLICY)
_OF_WORK = (
    EventKind.FINISH,
    EventKind.DELETE,
    EventKind.SET_PRIORITY,
    EventKind.CHECKPOINT,
    EventKind.RECLAIM_PODS,
    EventKind.SCALE,
)


class Names:
    """What is called what. A part that could not be read in full misses nobody."""

    def __init__(self, scenario: Scenario, path: str, problems: Iterable[Problem]) -> None:
        self.of: dict[str, list[str]] = {
            "topologies": [one.name for one in scenario.topologies],
            "nodes": [one.name for one in scenario.nodes],
            "flavors": [one.name for one in scenario.flavors],
            "cohorts": [one.name for one in scenario.cohorts],
            "cluster_queues": [one.name for one in scenario.queues],
            "local_queues": [one.name for one in scenario.doors],
            "workloads": [one.name for one in scenario.workloads],
        }
        start = len(path) + 1 if path else 0
        noted = [problem.path[start:] for problem in problems]
        self._unsure = {
            part
            for part in self.of
            if any(re.fullmatch(rf"{part}(\[\d+\](\.name)?)?", one) for one in noted)
        }

    def unknown(self, name: str | None, part: str, also: Collection[str] = ()) -> bool:
        """Return whether nothing of ``part`` has this name; "" and None name nothing."""
        return bool(name) and name not in also and not self._known(name or "", part)

    def _known(self, name: str, part: str) -> bool:
        return part in self._unsure or name in self.of[part]


def contradictions(scenario: Scenario, path: str, problems: Collection[Problem]) -> list[Problem]:
    """Return every problem with its path, below ``path``.

    ``problems`` are those of reading; what only follows from them is not told again.
    """
    names = Names(scenario, path, tuple(problems))
    found = (
        *_doubles(scenario, names),
        *_circles(scenario),
        *_strangers(scenario, names),
        *tables.contradictions(scenario, names.unknown),
        *_of_work(scenario, names),
        *_lost_events(scenario, names),
    )
    return [Problem(f"{path}.{one.path}" if path else one.path, one.message) for one in found]


def doubles(names: Sequence[str], path: str) -> Iterator[Problem]:
    """Yield the places of ``path`` (with ``{}`` for the place) whose name was there before."""
    seen = {""}
    for i, name in enumerate(names):
        if name and name in seen:
            yield Problem(path.format(i), f"{name!r} is there twice")
        seen.add(name)


def _doubles(scenario: Scenario, names: Names) -> Iterator[Problem]:
    for part, found in names.of.items():
        yield from doubles(found, f"{part}[{{}}].name")
    known = set(names.of["workloads"])
    for i, event in enumerate(scenario.events):
        if event.kind is EventKind.SUBMIT and event.name:
            if event.name in known:
                yield Problem(f"events[{i}].workload.name", f"{event.name!r} is there twice")
            known.add(event.name)
    for i, topology in enumerate(scenario.topologies):
        yield from doubles(topology.levels, f"topologies[{i}].levels[{{}}]")


def _circles(scenario: Scenario) -> Iterator[Problem]:
    circular = cohorts_in_cycles({cohort.name: cohort for cohort in scenario.cohorts})
    for i, cohort in enumerate(scenario.cohorts):
        if cohort.name in circular:
            yield Problem(f"cohorts[{i}].parent", "the cohort is above itself")


def _strangers(scenario: Scenario, names: Names) -> Iterator[Problem]:
    for i, door in enumerate(scenario.doors):
        if names.unknown(door.cluster_queue, "cluster_queues"):
            message = f"unknown cluster queue {door.cluster_queue!r}"
            yield Problem(f"local_queues[{i}].cluster_queue", message)
    for i, flavor in enumerate(scenario.flavors):
        if names.unknown(flavor.topology, "topologies"):
            yield Problem(f"flavors[{i}].topology", f"unknown topology {flavor.topology!r}")


def _of_work(scenario: Scenario, names: Names) -> Iterator[Problem]:
    for place, work in _all_work(scenario):
        if names.unknown(work.local_queue, "local_queues"):
            yield Problem(f"{place}.queue", f"unknown local queue {work.local_queue!r}")
        for found in holdings.contradictions(work, scenario, names.unknown):
            yield Problem(f"{place}.{found.path}", found.message)


def _all_work(scenario: Scenario) -> Iterator[tuple[str, Workload]]:
    for i, work in enumerate(scenario.workloads):
        yield f"workloads[{i}]", work
    for i, event in enumerate(scenario.events):
        if event.workload is not None:
            yield f"events[{i}].workload", event.workload


def _lost_events(scenario: Scenario, names: Names) -> Iterator[Problem]:
    """Yield the events that name a workload, queue or flavor that never exists."""
    later = {event.name for event in scenario.events if event.kind is EventKind.SUBMIT}
    sets = {work.name: {p.name for p in work.pod_sets} for _, work in _all_work(scenario)}
    for i, event in enumerate(scenario.events):
        if event.kind in _OF_WORK and names.unknown(event.name, "workloads", later):
            yield Problem(f"events[{i}].workload", f"unknown workload {event.name!r}")
        for name in sorted(event.pods.keys() - sets.get(event.name, event.pods.keys())):
            field = "counts" if event.kind is EventKind.SCALE else "pods"
            yield Problem(f"events[{i}].{field}.{name}", f"unknown pod set {name!r}")
        if _names_a_queue(event) and names.unknown(event.name, "cluster_queues"):
            yield Problem(f"events[{i}].cluster_queue", f"unknown cluster queue {event.name!r}")
        if event.of_cohort and names.unknown(event.name, "cohorts", _named_cohorts(scenario)):
            yield Problem(f"events[{i}].cohort", f"unknown cohort {event.name!r}")
        if event.column is not None and names.unknown(event.column.flavor, "flavors"):
            yield Problem(f"events[{i}].flavor", f"unknown flavor {event.column.flavor!r}")


def _named_cohorts(scenario: Scenario) -> set[str]:
    """Return the cohorts that exist because a queue or another cohort names them."""
    named = {queue.cohort for queue in scenario.queues}
    return {name for name in named | {c.parent for c in scenario.cohorts} if name}


def _names_a_queue(event: Event) -> bool:
    return event.kind in _OF_QUEUES and not event.of_cohort
