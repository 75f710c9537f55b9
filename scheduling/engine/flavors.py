"""Flavor choice: which kind of node pays and carries each pod set.

All pod sets of a workload are assigned together (``decisions.md`` 4.4): flavors are tried in
the queue's order, and a choice that leaves a later pod set without room is taken back. Pod sets
of one group get the same flavors (``admission.md`` K63).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

from scheduling.engine.affinity import admits_flavor
from scheduling.engine.atlas import Atlas, taint_text, untolerated
from scheduling.engine.books import Books, Sides, within
from scheduling.engine.machines import Flavor
from scheduling.engine.plan import Blocker
from scheduling.engine.snapshot import Assignment, ClusterQueue, FlavorResource, PodSet, Workload
from scheduling.engine.terms import BlockerCode, Undeclared
from scheduling.engine.together import Unit, assign_unit, units_of
from scheduling.engine.usage import asked_of, by_importance, covered, is_gpu, quota_usage

MAX_OPTIONS = 64  # flavor combinations of one pod set
MAX_STEPS = 256  # pod sets tried in one search, dead ends included
MOST_JOINT = 4096  # combinations of a group's options that are looked at for common flavors

Option = Mapping[str, str]  # resource -> flavor


@dataclass(frozen=True, slots=True)
class Options:
    """The flavors that a pod set may use, best first, and why the others are out."""

    choices: tuple[Option, ...]
    refusals: tuple[Blocker, ...] = ()


UNMANAGED = Options(({},))  # outside every queue: any node, no quota


def options_of(atlas: Atlas, queue: ClusterQueue | None, pod_set: PodSet) -> Options:
    """Return the flavor combinations for one pod set: one flavor per resource group (K31)."""
    if queue is None:
        return UNMANAGED
    asked = asked_of(queue, pod_set)
    undeclared = tuple(_undeclared(queue, asked))
    if undeclared:
        return Options((), undeclared)
    refusals: list[Blocker] = []

    def suits(flavor: str) -> bool:
        refusal = judge_flavor(atlas, flavor, pod_set)
        refusals.extend([refusal] if refusal else [])
        return refusal is None

    choices = combinations(queue, asked, suits)
    return Options(tuple(o for o in choices if _kept(o, pod_set)), tuple(refusals))


def _kept(option: Option, pod_set: PodSet) -> bool:
    """Return whether the option leaves the flavors that the pod set must get."""
    must = pod_set.flavors or {}
    return all(must.get(resource, flavor) == flavor for resource, flavor in option.items())


def combinations(
    queue: ClusterQueue, asked: Mapping[str, int], suits: Callable[[str], bool]
) -> tuple[Option, ...]:
    """Return the first ``MAX_OPTIONS`` ways to take what is ``asked`` of flavors that suit."""
    allowed: list[list[Option]] = []
    for group in queue.groups:
        wanted = [resource for resource in group.resources if resource in asked]
        if wanted:
            names = [quotas.flavor for quotas in group.flavors if suits(quotas.flavor)]
            allowed.append([dict.fromkeys(wanted, name) for name in names])
    return tuple(islice((_merged(parts) for parts in product(*allowed)), MAX_OPTIONS))


def _undeclared(queue: ClusterQueue, asked: Mapping[str, int]) -> Iterable[Blocker]:
    if queue.undeclared is Undeclared.IGNORE:
        return
    others = by_importance(filter(is_gpu, covered(queue)))
    for resource in sorted(asked.keys() - covered(queue) - {"pods"}):
        facts = {"cause": "UndeclaredResource", "queue": queue.name}
        if others and is_gpu(resource):  # a slice is no whole GPU, and a whole one no slice
            facts |= {"cause": "OtherGpus", "offers": ", ".join(others)}
        mismatch, needed = BlockerCode.FLAVOR_MISMATCH, asked[resource]
        yield Blocker(mismatch, resource, needed=needed, available=0, facts=facts)


def agree(queue: ClusterQueue, options: Collection[Option]) -> bool:
    """Return whether the options take the same flavor of every resource group."""
    for group in queue.groups:
        taken = {option[r] for option in options for r in group.resources if r in option}
        if len(taken) > 1:
            return False
    return True


def jointly(
    queue: ClusterQueue | None, unit: Unit, choices: Sequence[Iterable[Option]]
) -> Iterator[tuple[Option, ...]]:
    """Yield an option for each pod set of a unit; those of a group take the same flavors."""
    ways = product(*choices)
    if len(unit) == 1 or queue is None:
        return ways
    return (options for options in islice(ways, MOST_JOINT) if agree(queue, options))


def no_common_flavor(unit: Unit) -> Blocker:
    """Return the refusal of a group whose pod sets suit no flavor together."""
    names = ", ".join(pod_set.name for pod_set in unit)
    return Blocker(
        BlockerCode.FLAVOR_MISMATCH, where=names, facts={"cause": "GroupFlavors", "group": names}
    )


def _merged(parts: Iterable[Option]) -> Option:
    return {resource: flavor for part in parts for resource, flavor in part.items()}


def judge_flavor(atlas: Atlas, name: str, pod_set: PodSet) -> Blocker | None:
    """Return why the pods cannot use this flavor at all, or None; levels included."""
    return refuse_flavor(atlas, name, pod_set) or _level_mismatch(atlas, name, pod_set)


def refuse_flavor(atlas: Atlas, name: str, pod_set: PodSet) -> Blocker | None:
    """Return what of taints, labels or affinity keeps the pods away (K32, ``FORMAT`` 5.2)."""
    flavor = atlas.snapshot.flavors.get(name)
    if flavor is None:
        return _mismatch(name, {"cause": "FlavorNotFound"})
    taint = untolerated(flavor.node_taints, pod_set, [flavor])
    if taint is not None:
        return Blocker(BlockerCode.TAINT, where=name, facts={"taint": taint_text(taint)})
    if not admits_flavor(pod_set.affinity, flavor.node_labels):
        return _mismatch(name, {"cause": "NodeAffinity"})
    return _label_mismatch(flavor, pod_set)


def _label_mismatch(flavor: Flavor, pod_set: PodSet) -> Blocker | None:
    for label, value in sorted(pod_set.node_selector.items()):
        if flavor.node_labels.get(label, value) != value:
            return _mismatch(
                flavor.name, {"label": label, "asks": value, "has": flavor.node_labels[label]}
            )
    return None


def _level_mismatch(atlas: Atlas, name: str, pod_set: PodSet) -> Blocker | None:
    request = pod_set.topology
    if request is None or not atlas.nodes_of(name):
        return None
    levels, asked = atlas.levels([name]), (request.level, *(level for level, _ in request.layers))
    missing = next((level for level in asked if level and level not in levels), None)
    if missing is None:
        return None
    return _mismatch(name, {"level": missing, "cause": "TopologyLevelNotFound"})


def _mismatch(flavor: str, facts: Mapping[str, str | int]) -> Blocker:
    return Blocker(BlockerCode.FLAVOR_MISMATCH, where=flavor, facts=facts)


@dataclass(frozen=True, slots=True)
class Offer:
    """One option of one pod set: what it is charged, and its assignment if it needs no nodes."""

    pod_set: PodSet
    option: Option
    usage: Counter[FlavorResource]
    bare: Assignment | None


class Assigner:
    """Finds flavors and nodes for whole workloads. Leaves the books as it found them."""

    def __init__(self, books: Books) -> None:
        self.books = books
        self.steps = 0
        self._options: dict[tuple[str | None, int], tuple[PodSet, Options]] = {}
        self._offers: dict[tuple[int, int], Offer] = {}

    def options(self, workload: Workload, pod_set: PodSet) -> Options:
        """Return the pod set's options in its workload's queue.

        Remembered for pod sets that are the same object, as those of equal work are.
        """
        key = (workload.queue, id(pod_set))
        if key not in self._options:
            queue = self.books.snapshot.cluster_queues.get(workload.queue or "")
            self._options[key] = pod_set, options_of(self.books.atlas, queue, pod_set)
        return self._options[key][1]

    def jointly(self, workload: Workload, unit: Unit) -> Iterator[tuple[Option, ...]]:
        """Yield an option for each pod set of a unit of the workload, best first."""
        queue = self.books.snapshot.cluster_queues.get(workload.queue or "")
        return jointly(queue, unit, [self.options(workload, p).choices for p in unit])

    def offer(self, pod_set: PodSet, option: Option) -> "Offer":
        """Return what all pods of a pod set are charged under an option; remembered as well."""
        key = (id(pod_set), id(option))
        if key not in self._offers:
            usage = quota_usage(pod_set, pod_set.count, option)
            atlas = self.books.atlas
            nodeless = not pod_set.count or atlas.suitable(pod_set, option.values()).quota_only
            bare = Assignment(pod_set.name, pod_set.count, option) if nodeless else None
            self._offers[key] = Offer(pod_set, option, usage, bare)
        return self._offers[key]

    def assign(
        self,
        workload: Workload,
        sides: Sides,
        pinned: Mapping[str, Option] | None = None,
        no_borrowing: frozenset[FlavorResource] = frozenset(),
    ) -> tuple[Assignment, ...] | None:
        """Return flavors and nodes for the whole gang, or None.

        Args:
            workload: what to assign; its pod sets are tried in order, and if that fails the
                most demanding first.
            sides: the accounts in which everything must fit.
            pinned: the option to use for each pod set, by name; default: any.
            no_borrowing: columns in which the queue must stay within its nominal quota.

        Cost: at most ``MAX_STEPS`` placements.
        """
        search = _Search(self, workload, sides, pinned or {}, no_borrowing)
        if len(workload.pod_sets) == 1:  # by far the most work
            one = search.alone(workload.pod_sets[0])
            self.steps += search.steps
            return None if one is None else (one,)
        units = units_of(workload.pod_sets)
        found = search.run(units)
        if found is None:
            found = search.run(tuple(sorted(units, key=_most_demanding)))
        self.steps += search.steps
        if found is None:
            return None
        place = {assignment.pod_set: assignment for assignment in found}
        return tuple(place[pod_set.name] for pod_set in workload.pod_sets)


def _demanding(pod_set: PodSet) -> tuple[list[int], str]:
    return [-amount for _, amount in sorted(pod_set.requests.items(), reverse=True)], pod_set.name


def _most_demanding(unit: Unit) -> tuple[list[int], str]:
    return min(_demanding(pod_set) for pod_set in unit)


class _Search:
    """One depth-first search over the pod sets of one workload."""

    __slots__ = ("_assigner", "_no_borrowing", "_pinned", "_queue", "_sides", "_workload", "steps")

    def __init__(
        self,
        assigner: Assigner,
        workload: Workload,
        sides: Sides,
        pinned: Mapping[str, Option],
        no_borrowing: frozenset[FlavorResource],
    ) -> None:
        self._assigner, self._workload, self._sides = assigner, workload, sides
        self._pinned, self._no_borrowing = pinned, no_borrowing
        self._queue = assigner.books.queue(workload)
        self.steps = 0

    def alone(self, pod_set: PodSet) -> Assignment | None:
        """Return the assignment of the only pod set there is."""
        for option in self._choices(pod_set):
            self.steps += 1
            if self.steps > MAX_STEPS:
                return None
            found = self._place(pod_set, option)
            if found is not None:
                return found
        return None

    def run(self, order: tuple[Unit, ...]) -> tuple[Assignment, ...] | None:
        """Return one assignment for each pod set of ``order``; try the first unit first."""
        if not order:
            return ()
        unit, rest = order[0], order[1:]
        for options in self._jointly(unit):
            self.steps += 1
            if self.steps > MAX_STEPS:
                return None
            found = self._with(unit, options, rest)
            if found is not None:
                return found
        return None

    def _with(
        self, unit: Unit, options: tuple[Option, ...], rest: tuple[Unit, ...]
    ) -> tuple[Assignment, ...] | None:
        """Return the assignments under one choice for the first unit, or None."""
        assignments = self._place_unit(unit, options)
        if assignments is None or not rest:
            return assignments
        books = self._assigner.books
        with books.trial():
            books.hold(self._workload, assignments, self._sides)
            others = self.run(rest)
        return None if others is None else (*assignments, *others)

    def _jointly(self, unit: Unit) -> Iterator[tuple[Option, ...]]:
        """Yield an option for each pod set of a unit; those of a group take the same flavors."""
        queue = self._assigner.books.snapshot.cluster_queues.get(self._workload.queue or "")
        return jointly(queue, unit, [self._choices(pod_set) for pod_set in unit])

    def _place_unit(
        self, unit: Unit, options: tuple[Option, ...]
    ) -> tuple[Assignment, ...] | None:
        """Return quota and nodes for all pod sets of a unit; nothing is taken yet."""
        if len(unit) == 1:
            one = self._place(unit[0], options[0])
            return None if one is None else (one,)
        usage: Counter[FlavorResource] = Counter()
        for pod_set, option in zip(unit, options, strict=True):
            usage += self._assigner.offer(pod_set, option).usage
        if self._queue is not None and not self._quota_fits(usage):
            return None
        return self._on_nodes(unit, options)

    def _on_nodes(self, unit: Unit, options: tuple[Option, ...]) -> tuple[Assignment, ...] | None:
        rooms = tuple(side.room for side in self._sides)
        return assign_unit(self._assigner.books.atlas, rooms, unit, options)

    def _choices(self, pod_set: PodSet) -> tuple[Option, ...]:
        if pod_set.name in self._pinned:
            return (self._pinned[pod_set.name],)
        return self._assigner.options(self._workload, pod_set).choices

    def _place(self, pod_set: PodSet, option: Option) -> Assignment | None:
        """Return quota and nodes for one pod set; nothing is taken yet."""
        offer = self._assigner.offer(pod_set, option)
        if self._queue is not None and not self._quota_fits(offer.usage):
            return None
        if offer.bare is not None:
            return offer.bare
        placed = self._on_nodes((pod_set,), (option,))
        return None if placed is None else placed[0]

    def _quota_fits(self, usage: Mapping[FlavorResource, int]) -> bool:
        assert self._queue is not None
        if not within(self._sides, self._queue, usage):
            return False
        return not self._no_borrowing or all(
            side.ledger.fits_in(self._queue, fr, usage[fr])
            for side in self._sides
            for fr in self._no_borrowing & usage.keys()
        )
