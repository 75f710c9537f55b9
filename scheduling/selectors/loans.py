"""Who lent what to whom: the ledger of loans, from usage intervals."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from queues.access import Actor, visible
from queues.models import ClusterQueue, Team
from scheduling.engine.snapshot import GPU
from scheduling.engine.terms import Holding
from scheduling.models import UsageInterval

LOAN_COLUMNS = (
    "borrower",
    "borrower_team",
    "lender",
    "flavor",
    "gpus",
    "from",
    "to",
    "gpu_hours",
    "workload",
    "ended_by",
)


@dataclass(frozen=True, slots=True)
class Loan:
    """GPUs of a lender held by a borrower. ``until`` None: open."""

    borrower: str
    team: Team | None
    lender: str
    flavor: str
    gpus: int
    since: datetime
    until: datetime | None
    gpu_hours: float
    workload: Any = None  # None where the reader may not see it
    ended_by: str = ""


def loan_rows(actor: Actor, *, open_only: bool = False, **filters: str) -> QuerySet[UsageInterval]:
    """Return loans that the actor gave or took, newest first.

    Args:
        actor: who asks; a team sees loans in which it is borrower or lender.
        open_only: leave out what was returned.
        filters: ``borrower``, ``lender``, ``flavor``; "" does not filter.
    """
    loans = UsageInterval.objects.filter(resource=GPU, holding=Holding.BORROWED.value)
    if not actor.sees_everything:
        own = visible(ClusterQueue.objects.all(), actor).values("name")
        loans = visible(loans, actor) | loans.filter(lender__in=own)
    columns = {"borrower": "cluster_queue", "lender": "lender", "flavor": "flavor"}
    wanted = {columns[name]: value for name, value in filters.items() if value}
    if open_only:
        loans = loans.filter(ended_at=None)
    return (
        loans.filter(**wanted)
        .select_related("team", "workload", "admission")
        .order_by("-started_at", "-id")
    )


def as_loan(row: UsageInterval, actor: Actor, now: datetime) -> Loan:
    """Return one row as a loan; a foreign workload stays unnamed."""
    held = (row.ended_at or now) - row.started_at
    return Loan(
        borrower=row.cluster_queue,
        team=row.team,
        lender=row.lender,
        flavor=row.flavor,
        gpus=row.amount,
        since=row.started_at,
        until=row.ended_at,
        gpu_hours=row.amount * held.total_seconds() / 3600,
        workload=row.workload if _may_see(row.team_id, actor) else None,
        ended_by=_ended_by(row),
    )


def _may_see(team_id: int | None, actor: Actor) -> bool:
    if actor.sees_everything:
        return True
    return team_id is not None and actor.sees_team(team_id)


def _ended_by(row: UsageInterval) -> str:
    """Return how a loan ended: an eviction's reason, ``finished`` or ``returned``."""
    if row.ended_at is None:
        return ""
    admission = row.admission
    if admission.released_at is None or admission.released_at > row.ended_at:
        return "returned"
    return admission.eviction_reason or "finished"


def loan_cells(loans: Iterable[Loan]) -> Iterable[dict[str, Any]]:
    """Yield loans as rows of an export."""
    for loan in loans:
        yield {
            "borrower": loan.borrower,
            "borrower_team": loan.team.name if loan.team else "",
            "lender": loan.lender,
            "flavor": loan.flavor,
            "gpus": loan.gpus,
            "from": loan.since,
            "to": loan.until,
            "gpu_hours": round(loan.gpu_hours, 6),
            "workload": str(loan.workload) if loan.workload else "",
            "ended_by": loan.ended_by,
        }


def open_loans(actor: Actor, now: datetime, **filters: str) -> list[Loan]:
    """Return what is on loan now, summed by borrower, lender and flavor, largest first."""
    sums: dict[tuple[str, str, str], Loan] = {}
    for row in loan_rows(actor, open_only=True, **filters):
        loan = as_loan(row, actor, now)
        key = (loan.borrower, loan.lender, loan.flavor)
        before = sums.get(key)
        sums[key] = Loan(
            borrower=loan.borrower,
            team=loan.team,
            lender=loan.lender,
            flavor=loan.flavor,
            gpus=loan.gpus + (before.gpus if before else 0),
            since=min(loan.since, before.since) if before else loan.since,
            until=None,
            gpu_hours=loan.gpu_hours + (before.gpu_hours if before else 0.0),
        )
    return sorted(sums.values(), key=lambda loan: (-loan.gpus, loan.borrower, loan.lender))


def loan_choices(actor: Actor) -> dict[str, list[str]]:
    """Return what the ledger can be narrowed to. 1 query."""
    rows = loan_rows(actor).order_by().values_list("cluster_queue", "lender", "flavor").distinct()
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    names = ("borrower", "lender", "flavor")
    return {name: sorted(set(c) - {""}) for name, c in zip(names, columns, strict=True)}
