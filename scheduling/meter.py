"""Exact metering: brings interval rows up to what is held, promised and there.

An interval is closed at the instant at which its ground really ended, and not touched again unless
the cluster reports later that its pods had gone even sooner. The caller runs this in the
transaction of the change itself.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from gpuplatform.common.models import Change
from gpuplatform.common.questions import fetch
from queues.models import Cohort
from scheduling import moves, persist
from scheduling.engine import metering
from scheduling.engine.atlas import Atlas
from scheduling.engine.snapshot import Quota, Snapshot
from scheduling.engine.terms import Holding
from scheduling.engine.usage import is_gpu
from scheduling.faces import Held
from scheduling.loader import Loaded
from scheduling.models import CapacityInterval, QuotaInterval, UsageInterval
from scheduling.moves import Line

OPENED = (
    *("id", "admission_id", "workload_id", "team_id", "cluster_queue", "namespace", "flavor"),
    *("resource", "amount", "holding", "lender", "started_at"),
)


class Ground(NamedTuple):
    """On which ground an admission holds how much: what tells one open interval from another."""

    admission: int
    flavor: str
    resource: str
    holding: str
    lender: str


class Span(NamedTuple):
    """An open interval."""

    pk: int
    amount: int
    started_at: datetime
    workload: UUID
    cluster_queue: str


class Promise(NamedTuple):
    """What a queue is promised in a column, in which cohort and below which root."""

    cohort: str
    root: str
    quota: Quota


Standing = dict[Ground, Span]


def read_standing(queues: Collection[str] | None = None) -> Standing:
    """Return the open intervals, of some queues or of all. 1 query."""
    rows = UsageInterval.objects.filter(ended_at=None).order_by()
    if queues is not None:
        rows = rows.filter(cluster_queue__in=queues)
    columns = (*Ground._fields[1:], "pk", "amount", "started_at", "workload_id", "cluster_queue")
    return {
        Ground(admission, *rest[:4]): Span(*rest[4:])
        for admission, *rest in fetch(rows.values_list("admission_id", *columns))
    }


def follow(
    world: Loaded,
    *,
    at: datetime,
    snapshot: Snapshot | None = None,
    standing: Standing | None = None,
    within: Collection[str] | None = None,
) -> None:
    """Bring usage rows to how ``world`` splits what is held into own quota and loans.

    Args:
        world: the admissions that are open; work that it no longer holds was released at ``at``.
        at: the instant since which this split holds. Where the rows of an admission already say
            something about a later time (the cause was noticed late), its new split begins
            there: every GPU is metered exactly once.
        snapshot: what is held, if it is not as in the world's own.
        standing: the open intervals, brought up to date with the rows; read if not given.
        within: the queues to look at, whole trees of them; all by default.
    """
    snapshot = metering.present(snapshot or world.snapshot)
    known = world.doors.cluster_queues
    if within is not None:
        within = {*within, ""}
        snapshot = _part(snapshot, within)
    keys = [w.key for w in snapshot.workloads if w.admission is not None]
    mine = {row.pk: row for row in map(world.admissions.__getitem__, keys)}
    if standing is None:
        standing = read_standing(within)
    before = {
        ground: span
        for ground, span in standing.items()
        if within is None or (span.cluster_queue if span.cluster_queue in known else "") in within
    }
    wanted = _grounds(world, snapshot)
    held = {pk: max(at, row.admitted_at) for pk, row in mine.items()}
    for ground, span in before.items():
        if ground.admission in held:
            held[ground.admission] = max(held[ground.admission], span.started_at)
    gone = {ground: s for ground, s in before.items() if wanted.get(ground) != s.amount}
    _close([(span, held.get(ground.admission, at)) for ground, span in gone.items()])
    for ground in gone:
        del standing[ground]
    _trim({ground.admission for ground in before} - held.keys(), at)
    missing = {g: amount for g, amount in wanted.items() if g not in before or g in gone}
    opened = _open(world, missing, mine, held)
    standing.update(opened)
    ends = {ground.admission: max(at, span.started_at) for ground, span in before.items()}
    stays = {ground: span for ground, span in before.items() if ground not in gone}
    _tell_loans(before, {**stays, **opened}, {**ends, **held})


def _part(snapshot: Snapshot, queues: Collection[str]) -> Snapshot:
    """Return the part of a world that these queues make up; unmanaged work belongs to it."""
    known = snapshot.cluster_queues
    return replace(
        snapshot,
        cluster_queues={name: known[name] for name in sorted(queues) if name in known},
        workloads=tuple(w for w in snapshot.workloads if (w.queue or "") in queues),
    )


def _grounds(world: Loaded, snapshot: Snapshot) -> dict[Ground, int]:
    found: dict[Ground, int] = {}
    for share in metering.split(snapshot):
        pk = world.admissions[share.workload].pk
        ground = Ground(pk, share.flavor, share.resource, share.holding.value, share.lender)
        found[ground] = found.get(ground, 0) + share.amount
    return found


def _close(ends: Iterable[tuple[Span, datetime]]) -> None:
    """End intervals; of what never lasted no row of no length is left."""
    lasted, never = [], []
    for span, end in ends:
        if end <= span.started_at:
            never.append(span.pk)
        else:
            lasted.append((span.pk, end))
    persist.delete(UsageInterval, never)
    persist.update(UsageInterval, ("id",), ("ended_at",), lasted)


def _trim(released: Collection[int], at: datetime) -> None:
    """Take back what was metered after the instant at which these admissions had ended."""
    ended = UsageInterval.objects.filter(ended_at__gt=at).order_by()
    for part in persist.among(ended.values_list("id", "started_at"), released, "admission"):
        late = list(fetch(part))
        persist.delete(UsageInterval, [pk for pk, start in late if start >= at])
        cut = [(pk, at) for pk, start in late if start < at]
        persist.update(UsageInterval, ("id",), ("ended_at",), cut)


def _open(
    world: Loaded,
    missing: Mapping[Ground, int],
    held: Mapping[int, Held],
    since: Mapping[int, datetime],
) -> Standing:
    """Begin intervals; the queue's team pays, else the workload's own (``decisions.md`` 6)."""
    rows, opened = [], Standing()
    ids = persist.new_ids(UsageInterval, len(missing))
    for pk, (ground, amount) in zip(ids, sorted(missing.items()), strict=True):
        admission, start = held[ground.admission], since[ground.admission]
        queue = world.doors.cluster_queues.get(admission.cluster_queue)
        team = (queue.team_id if queue else None) or admission.team_id
        where = admission.cluster_queue, admission.namespace, ground.flavor, ground.resource
        who = pk, ground.admission, admission.workload_id, team
        rows.append((*who, *where, amount, ground.holding, ground.lender, start))
        span = Span(pk, amount, start, admission.workload_id, admission.cluster_queue)
        opened[ground] = span
    persist.insert(UsageInterval, OPENED, rows)
    return opened


Loan = tuple[int, str, str]  # admission, flavor, resource


def _loans(standing: Standing) -> dict[Loan, list[tuple[Ground, Span]]]:
    """Return what is borrowed, by what was borrowed for which admission."""
    loans: dict[Loan, list[tuple[Ground, Span]]] = {}
    for ground, span in standing.items():
        if ground.holding == Holding.BORROWED.value:
            loan = ground.admission, ground.flavor, ground.resource
            loans.setdefault(loan, []).append((ground, span))
    return loans


def _tell_loans(before: Standing, after: Standing, since: Mapping[int, datetime]) -> None:
    """Write a line in the story of each workload that borrows more or less than before.

    Which lender stands for which GPU may shift whenever anything else in the cohort moves; that
    is for the ledger, not for the story.
    """
    had, have, lines = _loans(before), _loans(after), []
    for loan in sorted({*had, *have}):
        parts = have.get(loan, [])
        was = sum(span.amount for _, span in had.get(loan, []))
        now = sum(span.amount for _, span in parts)
        if was != now:
            kind = "loan_changed" if was and now else "loan_opened" if now else "loan_closed"
            facts = _loan_facts(loan, parts or had[loan], now or was)
            workload = (parts or had[loan])[0][1].workload
            lines.append(Line(workload, since[loan[0]], kind, facts=facts))
    moves.tell_all(lines)


def _loan_facts(loan: Loan, parts: list[tuple[Ground, Span]], amount: int) -> dict[str, Any]:
    return {
        "queue": parts[0][1].cluster_queue,
        "flavor": loan[1],
        "resource": loan[2],
        "amount": amount,
        "lenders": {g.lender: s.amount for g, s in sorted(parts, key=lambda p: p[0].lender)},
    }


# ---- what is there and what is promised --------------------------------------------------------
def edited_at(world: Loaded) -> datetime:
    """Return since when things are as they are: the last edit that no cycle has seen.

    Of promises, of nodes, and of the size of running work. Where none is known, it is now.
    """
    newest = Change.objects.filter(topic="node").order_by("-id").first()
    edits = [queue.updated_at for queue in world.doors.cluster_queues.values()]
    edits += [q.cohort.updated_at for q in world.doors.cluster_queues.values() if q.cohort]
    edits += [world.resized_at] if world.resized_at else []
    edits += [newest.at] if newest else []
    return _since(max(edits, default=world.now), world)


def _since(changed: datetime, world: Loaded) -> datetime:
    """Return when a change happened, if no cycle can have seen it already; else now."""
    unseen = world.previous_at is None or world.previous_at < changed
    return changed if unseen and changed <= world.now else world.now


def _removed_at(noun: str, name: str, world: Loaded) -> datetime:
    """Return when a row that is gone was deleted: its last change, as far as that is kept."""
    last = Change.objects.filter(topic=noun, key=name).order_by("-at").first()
    return _since(last.at, world) if last else world.now


def note_supply(world: Loaded) -> None:
    """Bring the rows of capacity and quota to what nodes offer and queues are promised now."""
    _note_capacity(world)
    _note_quota(world)


def _note_capacity(world: Loaded) -> None:
    def since(node: str) -> datetime:
        row = world.nodes.get(node)
        return _since(row.updated_at, world) if row else _removed_at("node", node, world)

    offers = _offers(world)
    starts = {column: since(column[0]) for column in offers}
    for row in CapacityInterval.objects.filter(ended_at=None):
        column = (row.node, row.resource)
        if offers.get(column) == (row.flavor, row.amount, row.healthy):
            del offers[column]
        else:
            starts[column] = _end(row, since(row.node))
    CapacityInterval.objects.bulk_create(
        CapacityInterval(
            node=column[0],
            flavor=flavor,
            resource=column[1],
            amount=amount,
            healthy=healthy,
            started_at=starts[column],
        )
        for column, (flavor, amount, healthy) in sorted(offers.items())
    )


def _offers(world: Loaded) -> dict[tuple[str, str], tuple[str, int, bool]]:
    """Return flavor, amount and health of the GPUs of each node, by node and resource."""
    atlas = Atlas(world.snapshot)
    return {
        (node.name, resource): (metering.flavor_of(atlas, node.name), amount, node.usable)
        for node in world.snapshot.nodes
        for resource, amount in node.allocatable.items()
        if is_gpu(resource) and amount
    }


def _note_quota(world: Loaded) -> None:
    def since(queue: str) -> datetime:
        row = world.doors.cluster_queues.get(queue)
        return _since(row.updated_at, world) if row else _removed_at("cluster_queue", queue, world)

    promises = _promises(world)
    starts = {column: since(column[0]) for column in promises}
    for row in QuotaInterval.objects.filter(ended_at=None):
        column = (row.cluster_queue, row.flavor, row.resource)
        promise = Promise(
            row.cohort, row.root, Quota(row.nominal, row.borrowing_limit, row.lending_limit)
        )
        found = promises.get(column)
        if found == promise:
            del promises[column]
        elif found and found._replace(root=row.root) == promise:
            starts[column] = _end(row, _replanted_at(found.cohort, world))
        else:
            starts[column] = _end(row, since(row.cluster_queue))
    QuotaInterval.objects.bulk_create(
        QuotaInterval(
            cluster_queue=column[0],
            cohort=cohort,
            root=root,
            flavor=column[1],
            resource=column[2],
            nominal=quota.nominal,
            borrowing_limit=quota.borrowing_limit,
            lending_limit=quota.lending_limit,
            started_at=starts[column],
        )
        for column, (cohort, root, quota) in sorted(promises.items())
    )


def _promises(world: Loaded) -> dict[tuple[str, str, str], Promise]:
    """Return cohort, root and quota of each column of each queue."""
    return {
        (queue.name, fr.flavor, fr.resource): Promise(cohort, _above(cohort, world)[-1], quota)
        for queue in world.snapshot.cluster_queues.values()
        for cohort in (queue.cohort or "",)
        for fr, quota in queue.quotas.items()
    }


def _above(cohort: str, world: Loaded) -> list[str]:
    """Return a cohort and those above it; a tree that runs in a circle has none beyond it."""
    path = [cohort]
    while (row := world.snapshot.cohorts.get(path[-1])) and row.parent:
        if row.parent in path:
            break
        path.append(row.parent)
    return path


def _replanted_at(cohort: str, world: Loaded) -> datetime:
    """Return when a cohort came below another root: at the last edit of it or one above it."""
    edits = Cohort.objects.filter(name__in=_above(cohort, world))
    return _since(max(edits.values_list("updated_at", flat=True), default=world.now), world)


def _end(row: CapacityInterval | QuotaInterval, changed: datetime) -> datetime:
    """Close a row at the change that ended it; return since when its successor holds."""
    if changed <= row.started_at:
        row.delete()
        return row.started_at
    row.ended_at = changed
    row.save(update_fields=["ended_at"])
    return changed
