"""Elastic workloads: a grown copy asks for what the running one does not have yet (K37).

The copy waits in the queue like everybody else. It keeps the flavors and the nodes of the pods
that run, and in the moment of its admission the running one is replaced: until then that one
alone is charged, so that no pod is ever charged twice and none runs without being charged.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from scheduling.engine.affinity import NODE_NAME, Term
from scheduling.engine.atlas import Atlas
from scheduling.engine.gangs import joined, wanted, with_counts
from scheduling.engine.snapshot import Assignment, Expression, PodSet, Workload
from scheduling.engine.standing import resized, standing
from scheduling.engine.terms import Operator, TopologyMode
from scheduling.engine.topology import HOSTNAME
from scheduling.engine.usage import pod_charge, pod_footprint


def original_of(
    copy: Workload, known: Mapping[str, Workload], gone: Container[str] = ()
) -> Workload | None:
    """Return whom the workload replaces; None: nobody, and it asks for all its pods.

    It must run, in the same queue and with pods like those of the copy. ``known`` is all work
    by key; those that are ``gone`` have been evicted or replaced meanwhile.
    """
    found = known.get(copy.replaces) if copy.replaces else None
    if found is None or found.admission is None or found.releasing or found.key in gone:
        return None
    return found if _alike(copy, found) else None


def _alike(copy: Workload, original: Workload) -> bool:
    pod_sets = {pod_set.name: pod_set for pod_set in original.pod_sets}
    return copy.queue == original.queue and all(
        _each(pod_set) == _each(pod_sets.get(pod_set.name, pod_set)) for pod_set in copy.pod_sets
    )


def _each(pod_set: PodSet) -> tuple[dict[str, int], dict[str, int]]:
    return pod_footprint(pod_set), pod_charge(pod_set)


def asked(copy: Workload, original: Workload, atlas: Atlas) -> Workload:
    """Return the copy with the pods alone that its original does not have.

    They must get the flavors of the others, and stand in their domain where pods must stand
    together, near them where pods should. The whole of them or nothing: partial admission does
    not apply.
    """
    kept = _kept(copy, original)
    pod_sets = tuple(
        _more(pod_set, kept[pod_set.name], atlas) if pod_set.name in kept else pod_set
        for pod_set in copy.pod_sets
    )
    lacking = replace(copy, pod_sets=pod_sets)
    return with_counts(lacking, wanted(lacking))


def merged(
    copy: Workload, original: Workload, more: Iterable[Assignment]
) -> tuple[Assignment, ...]:
    """Return where the copy stands: the pods that are kept, and ``more``."""
    return joined(copy, _kept(copy, original).values(), more)


def heir(copy: Workload, original: Workload) -> Workload:
    """Return the copy in the moment in which it replaces its original.

    Pods of that one that have finished are finished pods of the copy as well.
    """
    if not original.reclaimable:
        return copy
    done = dict(copy.reclaimable)
    for pod_set, pods in original.reclaimable.items():
        done[pod_set] = max(pods, done.get(pod_set, 0))
    return replace(copy, reclaimable=done)


def _kept(copy: Workload, original: Workload) -> dict[str, Assignment]:
    """Return what the copy takes over, by pod set; pods that have finished are taken over too."""
    wanted = {pod_set.name: pod_set.count for pod_set in copy.pod_sets}
    kept: dict[str, Assignment] = {}
    for held in standing(replace(original, reclaimable={})):
        count = min(held.count, wanted.get(held.pod_set, 0))
        if count:
            kept[held.pod_set] = resized(held, count)
    return kept


def _more(pod_set: PodSet, kept: Assignment, atlas: Atlas) -> PodSet:
    return joining(replace(pod_set, count=pod_set.count - kept.count), kept, atlas)


def beside(
    gang: Workload, held: Mapping[str, Assignment], more: Mapping[str, int], atlas: Atlas
) -> Workload:
    """Return further pods of a gang as waiting work: ``more`` of each role.

    They must get the flavors of those that are ``held``, by role, and stand in their domain
    where pods must stand together, near them where pods should.
    """
    work = with_counts(gang, more)
    pod_sets = tuple(
        p if (whom := _joined_by(p, gang, held)) is None else joining(p, whom, atlas)
        for p in work.pod_sets
    )
    piece = replace(work, key=f"{gang.key}~more", pod_sets=pod_sets, admission=None)
    return replace(piece, reclaimable={}, part_of=gang.key)


def _joined_by(
    pod_set: PodSet, gang: Workload, held: Mapping[str, Assignment]
) -> Assignment | None:
    """Return whom further pods join: those of their role, else those of its group."""
    own, group = held.get(pod_set.name), pod_set.topology.group if pod_set.topology else ""
    if not group or (own is not None and own.nodes):
        return own
    mates = {p.name for p in gang.pod_sets if p.topology and p.topology.group == group}
    standing = [one for name, one in sorted(held.items()) if name in mates]
    if not standing:
        return None
    nodes: Counter[str] = Counter()
    for one in standing:
        nodes.update(one.nodes)
    flavors = {r: flavor for one in standing for r, flavor in one.flavors.items()}
    return Assignment(pod_set.name, nodes.total(), flavors, dict(sorted(nodes.items())))


def joining(pod_set: PodSet, kept: Assignment, atlas: Atlas) -> PodSet:
    """Return pods that join those that are kept: their flavors, their domain, and near them."""
    return replace(
        pod_set,
        flavors=kept.flavors,
        affinity=near(pod_set, kept, atlas),
        beside=kept.nodes if pod_set.topology else {},
    )


def near(pod_set: PodSet, kept: Assignment, atlas: Atlas) -> tuple[Term, ...]:
    """Return the affinity that keeps further pods in the required domain of the others."""
    request = pod_set.topology
    nodes = [atlas.nodes[name] for name in sorted(kept.nodes) if name in atlas.nodes]
    levels = atlas.levels(kept.flavors.values())
    if request is None or request.mode is not TopologyMode.REQUIRED or not nodes:
        return pod_set.affinity
    if request.level not in levels:
        return pod_set.affinity
    near: list[Expression] = []
    for level in levels[: levels.index(request.level) + 1]:
        value = nodes[0].labels.get(level)
        if value is not None:
            near.append(Expression(level, Operator.IN, (value,)))
        elif level == HOSTNAME:
            near.append(Expression(NODE_NAME, Operator.IN, (nodes[0].name,)))
    return tuple((*term, *near) for term in pod_set.affinity or ((),))
