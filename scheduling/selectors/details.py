"""One queue, one cohort: everything on their pages."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import QuerySet

from gpuplatform.common.bars import QuotaBar
from gpuplatform.common.models import AuditEntry
from queues.access import Actor, visible
from queues.models import ClusterQueue, Cohort, LocalQueue
from scheduling.engine.snapshot import Quota
from scheduling.engine.tree import Kind
from scheduling.models import Workload
from scheduling.selectors.bars import FlavorBars, bars_by_flavor
from scheduling.selectors.fairness import Child, Turns, View, turns
from scheduling.selectors.history import HourlyUse, last_days, quota_use, use_in
from scheduling.selectors.loans import OpenLoan, loans_of, open_loans
from scheduling.selectors.pages import Pages
from scheduling.selectors.quotas import (
    Board,
    load_board,
    queue_bars,
    queue_state,
)
from scheduling.selectors.waiting import Waiting, waiting_rows
from scheduling.selectors.workloads import in_cluster_queue
from scheduling.waits import waiting_work

SHOWN = 50
CHANGES = 10


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one column in words' reach."""

    bar: QuotaBar
    quota: Quota


@dataclass(frozen=True)
class QueuePage:
    """One cluster queue."""

    board: Board
    queue: ClusterQueue
    bars: list[QuotaBar]
    limits: list[Limits]
    state: str
    doors: list[LocalQueue]
    borrowing: list[OpenLoan]
    lending: list[OpenLoan]
    waiting: list[Waiting]
    waiting_others: "Others"
    waiting_count: int
    holding: list["Holding"]
    holding_others: "Others"
    holding_count: int
    use: HourlyUse
    changes: list[AuditEntry]
    turns: Turns | None = None

    @property
    def borrows_now(self) -> bool:
        """Return whether it holds more than its own; from whom, the next cycle notes."""
        return any(bar.borrowed for bar in self.bars)

    @property
    def lends_now(self) -> bool:
        """Return whether others hold what is its own."""
        return any(bar.lent for bar in self.bars)

    @property
    def place(self) -> Child | None:
        """Return how the queue stands next to its sisters, where fairness counts."""
        children = self.turns.children if self.turns else ()
        return next((c for c in children if c.is_queue and c.name == self.queue.name), None)


def queue_page(actor: Actor, name: str, now: datetime) -> QueuePage | None:
    """Return one queue's page; None where the actor may not see it."""
    whole = load_board(actor, past=True)
    if name not in whole.queues:
        return None
    board = replace(
        whole,
        queues={name: whole.queues[name]},
        rows=tuple(r for r in whole.rows if r.kind is Kind.QUEUE and r.name == name),
    )
    bars, limits = queue_bars(board, name), {}
    for row in board.rows:
        limits[row.flavor, row.resource] = board.quota(row)
    cohort = board.snapshot.cluster_queues[name].cohort
    known = [w for w in board.snapshot.workloads if w.queue == name]
    # A part that leaves a gang stands for pods of a workload that is counted already.
    held = [w.key for w in known if w.admission is not None and w.key in whole.faces]
    pending, holders = (
        in_cluster_queue(waiting_work(), name),
        Workload.objects.filter(uid__in=held),
    )
    borrowing, lending = loans_of(actor, name, whole.pages)
    return QueuePage(
        board=board,
        queue=board.queues[name],
        bars=bars,
        limits=[Limits(bar, limits[bar.label, bar.resource]) for bar in bars],
        state=queue_state(board, name),
        doors=[door for door in board.local_queues if door.cluster_queue == name],
        borrowing=borrowing,
        lending=lending,
        waiting=_waiting(pending, actor, whole.pages),
        waiting_others=Others(*whole.line.of_others(name, actor)),
        waiting_count=whole.line.workloads.get(name, 0),
        holding=_holding(holders, board.queues[name].minimum_runtime_s, now, actor),
        holding_others=_others(whole, held),
        holding_count=len(held),
        use=quota_use(use_in(last_days(now), actor, name), now),
        changes=list(_changes("ClusterQueue", name)),
        turns=turns(actor, _view(whole), cohort, whole.queues) if cohort else None,
    )


def _view(board: Board) -> View:
    return View(board.snapshot, lambda: board.heads, board.line.workloads)


class Others(NamedTuple):
    """Work of teams that the reader does not see: a queue may have changed hands."""

    workloads: int
    gpus: int


def _others(board: Board, held: Iterable[str]) -> Others:
    """Return how much of what is held is not the reader's to see."""
    faces = [board.faces[key] for key in held]
    theirs = [one for one in faces if not board.actor.sees_team(one.team_id)]
    return Others(len(theirs), sum(one.gpus for one in theirs))


def _seen(rows: QuerySet[Workload], actor: Actor) -> QuerySet[Workload]:
    """Return what the reader may see of this work: judged by its own team, not by the queue's."""
    return visible(rows.select_related("team").defer("template"), actor)


def _waiting(pending: QuerySet[Workload], actor: Actor, pages: Pages) -> list[Waiting]:
    rows = _seen(pending, actor)
    ordered = rows.order_by("position", "created_at", "uid")[:SHOWN]
    return waiting_rows(ordered, actor, pages)


@dataclass(frozen=True)
class Holding:
    """Admitted work; ``safe_until`` is when its minimum runtime ends, None once it has."""

    workload: Workload
    safe_until: datetime | None


def _holding(
    held: QuerySet[Workload], minimum_s: int, now: datetime, actor: Actor
) -> list[Holding]:
    rows = _seen(held, actor)
    return [
        Holding(row, _safe_until(row.admitted_at, minimum_s, now))
        for row in rows.order_by("-admitted_at", "uid")[:SHOWN]
    ]


def _safe_until(admitted_at: datetime | None, minimum_s: int, now: datetime) -> datetime | None:
    until = admitted_at + timedelta(seconds=minimum_s) if admitted_at else None
    return until if until and until > now else None


def _changes(kind: str, name: str) -> Any:
    return AuditEntry.objects.filter(subject_kind=kind, subject=name).order_by("-id")[:CHANGES]


@dataclass(frozen=True)
class CohortPage:
    """One cohort with everything below it that the reader may see."""

    cohort: Cohort
    parent: str | None
    children: list[str]
    queues: list[ClusterQueue]
    flavors: list[FlavorBars]
    own_quota: list[tuple[str, str, Quota]]
    loans: list[OpenLoan]
    changes: list[AuditEntry]
    turns: Turns | None = None


def cohort_page(actor: Actor, name: str) -> CohortPage | None:
    """Return one cohort's page; a team sees those that hold a queue of its own."""
    board = load_board(actor, past=True)
    inside = _inside(board, name)
    own = {
        queue.name: queue
        for queue in board.queues.values()
        if board.snapshot.cluster_queues[queue.name].cohort in inside
    }
    cohort = Cohort.objects.filter(name=name).select_related("parent").first()
    if cohort is None or not (own or actor.sees_everything):
        return None
    rows = tuple(row for row in board.rows if row.kind is Kind.QUEUE and row.name in own)
    quotas = board.snapshot.cohorts[name].quotas if name in board.snapshot.cohorts else {}
    return CohortPage(
        cohort=cohort,
        parent=cohort.parent.name if cohort.parent else None,
        children=sorted(c.name for c in board.snapshot.cohorts.values() if c.parent == name),
        queues=sorted(own.values(), key=lambda queue: queue.name),
        flavors=bars_by_flavor(replace(board, rows=rows)),
        own_quota=[(fr.flavor, fr.resource, quota) for fr, quota in sorted(quotas.items())]
        if actor.sees_everything
        else [],
        loans=[
            loan
            for loan in open_loans(actor, pages=board.pages)
            if loan.borrower in own or any(part.name in own for part in loan.parts)
        ],
        changes=list(_changes("Cohort", name)) if actor.sees_everything else [],
        turns=turns(actor, _view(board), name, own),
    )


def _inside(board: Board, name: str) -> set[str]:
    """Return a cohort and all cohorts below it."""
    inside = {name}
    grew = True
    while grew:
        below = {c.name for c in board.snapshot.cohorts.values() if c.parent in inside}
        grew = not below <= inside
        inside |= below
    return inside
