"""Reading what happens: work that arrives and may end by itself, and events of every kind."""

from collections.abc import Callable
from dataclasses import replace

from scheduling.engine.scenario.fields import Fields
from scheduling.engine.scenario.parts import (
    read_node,
    read_priority,
    read_quota,
    read_workload,
)
from scheduling.engine.scenario.script import Event, EventKind
from scheduling.engine.snapshot import FlavorResource, Workload
from scheduling.engine.terms import StopPolicy

Queues = dict[str, str]  # cluster queue of each local queue
Durations = dict[str, float]  # seconds by workload


def read_job(fields: Fields, queues: Queues, durations: Durations) -> Workload:
    """Return a workload; note in ``durations`` after how many seconds it ends by itself."""
    duration = fields.number("expected_duration_s", None, least=0)
    workload = read_workload(fields, queues)
    if duration is not None:
        durations[workload.key] = duration
        workload = replace(workload, duration_s=duration)
    return workload


def read_event(fields: Fields, queues: Queues, durations: Durations) -> Event:
    """Return one event; the fields that its kind has not are unknown."""
    at, kind = fields.integer("at_cycle", least=1), fields.text("type")
    if kind == EventKind.SUBMIT:
        event = _submit(fields, queues, durations)
    elif kind in _READERS:
        event = _READERS[kind](fields)
    else:
        if kind:
            fields.problem(f"must be one of {', '.join(EventKind)}", "type")
        return Event(at, EventKind.ADVANCE_CLOCK)
    fields.done()
    return replace(event, at_cycle=at, kind=EventKind(kind))


def _submit(fields: Fields, queues: Queues, durations: Durations) -> Event:
    workload = read_job(fields.object("workload"), queues, durations)
    if workload.admission is not None:
        fields.problem("nobody arrives running", "workload.admission")
    return Event(name=workload.name, workload=workload)


def _end(fields: Fields) -> Event:
    return Event(name=fields.name("workload"))


def _set_priority(fields: Fields) -> Event:
    return Event(name=fields.name("workload"), priority=read_priority(fields))


def _set_quota(fields: Fields) -> Event:
    of_cohort = fields.has("cohort")
    return Event(
        name=fields.name("cohort" if of_cohort else "cluster_queue"),
        of_cohort=of_cohort,
        column=FlavorResource(fields.name("flavor"), fields.name("resource")),
        quota=read_quota(fields),
    )


def _set_stop_policy(fields: Fields) -> Event:
    policy = fields.choice("stop_policy", StopPolicy, StopPolicy.NONE)
    return Event(name=fields.name("cluster_queue"), stop_policy=policy)


def _set_node(fields: Fields) -> Event:
    return Event(node=read_node(fields.object("node")))


def _advance_clock(fields: Fields) -> Event:
    return Event(seconds=fields.number("seconds", least=0))


def _checkpoint(fields: Fields) -> Event:
    return Event(name=fields.name("workload"), seconds=fields.number("at"))


def _reclaim_pods(fields: Fields) -> Event:
    return Event(name=fields.name("workload"), pods=fields.amounts("pods"))


def _scale(fields: Fields) -> Event:
    return Event(name=fields.name("workload"), pods=fields.amounts("counts"))


_READERS: dict[str, Callable[[Fields], Event]] = {
    EventKind.FINISH: _end,
    EventKind.DELETE: _end,
    EventKind.SET_PRIORITY: _set_priority,
    EventKind.SET_QUOTA: _set_quota,
    EventKind.SET_STOP_POLICY: _set_stop_policy,
    EventKind.SET_NODE: _set_node,
    EventKind.ADVANCE_CLOCK: _advance_clock,
    EventKind.CHECKPOINT: _checkpoint,
    EventKind.RECLAIM_PODS: _reclaim_pods,
    EventKind.SCALE: _scale,
}
