"""Why a workload waits: one summary reason and an ordered list of blockers.

The answers come from the same options, ledgers and tables that decided. Amounts are those of
the whole gang. Source: K82 for the summary, ``product.md`` 1.3 for the blockers.
"""

from collections import Counter
from collections.abc import Iterable

from scheduling.engine.blockers import (
    impossible,
    never_fits_queue,
    quota_blockers,
    room_blockers,
)
from scheduling.engine.books import Books, Side, available
from scheduling.engine.feasibility import Checker
from scheduling.engine.flavors import Assigner, Option, no_common_flavor
from scheduling.engine.plan import Blocker
from scheduling.engine.snapshot import Assignment, FlavorResource, PodSet, Workload
from scheduling.engine.terms import BlockerCode, PendingReason
from scheduling.engine.together import Unit, assign_unit, units_of
from scheduling.engine.tree import QuotaKey
from scheduling.engine.usage import quota_usage

Why = tuple[PendingReason, tuple[Blocker, ...]]

FITS, NO_ROOM, NO_QUOTA, OVER_CEILING = range(4)  # the mildest flavor counts (K82)


class Explainer:
    """Explains refusals. Leaves the books as it found them."""

    def __init__(self, books: Books, assigner: Assigner) -> None:
        self._books, self._assigner = books, assigner
        self._checker = Checker(books.snapshot)
        self._never: dict[tuple[object, ...], tuple[tuple[PodSet, ...], bool]] = {}

    def impossible(self, workload: Workload) -> tuple[Blocker, ...]:
        """Return the blockers that no departure of others can ever remove."""
        found = (impossible(finding) for finding in self._checker.check(workload))
        return tuple(blocker for blocker in found if blocker)

    def never(self, workload: Workload) -> bool:
        """Return whether no departure of others can ever let the workload start.

        Remembered for pod sets that are the same object: it depends on the platform alone.
        """
        key = workload.queue, workload.ceiling_queue, id(workload.pod_sets)
        if key not in self._never:
            _, blockers = self.why(workload)
            never = any(blocker.code is BlockerCode.IMPOSSIBLE for blocker in blockers)
            self._never[key] = workload.pod_sets, never
        return self._never[key][1]

    def why(self, workload: Workload) -> Why:
        """Return the summary reason and the blockers of a workload that does not fit."""
        never = self.impossible(workload)
        chosen, refusals, homeless = self._leading(workload)
        quota = self._quota(workload, chosen)
        room = () if homeless else self._room(workload, chosen)
        reason = _summary(never, quota, homeless=homeless)
        blockers = [*never, *(refusals if homeless else ()), *quota, *room]
        blockers += [] if homeless else refusals
        return reason, _without_repeats(blockers)

    def _leading(self, workload: Workload) -> tuple[dict[str, Option], list[Blocker], bool]:
        """Choose for each pod set the flavors that come closest, earlier pod sets standing.

        Returns:
            The options by pod set, why other flavors were out, and whether some pod set has
            no flavor at all.
        """
        chosen: dict[str, Option] = {}
        refusals: list[Blocker] = []
        homeless = False
        with self._books.trial():
            for unit in units_of(workload.pod_sets):
                found = [self._assigner.options(workload, pod_set) for pod_set in unit]
                refusals.extend(refusal for one in found for refusal in one.refusals)
                ways = list(self._assigner.jointly(workload, unit))
                homeless = homeless or not ways
                if not ways and all(one.choices for one in found):
                    refusals.append(no_common_flavor(unit))
                verdicts = [self._verdict(workload, unit, options) for options in ways]
                if not verdicts:
                    continue
                best = verdicts.index(min(verdicts))
                chosen |= {p.name: o for p, o in zip(unit, ways[best], strict=True)}
                if verdicts[best] == FITS:
                    self._stand(workload, unit, ways[best])
        return chosen, refusals, homeless

    def _verdict(self, workload: Workload, unit: Unit, options: tuple[Option, ...]) -> int:
        books, queue = self._books, self._books.queue(workload)
        usage: Counter[FlavorResource] = Counter()
        for pod_set, option in zip(unit, options, strict=True):
            usage.update(quota_usage(pod_set, pod_set.count, option))
        if queue is not None:
            ledger = books.now.ledger
            if any(amount > ledger.potential(queue, fr) for fr, amount in usage.items()):
                return OVER_CEILING
            if any(amount > available(books.both, queue, fr) for fr, amount in usage.items()):
                return NO_QUOTA
        return NO_ROOM if self._placed(unit, options) is None else FITS

    def _placed(self, unit: Unit, options: Iterable[Option]) -> tuple[Assignment, ...] | None:
        rooms = tuple(side.room for side in self._books.both)
        return assign_unit(self._books.atlas, rooms, unit, tuple(options))

    def _stand(self, workload: Workload, unit: Unit, options: tuple[Option, ...]) -> None:
        assignments = self._placed(unit, options)
        assert assignments is not None, "the verdict was that it fits"
        self._books.hold(workload, assignments, self._books.both)

    def _quota(self, workload: Workload, chosen: dict[str, Option]) -> list[Blocker]:
        queue = self._books.queue(workload)
        if queue is None:
            return []
        usage: Counter[FlavorResource] = Counter()
        for pod_set in workload.pod_sets:
            option = chosen.get(pod_set.name, {})
            usage.update(quota_usage(pod_set, pod_set.count, option))
        found: list[Blocker] = []
        for fr, amount in sorted(usage.items()):
            side = self._tighter(queue, fr)
            if amount > side.ledger.available(queue, fr):
                found.extend(quota_blockers(side.ledger, queue, fr, amount))
        return found

    def _tighter(self, queue: QuotaKey, fr: FlavorResource) -> Side:
        return min(self._books.both, key=lambda side: side.ledger.available(queue, fr))

    def _room(self, workload: Workload, chosen: dict[str, Option]) -> list[Blocker]:
        """Ask the nodes only if they, by themselves, refuse the gang."""
        books = self._books
        rooms = tuple(side.room for side in books.both)
        with books.trial():
            for unit in units_of(workload.pod_sets):
                placed = self._placed(unit, [chosen[pod_set.name] for pod_set in unit])
                if placed is None:
                    break
                for side in books.both:
                    side.room.stand(workload, placed)
            else:
                return []
        return room_blockers(books.atlas, rooms, workload, chosen)


def _summary(never: tuple[Blocker, ...], quota: list[Blocker], *, homeless: bool) -> PendingReason:
    if homeless:
        return PendingReason.NO_MATCHING_FLAVOR
    if any(never_fits_queue(blocker) for blocker in (*never, *quota)):
        return PendingReason.EXCEEDS_MAX_QUOTA
    if quota:
        return PendingReason.WAITING_FOR_QUOTA
    return PendingReason.TOPOLOGY_PLACEMENT_FAILED


def _without_repeats(blockers: list[Blocker]) -> tuple[Blocker, ...]:
    """Drop later blockers that say the same of the same resource at the same place."""
    kept: dict[tuple[BlockerCode, str, str, str], Blocker] = {}
    for blocker in blockers:
        sub_code = str(blocker.facts.get("sub_code", ""))
        kept.setdefault((blocker.code, blocker.resource, blocker.where, sub_code), blocker)
    return tuple(kept.values())
