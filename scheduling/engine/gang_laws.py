"""What may never happen to gangs, in other words than those that decide.

Part of :mod:`scheduling.engine.invariants`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from scheduling.engine.plan import Evict, Grow, Plan, Shrink
from scheduling.engine.snapshot import Assignment, PodSet, Snapshot, Workload


def unmet(workload: Workload, pods: Mapping[str, int]) -> str:
    """Return which minimum so many pods of each role do not meet, or "" where all are met."""
    for pod_set in workload.pod_sets:
        has = pods.get(pod_set.name, 0)
        if wrong := _unmet_role(pod_set, has, alone=workload.min_member is None):
            return f"{has} of {pod_set.count} pods of {pod_set.name}, {wrong}"
    if workload.min_member is None:
        return ""
    least = min(workload.min_member, sum(p.count for p in workload.pod_sets))
    return "" if sum(pods.values()) >= least else f"{sum(pods.values())} of {least} pods"


def _unmet_role(pod_set: PodSet, has: int, *, alone: bool) -> str:
    parts, least = pod_set.subgroups, pod_set.role_minimum
    if has < min(least or 0, pod_set.count) or has > pod_set.count:
        return f"not {least} or more"
    if parts is not None and has < pod_set.count and has % parts.size:
        return f"not in parts of {parts.size}"
    if parts is not None and has < min(parts.minimum * parts.size, pod_set.count):
        return f"not {parts.minimum} parts or more"
    silent = least is None and not (parts and parts.minimum)
    return "not all" if alone and silent and has < pod_set.count else ""


def broken_gangs(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Yield where a plan leaves a gang below a minimum, or moves pods that run."""
    work = {w.key: w for w in snapshot.workloads}
    evicted = {d.workload for d in plan.decisions if isinstance(d, Evict)}
    times: Counter[str] = Counter()
    for decision in plan.decisions:
        if not isinstance(decision, Grow | Shrink):
            continue
        times[decision.workload] += 1
        gang = work.get(decision.workload)
        if gang is None or gang.admission is None or gang.releasing:
            yield f"{decision.workload} does not run, and changes"
        elif isinstance(decision, Grow):
            if gang.key in evicted or times[gang.key] > 1:
                yield f"{gang.key} grows and shrinks, or leaves"
            before = gang.admission.assignments
            yield from _grows(snapshot, gang, before, decision.assignments)
        elif gang.key not in evicted:
            yield from _shrinks(gang, plan)


def unlawful_release(snapshot: Snapshot, gang: Workload) -> Iterator[str]:
    """Yield where work is given up that has lost nothing, or has not waited long enough.

    Work of which nothing is left need not wait.
    """
    grace, now = snapshot.gang_grace_s, snapshot.now
    away = _absences(snapshot)
    places = [node for _, node in _places(gang.admission.assignments if gang.admission else ())]
    since = [away[node] for node in places if node in away and away[node] <= now]
    if not since:
        yield f"{gang.key} is given up, and lost nothing"
    elif not gang.mends:
        return
    elif len(since) < len(places) and (grace < 0 or now < min(since) + grace):
        yield f"{gang.key} is given up before its grace has passed"


def _absences(snapshot: Snapshot) -> dict[str, float]:
    """Return from when on the pods on each node that is away are lost."""
    nodes, grace = {n.name: n for n in snapshot.nodes}, snapshot.gang_grace_s
    worked_on = {
        node
        for work in snapshot.workloads
        for _, node in _places(work.admission.assignments if work.admission else ())
    }
    found = {}
    for name in worked_on:
        node = nodes.get(name)
        since = snapshot.memory.absent.get(name, snapshot.now)
        if node is None:
            found[name] = since
        elif not node.ready and grace >= 0:
            found[name] = since + grace
    return found


def _grows(
    snapshot: Snapshot,
    gang: Workload,
    before: tuple[Assignment, ...],
    after: tuple[Assignment, ...],
) -> Iterator[str]:
    had, has = _places(before), _places(after)
    away = _absences(snapshot)
    if any(has[place] < pods and place[1] not in away for place, pods in had.items()):
        yield f"pods of {gang.key} move"
    wrong = unmet(gang, {a.pod_set: a.count for a in after})
    if wrong:
        yield f"{gang.key} grows to {wrong}"


def _shrinks(gang: Workload, plan: Plan) -> Iterator[str]:
    assert gang.admission is not None
    left, counts = _places(gang.admission.assignments), Counter[str]()
    for one in gang.admission.assignments:
        counts[one.pod_set] += one.count
    for decision in plan.decisions:
        if isinstance(decision, Shrink) and decision.workload == gang.key:
            left.subtract(_places(decision.pods))
            counts.subtract({a.pod_set: a.count for a in decision.pods})
    if any(pods < 0 for pods in (*left.values(), *counts.values())):
        yield f"{gang.key} loses pods that it does not have"
    wrong = unmet(gang, counts)
    if wrong:
        yield f"{gang.key} is left with {wrong}"


def _places(assignments: tuple[Assignment, ...]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for assignment in assignments:
        for node, pods in assignment.nodes.items():
            found[assignment.pod_set, node] += pods
    return found
