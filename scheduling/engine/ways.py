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
    """One option for each pod set, by name, and what the whole gang is then charged."""

    pinned: Mapping[str, Option]
    usage: Counter[FlavorResource]


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
        return self._under({}, Counter(), self._workload.pod_sets)

    def _under(
        self, pinned: dict[str, Option], usage: Counter[FlavorResource], rest: Sequence[PodSet]
    ) -> Iterator[Way]:
        if not rest:
            yield Way(dict(pinned), usage)
            return
        for option in self._assigner.options(self._workload, rest[0]).choices:
            self._steps += 1
            if self._steps > MAX_STEPS:
                return
            more = usage + quota_usage(rest[0], rest[0].count, option)
            if all(n <= self._ledger.potential(self._queue, fr) for fr, n in more.items()):
                yield from self._under({**pinned, rest[0].name: option}, more, rest[1:])


def levels(
    ledgers: Iterable[QuotaLedger], queue: QuotaKey, usage: Mapping[FlavorResource, int]
) -> tuple[int, ...]:
    """Return from how far up the tree each borrowing column would borrow, the furthest first.

    In whichever account it is further.
    """
    ledgers = tuple(ledgers)
    found = (max(one.borrow_level(queue, fr, n) for one in ledgers) for fr, n in usage.items())
    return tuple(sorted((level for level in found if level), reverse=True))
