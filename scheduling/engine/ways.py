"""Ways to give every pod set of a workload its flavors, best first, and what each would borrow."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scheduling.engine.flavors import MAX_STEPS, Assigner, Option
from scheduling.engine.quota import QuotaKey, QuotaLedger
from scheduling.engine.snapshot import FlavorResource, PodSet, Workload
from scheduling.engine.usage import quota_usage


@dataclass(frozen=True, slots=True)
class Way:
    """One option for each pod set, by name, and what the whole gang is then charged.

    ``marks``: for each column of each pod set, how much this and the earlier ones take of it.
    """

    pinned: Mapping[str, Option]
    usage: Counter[FlavorResource]
    marks: tuple[tuple[FlavorResource, int], ...]


class Ways:
    """The ways of one workload, in the order of its queue's flavors; the last pod set first.

    Left out are those above what the queue could ever take. Bounded: after ``MAX_STEPS`` options
    tried, dead ends included, there are no more.
    """

    def __init__(self, assigner: Assigner, queue: QuotaKey, workload: Workload) -> None:
        self._assigner, self._queue, self._workload = assigner, queue, workload
        self._ledger = assigner.books.soon.ledger
        self._steps = 0

    def __iter__(self) -> Iterator[Way]:
        """Yield every way once. Cost: O(columns) for each option tried."""
        self._steps = 0
        return self._after(Way({}, Counter(), ()), self._workload.pod_sets)

    def _after(self, way: Way, rest: Sequence[PodSet]) -> Iterator[Way]:
        if not rest:
            yield way
            return
        for option in self._assigner.options(self._workload, rest[0]).choices:
            self._steps += 1
            if self._steps > MAX_STEPS:
                return
            asked = quota_usage(rest[0], rest[0].count, option)
            usage = way.usage + asked
            if all(usage[fr] <= self._ledger.potential(self._queue, fr) for fr in asked):
                marks = (*way.marks, *((fr, usage[fr]) for fr in asked))
                further = Way({**way.pinned, rest[0].name: option}, usage, marks)
                yield from self._after(further, rest[1:])


def levels(ledgers: Iterable[QuotaLedger], queue: QuotaKey, way: Way) -> tuple[int, ...]:
    """Return from how far up the tree each pod set's columns would borrow, the furthest first.

    In whichever account it is further; what does not borrow is left out.
    """
    ledgers = tuple(ledgers)
    found = (max(one.borrow_level(queue, fr, n) for one in ledgers) for fr, n in way.marks)
    return tuple(sorted((level for level in found if level), reverse=True))
