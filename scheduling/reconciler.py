"""What the cluster reports becomes rows: gangs start, end, and give back what they held."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from operator import attrgetter, itemgetter
from uuid import UUID

from django.conf import settings

from gpuplatform.common import clock, leases
from gpuplatform.common.wakeup import note_changes, request_cycle, wake
from scheduling import agents, lifecycle, meter, moves, persist, upkeep
from scheduling.backends import backend_at
from scheduling.backends.base import Gang, Sighting
from scheduling.desired import gangs_of, open_admissions, read_open
from scheduling.engine.parts import leaving_key
from scheduling.engine.terms import Outcome, Status
from scheduling.kept import trees_of
from scheduling.loader import Loaded, load
from scheduling.members import End, MemberEnd
from scheduling.models import Admission, Node
from scheduling.models import MemberEnd as EndRow
from scheduling.moves import Line, Move

logger = logging.getLogger(__name__)
ALIVE = frozenset({Status.ADMITTED, Status.RUNNING, Status.PENDING})
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

    rows: Sequence[Admission]
    gangs: Mapping[int, Gang]
    sightings: Sequence[Sighting]
    held: upkeep.Held
    ready: frozenset[str]
    known: frozenset[str]


def reconcile(now: datetime | None = None, holder: str | None = None) -> ReconcileReport:
    """Bring rows up to what the cluster has done by ``now``; a second call finds nothing to do.

    The cluster is asked before the transaction begins. Everything is written at the instant at
    which it happened, however late it was noticed.
    """
    now = now or clock.now()
    if settings.CLUSTER_BACKEND == "external":
        agents.note_silence(now)
    look = _look(now)
    if not (_has_news(look) or _on_lost_nodes(look) or upkeep.is_due(look.held, now)):
        return ReconcileReport(look_again_at=upkeep.look_again_at(look.held, now))
    holder = holder or leases.unique_holder()
    with leases.transaction_under(leases.CYCLE, holder, settings.CYCLE_LEASE_S) as lease:
        return _note(look, now) if lease else ReconcileReport(ran=False)


# ---- what there is -----------------------------------------------------------------------------
def _look(now: datetime) -> _Look:
    """Ask the cluster, and read what its answer is compared with."""
    rows, placements = read_open()
    gangs = gangs_of(rows, placements)
    backend = backend_at(now)
    backend.converge(list(gangs.values()))
    seen = [s for s in backend.observe() if s.admission in gangs]
    seen += [Sighting(row.pk, released_at=row.evicted_at) for row in rows if _is_unused(row)]
    nodes = dict(Node.objects.values_list("name", "ready"))
    return _Look(
        rows=rows,
        gangs=gangs,
        sightings=sorted(seen, key=attrgetter("admission")),
        held=upkeep.read_held(rows, placements, now),
        ready=frozenset(name for name, ready in nodes.items() if ready) | {""},
        known=frozenset(nodes) | {""},
    )


def _is_unused(row: Admission) -> bool:
    """Return whether what was reserved is given back: nothing ever stood there."""
    return row.is_reserved and row.evicted_at is not None


# ---- what is new -------------------------------------------------------------------------------
def _has_news(look: _Look) -> bool:
    rows = {row.pk: row for row in look.rows}
    return any(_is_news(rows[s.admission], s, look) for s in look.sightings)


def _is_news(row: Admission, seen: Sighting, look: _Look) -> bool:
    """Return whether the cluster tells something that the rows do not know yet."""
    if seen.released_at is not None:
        return True
    if seen.attempt != row.attempt or row.evicted_at is not None:
        return False
    starts = row.started_at is None and seen.started_at is not None
    wavers = row.started_at is not None and seen.unready_since != row.unready_since
    saved = _is_later(seen.checkpoint_at, row)
    return starts or wavers or saved or bool(_new_ends(row, seen, look))


def _new_ends(row: Admission, seen: Sighting, look: _Look) -> list[MemberEnd]:
    """Return the members that are over and not known to be; not those whose node is away.

    What becomes of a gang that has lost a node a cycle decides.
    """
    known = {end.member for end in look.held.ends.get(row.pk, ())}
    fresh = [end for end in seen.ends if end.member not in known]
    return [end for end in fresh if end.end is not End.LOST or end.member.node in look.ready]


def _is_later(checkpoint: datetime | None, row: Admission) -> bool:
    last = row.workload.last_checkpoint_at
    return checkpoint is not None and (last is None or checkpoint > last)


def _on_lost_nodes(look: _Look) -> dict[int, list[str]]:
    """Return the nodes that gangs should stand on and that have left the cluster, by admission."""
    standing = (gang for gang in look.gangs.values() if gang.evicted_at is None)
    lost = {
        gang.admission: sorted({pods.node for pods in gang.pods} - look.known) for gang in standing
    }
    return {admission: names for admission, names in lost.items() if names}


# ---- what is written ---------------------------------------------------------------------------
def _note(look: _Look, now: datetime) -> ReconcileReport:
    """Write the news of gangs that started, ended, or lost a node, and what follows from them."""
    rows = _still(look.rows)
    news = [seen for seen in look.sightings if seen.admission in rows]
    news = [seen for seen in news if _is_news(rows[seen.admission], seen, look)]
    started, noted = _start([(rows[seen.admission], seen) for seen in news]), 0
    for seen in news:
        row = rows[seen.admission]
        if seen.released_at is None:
            noted += _note_members(row, seen, look, now)
    gone = {seen.admission for seen in news if seen.released_at}
    ends = [(s.released_at, rows[s.admission], s.outcome) for s in news if s.released_at]
    released = _release(sorted(ends, key=lambda end: (end[0], end[1].pk)), now)
    look.held.rows = [row for row in rows.values() if row.pk not in gone]
    judged = upkeep.follow(look.held, now)
    lost = {pk: names for pk, names in _on_lost_nodes(look).items() if pk in rows}
    broken = sum(_tell_lost(rows[pk], lost[pk], now) for pk in sorted(lost))
    touched = {rows[pk].workload_id for pk in (*(seen.admission for seen in news), *lost)}
    if released or broken or noted:
        request_cycle(lifecycle.CHANGED, *sorted(touched))
    elif started:
        note_changes(lifecycle.STARTED, sorted(touched))
    if judged:  # each of them is noted as it was moved
        wake()
    return ReconcileReport(
        started=started, released=released, broken=broken, judged=judged, noted=noted
    )


def _still(rows: Iterable[Admission]) -> dict[int, Admission]:
    """Return the admissions that are open now; those that have changed are read anew."""
    seen = {row.pk: row for row in rows}
    open_ones = Admission.objects.filter(released_at=None).order_by("admitted_at", "id")
    found: dict[int, Admission] = {}
    changed = []
    for pk, version, evicted_at in open_ones.values_list("pk", "workload__version", "evicted_at"):
        row = seen.get(pk)
        if row is None or (row.workload.version, row.evicted_at) != (version, evicted_at):
            changed.append(pk)
        else:
            found[pk] = row
    for part in persist.batches(changed):
        found |= {row.pk: row for row in open_admissions().filter(pk__in=part)}
    return found


def _start(news: Iterable[tuple[Admission, Sighting]]) -> int:
    """Let gangs run of which all pods are ready; a few statements for all of them."""
    begun = [
        (row, Move(row.workload, Status.RUNNING, seen.started_at))
        for row, seen in news
        if seen.started_at is not None and _may_start(row, seen)
    ]
    done = moves.take([move for _, move in begun])
    begun = [(row, move) for row, move in begun if move.workload.uid in done]
    for row, move in begun:
        moves.follow(row.workload, move)
        row.started_at = move.at
    persist.update(
        Admission, ("id",), ("started_at",), [(row.pk, row.started_at) for row, _ in begun]
    )
    return len(begun)


def _may_start(row: Admission, seen: Sighting) -> bool:
    waits = row.workload.status == Status.ADMITTED and row.evicted_at is None
    return waits and seen.attempt == row.attempt


def _note_members(row: Admission, seen: Sighting, look: _Look, now: datetime) -> int:
    """Write ends of members, readiness and progress of an attempt that goes on."""
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


def _release(ends: Iterable[tuple[datetime, Admission, Outcome | None]], now: datetime) -> int:
    """End admissions, one instant after the other, so that each is metered at its own."""
    ends = list(ends)
    if not ends:
        return 0
    world, released = load(now, waiting=False), 0
    trees, standing = trees_of(world.snapshot), meter.read_standing()
    for instant, together in groupby(ends, key=itemgetter(0)):
        gone = _end([(row, outcome) for _, row, outcome in together], instant)
        world = _without(world, gone)
        queues = {name for row in gone for name in trees.get(row.cluster_queue, {""})}
        meter.follow(world, at=instant, standing=standing, within=queues)
        released += len(gone)
    return released


def _end(ends: Iterable[tuple[Admission, Outcome | None]], instant: datetime) -> list[Admission]:
    """Give back quota and nodes, and write what this means for each workload.

    Returns:
        Those of which it was written; where the workload has changed meanwhile, the next look
        decides.
    """
    gone, over, told = [], dict[UUID, tuple[Admission, Move]](), []
    for row, outcome in ends:
        workload = row.workload
        if outcome and not row.is_part and workload.status in ALIVE:
            move = Move(workload, Status.FINISHED, instant, outcome=outcome)
            over[workload.uid] = row, move
            continue
        gone.append(row)
        if not row.is_reserved:
            why = row.eviction_reason
            told.append(Line(workload.uid, instant, _word_of(row, instant), why))
    for uid in moves.take([move for _, move in over.values()]):
        row, move = over[uid]
        moves.follow(row.workload, move)
        logger.info("finished %s", row.workload)
        gone.append(row)
    moves.tell_all(told)
    for row in gone:
        row.released_at = max(instant, row.admitted_at)
    persist.update(
        Admission, ("id",), ("released_at",), [(row.pk, row.released_at) for row in gone]
    )
    return gone


def _word_of(row: Admission, instant: datetime) -> str:
    """Return what the end of an admission is in the story of work that is not over with it."""
    if row.is_part:
        return "surplus_left"
    workload = row.workload
    rests = workload.requeue_at is not None and workload.requeue_at > instant
    return "requeued" if workload.status == Status.PENDING and not rests else "released"


def _tell_lost(admission: Admission, nodes: list[str], now: datetime) -> bool:
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


def _key(admission: Admission) -> str:
    key = str(admission.workload_id)
    return leaving_key(key) if admission.is_part else key


def _without(world: Loaded, released: Iterable[Admission]) -> Loaded:
    """Return the world after these admissions have been released."""
    gone = {_key(admission) for admission in released}
    snapshot = world.snapshot
    staying = tuple(w for w in snapshot.workloads if w.key not in gone)
    return replace(
        world,
        snapshot=replace(snapshot, workloads=staying),
        admissions={key: a for key, a in world.admissions.items() if key not in gone},
    )
