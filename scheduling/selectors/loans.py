"""Who lent what to whom: the ledger of loans, from usage intervals."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import Any

from django.conf import settings
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, When

from queues.access import Actor, visible
from queues.models import ClusterQueue, Team
from scheduling.engine.machines import GPU
from scheduling.engine.terms import Holding
from scheduling.models import UsageInterval
from scheduling.pricing import Held, worths
from scheduling.selectors.pages import Pages, Part

AT_ONCE = 1_000
LOAN_COLUMNS = (
    "borrower",
    "borrower_team",
    "lender",
    "flavor",
    "gpus",
    "from",
    "to",
    "gpu_hours",
    "worth",
    "currency",
    "workload",
    "ended_by",
)


@dataclass(frozen=True, slots=True)
class Loan:
    """One row of the ledger: GPUs of a lender held by a borrower. ``until`` None: open."""

    borrower: str
    team: Team | None
    lender: str
    flavor: str
    gpus: int
    since: datetime
    until: datetime | None
    gpu_hours: float
    worth: Decimal | None = None  # at the prices in force; None: unpriced, or not to be seen
    workload: Any = None  # None where the reader may not see it
    ended_by: str = ""
    borrower_page: str = ""
    lender_page: str = ""


@dataclass(frozen=True, slots=True)
class OpenLoan:
    """What one queue borrows of one flavor now, from whomever; ``since`` the loan is unbroken."""

    borrower: str
    team: Team | None
    flavor: str
    gpus: int
    since: datetime
    parts: tuple[Part, ...]
    page: str = ""

    def given_by(self, lender: str) -> int:
        """Return how much of it one lender gives."""
        return sum(part.gpus for part in self.parts if part.name == lender)


def loan_rows(actor: Actor, *, open_only: bool = False, **filters: str) -> QuerySet[UsageInterval]:
    """Return loans that the actor gave or took, newest first.

    Args:
        actor: who asks; a team sees loans in which it is borrower or lender.
        open_only: leave out what was returned.
        filters: ``borrower``, ``lender``, ``flavor``; "" does not filter.
    """
    return (
        _loans(actor, open_only=open_only, **filters)
        .select_related("team", "workload", "admission")
        .annotate(goes_on=Exists(_successors()), goes_on_here=Exists(_successors(same=True)))
        .order_by("-started_at", "-id")
    )


def _loans(actor: Actor, *, open_only: bool = False, **filters: str) -> QuerySet[UsageInterval]:
    loans = UsageInterval.objects.filter(resource=GPU, holding=Holding.BORROWED.value)
    if not actor.sees_everything:
        own = visible(ClusterQueue.objects.all(), actor).values("name")
        loans = visible(loans, actor) | loans.filter(lender__in=own)
    columns = {"borrower": "cluster_queue", "lender": "lender", "flavor": "flavor"}
    wanted = {columns[name]: value for name, value in filters.items() if value}
    if open_only:
        loans = loans.filter(ended_at=None)
    return loans.filter(**wanted)


def _successors(*, same: bool = False) -> QuerySet[UsageInterval]:
    """Return what the same admission borrows from the instant on at which a row ended."""
    on = {name: OuterRef(name) for name in ("admission", "flavor", "resource", "holding")}
    if same:
        on["lender"] = OuterRef("lender")
    return UsageInterval.objects.filter(**on, started_at=OuterRef("ended_at"))


def as_loans(rows: Iterable[Any], actor: Actor, now: datetime, pages: Pages) -> Iterator[Loan]:
    """Yield rows as loans, with what each was worth; a foreign workload stays unnamed.

    A query of prices for every 1,000 rows, for those who may see prices.
    """
    rows = iter(rows)
    while some := list(islice(rows, AT_ONCE)):
        held = [Held(r.flavor, r.amount, r.started_at, r.ended_at or now) for r in some]
        known = worths(held) if actor.may_see_prices else [None] * len(some)
        for row, one, worth in zip(some, held, known, strict=True):
            yield Loan(
                borrower=row.cluster_queue,
                team=row.team,
                lender=row.lender,
                flavor=row.flavor,
                gpus=row.amount,
                since=row.started_at,
                until=row.ended_at,
                gpu_hours=row.amount * (one.until - one.since).total_seconds() / 3600,
                worth=worth,
                workload=row.workload if _may_see(row.team_id, actor) else None,
                ended_by=_ended_by(row),
                borrower_page=pages.of_queue(row.cluster_queue),
                lender_page=pages.of_lender(row.lender),
            )


def _may_see(team_id: int | None, actor: Actor) -> bool:
    if actor.sees_everything:
        return True
    return team_id is not None and actor.sees_team(team_id)


def _ended_by(row: Any) -> str:
    """Return how a row ended: an eviction's reason, ``finished``, ``returned``, or a new split.

    ``moved``: the loan went on, from other lenders; ``changed``: it was split anew, this lender
    among them.
    """
    if row.ended_at is None:
        return ""
    admission = row.admission
    if admission.released_at is None or admission.released_at > row.ended_at:
        if row.goes_on:
            return "changed" if row.goes_on_here else "moved"
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
            "worth": loan.worth,
            "currency": "" if loan.worth is None else settings.CURRENCY,
            "workload": str(loan.workload) if loan.workload else "",
            "ended_by": loan.ended_by,
        }


def open_loans(actor: Actor, *, pages: Pages | None = None, **filters: str) -> list[OpenLoan]:
    """Return what is on loan now: a row for each borrowing queue and flavor, largest first.

    ``filters`` are those of :func:`loan_rows`: with ``lender``, its part of each loan only. The
    age is that of the oldest loan of a workload, however often it was split anew. 1 query, and
    those of ``pages``.
    """
    return _open(_with_past(_loans(actor, open_only=True, **filters)), pages or Pages(actor))


def loans_of(actor: Actor, queue: str, pages: Pages) -> tuple[list[OpenLoan], list[OpenLoan]]:
    """Return what a queue borrows now, and its part of what others borrow. 1 query."""
    both = _loans(actor, open_only=True).filter(Q(cluster_queue=queue) | Q(lender=queue))
    rows, since = _with_past(both)
    borrowed = [row for row in rows if row.cluster_queue == queue]
    lent = [row for row in rows if row.lender == queue]
    return _open((borrowed, since), pages), _open((lent, since), pages)


def _open(asked: "WithPast", pages: Pages) -> list[OpenLoan]:
    rows, since = asked
    grouped: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        grouped.setdefault((row.cluster_queue, row.flavor), []).append(row)
    found = [
        OpenLoan(
            borrower=queue,
            team=own[0].team,
            flavor=flavor,
            gpus=sum(row.amount for row in own),
            since=min(since[row.admission_id, flavor] for row in own),
            parts=_parts(own, pages),
            page=pages.of_queue(queue),
        )
        for (queue, flavor), own in grouped.items()
    ]
    return sorted(found, key=lambda loan: (-loan.gpus, loan.borrower, loan.flavor))


def _parts(rows: Iterable[UsageInterval], pages: Pages) -> tuple[Part, ...]:
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row.lender] += row.amount
    largest = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Part(name, gpus, pages.of_lender(name)) for name, gpus in largest)


Since = dict[tuple[int, str], datetime]  # by admission and flavor
WithPast = tuple[list[Any], Since]


def _with_past(rows: QuerySet[UsageInterval]) -> "WithPast":
    """Return open loans, newest first, and since when each admission borrows. 1 query.

    What the same admissions borrowed before is read with them.
    """
    wanted = rows.order_by().values("pk")
    history = UsageInterval.objects.filter(
        resource=GPU,
        holding=Holding.BORROWED.value,
        admission__in=rows.order_by().values("admission"),
    )
    asked = Case(When(pk__in=wanted, then=True), default=False)
    found = list(
        history.select_related("team").annotate(is_asked=asked).order_by("started_at", "id")
    )
    loans = [row for row in reversed(found) if row.is_asked]
    return loans, _unbroken_since(found)


def _unbroken_since(history: Iterable[UsageInterval]) -> Since:
    """Return since when each admission borrows of a flavor without a gap, to now."""
    since: Since = {}
    until: dict[tuple[int, str], datetime | None] = {}
    for row in history:
        key = (row.admission_id, row.flavor)
        end = until.get(key, datetime.min.replace(tzinfo=UTC))
        if end is not None and row.started_at > end:
            since[key] = row.started_at
        if end is not None:
            until[key] = None if row.ended_at is None else max(end, row.ended_at)
    return since


def loan_choices(actor: Actor) -> dict[str, list[str]]:
    """Return what the ledger can be narrowed to. 1 query."""
    rows = loan_rows(actor).order_by().values_list("cluster_queue", "lender", "flavor").distinct()
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    names = ("borrower", "lender", "flavor")
    return {name: sorted(set(c) - {""}) for name, c in zip(names, columns, strict=True)}
