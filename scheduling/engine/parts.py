"""A running gang in parts: what makes it run, and each piece of surplus that may be taken alone.

The parts are work like any other to whoever looks for victims: they use quota and nodes, cost
something, and are put back one by one. Together they hold exactly what the gang holds.
Source: ``placement.md`` 1.8 (SAFE before WHOLE bundles).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from scheduling.engine.gangs import (
    counted,
    joined,
    may_lack_pods,
    minima,
    slice_size,
    together_size,
    without,
)
from scheduling.engine.journal import Journal
from scheduling.engine.snapshot import Admission, Assignment, PodSet, Workload
from scheduling.engine.standing import in_turn, standing

TAKEN, WENT_ALONG = 1, 2

DomainsOf = Callable[[PodSet, Assignment], Mapping[str, object]]


def leaving_key(key: str) -> str:
    """Return the key of those pods of a running gang that are on their way out."""
    return f"{key}~leaving"


def nowhere(pod_set: PodSet, assignment: Assignment) -> Mapping[str, object]:  # noqa: ARG001
    """Say of no node in which domain it lies."""
    return {}


def split(
    workload: Workload, domains_of: DomainsOf = nowhere, first: Sequence[str] = ()
) -> tuple[Workload, ...]:
    """Return what a running gang cannot do without, under its own key, and its surplus.

    Work that is no gang with a minimum, or has no surplus, is one part: itself. Surplus comes by
    pods, or by whole subgroups and slices, those in front whose nodes come free first. Pods that
    have finished are never surplus: nobody knows on which nodes they were.

    Args:
        workload: a running gang.
        domains_of: in which domain of its slices' level each node of a role lies. Where that is
            not known of all of them, or some slice is not whole, none of the role is surplus.
        first: nodes whose pods are surplus before others, in order.
    """
    if workload.admission is None or not may_lack_pods(workload):
        return (workload,)
    held = standing(replace(workload, reclaimable={}))
    kept = minima(workload, {a.pod_set: a.count for a in held})
    pod_sets = {pod_set.name: pod_set for pod_set in workload.pod_sets}
    surplus: list[Assignment] = []
    for a in held:
        if a.pod_set in pod_sets:
            role, done = pod_sets[a.pod_set], workload.reclaimable.get(a.pod_set, 0)
            turns = turns_of(role, a, domains_of, first)
            surplus += _pieces(a, role, max(kept[a.pod_set], done), turns)
    if not surplus:
        return (workload,)
    return _core(workload, held, surplus), *_surplus(workload, surplus)


def turns_of(
    pod_set: PodSet, assignment: Assignment, domains_of: DomainsOf, first: Sequence[str] = ()
) -> list[str] | None:
    """Return the node of each pod of a role, who leaves first in front; whole slices in turn.

    None where slices are not known to be whole.
    """
    nodes, size = assignment.nodes, slice_size(pod_set)
    ahead = {node: nodes[node] for node in first if node in nodes}
    rest = {node: pods for node, pods in nodes.items() if node not in ahead}
    turns = [node for node, pods in ahead.items() for _ in range(pods)]
    turns += in_turn(rest)
    return turns if size == 1 else _by_slices(turns, domains_of(pod_set, assignment), size)


def kept_in_slices(
    pod_set: PodSet, assignment: Assignment, pods: int, domains_of: DomainsOf
) -> dict[str, int] | None:
    """Return where ``pods`` of a role stay when the others leave by whole slices.

    None where the role has no slices, or they are not known to be whole.
    """
    turns = turns_of(pod_set, assignment, domains_of) if slice_size(pod_set) > 1 else None
    if turns is None:
        return None
    left = Counter(turns[max(0, assignment.count - pods) :])
    return dict(sorted(left.items()))


def _by_slices(turns: Sequence[str], lies_in: Mapping[str, object], size: int) -> list[str] | None:
    """Return the pods domain by domain, that of whoever leaves first in front."""
    domains: dict[object, list[str]] = {}
    for node in turns:
        if node not in lies_in:
            return None
        domains.setdefault(lies_in[node], []).append(node)
    if any(len(pods) % size for pods in domains.values()):
        return None
    return [node for pods in domains.values() for node in pods]


def _pieces(
    assignment: Assignment, pod_set: PodSet, kept: int, turns: Sequence[str] | None
) -> Iterator[Assignment]:
    """Yield the surplus of one role, piece by piece, who leaves first in front."""
    if turns is None:
        return
    left, gone = dict(assignment.nodes), 0
    for size in _sizes(pod_set, kept, assignment.count):
        nodes = Counter(turns[gone : gone + size])
        gone += size
        yield replace(
            assignment,
            count=size,
            nodes=dict(sorted(nodes.items())),
            devices=_devices(assignment, left, nodes),
        )
        left = {node: pods - nodes.get(node, 0) for node, pods in left.items()} if nodes else left


def on_nodes(assignment: Assignment, names: Collection[str]) -> Assignment | None:
    """Return the pods of an assignment that stand on these nodes; None where there are none."""
    nodes = {node: pods for node, pods in assignment.nodes.items() if node in names}
    if not nodes:
        return None
    devices = {node: each for node, each in assignment.devices.items() if node in names}
    return replace(assignment, count=sum(nodes.values()), nodes=nodes, devices=devices)


def with_pods(assignment: Assignment, pods: int) -> Assignment:
    """Return so many pods of an assignment, those that leave first."""
    nodes = Counter(islice(in_turn(assignment.nodes), pods if assignment.nodes else 0))
    return replace(
        assignment,
        count=pods,
        nodes=dict(sorted(nodes.items())),
        devices=_devices(assignment, assignment.nodes, nodes),
    )


def _sizes(pod_set: PodSet, kept: int, count: int) -> list[int]:
    """Return the sizes of the pieces above ``kept``, the last one to come in front.

    A subgroup or slice that has begun stays whole. What is left behind the last whole one goes
    with it: else it could stay alone, and no count of pods would tell.
    """
    size = together_size(pod_set)
    starts = range(-(-kept // size) * size, count, size)
    sizes = [min(size, count - start) for start in reversed(starts)]
    if len(sizes) > 1 and sizes[0] < size:
        return [sizes[0] + sizes[1], *sizes[2:]]
    return sizes


def _devices(
    assignment: Assignment, left: Mapping[str, int], going: Mapping[str, int]
) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return the devices of the last pods that are left on each node."""
    return {
        node: assignment.devices[node][left[node] - pods : left[node]]
        for node, pods in going.items()
        if node in assignment.devices
    }


def _core(workload: Workload, held: tuple[Assignment, ...], surplus: list[Assignment]) -> Workload:
    left = without(held, joined(workload, surplus))
    return _as_work(workload, left, workload.key)


def _surplus(workload: Workload, pieces: list[Assignment]) -> Iterator[Workload]:
    for number, piece in enumerate(pieces):
        part = _as_work(workload, (piece,), f"{workload.key}~{number:06d}")
        yield replace(part, part_of=workload.key, reclaimable={})


def _as_work(workload: Workload, held: tuple[Assignment, ...], key: str) -> Workload:
    """Return some of a gang's pods as work that runs, without any minimum."""
    assert workload.admission is not None
    counts = {a.pod_set: a.count for a in held}
    pod_sets = tuple(
        replace(p, count=counts[p.name], min_count=None, role_minimum=None, subgroups=None)
        for p in workload.pod_sets
        if p.name in counts
    )
    admission = Admission(workload.admission.admitted_at, held)
    return replace(workload, key=key, pod_sets=pod_sets, admission=admission, min_member=None)


def leaver(
    gang: Workload, gone: tuple[Assignment, ...], before: Workload | None = None
) -> Workload:
    """Return the pods that leave a running gang, as work on its way out.

    ``before``: those of the gang that were on their way out already.
    """
    if before is not None and before.admission is not None:
        gone = joined(gang, before.admission.assignments, gone)
    part = _as_work(gang, gone, leaving_key(gang.key))
    return replace(part, part_of=gang.key, releasing=True, reclaimable={})


def reduced_by(gang: Workload, gone: Iterable[Assignment]) -> Workload:
    """Return a running gang without some of its pods."""
    assert gang.admission is not None
    left = without(gang.admission.assignments, gone)
    return replace(gang, admission=replace(gang.admission, assignments=left))


def is_lacking(workload: Workload) -> bool:
    """Return whether a running gang with a minimum was granted fewer pods than it asks for."""
    if workload.admission is None or not may_lack_pods(workload):
        return False
    granted = counted(workload.admission.assignments)
    return any(granted.get(p.name, 0) < p.count for p in workload.pod_sets)


class Parts:
    """The parts of all running gangs that have surplus, and which are out in a trial.

    ``journal``: that of the books, so that who is out is undone with them.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._of: dict[str, tuple[Workload, ...]] = {}
        self._out: dict[str, int] = {}

    def learn(self, key: str, parts: tuple[Workload, ...]) -> None:
        """Note the parts of a gang, the one that makes it run first."""
        self._of[key] = parts

    def forget(self, key: str) -> tuple[Workload, ...]:
        """Forget a gang; return the parts that it had, or none where it had one."""
        return self._of.pop(key, ())

    def of(self, workload: Workload) -> tuple[Workload, ...]:
        """Return the parts of running work, the one without which it does not run first."""
        return self._of.get(workload.key, (workload,))

    def go(self, part: Workload) -> list[Workload]:
        """Return who leaves with ``part``: a gang that goes takes its surplus along."""
        if part.part_of:
            was = self._out.get(part.key, 0)
            self._journal.write(self._out, part.key, TAKEN)
            return [] if was else [part]
        along = [one for one in self._of.get(part.key, ())[1:] if not self._out.get(one.key)]
        for one in along:
            self._journal.write(self._out, one.key, WENT_ALONG)
        return [part, *along]

    def come(self, part: Workload) -> list[Workload]:
        """Return who comes back with ``part``."""
        if part.part_of:
            self._journal.write(self._out, part.key, 0)
            return [part]
        back = [
            one for one in self._of.get(part.key, ())[1:] if self._out.get(one.key) == WENT_ALONG
        ]
        for one in back:
            self._journal.write(self._out, one.key, 0)
        return [part, *back]
