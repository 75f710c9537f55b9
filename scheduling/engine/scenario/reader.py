"""Reading whole scenarios: strict, with all problems listed by path."""

from typing import Any

from scheduling.engine.scenario.contradictions import contradictions
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
from scheduling.engine.scenario.script import Decay, Door, Event, EventKind, Scenario
from scheduling.engine.snapshot import FlavorResource
from scheduling.engine.terms import FairStrategy, StopPolicy


def read_scenario(value: Any, path: str = "") -> Scenario:
    """Return the scenario. Raises BadScenario with all problems by path."""
    problems: list[Problem] = []
    fields = Fields(value, path, problems)
    scenario = _read(fields)
    fields.done()
    if not problems:
        problems.extend(contradictions(scenario, path))
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
        cycle_seconds=settings.number("cycle_seconds", 10.0, least=0),
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
        fields.number("usage_half_life_seconds", least=0),
        fields.number("usage_sampling_interval_seconds", 300.0, least=0),
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
            event = Event(at, kind, seconds=fields.number("seconds", least=0))
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
