"""Nomination: flavors one after the other, pod sets one after the other (``FORMAT.md`` 5)."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from scheduling.engine.candidates import Attempt, Candidate
from scheduling.engine.flavors import refuse_flavor
from scheduling.engine.grades import Grade, Mode, goes_on
from scheduling.engine.kueue.nomination import HARDNESS, Nomination, Pick
from scheduling.engine.kueue.picture import Picture
from scheduling.engine.kueue.rooms import Demand, levels_suit, request_of
from scheduling.engine.kueue.victims import Need, Victims
from scheduling.engine.queue_rules import Fungibility
from scheduling.engine.snapshot import (
    ClusterQueue,
    FlavorResource,
    PodSet,
    ResourceGroup,
    TopologyRequest,
    Workload,
)
from scheduling.engine.terms import (
    BorrowWithinCohort,
    PendingReason,
    ReclaimWithinCohort,
)
from scheduling.engine.tree import QuotaKey, queue_key
from scheduling.engine.usage import asked_of

Pinned = Mapping[str, Mapping[str, str]]  # pod set -> resource -> flavor


@dataclass(frozen=True, slots=True)
class _Found:
    """The outcome of one group's search.

    ``reason`` is the mildest of the flavors that were looked at and did not simply fit;
    ``tried`` None: the list was seen to its end.
    """

    picks: Mapping[str, Pick]
    reason: PendingReason | None
    tried: int | None


class Nominator:
    """Assigns flavors against the picture as it stands; leaves it as it found it."""

    def __init__(self, picture: Picture, victims: Victims) -> None:
        self._picture, self._victims = picture, victims

    def nominate(
        self,
        workload: Workload,
        tried: Mapping[str, int],
        pinned: Pinned | None = None,
        gone: Collection[str] = (),
    ) -> Nomination:
        """Return the best assignment, or why there is none.

        Args:
            workload: with the counts that are asked for.
            tried: where the last search of each "pod set/resource" stopped.
            pinned: flavors to keep to; default: all of the queue, in its order.
            gone: victims that are out of the picture already.
        """
        queue = self._picture.queues[workload.queue or ""]
        turn = _Turn(self._picture, self._victims, workload, queue, gone)
        found = turn.run(tried, pinned)
        return found if found.reason else self._placed(found, queue)

    def victims_of(
        self, nomination: Nomination, gone: Collection[str] = ()
    ) -> tuple[Candidate, ...]:
        """Return whom the nomination would evict, as candidates."""
        key = queue_key(nomination.workload.queue or "")
        attempt = Attempt(nomination.workload, key, nomination.usage, nomination.contested)

        def placed() -> bool:
            return self._picture.rooms.find(nomination.demands) is not None

        return self._victims.find(Need(attempt, placed), gone)

    def _placed(self, found: Nomination, queue: ClusterQueue) -> Nomination:
        """Look for room on the nodes (``FORMAT.md`` 10.8)."""
        demands = self._demands(found, queue)
        if not demands:
            return found
        found = replace(found, demands=demands)
        if found.mode is Mode.FIT:
            placement = self._picture.rooms.find(demands)
            if placement is not None:
                return replace(found, placement=placement)
            found = replace(found, lacking=self._stuck(demands))
        if self._picture.rooms.find(demands, empty=True) is None:
            never = self._stuck(demands, empty=True)
            told = found.wanting <= never
            return replace(found, reason=PendingReason.TOPOLOGY_PLACEMENT_FAILED, told=told)
        return found

    def _stuck(self, demands: Sequence[Demand], *, empty: bool = False) -> frozenset[str]:
        """Return the first pod sets for which there is no room behind the earlier ones."""
        rooms = self._picture.rooms
        for count, demand in enumerate(demands, start=1):
            if rooms.find(demands[:count], empty=empty) is None:
                return frozenset(pod_set.name for pod_set in demand.pod_sets)
        return frozenset()

    def _demands(self, found: Nomination, queue: ClusterQueue) -> tuple[Demand, ...]:
        demands: list[Demand] = []
        for pod_sets in grouped(found.workload.pod_sets):
            request = request_of(self._picture.atlas, queue, pod_sets[0])
            flavors = found.flavors.get(pod_sets[0].name, {}).values()
            placing = [f.name for f in self._picture.atlas.flavors(flavors) if f.topology]
            if request is not None and placing:
                led = tuple(sorted(pod_sets, key=lambda p: -p.count))
                demands.append(Demand(placing[0], led, request))
        return tuple(demands)


def grouped(pod_sets: Iterable[PodSet]) -> list[tuple[PodSet, ...]]:
    """Return the pod sets that are assigned together, in order of their first member."""
    groups: dict[tuple[str, str], list[PodSet]] = {}
    for pod_set in pod_sets:
        name = pod_set.topology.group if pod_set.topology else ""
        key = ("group", name) if name else ("alone", pod_set.name)
        groups.setdefault(key, []).append(pod_set)
    return [tuple(group) for group in groups.values()]


class _Turn:
    """One nomination of one workload."""

    def __init__(
        self,
        picture: Picture,
        victims: Victims,
        workload: Workload,
        queue: ClusterQueue,
        gone: Collection[str],
    ) -> None:
        self._picture, self._victims, self._gone = picture, victims, gone
        self._workload, self._queue = workload, queue
        self._key = queue_key(queue.name)
        self._usage: Counter[FlavorResource] = Counter()

    def run(self, tried: Mapping[str, int], pinned: Pinned | None) -> Nomination:
        """Return the nomination. The first pod set that fails ends it."""
        picks: dict[str, Mapping[str, Pick]] = {}
        stops: dict[str, int] = {}
        for pod_sets in grouped(self._workload.pod_sets):
            first, asked = pod_sets[0].name, self._asked(pod_sets)
            keep = pinned.get(first, {}) if pinned else pod_sets[0].flavors
            chosen, reason, places = self._assign(pod_sets, asked, tried, keep)
            if reason is not None:
                return Nomination(self._workload, picks, self._usage, stops, reason)
            stops |= {f"{first}/{resource}": place for resource, place in places.items()}
            picks |= dict.fromkeys((pod_set.name for pod_set in pod_sets), chosen)
            for resource, pick in chosen.items():
                self._usage[FlavorResource(pick.flavor, resource)] += asked[resource]
        return Nomination(self._workload, picks, self._usage, stops)

    def _assign(
        self,
        pod_sets: Sequence[PodSet],
        asked: Mapping[str, int],
        tried: Mapping[str, int],
        keep: Mapping[str, str] | None,
    ) -> tuple[dict[str, Pick], PendingReason | None, dict[str, int]]:
        """Return a flavor for every resource, or why not, and where the searches stopped.

        The reason is the hardest of the groups that were looked at.
        """
        picks, places = dict[str, Pick](), dict[str, int]()
        reasons: list[PendingReason] = []
        for resource in self._in_group_order(asked):
            if resource in picks:
                continue
            start = tried.get(f"{pod_sets[0].name}/{resource}", -1) + 1
            found = self._search(pod_sets, asked, resource, start, keep)
            reasons += [found.reason] if found.reason else []
            if not found.picks:
                return {}, max(reasons, key=HARDNESS.index), places
            picks |= found.picks
            if found.tried is not None:
                places |= dict.fromkeys(found.picks, found.tried)
        return picks, None, places

    def _in_group_order(self, asked: Mapping[str, int]) -> list[str]:
        covered = [r for group in self._queue.groups for r in group.resources if r in asked]
        return covered + sorted(asked.keys() - set(covered))

    def _asked(self, pod_sets: Sequence[PodSet]) -> dict[str, int]:
        asked: Counter[str] = Counter()
        for pod_set in pod_sets:
            for resource, amount in asked_of(self._queue, pod_set).items():
                asked[resource] += amount * pod_set.count
        return dict(asked)

    def _search(
        self,
        pod_sets: Sequence[PodSet],
        asked: Mapping[str, int],
        resource: str,
        start: int,
        keep: Mapping[str, str] | None,
    ) -> _Found:
        """Return the best flavor of the group that covers ``resource`` (``FORMAT.md`` 5.4)."""
        group = next((g for g in self._queue.groups if resource in g.resources), None)
        if group is None:
            return _Found({}, PendingReason.NO_MATCHING_FLAVOR, None)
        wanted = {r: asked[r] for r in group.resources if r in asked}
        rules, best = self._queue.fungibility, dict[str, Pick]()
        reasons, last = list[PendingReason](), len(group.flavors) - 1
        place = -1
        for place in range(start, last + 1):
            flavor = group.flavors[place].flavor
            if keep is not None and keep.get(resource) != flavor:
                continue
            picks, reason = self._judge(pod_sets, group, place, wanted)
            reasons += [reason] if reason else []
            if picks and not goes_on(_worst(picks, rules), rules):
                best = picks
                break
            if picks and (not best or _better(picks, best, rules)):
                best = picks
        mildest = min(reasons, key=HARDNESS.index, default=None)
        if not best and mildest is None:
            mildest = PendingReason.NO_MATCHING_FLAVOR
        stopped = place if start <= place < last else None
        return _Found(best, mildest, stopped)

    def _judge(
        self,
        pod_sets: Sequence[PodSet],
        group: ResourceGroup,
        place: int,
        wanted: Mapping[str, int],
    ) -> tuple[dict[str, Pick], PendingReason | None]:
        """Return the flavor's pick for each resource; none if it cannot serve, and why."""
        quotas = group.flavors[place]
        if not all(self._suits(quotas.flavor, pod_set) for pod_set in pod_sets):
            return {}, PendingReason.NO_MATCHING_FLAVOR
        picks: dict[str, Pick] = {}
        reasons: list[PendingReason] = []
        for resource, amount in wanted.items():
            fr = FlavorResource(quotas.flavor, resource)
            grade, reason = self._grade(fr, amount + self._usage[fr])
            reasons += [reason] if grade.mode is Mode.NO_FIT else []
            picks[resource] = Pick(quotas.flavor, grade)
        return ({}, max(reasons, key=HARDNESS.index)) if reasons else (picks, None)

    def _suits(self, name: str, pod_set: PodSet) -> bool:
        atlas = self._picture.atlas
        if refuse_flavor(atlas, name, pod_set) is not None:
            return False
        request: TopologyRequest | None = request_of(atlas, self._queue, pod_set)
        return levels_suit(atlas, atlas.snapshot.flavors[name], request)

    def _grade(self, fr: FlavorResource, amount: int) -> tuple[Grade, PendingReason]:
        """Return how ``amount`` of one column can be had (``FORMAT.md`` 5.3)."""
        ledger = self._picture.ledger
        if amount > ledger.potential(self._key, fr):
            return Grade(Mode.NO_FIT), PendingReason.EXCEEDS_MAX_QUOTA
        level = ledger.borrow_level(self._key, fr, amount)
        if amount <= ledger.available(self._key, fr):
            return Grade(Mode.FIT, level), PendingReason.WAITING_FOR_QUOTA
        if not self._may_preempt(fr, amount, level):
            return Grade(Mode.NO_FIT), PendingReason.WAITING_FOR_QUOTA
        return self._simulated(fr, amount, level), PendingReason.WAITING_FOR_QUOTA

    def _may_preempt(self, fr: FlavorResource, amount: int, level: int) -> bool:
        ledger, rights = self._picture.ledger, self._queue.preemption
        if amount <= ledger.quota(self._key, fr).nominal:
            return True
        if level < ledger.height(ledger.root(self._key)):
            return True
        if rights.borrow_within_cohort is not BorrowWithinCohort.NEVER:
            return True
        fair = bool(self._picture.snapshot.fair_strategies)
        return fair and rights.reclaim_within_cohort is not ReclaimWithinCohort.NEVER

    def _simulated(self, fr: FlavorResource, amount: int, level: int) -> Grade:
        """Return the grade of a preemption for this column alone."""
        attempt = Attempt(self._workload, self._key, {fr: amount}, frozenset({fr}))
        victims = self._victims.find(Need(attempt), self._gone)
        if not victims:
            return Grade(Mode.NO_CANDIDATES, level)
        own: QuotaKey = self._key
        mode = Mode.PREEMPT if any(v.queue == own for v in victims) else Mode.RECLAIM
        with self._picture.without([v.workload.key for v in victims]):
            return Grade(mode, self._picture.ledger.borrow_level(own, fr, amount))


def _worst(picks: Mapping[str, Pick], rules: Fungibility) -> Grade:
    return min((pick.grade for pick in picks.values()), key=lambda g: g.rank(rules.preference))


def _better(picks: Mapping[str, Pick], best: Mapping[str, Pick], rules: Fungibility) -> bool:
    mine, other = _worst(picks, rules), _worst(best, rules)
    return mine.rank(rules.preference) > other.rank(rules.preference)
