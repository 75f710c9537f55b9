"""Kueue's cycle as a pure function: one head of each queue, all nominated against one picture.

Source: ``FORMAT.md`` 3, 5 and 6.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from scheduling.engine import partial
from scheduling.engine.candidates import Candidate
from scheduling.engine.grades import Mode
from scheduling.engine.growth import asked, merged, original_of
from scheduling.engine.kueue.fair import FairVictims
from scheduling.engine.kueue.flavors import Nominator, Pinned
from scheduling.engine.kueue.heads import Heads
from scheduling.engine.kueue.nomination import Nomination
from scheduling.engine.kueue.order import by_share, classic
from scheduling.engine.kueue.picture import Picture
from scheduling.engine.kueue.victims import ClassicVictims, Victims
from scheduling.engine.lobby import Lobby
from scheduling.engine.profile import Profile
from scheduling.engine.shares import Shares
from scheduling.engine.snapshot import Assignment, FlavorResource, Snapshot, Workload
from scheduling.engine.terms import PendingReason, ReclaimWithinCohort
from scheduling.engine.tree import QuotaKey, queue_key


class HeadOutcome(StrEnum):
    """What became of one head (``FORMAT.md`` 2)."""

    ADMITTED = "Admitted"
    PREEMPTING = "Preempting"
    DEFERRED_FIT = "DeferredFit"
    SKIPPED = "Skipped"
    NO_CANDIDATES = "NoCandidates"
    NO_FIT = "NoFit"


_REASONS = {
    HeadOutcome.PREEMPTING: PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS,
    HeadOutcome.DEFERRED_FIT: PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS,
    HeadOutcome.SKIPPED: PendingReason.WAITING_FOR_QUOTA,
    HeadOutcome.NO_CANDIDATES: PendingReason.WAITING_FOR_QUOTA,
}


@dataclass(slots=True)
class Entry:
    """A head of this cycle, and what is decided on it."""

    workload: Workload
    queue: QuotaKey
    nomination: Nomination
    victims: tuple[Candidate, ...] = ()
    outcome: HeadOutcome = HeadOutcome.NO_FIT
    deferred: bool = False
    original: Workload | None = None  # of which this is a grown copy

    @property
    def reason(self) -> PendingReason | None:
        """Return the summary word for why it waits; None if it was admitted."""
        told = self.nomination.reason if self.nomination.told else None
        return _REASONS.get(self.outcome, told)

    @property
    def assignments(self) -> tuple[Assignment, ...]:
        """Return where it would stand, with the pods that it takes over."""
        more = self.nomination.assignments
        return merged(self.workload, self.original, more) if self.original else more

    @property
    def replaces(self) -> str:
        """Return the key of the running workload whose place it takes, or ""."""
        return self.original.key if self.original else ""

    @property
    def victim_keys(self) -> frozenset[str]:
        """Return whom it would evict."""
        return frozenset(victim.workload.key for victim in self.victims)


@dataclass(frozen=True, slots=True)
class Round:
    """The heads of one cycle in the order in which they were processed, and the memory."""

    entries: tuple[Entry, ...]
    lobby: Lobby


class Board:
    """The picture of the last cycle, kept for the next one; a fresh board decides the same."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._picture: Picture | None = None

    def picture(self, snapshot: Snapshot) -> Picture:
        """Return the picture of a snapshot: the kept one, if the platform is the same."""
        if self._picture is None or not self._picture.suits(snapshot):
            self._picture = Picture(snapshot, self._profile)
        else:
            self._picture.show(snapshot)
        return self._picture


def decide_heads(snapshot: Snapshot, profile: Profile, board: Board | None = None) -> Round:
    """Return what happens to one head of each queue. Equal snapshots give equal rounds.

    ``board``: kept from the last cycle of this profile; default: a fresh one.
    """
    board = board or Board(profile)
    heads = Heads(snapshot, profile)
    lobby = heads.arrivals_parked(snapshot.memory.lobby)
    lines = heads.lines(lobby)
    if not lines:
        return Round((), lobby)
    lobby = replace(lobby, cycle=lobby.cycle + 1)
    picture = board.picture(snapshot)
    with picture.trial():  # the cycle's own charges are undone when it ends
        cycle = _Cycle(picture)
        entries = [cycle.nominate(line[0], heads.scan(line[0], lobby)) for line in lines.values()]
        processed = cycle.process(entries)
    for entry in processed:
        lobby = _after(heads, lobby, entry, lines[entry.queue.name])
    return Round(tuple(processed), lobby)


def _after(heads: Heads, lobby: Lobby, entry: Entry, line: list[Workload]) -> Lobby:
    """Return where a head goes now (``FORMAT.md`` 4.3 and 4.5)."""
    work, outcome = entry.workload, entry.outcome
    if outcome is HeadOutcome.ADMITTED:
        return lobby.forget(work.key)
    if outcome in (HeadOutcome.PREEMPTING, HeadOutcome.DEFERRED_FIT):
        preemptors = {**lobby.preemptors, entry.queue.name: work.key}
        return replace(lobby.forget(work.key, gone=False), preemptors=preemptors)
    lobby = heads.remember(work, lobby, entry.nomination.tried)
    if outcome is HeadOutcome.SKIPPED or entry.nomination.tried:
        return lobby
    return heads.set_aside(work, lobby, line)


class _Cycle:
    """The work of one cycle on its picture."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._shares = Shares(picture.snapshot, picture.ledger)
        self._fair = bool(picture.snapshot.fair_strategies)
        self._victims: Victims = ClassicVictims(picture)
        if self._fair:
            self._victims = FairVictims(picture, self._shares)
        self._nominator = Nominator(picture, self._victims)
        self._taken: set[str] = set()  # victims chosen in this cycle
        self._replaced: set[str] = set()  # originals of copies admitted in this cycle

    def nominate(
        self, work: Workload, tried: Mapping[str, int], pinned: Pinned | None = None
    ) -> Entry:
        """Return what the workload would like, with fewer pods if need be."""
        queue, original = queue_key(work.queue or ""), original_of(work, self._picture.admitted)
        asking = asked(work, original, self._picture.atlas) if original else work

        def attempt(asking: Workload) -> Entry:
            nomination = self._nominator.nominate(asking, tried, pinned, self._taken)
            victims = self._victims_of(nomination)
            return Entry(work, queue, nomination, victims, original=original)

        def smaller(reduced: Workload) -> Entry | None:
            entry = attempt(reduced)
            return entry if _works(entry) else None

        entry = attempt(asking)
        if _works(entry) or not partial.reducible(asking):
            return entry
        return partial.search(asking, smaller) or entry

    def _victims_of(self, nomination: Nomination) -> tuple[Candidate, ...]:
        if nomination.mode is not Mode.PREEMPT:
            return ()
        return self._nominator.victims_of(nomination, self._taken)

    def process(self, entries: list[Entry]) -> list[Entry]:
        """Decide on every entry in turn, against the picture as the earlier ones left it."""
        order = classic(entries)
        if self._fair:
            order = by_share(self._picture, self._shares, entries)
        processed = []
        for entry in order:
            self._revise(entry)
            entry.outcome = self._outcome(entry)
            processed.append(entry)
        return processed

    def _revise(self, entry: Entry) -> None:
        """Compute again what an earlier entry has overtaken, with the same flavors."""
        shared = bool(entry.victim_keys & self._taken)
        if not shared and not self._crowded(entry):
            return
        with self._picture.without(self._taken):
            again = self.nominate(entry.workload, {}, entry.nomination.flavors)
        entry.deferred = shared and again.nomination.mode is Mode.FIT
        if shared or again.nomination.mode is not Mode.NO_FIT:
            tried = {} if shared else entry.nomination.tried
            entry.nomination = replace(again.nomination, tried=tried)
            entry.victims = again.victims

    def _crowded(self, entry: Entry) -> bool:
        """Return whether only the topology has no room any more, once all victims are gone."""
        nomination, rooms = entry.nomination, self._picture.rooms
        if not _works(entry) or not nomination.demands:
            return False
        with self._picture.without(self._taken | entry.victim_keys):
            if not self._picture.fits(entry.queue, nomination.usage):
                return False
            if nomination.placement is not None:
                return not rooms.have(nomination.demands, nomination.placement)
            return rooms.find(nomination.demands) is None

    def _outcome(self, entry: Entry) -> HeadOutcome:
        nomination = entry.nomination
        if nomination.mode is Mode.NO_FIT:
            return HeadOutcome.NO_FIT
        if nomination.mode is Mode.PREEMPT and not entry.victims:
            self._hold_back(entry)
            return HeadOutcome.NO_CANDIDATES
        lost = self._taken | self._replaced
        if entry.victim_keys & lost or entry.replaces in lost or not self._fits(entry):
            return HeadOutcome.SKIPPED
        self._charge(entry)
        if nomination.mode is Mode.PREEMPT:
            self._taken |= entry.victim_keys
            return HeadOutcome.PREEMPTING
        if entry.deferred:
            return HeadOutcome.DEFERRED_FIT
        self._replaced |= {entry.replaces} - {""}
        return HeadOutcome.ADMITTED

    def _fits(self, entry: Entry) -> bool:
        """Return whether it fits once all victims of the cycle, its own included, are gone."""
        nomination, picture = entry.nomination, self._picture
        with picture.without(self._taken | entry.victim_keys):
            if not picture.fits(entry.queue, nomination.usage):
                return False
            if nomination.placement is not None:
                return picture.rooms.have(nomination.demands, nomination.placement)
            placement = picture.rooms.find(nomination.demands)
        if nomination.demands:
            entry.nomination = replace(nomination, placement=placement)
        return placement is not None

    def _charge(self, entry: Entry) -> None:
        self._picture.charge(entry.queue, entry.nomination.usage)
        if entry.nomination.placement is not None:
            self._picture.rooms.take(entry.nomination.demands, entry.nomination.placement)

    def _hold_back(self, entry: Entry) -> None:
        """Keep for this cycle what nobody may be evicted for (``FORMAT.md`` 6.3.3)."""
        rights = self._picture.queues[entry.queue.name].preemption
        reclaims = rights.reclaim_within_cohort is ReclaimWithinCohort.ANY
        if reclaims or not self._picture.profile.hold_back:
            return
        nomination, ledger = entry.nomination, self._picture.ledger
        kept: dict[FlavorResource, int] = {}
        for fr, amount in nomination.usage.items():
            quota, used = ledger.quota(entry.queue, fr), ledger.used(entry.queue, fr)
            room = quota.nominal - used
            if nomination.level > 0:
                limit = quota.borrowing_limit
                room = amount if limit is None else room + limit
            kept[fr] = max(0, min(amount, room))
        self._picture.charge(entry.queue, kept)
        placement = self._picture.rooms.find(nomination.demands, empty=True)
        if placement:
            self._picture.rooms.take(nomination.demands, placement)


def _works(entry: Entry) -> bool:
    return entry.nomination.mode is Mode.FIT or bool(entry.victims)
