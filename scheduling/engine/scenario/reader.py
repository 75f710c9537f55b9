"""Reading whole scenarios: strict, with all problems listed by path."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from scheduling.engine.quota import cohorts_in_cycles
from scheduling.engine.scenario.fields import BadScenario, Fields, Problem
from scheduling.engine.scenario.parts import (
    read_cohort,
    read_flavor,
    read_node,
    read_queue,
    read_quota,
    read_topology,
    read_workload,
)
from scheduling.engine.snapshot import (
    NOTHING,
    ClusterQueue,
    Cohort,
    Flavor,
    FlavorResource,
    Node,
    Quota,
    Topology,
    Workload,
)
from scheduling.engine.terms import FairStrategy, StopPolicy


class EventKind(StrEnum):
    """What may happen between two cycles."""

    FINISH = "finish"
    DELETE = "delete"
    SUBMIT = "submit"
    SET_PRIORITY = "set_priority"
    SET_QUOTA = "set_quota"
    SET_STOP_POLICY = "set_stop_policy"
    SET_NODE = "set_node"
    ADVANCE_CLOCK = "advance_clock"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happens before a cycle; the fields of its kind are filled."""

    at_cycle: int
    kind: EventKind
    name: str = ""  # of a workload, cluster queue or cohort
    workload: Workload | None = None
    priority: int = 0
    of_cohort: bool = False
    column: FlavorResource | None = None
    quota: Quota = NOTHING
    stop_policy: StopPolicy = StopPolicy.NONE
    node: Node | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Door:
    """A local queue: weight and starting consumption in canonical units."""

    name: str
    cluster_queue: str
    fair_weight: float
    consumed: dict[str, float]


@dataclass(frozen=True, slots=True)
class Decay:
    """How usage is remembered (``FORMAT.md`` 9)."""

    half_life_seconds: float
    sampling_seconds: float
    weights: dict[str, float]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A platform, its work, what happens later, and what is expected (None: nothing)."""

    id: str
    strategies: tuple[FairStrategy, ...]
    decay: Decay | None
    start_at: float
    cycle_seconds: float
    max_cycles: int
    topologies: tuple[Topology, ...]
    nodes: tuple[Node, ...]
    flavors: tuple[Flavor, ...]
    cohorts: tuple[Cohort, ...]
    queues: tuple[ClusterQueue, ...]
    doors: tuple[Door, ...]
    workloads: tuple[Workload, ...]
    events: tuple[Event, ...]
    expected: Any = None


def read_scenario(value: Any, path: str = "") -> Scenario:
    """Return the scenario. Raises BadScenario with all problems by path."""
    problems: list[Problem] = []
    fields = Fields(value, path, problems)
    scenario = _read(fields)
    fields.done()
    if not problems:
        problems.extend(_contradictions(scenario, fields))
    if problems:
        raise BadScenario(problems)
    return scenario


def _read(fields: Fields) -> Scenario:
    fields.text("theme", "")
    fields.text("why", "")
    settings = fields.object("settings")
    doors = tuple(_door(one) for one in fields.objects("local_queues"))
    queues = {door.name: door.cluster_queue for door in doors}
    scenario = Scenario(
        id=fields.text("id"),
        strategies=_strategies(settings.object("fair_sharing")),
        decay=_decay(settings) if settings.has("admission_fair_sharing") else None,
        start_at=settings.number("start_at", 100_000.0),
        cycle_seconds=settings.number("cycle_seconds", 10.0),
        max_cycles=settings.integer("max_cycles", 60, least=1),
        topologies=tuple(read_topology(one) for one in fields.objects("topologies")),
        nodes=tuple(read_node(one) for one in fields.objects("nodes")),
        flavors=tuple(read_flavor(one) for one in fields.objects("flavors")),
        cohorts=tuple(read_cohort(one) for one in fields.objects("cohorts")),
        queues=tuple(read_queue(one) for one in fields.objects("cluster_queues")),
        doors=doors,
        workloads=tuple(read_workload(one, queues) for one in fields.objects("workloads")),
        events=tuple(_event(one, queues) for one in fields.objects("events")),
        expected=fields.raw("expected"),
    )
    settings.done()
    return scenario


def _strategies(fields: Fields) -> tuple[FairStrategy, ...]:
    enabled, names = fields.flag("enabled", default=False), fields.texts("preemption_strategies")
    fields.done()
    for name in names:
        if name not in set(FairStrategy):
            fields.problem(f"unknown strategy {name!r}", "preemption_strategies")
            return ()
    chosen = tuple(FairStrategy(name) for name in names) or tuple(FairStrategy)
    return chosen if enabled else ()


def _decay(settings: Fields) -> Decay:
    fields = settings.object("admission_fair_sharing")
    decay = Decay(
        fields.number("usage_half_life_seconds"),
        fields.number("usage_sampling_interval_seconds", 300.0),
        fields.numbers("resource_weights"),
    )
    fields.done()
    return decay


def _door(fields: Fields) -> Door:
    name, queue = fields.text("name"), fields.text("cluster_queue")
    door = Door(name, queue, fields.number("fair_weight", 1.0), fields.numbers("consumed"))
    fields.done()
    return door


def _event(fields: Fields, queues: dict[str, str]) -> Event:
    at = fields.integer("at_cycle", least=1)
    kind = fields.choice("type", EventKind, EventKind.FINISH)
    event = Event(at, kind)
    match kind:
        case EventKind.SUBMIT:
            workload = read_workload(fields.object("workload"), queues)
            event = Event(at, kind, name=workload.name, workload=workload)
        case EventKind.FINISH | EventKind.DELETE:
            event = Event(at, kind, name=fields.text("workload"))
        case EventKind.SET_PRIORITY:
            priority = fields.integer("priority", least=-(2**31))
            event = Event(at, kind, name=fields.text("workload"), priority=priority)
        case EventKind.SET_QUOTA:
            event = _quota_event(fields, at)
        case EventKind.SET_STOP_POLICY:
            policy = fields.choice("stop_policy", StopPolicy, StopPolicy.NONE)
            event = Event(at, kind, name=fields.text("cluster_queue"), stop_policy=policy)
        case EventKind.SET_NODE:
            event = Event(at, kind, node=read_node(fields.object("node")))
        case EventKind.ADVANCE_CLOCK:
            event = Event(at, kind, seconds=fields.number("seconds"))
    fields.done()
    return event


def _quota_event(fields: Fields, at: int) -> Event:
    of_cohort = fields.has("cohort")
    return Event(
        at,
        EventKind.SET_QUOTA,
        name=fields.text("cohort" if of_cohort else "cluster_queue"),
        of_cohort=of_cohort,
        column=FlavorResource(fields.text("flavor"), fields.text("resource")),
        quota=read_quota(fields),
    )


def _contradictions(scenario: Scenario, fields: Fields) -> Iterable[Problem]:
    """Yield what is wrong between the parts: names that are double, unknown or in a circle."""
    at = fields.at
    names = {
        "topologies": [one.name for one in scenario.topologies],
        "nodes": [one.name for one in scenario.nodes],
        "flavors": [one.name for one in scenario.flavors],
        "cohorts": [one.name for one in scenario.cohorts],
        "cluster_queues": [one.name for one in scenario.queues],
        "local_queues": [one.name for one in scenario.doors],
        "workloads": [one.name for one in scenario.workloads],
    }
    for part, found in names.items():
        for i, name in enumerate(found):
            if name in found[:i]:
                yield Problem(at(f"{part}[{i}].name"), f"{name!r} is there twice")
    circular = cohorts_in_cycles({cohort.name: cohort for cohort in scenario.cohorts})
    for i, cohort in enumerate(scenario.cohorts):
        if cohort.name in circular:
            yield Problem(at(f"cohorts[{i}].parent"), "the cohort is above itself")
    for i, door in enumerate(scenario.doors):
        if door.cluster_queue not in names["cluster_queues"]:
            message = f"unknown cluster queue {door.cluster_queue!r}"
            yield Problem(at(f"local_queues[{i}].cluster_queue"), message)
    yield from _unknown_flavors(scenario, at("cluster_queues"), at("cohorts"))
    for i, flavor in enumerate(scenario.flavors):
        if flavor.topology is not None and flavor.topology not in names["topologies"]:
            yield Problem(at(f"flavors[{i}].topology"), f"unknown topology {flavor.topology!r}")
    yield from _lost_events(scenario, at("events"))


def _unknown_flavors(scenario: Scenario, queues: str, cohorts: str) -> Iterable[Problem]:
    known = {flavor.name for flavor in scenario.flavors}
    for i, queue in enumerate(scenario.queues):
        for j, group in enumerate(queue.groups):
            for k, flavor in enumerate(group.flavors):
                if flavor.flavor not in known:
                    path = f"{queues}[{i}].resource_groups[{j}].flavors[{k}].name"
                    yield Problem(path, f"unknown flavor {flavor.flavor!r}")
    for i, cohort in enumerate(scenario.cohorts):
        for flavor_name in sorted({fr.flavor for fr in cohort.quotas} - known):
            yield Problem(f"{cohorts}[{i}].resource_groups", f"unknown flavor {flavor_name!r}")


def _lost_events(scenario: Scenario, path: str) -> Iterable[Problem]:
    """Yield the events that name a workload, queue or cohort that never exists."""
    workloads = {w.name for w in scenario.workloads}
    workloads |= {e.name for e in scenario.events if e.kind is EventKind.SUBMIT}
    queues = {queue.name for queue in scenario.queues}
    of_work = (EventKind.FINISH, EventKind.DELETE, EventKind.SET_PRIORITY)
    for i, event in enumerate(scenario.events):
        if event.kind in of_work and event.name not in workloads:
            yield Problem(f"{path}[{i}].workload", f"unknown workload {event.name!r}")
        of_queue = event.kind in (EventKind.SET_QUOTA, EventKind.SET_STOP_POLICY)
        if of_queue and not event.of_cohort and event.name not in queues:
            yield Problem(f"{path}[{i}].cluster_queue", f"unknown cluster queue {event.name!r}")
