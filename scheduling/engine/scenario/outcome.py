"""What a run shows, in the shape of ``expected`` (``FORMAT.md`` 2)."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scheduling.engine.kueue.picture import offers
from scheduling.engine.kueue.rooms import HOSTS
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.scenario.world import NOT_CONSIDERED, Verdict, World
from scheduling.engine.shares import Shares
from scheduling.engine.snapshot import Assignment
from scheduling.engine.tree import QuotaKey, queue_key

if TYPE_CHECKING:
    from scheduling.engine.scenario.loop import Record

_DIGITS = 6


def cycle(number: int, record: "Record", world: World) -> dict[str, Any]:
    """Return one entry of ``cycles``; lists that would be empty are left out."""
    preempting = {preemptor for preemptor, _ in record.preemptions}
    parts = {
        "admitted": [
            {
                "workload": key,
                "cluster_queue": world.workloads[key].queue,
                "borrows": borrows,
                "pod_sets": [_pod_set(world, assignment) for assignment in assignments],
            }
            for key, assignments, borrows in record.admitted
        ],
        "preemptions": [
            {
                "preemptor": preemptor,
                "victims": [{"workload": name, "reason": reason} for name, reason in victims],
            }
            for preemptor, victims in record.preemptions
        ],
        "not_admitted": [
            {"workload": key, **_verdict(verdict)}
            for key, verdict in record.held
            if key not in preempting
        ],
        "order": record.order,
    }
    return {"cycle": number, **{name: part for name, part in parts.items() if part}}


def _verdict(verdict: Verdict) -> dict[str, str]:
    outcome, reason = verdict
    return {"outcome": outcome, "reason": reason} if reason else {"outcome": outcome}


def _pod_set(world: World, assignment: Assignment) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": assignment.pod_set,
        "count": assignment.count,
        "flavors": dict(sorted(assignment.flavors.items())),
    }
    if assignment.nodes:
        shown["topology"] = _topology(world, assignment)
    return shown


def _topology(world: World, assignment: Assignment) -> dict[str, Any]:
    """Return the lowest domains with pods; hosts by name alone, others by their whole path."""
    levels = _levels(world, assignment)
    paths = ((name.split("/") if len(levels) > 1 else [name]) for name in assignment.nodes)
    domains = zip(paths, assignment.nodes.values(), strict=True)
    return {
        "levels": list(levels),
        "domains": [{"values": values, "count": n} for values, n in sorted(domains)],
    }


def _levels(world: World, assignment: Assignment) -> tuple[str, ...]:
    topologies = {topology.name: topology for topology in world.scenario.topologies}
    for flavor in world.scenario.flavors:
        topology = topologies.get(flavor.topology or "")
        if flavor.name in assignment.flavors.values() and topology is not None:
            return topology.levels[-1:] if topology.levels[-1] in HOSTS else topology.levels
    return HOSTS[:1]


def local_queue_usage(world: World) -> dict[str, float]:
    """Return the compared consumption of the local queues of usage-based queues, if finite."""
    if world.scenario.decay is None:
        return {}
    figures = {
        door.name: world.figure(door.name)
        for door in world.scenario.doors
        if world.queues[door.cluster_queue].usage_based
    }
    return {name: round(n, _DIGITS) for name, n in figures.items() if math.isfinite(n)}


def whole(
    world: World,
    cycles: list[dict[str, Any]],
    usages: Mapping[str, float],
    *,
    quiescent: bool,
) -> dict[str, Any]:
    """Return the outcome of a run."""
    ledger = world.ledger()
    waiting = [work for work in world.workloads.values() if work.admission is None]
    final: dict[str, Any] = {
        "admitted": sorted(w.name for w in world.workloads.values() if w.admission is not None),
        "finished": sorted(world.finished),
        "pending": {
            work.name: _verdict(world.verdicts.get(work.key, NOT_CONSIDERED))
            for work in sorted(waiting, key=lambda work: work.name)
        },
        "usage": {
            name: _table(ledger, queue_key(name))
            for name, queue in sorted(world.queues.items())
            if offers(queue)
        },
        "cohort_usage": _cohort_usage(world, ledger),
        "fair_shares": _fair_shares(world, ledger),
        "local_queue_usage": dict(usages) if cycles else {},
    }
    optional = ("finished", "cohort_usage", "fair_shares", "local_queue_usage")
    final = {name: part for name, part in final.items() if part or name not in optional}
    last = cycles[-1]["cycle"] if cycles else 0
    return {"cycles": cycles, "quiescent": quiescent, "last_cycle": last, "final": final}


def _table(ledger: QuotaLedger, key: QuotaKey) -> dict[str, dict[str, int]]:
    table: dict[str, dict[str, int]] = {}
    for fr in sorted(ledger.columns()):
        used = ledger.used(key, fr)
        if used:
            table.setdefault(fr.flavor, {})[fr.resource] = used
    return table


def _cohort_usage(world: World, ledger: QuotaLedger) -> dict[str, Any]:
    return {key.name: _table(ledger, key) for key in _cohorts(world, ledger)}


def _open(world: World) -> list[QuotaKey]:
    return [queue_key(name) for name, queue in world.queues.items() if offers(queue)]


def _cohorts(world: World, ledger: QuotaLedger) -> list[QuotaKey]:
    """Return the cohorts with an open queue somewhere below."""
    return sorted({above for key in _open(world) for above in ledger.path(key)[1:]})


def _fair_shares(world: World, ledger: QuotaLedger) -> dict[str, float | str]:
    if not world.scenario.strategies:
        return {}
    shares = Shares(world.snapshot(), ledger)
    shown = [*_open(world), *_cohorts(world, ledger)]
    return {
        key.name: _number(shares.of(key).value)
        for key in sorted(shown, key=lambda key: key.name)
        if ledger.nodes[key].parent is not None
    }


def _number(value: float) -> float | str:
    return "inf" if math.isinf(value) else round(value, _DIGITS)
