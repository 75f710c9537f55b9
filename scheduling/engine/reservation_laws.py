"""What reservations must never do, in other words than those that make them.

Source: ``decisions.md`` 4.10. Part of :func:`scheduling.engine.invariants.violations`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from scheduling.engine.machines import PODS, PODS_PER_NODE, Node
from scheduling.engine.plan import Admit, Evict, Grow, Plan, Shrink
from scheduling.engine.snapshot import Admission, Assignment, Reservation, Snapshot, Workload
from scheduling.engine.standing import standing
from scheduling.engine.usage import charged, paired, pod_footprint

Load = Counter[Any]  # by resource, or by column of quota


def broken_reservations(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Yield a sentence for each broken law."""
    yield from _turns(snapshot, plan)
    before = {one.workload: one for one in snapshot.memory.reservations}
    for one in plan.memory.reservations:
        known = before.get(one.workload)
        if known is not None and known.since == one.since < snapshot.now:
            yield from _room(snapshot, plan, one)


def _turns(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """In one tree and one pool of nodes, room is reserved for one gang, and it waits."""
    work = {w.key: w for w in snapshot.workloads}
    admitted = {d.workload for d in plan.decisions if isinstance(d, Admit)}
    turns = Counter[tuple[str, str]]()
    for one in plan.memory.reservations:
        gang = work[one.workload]
        if gang.admission is not None or gang.key in admitted:
            yield f"{gang.key} runs, and room is reserved for it"
        pools = {f for a in one.assignments if a.nodes for f in a.flavors.values()}
        root = _root(snapshot, gang)
        turns.update((root, pool) for pool in pools if _has_nodes(snapshot, pool))
    for (root, pool), times in sorted(turns.items()):
        if times > 1:
            yield f"room of {pool} is reserved for {times} gangs of {root}"


def _root(snapshot: Snapshot, gang: Workload) -> str:
    name, seen = snapshot.cluster_queues[gang.queue or ""].cohort, set[str]()
    top = f"queue {gang.queue}"
    while name is not None and name not in seen:
        seen.add(name)
        top, spec = f"cohort {name}", snapshot.cohorts.get(name)
        name = spec.parent if spec else None
    return top


def _has_nodes(snapshot: Snapshot, flavor: str) -> bool:
    wanted = snapshot.flavors[flavor].node_labels.items()
    return any(wanted <= node.labels.items() for node in snapshot.nodes)


def _room(snapshot: Snapshot, plan: Plan, one: Reservation) -> Iterator[str]:
    """Who starts behind a reservation leaves its nodes the room that its gang needs then.

    Grown copies are left out: what they take over stood there before.
    """
    work = {w.key: w for w in snapshot.workloads}
    admits = [d for d in plan.decisions if isinstance(d, Admit)]
    bound = [
        replace(work[d.workload], admission=Admission(snapshot.now, d.assignments))
        for d in admits
        if not d.replaces
        and waits_behind(snapshot, work[d.workload], one)
        and not _may_own(snapshot, plan, d, one)
    ]
    leaving = {d.workload for d in plan.decisions if isinstance(d, Evict)}
    stays = [w for w in snapshot.workloads if w.key not in leaving and _stays(snapshot, w, one)]
    theirs = {name for w in bound for a in standing(w) for name in a.nodes}
    own = {name for a in one.assignments for name in a.nodes}
    for node in snapshot.nodes:
        if node.name in theirs & own:
            taken = Load()
            for held in bound:
                taken.update(_load(held, standing(held), node))
            load = taken + Load(node.unmanaged)
            for held in stays:
                load.update(_load(held, standing(held), node))
            load.update(_load(work[one.workload], one.assignments, node))
            if _oversold(node, {resource: load[resource] for resource in +taken}):
                yield f"{node.name} has no room left for {one.workload}, to which it is promised"


def waits_behind(snapshot: Snapshot, work: Workload, one: Reservation) -> bool:
    """Return whether a reservation binds the work."""
    if work.key in {claim.workload for claim in snapshot.memory.claims}:
        return False  # its room was no longer free when this was reserved
    gang = next(w for w in snapshot.workloads if w.key == one.workload)
    if work.priority > gang.priority:
        return False
    older = (work.created_at, work.key) < (gang.created_at, gang.key)
    if older and work.priority == gang.priority:
        waited = snapshot.now - work.created_at
        if waited >= snapshot.patience.elders_after_s:
            return False
    known = one.promised and work.duration_s is not None
    return not (known and snapshot.now + (work.duration_s or 0.0) <= one.starts_at)


def _may_own(snapshot: Snapshot, plan: Plan, start: Admit, one: Reservation) -> bool:
    """Return whether a start within its queue's own quota may go before a gang beyond its own.

    Judged by the flavors of the gang. In the order of the plan, work of the one queue may have
    left before it, and work of the other have started or grown: so what each holds is told to
    the advantage of who starts.
    """
    work = {w.key: w for w in snapshot.workloads}
    starts, gang = work[start.workload], work[one.workload]
    if starts.queue == gang.queue or starts.queue is None:
        return False
    less = {d.workload for d in plan.decisions if isinstance(d, Evict | Shrink)}
    more = [d for d in plan.decisions if isinstance(d, Admit | Grow)]
    owns = Load(charged(starts, start.assignments))
    needs = Load(charged(gang, one.assignments))
    for held in snapshot.workloads:
        if held.admission is None or held.releasing:
            continue
        if held.queue == starts.queue and held.key not in less:
            owns.update(charged(held, standing(held)))
        if held.queue == gang.queue:
            needs.update(charged(held, standing(held)))
    for decision in more:
        if work[decision.workload].queue == gang.queue:
            needs.update(charged(work[decision.workload], decision.assignments))
    flavors = {flavor for a in one.assignments for flavor in a.flavors.values()}
    same = Load({fr: amount for fr, amount in owns.items() if fr.flavor in flavors})
    return _within(snapshot, starts, same) and not _within(snapshot, gang, needs)


def _within(snapshot: Snapshot, work: Workload, load: Load) -> bool:
    quotas = snapshot.cluster_queues[work.queue or ""].quotas
    return all(n <= quotas[fr].nominal for fr, n in load.items() if fr in quotas)


def _stays(snapshot: Snapshot, work: Workload, one: Reservation) -> bool:
    """Return whether running work is not known to have ended when the gang starts."""
    if work.admission is None or work.releasing:
        return False
    if work.duration_s is None:
        return True
    ends = work.admission.admitted_at + work.duration_s
    return not snapshot.now < ends <= one.starts_at


def _load(work: Workload, assignments: tuple[Assignment, ...], node: Node) -> Load:
    load = Load()
    for pod_set, assignment in paired(work, assignments):
        for resource, amount in pod_footprint(pod_set).items():
            load[resource] += amount * assignment.nodes.get(node.name, 0)
    return load


def _oversold(node: Node, load: Mapping[str, int]) -> bool:
    whole = {PODS: PODS_PER_NODE, **node.allocatable}
    return any(amount > whole.get(resource, 0) for resource, amount in load.items() if amount)
