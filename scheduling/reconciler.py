"""What the cluster reports becomes rows: gangs start, end, and give back what they held."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from uuid import UUID

from django.conf import settings

from gpuplatform.common import clock, leases
from gpuplatform.common.questions import fetch
from gpuplatform.common.wakeup import note_changes, wake
from scheduling import agents, lifecycle, moves, persist, upkeep
from scheduling.backends import backend_at
from scheduling.backends.base import Gang, Sighting
from scheduling.desired import gangs_of, read_open
from scheduling.engine.terms import Status
from scheduling.holders import Holder, read_holders
from scheduling.kept import Kept
from scheduling.members import End, MemberEnd
from scheduling.models import Admission, Node
from scheduling.models import MemberEnd as EndRow
from scheduling.moves import Move
from scheduling.releasing import release

logger = logging.getLogger(__name__)
BATCH, TOLD = 200, 20  # rows of a statement; ends of members that the story names at once


@dataclass(frozen=True, slots=True)
class ReconcileReport:
    """What became of one look at the cluster. ``ran`` false: another process was writing.

    ``broken`` counts gangs of which pods have gone with their node, ``judged`` those that were
    restarted, sent back, deactivated or ended by what the rows and the clock say.
    ``look_again_at``: when time alone changes something of what is held.
    """

    ran: bool = True
    started: int = 0
    released: int = 0
    broken: int = 0
    judged: int = 0
    noted: int = 0
    look_again_at: datetime | None = None

    @property
    def moved(self) -> bool:
        """Return whether anything changed."""
        return bool(self.started or self.released or self.broken or self.judged or self.noted)


@dataclass(frozen=True, slots=True)
class _Look:
    """What is held as the rows say it, what the cluster says, and the nodes that there are."""

    rows: Mapping[int, Holder]
    gangs: Mapping[int, Gang]
    sightings: Sequence[Sighting]
    held: upkeep.Held
    ready: frozenset[str]
    known: frozenset[str]


def reconcile(
    now: datetime | None = None, holder: str | None = None, kept: Kept | None = None
) -> ReconcileReport:
    """Bring rows up to what the cluster has done by ``now``; a second call finds nothing to do.

    The cluster is asked before the transaction begins. Everything is written at the instant at
    which it happened, however late it was noticed.

    Args:
        now: the instant; the clock's by default.
        holder: who asks for the lease.
        kept: the world of whoever decides, which follows what is written. Without one, or where
            it is outdated, the world is read where it is needed. After an error it is of no use.
    """
    now = now or clock.now()
    if settings.CLUSTER_BACKEND == "external":
        agents.note_silence(now)
    look = _look(now)
    told = [s for s in look.sightings if _is_news(look.rows[s.admission], s, look)]
    news, plain = set[int](), set[int]()
    for seen in told:
        (plain if _is_plain(look.rows[seen.admission], seen) else news).add(seen.admission)
    doubtful = {*_on_lost_nodes(look), *upkeep.due(look.held, now)}
    if not (told or doubtful):
        return ReconcileReport(look_again_at=upkeep.look_again_at(look.held, now))
    holder = holder or leases.unique_holder()
    with leases.transaction_under(leases.CYCLE, holder, settings.CYCLE_LEASE_S) as lease:
        if lease is None:
            return ReconcileReport(ran=False)
        rows = {pk: look.rows[pk] for pk in sorted(plain - news - doubtful)}
        rows |= _still(look.rows, news | doubtful)
        return _note(look, rows, now, kept if kept and kept.follows() else None)


# ---- what there is -----------------------------------------------------------------------------
def _look(now: datetime) -> _Look:
    """Ask the cluster, and read what its answer is compared with."""
    rows, stands = read_open()
    gangs = gangs_of(rows, stands)
    backend = backend_at(now)
    backend.converge(list(gangs.values()))
    seen = [s for s in backend.observe() if s.admission in gangs]
    seen += [Sighting(row.pk, released_at=row.evicted_at) for row in rows if _is_unused(row)]
    nodes = dict(Node.objects.values_list("name", "ready"))
    return _Look(
        rows={row.pk: row for row in rows},
        gangs=gangs,
        sightings=sorted(seen, key=attrgetter("admission")),
        held=upkeep.read_held(rows, stands, now),
        ready=frozenset(name for name, ready in nodes.items() if ready) | {""},
        known=frozenset(nodes) | {""},
    )


def _is_unused(row: Holder) -> bool:
    """Return whether what was reserved is given back: nothing ever stood there."""
    return row.is_reserved and row.evicted_at is not None


# ---- what is new -------------------------------------------------------------------------------
def _is_news(row: Holder, seen: Sighting, look: _Look) -> bool:
    """Return whether the cluster tells something that the rows do not know yet."""
    if seen.released_at is not None:
        return True
    if seen.attempt != row.attempt or row.evicted_at is not None:
        return False
    starts = row.started_at is None and seen.started_at is not None
    return starts or _of_members(row, seen, look)


def _of_members(row: Holder, seen: Sighting, look: _Look) -> bool:
    """Return whether there is news of members, readiness or progress of an attempt that is on."""
    if seen.attempt != row.attempt or row.evicted_at is not None:
        return False
    wavers = row.started_at is not None and seen.unready_since != row.unready_since
    return wavers or _is_later(seen.checkpoint_at, row) or bool(_new_ends(row, seen, look))


def _new_ends(row: Holder | Admission, seen: Sighting, look: _Look) -> list[MemberEnd]:
    """Return the members that are over and not known to be; not those whose node is away.

    What becomes of a gang that has lost a node a cycle decides.
    """
    if not seen.ends:
        return []
    known = {end.member for end in look.held.ends.get(row.pk, ())}
    fresh = [end for end in seen.ends if end.member not in known]
    return [end for end in fresh if end.end is not End.LOST or end.member.node in look.ready]


def _is_plain(row: Holder, seen: Sighting) -> bool:
    """Return whether a gang has just started or ended by itself, and there is nothing else to it.

    Who has changed meanwhile is found when that is written: most look like this.
    """
    if row.evicted_at is not None or row.is_part or row.is_reserved:
        return False
    if seen.released_at is not None:
        return seen.outcome is not None
    starts = row.started_at is None and seen.started_at is not None
    return starts and not (seen.ends or seen.checkpoint_at or seen.unready_since)


def _is_later(checkpoint: datetime | None, row: Holder | Admission) -> bool:
    last = row.workload.last_checkpoint_at
    return checkpoint is not None and (last is None or checkpoint > last)


def _on_lost_nodes(look: _Look) -> dict[int, list[str]]:
    """Return the nodes that gangs should stand on and that have left the cluster, by admission."""
    return {
        gang.admission: sorted({pods.node for pods in gang.pods} - look.known)
        for gang in look.gangs.values()
        if gang.evicted_at is None and any(pods.node not in look.known for pods in gang.pods)
    }


# ---- what is written ---------------------------------------------------------------------------
def _note(
    look: _Look, rows: Mapping[int, Holder], now: datetime, kept: Kept | None
) -> ReconcileReport:
    """Write the news of gangs that started, ended, or lost a node, and what follows from them."""
    news = [seen for seen in look.sightings if seen.admission in rows]
    news = [seen for seen in news if _is_news(rows[seen.admission], seen, look)]
    started = _start([(rows[seen.admission], seen) for seen in news])
    noted, told = _note_members([s for s in news if s.released_at is None], rows, look, now)
    gone = {seen.admission for seen in news if seen.released_at}
    ends = [(s.released_at, rows[s.admission], s.outcome) for s in news if s.released_at]
    released = release(sorted(ends, key=lambda end: (end[0], end[1].pk)), now, kept)
    look.held.rows = [told.get(pk, row) for pk, row in rows.items() if pk not in gone]
    judged = upkeep.follow(look.held, now)
    lost = {pk: names for pk, names in _on_lost_nodes(look).items() if pk in rows}
    broken = _tell_lost(lost, now)
    others = {row.workload_id for row in told.values()} | {rows[pk].workload_id for pk in lost}
    _pass_on(kept, {row.workload_id for row in released}, started, others)
    if judged:  # each of them is noted as it was moved
        wake()
    return ReconcileReport(
        started=len(started), released=len(released), broken=broken, judged=judged, noted=noted
    )


def _pass_on(
    kept: Kept | None, released: set[UUID], started: Mapping[UUID, Move], others: set[UUID]
) -> None:
    """Note what has changed; a kept world that has followed it need not read it again."""
    begun = started.keys() - released - others
    running = {uid: started[uid] for uid in sorted(begun, key=attrgetter("int"))}
    noted = note_changes(lifecycle.CHANGED, sorted(released - others, key=attrgetter("int")))
    noted += note_changes(lifecycle.STARTED, running)
    if kept is not None:
        kept.run(running)
        kept.note(noted)
    if others:
        note_changes(lifecycle.CHANGED, sorted(others))
    if released or others:
        wake()


def _still(seen: Mapping[int, Holder], concerned: Collection[int]) -> dict[int, Holder]:
    """Return which of these admissions are open now; those that have changed are read anew."""
    found: dict[int, Holder] = {}
    changed = []
    open_ones = Admission.objects.filter(released_at=None).order_by()
    facts = open_ones.values_list("pk", "workload__version", "evicted_at")
    for part in persist.among(facts, concerned):
        for pk, version, evicted_at in fetch(part):
            row = seen.get(pk)
            if row is None or (row.workload.version, row.evicted_at) != (version, evicted_at):
                changed.append(pk)
            else:
                found[pk] = row
    return found | {row.pk: row for row in read_holders(changed)}


def _start(news: Iterable[tuple[Holder, Sighting]]) -> dict[UUID, Move]:
    """Let gangs run of which all pods are ready; a few statements for all of them."""
    begun = [
        (row, Move(row.workload, Status.RUNNING, seen.started_at))
        for row, seen in news
        if seen.started_at is not None and _may_start(row, seen)
    ]
    done = moves.take([move for _, move in begun])
    begun = [(row, move) for row, move in begun if move.workload.uid in done]
    for row, move in begun:
        row.workload.follow(move)
        row.started_at = move.at
    persist.update(
        Admission, ("id",), ("started_at",), [(row.pk, row.started_at) for row, _ in begun]
    )
    return {row.workload_id: move for row, move in begun}


def _may_start(row: Holder, seen: Sighting) -> bool:
    waits = row.workload.status == Status.ADMITTED and row.evicted_at is None
    return waits and seen.attempt == row.attempt


def _note_members(
    news: Iterable[Sighting], rows: Mapping[int, Holder], look: _Look, now: datetime
) -> tuple[int, dict[int, Admission]]:
    """Write ends of members, readiness and progress of attempts that go on.

    Returns:
        How much was written, and the admissions that it is about, as rows.
    """
    some = [seen for seen in news if _of_members(rows[seen.admission], seen, look)]
    told = upkeep.read_rows(seen.admission for seen in some)
    done = [_note_of(told[s.admission], s, look, now) for s in some if s.admission in told]
    return sum(done), told


def _note_of(row: Admission, seen: Sighting, look: _Look, now: datetime) -> int:
    if seen.attempt != row.attempt or row.evicted_at is not None:
        return 0
    ends = _new_ends(row, seen, look)
    if ends:
        _write_ends(row, ends, look)
    wavers = row.started_at is not None and seen.unready_since != row.unready_since
    if wavers:
        _note_readiness(row, seen.unready_since, now)
    saved = _is_later(seen.checkpoint_at, row)
    if saved:
        row.workload.last_checkpoint_at = seen.checkpoint_at
        row.workload.save(update_fields=["last_checkpoint_at"])
        lifecycle.tell_checkpoint(row.workload, seen.checkpoint_at or now, at=now)
    return len(ends) + wavers + saved


def _write_ends(row: Admission, ends: Sequence[MemberEnd], look: _Look) -> None:
    """Write members that are over; those that are over for good give their quota back."""
    look.held.ends = {**look.held.ends, row.pk: [*look.held.ends.get(row.pk, ()), *ends]}
    EndRow.objects.bulk_create(
        (
            EndRow(
                admission=row,
                attempt=row.attempt,
                pod_set=end.member.pod_set,
                node=end.member.node,
                slot=end.member.slot,
                end=end.end.value,
                at=end.at,
                exit_code=end.exit_code,
                why=end.why[:64],
            )
            for end in ends
        ),
        ignore_conflicts=True,
        batch_size=BATCH,
    )
    for end in (one for one in ends[:TOLD] if one.end is not End.FINISHED):
        lifecycle.tell(row.workload, f"member_{end.end}", at=end.at, facts=_told(end))
    upkeep.note_over(row, look.held, at=max(end.at for end in ends))


def _told(end: MemberEnd) -> dict[str, str | int]:
    member = end.member
    facts: dict[str, str | int] = {"pod_set": member.pod_set, "node": member.node}
    facts["slot"] = member.slot
    if end.exit_code is not None:
        facts["exit_code"] = end.exit_code
    return facts | ({"why": end.why} if end.why else {})


def _note_readiness(row: Admission, since: datetime | None, now: datetime) -> None:
    """Write that not all pods are ready any more, or that they are again."""
    row.unready_since = since
    row.save(update_fields=["unready_since"])
    kind = "readiness_lost" if since else "readiness_back"
    lifecycle.tell(row.workload, kind, at=since or now)


def _tell_lost(lost: Mapping[int, list[str]], now: datetime) -> int:
    rows = upkeep.read_rows(sorted(lost))
    return sum(_tell_nodes(rows[pk], lost[pk], now) for pk in sorted(rows))


def _tell_nodes(admission: Admission, nodes: list[str], now: datetime) -> bool:
    """Write once that pods have gone with their nodes; what then becomes of it a cycle decides.

    Pods that came back since, or others in their place, may be lost in their turn.
    """
    events = admission.workload.events.filter(at__gte=admission.admitted_at)
    whole = events.filter(kind__in=("mended", "grown")).order_by("id").last()
    told = events.filter(kind="members_lost", id__gt=whole.pk if whole else 0)
    known = {name for event in told for name in event.facts.get("lost", ())}
    news = sorted(set(nodes) - known)
    if not news:
        return False
    facts = {"lost": news}
    lifecycle.tell(admission.workload, "members_lost", at=now, facts=facts)
    logger.info("%s lost pods on %s", admission.workload, ", ".join(nodes))
    return True
