"""Ways to give every pod set of a workload its flavors, best first, and what each would borrow."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scheduling.engine.flavors import MAX_STEPS, Assigner, Option, agree
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.snapshot import FlavorResource, PodSet, Workload
from scheduling.engine.together import Unit, units_of
from scheduling.engine.tree import QuotaKey


@dataclass(frozen=True, slots=True)
class Way:
    """One option for each pod set, by name, and what the whole gang is then charged.

    ``marks``: for each column of each pod set, how much this and the earlier ones take of it.
    """

    pinned: Mapping[str, Option]
    usage: Counter[FlavorResource]
    marks: tuple[tuple[FlavorResource, int], ...]


class Ways:
    """The ways of every form of work, in the order of its queue's flavors; last pod set first.

    Left out are those above what the queue could ever take. Bounded: after ``MAX_STEPS`` options
    tried, dead ends included, there are no more. Nothing here depends on who runs, so ways are
    remembered for pod sets that are the same object, as those of equal work are.
    """

    def __init__(self, assigner: Assigner) -> None:
        self.books = assigner.books
        self._assigner, self._ledger = assigner, self.books.soon.ledger
        self._known: dict[tuple[QuotaKey, int], tuple[tuple[PodSet, ...], tuple[Way, ...]]] = {}
        self._charges: dict[object, int] = {}
        self._charge: dict[tuple[QuotaKey, int], int] = {}

    def of(self, workload: Workload, queue: QuotaKey) -> tuple[Way, ...]:
        """Return every way of a workload of this queue once."""
        key = (queue, id(workload.pod_sets))
        if key not in self._known:
            self._known[key] = workload.pod_sets, tuple(self._search(workload, queue))
        return self._known[key][1]

    def charge(self, workload: Workload, queue: QuotaKey) -> int:
        """Return a number that is equal for work of the queue with ways that are charged alike."""
        key = (queue, id(workload.pod_sets))
        if key not in self._charge:
            charged = tuple(tuple(sorted(way.usage.items())) for way in self.of(workload, queue))
            self._charge[key] = self._charges.setdefault(charged, len(self._charges))
        return self._charge[key]

    def _search(self, workload: Workload, queue: QuotaKey) -> Iterator[Way]:
        """Yield the ways. Cost: O(columns) for each option tried."""
        steps = 0
        groups = [unit for unit in units_of(workload.pod_sets) if len(unit) > 1]

        def after(way: Way, rest: Sequence[PodSet]) -> Iterator[Way]:
            nonlocal steps
            if not rest:
                yield way
                return
            for option in self._assigner.options(workload, rest[0]).choices:
                steps += 1
                if steps > MAX_STEPS:
                    return
                further = self._further(way, rest[0], option)
                if self._reachable(further, queue) and self._agreed(further, groups, queue):
                    yield from after(further, rest[1:])

        return after(Way({}, Counter(), ()), workload.pod_sets)

    def _further(self, way: Way, pod_set: PodSet, option: Option) -> Way:
        asked = self._assigner.offer(pod_set, option).usage
        usage = way.usage + asked
        marks = (*way.marks, *((fr, usage[fr]) for fr in asked))
        return Way({**way.pinned, pod_set.name: option}, usage, marks)

    def _agreed(self, way: Way, groups: Iterable[Unit], queue: QuotaKey) -> bool:
        """Return whether the pod sets of each group take the same flavors."""
        pinned, rules = way.pinned, self.books.snapshot.cluster_queues[queue.name]
        options = ([pinned[p.name] for p in unit if p.name in pinned] for unit in groups)
        return all(agree(rules, taken) for taken in options)

    def _reachable(self, way: Way, queue: QuotaKey) -> bool:
        return all(n <= self._ledger.potential(queue, fr) for fr, n in way.usage.items())


def levels(ledgers: Iterable[QuotaLedger], queue: QuotaKey, way: Way) -> tuple[int, ...]:
    """Return from how far up the tree each pod set's columns would borrow, the furthest first.

    In whichever account it is further; what does not borrow is left out.
    """
    ledgers = tuple(ledgers)
    found = (max(one.borrow_level(queue, fr, n) for one in ledgers) for fr, n in way.marks)
    return tuple(sorted((level for level in found if level), reverse=True))
