"""A real cluster: agents start and stop members on their nodes, and report over REST.

What should stand the agents read from the rows themselves (``scheduling.selectors.agents``); what
they have told stands in rows too. So this cluster remembers nothing, and can be asked at any time
by any process.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from scheduling.backends.base import End, Gang, MemberEnd, Sighting
from scheduling.models import AgentNode, MemberState, Node
from scheduling.models.agents import RELEASED
from scheduling.muster import Lot, Slot, muster


class ExternalBackend:
    """The machines of all agents."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._gangs: tuple[Gang, ...] = ()

    def converge(self, desired: Sequence[Gang]) -> None:
        """Take note of the gangs that should stand; nothing is written, agents read the rows."""
        self._gangs = tuple(desired)

    def observe(self) -> Sequence[Sighting]:
        """Return what agents have told of each of them. 2 queries, none without gangs."""
        if not self._gangs:
            return []
        known = MemberState.objects.filter(admission__in=[gang.admission for gang in self._gangs])
        driven = frozenset(
            AgentNode.objects.filter(name__in=Node.objects.values("name")).values_list(
                "name", flat=True
            )
        )
        return _sight_all(self._gangs, known.order_by("id"), driven, self._now)


def _sight_all(
    gangs: Sequence[Gang], states: Iterable[MemberState], driven: frozenset[str], now: datetime
) -> list[Sighting]:
    slots = muster(_lot(gang) for gang in gangs)
    latest: dict[Slot, MemberState] = {}
    present: defaultdict[int, list[MemberState]] = defaultdict(list)
    for row in states:
        latest[row.place] = row  # the newest serial comes last
        if row.gone_at is None:
            present[row.admission_id].append(row)
    look = _Look(latest, present, driven, now)
    return [
        look.leaving(gang, slots.leave[gang.admission])
        if gang.evicted_at
        else look.standing(gang, slots.stand[gang.admission])
        for gang in gangs
    ]


def _lot(gang: Gang) -> Lot:
    pods = [(part.pod_set, part.node, part.count) for part in gang.pods]
    return Lot(gang.admission, gang.attempt, gang.evicted_at is not None, pods, gang.part_of)


class _Look:
    """What is known of all members at one instant."""

    def __init__(
        self,
        latest: Mapping[Slot, MemberState],
        present: Mapping[int, Sequence[MemberState]],
        driven: frozenset[str],
        now: datetime,
    ) -> None:
        self._latest, self._present = latest, present
        self._driven, self._now = driven, now

    def standing(self, gang: Gang, slots: Sequence[Slot]) -> Sighting:
        """Return how a gang stands that nobody has asked to stop."""
        rows = [self._latest.get(slot) for slot in slots]
        told = [row for row in rows if row is not None]
        started = gang.started_at or _all_ready_at(rows)
        return Sighting(
            admission=gang.admission,
            started_at=started,
            attempt=gang.attempt,
            unready_since=self._unready_since(gang, rows) if started else None,
            ready=sum(_is_ready(row) for row in told),
            ends=tuple(_end(row) for row in told if row.end and row.end != RELEASED),
            checkpoint_at=max((r.checkpoint_at for r in told if r.checkpoint_at), default=None),
        )

    def _unready_since(self, gang: Gang, rows: Sequence[MemberState | None]) -> datetime | None:
        """Return since when not all of a started gang are ready, those that are over aside."""
        wanting = [row for row in rows if row is None or not (_is_ready(row) or _is_over(row))]
        if not wanting:
            return None
        known = [row.unready_since for row in wanting if row and row.unready_since]
        return gang.unready_since or min(known, default=self._now)

    def leaving(self, gang: Gang, slots: Sequence[Slot]) -> Sighting:
        """Return whether the last pod of a gang that should leave has gone, and when."""
        assert gang.evicted_at is not None
        gone = [gang.evicted_at]
        for slot in slots:
            row = self._latest.get(slot)
            if slot.member.node not in self._driven:
                gone.append(self._lost_at(row, gang.evicted_at))
            elif row is None or row.gone_at is None:
                return Sighting(gang.admission, gang.started_at, attempt=gang.attempt)
            else:
                gone.append(row.gone_at)
        if any(row.node in self._driven for row in self._present.get(gang.admission, ())):
            return Sighting(gang.admission, gang.started_at, attempt=gang.attempt)
        return Sighting(
            gang.admission, gang.started_at, released_at=max(gone), attempt=gang.attempt
        )

    def _lost_at(self, row: MemberState | None, evicted_at: datetime) -> datetime:
        """Return when a member was gone whose node nobody drives: its agent took the node back."""
        if row is None:
            return evicted_at
        return row.gone_at or self._now


def _all_ready_at(rows: Sequence[MemberState | None]) -> datetime | None:
    """Return the first instant at which all members were ready, or had finished well."""
    instants = [row.ready_at for row in rows if row is not None and row.ready_at is not None]
    if not rows or len(instants) < len(rows):
        return None
    whole = max(instants)
    bad = (row for row in rows if row and row.end in (End.FAILED, End.LOST))
    return None if any(row.gone_at and row.gone_at < whole for row in bad) else whole


def _is_ready(row: MemberState) -> bool:
    return row.ready_at is not None and row.unready_since is None and row.gone_at is None


def _is_over(row: MemberState) -> bool:
    return bool(row.end) and row.end != RELEASED


def _end(row: MemberState) -> MemberEnd:
    assert row.gone_at is not None
    return MemberEnd(row.place.member, End(row.end), row.gone_at, row.exit_code, row.why)
