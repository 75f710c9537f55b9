"""The overview's findings: key numbers, who waits beside a borrower, the last decisions."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import QuerySet
from django.db.models.functions import Coalesce
from django.utils.functional import cached_property

from gpuplatform.common.health import LATE_S, silence
from queues.access import Actor, visible
from queues.models import ClusterQueue
from scheduling.engine.machines import GPU
from scheduling.engine.snapshot import Snapshot
from scheduling.engine.standing import standing
from scheduling.engine.terms import Status
from scheduling.engine.usage import paired
from scheduling.models import Cycle, WorkloadEvent
from scheduling.models import Workload as Workloads
from scheduling.selectors.history import (
    Borrower,
    HourlyUse,
    borrowed_over_time,
    last_days,
    quota_use,
    use_in,
)
from scheduling.selectors.line import Sums
from scheduling.selectors.loans import OpenLoan, open_loans
from scheduling.selectors.pages import Pages, Part
from scheduling.selectors.quotas import Board, load_board
from scheduling.selectors.waiting import Waiting, waiting_rows

DECISIONS = (
    "admitted",
    "evicted",
    "finished",
    "cancelled",
    "requeued",
    "deactivated",
)
SHOWN = 10


class Starved(NamedTuple):
    """A queue that waits below its nominal while others hold what it lent."""

    queue: ClusterQueue
    flavor: str
    waits_for: int
    reclaimable: int
    borrowers: list[Part]


class Numbers(NamedTuple):
    """Key numbers in GPUs. For a team ``total`` is its quota, for the platform all GPUs."""

    total: int
    usable: int
    used: int
    borrowed: int
    loans: int
    lent: int
    idle: int
    pending: int
    waiting: int
    never: int = 0  # GPUs of pending work that can never start as things are
    outside: int = 0  # GPUs in use that no queue of the board pays for


@dataclass
class Overview:
    """Everything on the first page, read once."""

    board: Board
    now: datetime
    loans: list[OpenLoan]
    use: HourlyUse
    borrowers: tuple[list[datetime], list[Borrower]]  # borrowed GPUs over time
    decisions: list[WorkloadEvent]
    cycle: Cycle | None
    silence_s: float | None  # since somebody last decided; None: nobody ever has
    longest: Waiting | None
    sums: Sums

    @property
    def is_stale(self) -> bool:
        """Return whether nobody decides any more, so that what is shown stands still."""
        return self.silence_s is not None and self.silence_s > LATE_S

    @cached_property
    def numbers(self) -> Numbers:
        """Return the key numbers: of the platform, or of the reader's own queues."""
        rows, snapshot = self.board.gpu_rows, self.board.snapshot
        own_loans = [loan for loan in self.loans if loan.borrower in self.board.queues]
        nominal = sum(row.nominal for row in rows)
        platform = self.board.actor.sees_everything
        total = sum(node.allocatable.get(GPU, 0) for node in snapshot.nodes)
        usable = sum(node.allocatable.get(GPU, 0) for node in snapshot.nodes if node.usable)
        in_queues = sum(row.used for row in rows)
        used = gpus_held(snapshot) if platform else in_queues
        return Numbers(
            total=total if platform else nominal,
            usable=usable if platform else nominal,
            used=used,
            borrowed=sum(row.borrowed for row in rows),
            loans=len(own_loans),
            lent=sum(row.lent for row in rows),
            idle=max(0, usable - used) if platform else sum(row.idle for row in rows),
            pending=self.sums.gpus,
            waiting=self.sums.workloads,
            never=self.sums.never,
            outside=max(0, used - in_queues),
        )

    @cached_property
    def starved(self) -> list[Starved]:
        """Return queues below nominal that wait while their quota is on loan, worst first."""
        found = []
        for row in self.board.gpu_rows:
            if not (row.pending and row.lent and row.used < row.nominal):
                continue
            takers = [
                Part(loan.borrower, given, loan.page)
                for loan in self.loans
                if loan.flavor == row.flavor and (given := loan.given_by(row.name))
            ]
            reclaimable = min(row.lent, row.pending, row.nominal - row.used)
            queue = self.board.queues[row.name]
            found.append(Starved(queue, row.flavor, row.pending, reclaimable, takers))
        return sorted(found, key=lambda starved: -starved.reclaimable)


def gpus_held(snapshot: Snapshot) -> int:
    """Return the GPUs that work holds, and those that pods outside the platform hold."""
    unmanaged = sum(node.unmanaged.get(GPU, 0) for node in snapshot.nodes)
    return unmanaged + sum(
        pod_set.requests.get(GPU, 0) * assignment.count
        for workload in snapshot.workloads
        for pod_set, assignment in paired(workload, standing(workload))
    )


def load_overview(actor: Actor, now: datetime) -> Overview:
    """Read the first page in a fixed number of queries."""
    board = load_board(actor)
    cycle, use = board.cycle, use_in(last_days(now), actor)
    return Overview(
        board=board,
        now=now,
        loans=open_loans(actor, pages=board.pages),
        use=quota_use(use, now),
        borrowers=borrowed_over_time(use, now),
        decisions=list(last_decisions(actor)[:SHOWN]),
        longest=longest_wait(actor, board.pages),
        sums=board.line.sums(actor),
        cycle=cycle,
        silence_s=silence(cycle.at if cycle else None, board.beat),
    )


def longest_wait(actor: Actor, pages: Pages) -> Waiting | None:
    """Return what waits longest since it was submitted or evicted, and what blocks it. 1 query."""
    pending = visible(Workloads.objects.filter(status=Status.PENDING.value), actor)
    return next(
        iter(
            waiting_rows(
                pending.order_by(Coalesce("waiting_since", "created_at"), "uid")[:1], actor, pages
            )
        ),
        None,
    )


def last_decisions(actor: Actor) -> QuerySet[WorkloadEvent]:
    """Return what was decided about workloads that the actor may see, newest first."""
    events = WorkloadEvent.objects.filter(kind__in=DECISIONS)
    return (
        visible(events, actor, "workload__team")
        .select_related("workload__team", "other")
        .defer("workload__template", "other__template")
        .order_by("-id")
    )
