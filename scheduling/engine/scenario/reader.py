"""Reading whole scenarios: strict, with all problems listed by path."""

from dataclasses import replace
from typing import Any

from scheduling.engine.patience import ELDERS, PATIENT, STARVATION_S, Patience
from scheduling.engine.scenario.contradictions import contradictions
from scheduling.engine.scenario.fields import BadScenario, Fields, Problem
from scheduling.engine.scenario.happenings import read_event, read_job
from scheduling.engine.scenario.parts import (
    read_cohort,
    read_flavor,
    read_node,
    read_queue,
    read_topology,
)
from scheduling.engine.scenario.script import Decay, Door, Event, Scenario
from scheduling.engine.scenario.transforming import read_transformations, transformed
from scheduling.engine.snapshot import HALF_LIFE_S
from scheduling.engine.terms import FairStrategy
from scheduling.engine.transformations import Table

MOST_CYCLES = 1_000_000


def read_scenario(value: Any, path: str = "") -> Scenario:
    """Return the scenario. Raises BadScenario with all problems by path."""
    problems: list[Problem] = []
    fields = Fields(value, path, problems)
    scenario = _read(fields)
    fields.done()
    problems += contradictions(scenario, path, problems)
    if problems:
        raise BadScenario(problems)
    return scenario


def _read(fields: Fields) -> Scenario:
    fields.text("theme", "")
    fields.text("why", "")
    settings = fields.object("settings")
    doors = tuple(_door(one) for one in fields.objects("local_queues"))
    queues = {door.name: door.cluster_queue for door in doors}
    durations: dict[str, float] = {}
    rules = read_transformations(settings)
    scenario = Scenario(
        id=fields.name("id"),
        strategies=_strategies(settings.object("fair_sharing")),
        decay=_decay(settings) if settings.has("admission_fair_sharing") else None,
        start_at=settings.number("start_at", 100_000.0),
        cycle_seconds=settings.number("cycle_seconds", 10.0, least=0),
        max_cycles=settings.integer("max_cycles", 60, least=1, most=MOST_CYCLES),
        half_life_s=settings.number("half_life_seconds", HALF_LIFE_S, least=0),
        topologies=tuple(read_topology(one) for one in fields.objects("topologies")),
        nodes=tuple(read_node(one) for one in fields.objects("nodes")),
        flavors=tuple(read_flavor(one) for one in fields.objects("flavors")),
        cohorts=tuple(read_cohort(one) for one in fields.objects("cohorts")),
        queues=tuple(read_queue(one) for one in fields.objects("cluster_queues")),
        doors=doors,
        workloads=tuple(
            transformed(read_job(one, queues, durations), rules)
            for one in fields.objects("workloads")
        ),
        events=tuple(
            _transformed(read_event(one, queues, durations), rules)
            for one in fields.objects("events")
        ),
        durations=durations,
        patience=_patience(settings),
        expected=fields.raw("expected"),
    )
    settings.done()
    return scenario


def _transformed(event: Event, rules: Table) -> Event:
    if event.workload is None:
        return event
    return replace(event, workload=transformed(event.workload, rules))


def _strategies(fields: Fields) -> tuple[FairStrategy, ...]:
    enabled, names = fields.flag("enabled", default=False), fields.texts("preemption_strategies")
    fields.done()
    for name in names:
        if name not in set(FairStrategy):
            fields.problem(f"unknown strategy {name!r}", "preemption_strategies")
            return ()
    chosen = tuple(FairStrategy(name) for name in names) or tuple(FairStrategy)
    return chosen if enabled else ()


def _patience(settings: Fields) -> Patience:
    after_s = settings.number("starvation_timeout_s", STARVATION_S, least=0)
    least = settings.integer("reservation_minimum", PATIENT.minimum, least=1)
    return Patience(after_s, least, ELDERS * after_s)


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
    name, queue = fields.name("name"), fields.name("cluster_queue")
    door = Door(name, queue, fields.number("fair_weight", 1.0), fields.numbers("consumed"))
    fields.done()
    return door
