"""Why a workload waits: one summary reason and an ordered list of blockers.

The answers come from the same options, ledgers and tables that decided. Amounts are those of
the whole gang. Source: K82 for the summary, ``product.md`` 1.3 for the blockers.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from scheduling.engine.blockers import (
    impossible,
    never_fits_queue,
    quota_blockers,
    room_blockers,
)
from scheduling.engine.books import Books, available
from scheduling.engine.feasibility import Checker
from scheduling.engine.flavors import Assigner, Option, no_common_flavor
from scheduling.engine.plan import Blocker
from scheduling.engine.snapshot import Assignment, FlavorResource, PodSet, Workload
from scheduling.engine.terms import BlockerCode, PendingReason
from scheduling.engine.together import Unit, assign_unit, units_of
from scheduling.engine.usage import quota_usage

Why = tuple[PendingReason, tuple[Blocker, ...]]

FITS, NO_ROOM, NO_QUOTA, OVER_CEILING = range(4)  # the mildest flavor counts (K82)
MOST_OTHERS = 8  # flavors of which it is told why they do not do either
Way = tuple[Option, ...]


@dataclass(slots=True)
class _Lead:
    """The flavors that come closest, by pod set; why others were out; what further ones lack.

    ``homeless``: some pod set has no flavor at all.
    """

    chosen: dict[str, Option] = field(default_factory=dict)
    refusals: list[Blocker] = field(default_factory=list)
    others: list[Blocker] = field(default_factory=list)
    homeless: bool = False


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
        """Return the summary reason and the blockers of a workload that does not fit.

        Where it can never fit, only that is said, and which nodes it keeps away from itself:
        what could come free would not help.
        """
        never = self.impossible(workload)
        lead = self._leading(workload)
        quota = self._quota(workload, lead.chosen)
        reason = _summary(never, quota, homeless=lead.homeless)
        final = [*never, *(b for b in quota if b.code is BlockerCode.IMPOSSIBLE)]
        if final:
            asked = [] if lead.homeless else self._room(workload, lead.chosen)
            return reason, _without_repeats([*_with_exclusions(final, asked), *lead.refusals])
        if lead.homeless:
            return reason, _without_repeats([*lead.refusals, *quota])
        room = self._room(workload, lead.chosen)
        return reason, _without_repeats([*quota, *room, *lead.others, *lead.refusals])

    def _leading(self, workload: Workload) -> _Lead:
        """Choose for each pod set the flavors that come closest, earlier pod sets standing."""
        lead = _Lead()
        with self._books.trial():
            for unit in units_of(workload.pod_sets):
                found = [self._assigner.options(workload, pod_set) for pod_set in unit]
                lead.refusals.extend(refusal for one in found for refusal in one.refusals)
                ways = list(self._assigner.jointly(workload, unit))
                lead.homeless = lead.homeless or not ways
                if not ways and all(one.choices for one in found):
                    lead.refusals.append(no_common_flavor(unit))
                judged = [(*self._verdict(workload, unit, way), n) for n, way in enumerate(ways)]
                nearest = [(verdict, ways[n]) for verdict, _, n in sorted(judged)]
                if not nearest:
                    continue
                verdict, best = nearest[0]
                lead.chosen |= {p.name: o for p, o in zip(unit, best, strict=True)}
                if verdict == FITS:
                    self._stand(workload, unit, best)
                else:
                    lead.others.extend(self._others(workload, unit, nearest))
        return lead

    def _verdict(self, workload: Workload, unit: Unit, options: Way) -> tuple[int, float]:
        """Return what stands in the way, and which part of the request quota lacks at most."""
        books, queue = self._books, self._books.queue(workload)
        usage = _usage(unit, options)
        if queue is not None:
            ledger = books.now.ledger
            over = [_lack(n, ledger.potential(queue, fr)) for fr, n in usage.items()]
            if max(over, default=0.0) > 0:
                return OVER_CEILING, max(over)
            short = [_lack(n, available(books.both, queue, fr)) for fr, n in usage.items()]
            if max(short, default=0.0) > 0:
                return NO_QUOTA, max(short)
        return (NO_ROOM if self._placed(unit, options) is None else FITS), 0.0

    def _others(
        self, workload: Workload, unit: Unit, nearest: list[tuple[int, Way]]
    ) -> Iterator[Blocker]:
        """Yield why the flavors that are further away do not do either (``admission.md`` O1)."""
        told = {_flavors(nearest[0][1])}
        for verdict, options in nearest[1:]:
            if len(told) > MOST_OTHERS:
                return
            if _flavors(options) not in told:
                told.add(_flavors(options))
                yield from self._lacks(workload, unit, options, verdict)

    def _lacks(
        self, workload: Workload, unit: Unit, options: Way, verdict: int
    ) -> Iterable[Blocker]:
        """Return what one way lacks: its quota in the scarcest column, else its nodes."""
        books, queue = self._books, self._books.queue(workload)
        if verdict == NO_ROOM or queue is None:
            rooms = tuple(side.room for side in books.both)
            alone = replace(workload, pod_sets=unit)
            named = {pod_set.name: one for pod_set, one in zip(unit, options, strict=True)}
            return room_blockers(books.atlas, rooms, alone, named)
        ledger = books.now.ledger
        if verdict == OVER_CEILING:
            fr, amount, most = max(
                ((fr, n, ledger.potential(queue, fr)) for fr, n in _usage(unit, options).items()),
                key=lambda one: _lack(one[1], one[2]),
            )
            small, facts = BlockerCode.FLAVOR_TOO_SMALL, {"flavor": fr.flavor}
            return [Blocker(small, fr.resource, amount, most, queue.name, facts)]
        fr, amount = max(
            _usage(unit, options).items(),
            key=lambda one: _lack(one[1], available(books.both, queue, one[0])),
        )
        return quota_blockers(books, queue, fr, amount)[-1:]

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
            if amount > available(self._books.both, queue, fr):
                found.extend(quota_blockers(self._books, queue, fr, amount))
        return found

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


def _usage(unit: Unit, options: Way) -> Counter[FlavorResource]:
    usage: Counter[FlavorResource] = Counter()
    for pod_set, option in zip(unit, options, strict=True):
        usage.update(quota_usage(pod_set, pod_set.count, option))
    return usage


def _lack(asked: int, there: int) -> float:
    """Return which part of what is asked is not there, 0 where all of it is."""
    return max(0, asked - there) / asked if asked else 0.0


def _with_exclusions(final: list[Blocker], asked: Iterable[Blocker]) -> list[Blocker]:
    """Return the final blockers, the first with the facts of how many nodes are kept away.

    A blocker of its own about nodes would promise that it fits once something comes free.
    """
    kept_out = {n: v for b in asked for n, v in b.facts.items() if n.startswith("excluded_")}
    return [replace(final[0], facts={**final[0].facts, **kept_out}), *final[1:]]


def _flavors(options: Way) -> frozenset[str]:
    return frozenset(flavor for option in options for flavor in option.values())


def _summary(never: tuple[Blocker, ...], quota: list[Blocker], *, homeless: bool) -> PendingReason:
    if homeless:
        return PendingReason.NO_MATCHING_FLAVOR
    if any(never_fits_queue(blocker) for blocker in (*never, *quota)):
        return PendingReason.EXCEEDS_MAX_QUOTA
    if quota:
        return PendingReason.WAITING_FOR_QUOTA
    return PendingReason.TOPOLOGY_PLACEMENT_FAILED


def _without_repeats(blockers: list[Blocker]) -> tuple[Blocker, ...]:
    """Drop later blockers that say the same of the same resource at the same place.

    Quota is told for each flavor, what is impossible once.
    """
    kept: dict[tuple[BlockerCode, str, str, str], Blocker] = {}
    for blocker in blockers:
        sub_code = str(blocker.facts.get("sub_code") or blocker.facts.get("flavor", ""))
        kept.setdefault((blocker.code, blocker.resource, blocker.where, sub_code), blocker)
    return tuple(kept.values())
