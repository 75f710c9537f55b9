"""A month on one page: a row per team, with what it costs, what it was promised, what it owes.

Page, CSV and REST show the same rows; what money there is in a row adds up to its total.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import Any

from finops.loader import Promised, promises
from finops.selectors.bills import CENTRAL, BillView, MonthView, bill_month
from finops.words import COLUMNS
from gpuplatform.common.money import rounded
from queues.access import Actor
from queues.models import ClusterQueue

NOTHING = Decimal("0.00")
LOAN_PLACES = 4  # parts of several lenders are shown with six: together they are whole
AMOUNTS = (*COLUMNS, "total")
POSTINGS = ("charged", "retained")
SUMMARY_COLUMNS = (
    *("team", "team_name", "accounting_mode", "cost_center", "invoice_number", "status"),
    *("currency", "gpu_hours", *AMOUNTS, *POSTINGS, "guaranteed", "ceiling"),
    *("tokens_served", "iron_direct", "per_million", "per_million_with_idle"),
    *("open_gpus", "forward_cost"),
)


@dataclass(frozen=True, slots=True)
class TokenCost:
    """What a team's tokens of our own models cost, really.

    ``per_million`` None: none of the iron that they ran on is on the team's account.
    """

    tokens: int
    iron: Decimal
    per_million: Decimal | None  # iron alone
    per_million_with_idle: Decimal | None


@dataclass(frozen=True, slots=True)
class Loans:
    """GPUs that a team holds of others at the end of what is billed.

    ``forward_cost`` is what they cost for as many hours as are billed so far; None of a month
    that is over, whose loans are not those of now.
    """

    gpus: Decimal = Decimal(0)
    forward_cost: Decimal | None = NOTHING

    @property
    def counted(self) -> int:
        """Return how many GPUs these are for the grammar of a sentence."""
        return ceil(self.gpus)


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One account of a month."""

    view: BillView
    amounts: Mapping[str, Decimal]  # of AMOUNTS and POSTINGS
    promised: Promised | None = None
    tokens: TokenCost | None = None
    loans: Loans = Loans()


@dataclass(frozen=True, slots=True)
class Summary:
    """The rows of a month that somebody may see, and their sums."""

    month: MonthView
    rows: tuple[SummaryRow, ...]
    sums: Mapping[str, Decimal]


def month_summary(actor: Actor, name: str) -> Summary | None:
    """Return the summary of a month with bills, teams by name and the central account last."""
    view = bill_month(actor, name)
    if view is None or not view.bills:
        return None
    period = view.period
    teams = [one.team.pk for one in view.bills if one.team]
    promised = promises(period, teams)
    tokens = {row["team"]: _tokens(row) for row in period.memo.get("teams", ())}
    loans = _loans(period.memo.get("loans", ()), is_running=view.is_running)
    rows = tuple(
        SummaryRow(
            view=one,
            amounts=_amounts(one),
            promised=promised[one.team.pk] if one.team else None,
            tokens=tokens.get(one.scope),
            loans=loans.get(one.scope, Loans()),
        )
        for one in view.bills
    )
    return Summary(view, rows, _sums(rows))


def summary_cells(row: SummaryRow) -> dict[str, Any]:
    """Return a row as files and answers have it."""
    view, promised, tokens = row.view, row.promised, row.tokens
    return {
        "team": view.scope,
        "team_name": view.team_name,
        "accounting_mode": view.mode,
        "cost_center": view.cost_center,
        "invoice_number": view.number,
        "status": view.status,
        "currency": view.period.currency,
        "gpu_hours": view.figures.gpu_hours,
        **row.amounts,
        "guaranteed": promised.guaranteed if promised else None,
        "ceiling": promised.ceiling if promised else None,
        "tokens_served": tokens.tokens if tokens else None,
        "iron_direct": tokens.iron if tokens else None,
        "per_million": tokens.per_million if tokens else None,
        "per_million_with_idle": tokens.per_million_with_idle if tokens else None,
        "open_gpus": row.loans.gpus,
        "forward_cost": row.loans.forward_cost,
    }


def _amounts(view: BillView) -> dict[str, Decimal]:
    charged = view.total if view.is_charged else NOTHING
    return view.figures.columns | {
        "total": view.total,
        "charged": charged,
        "retained": view.total - charged,
    }


def _tokens(row: Mapping[str, Any]) -> TokenCost:
    iron = Decimal(row["iron_direct"])
    return TokenCost(
        tokens=row["tokens"],
        iron=iron,
        per_million=_number(row["real_per_million_direct"]) if iron else None,
        per_million_with_idle=_number(row["real_per_million_with_idle"]) if iron else None,
    )


def _number(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def _loans(rows: Iterable[Mapping[str, Any]], *, is_running: bool) -> dict[str, Loans]:
    """Return the loans of each borrowing team, or of the central account, that were left open."""
    teams = dict(ClusterQueue.objects.values_list("name", "team__name"))
    sums: dict[str, list[Decimal]] = defaultdict(lambda: [Decimal(0), NOTHING])
    for row in rows:
        found = sums[teams.get(row["borrower"]) or CENTRAL]
        found[0] += Decimal(row["open_gpus"])
        found[1] += Decimal(row["forward_cost"])
    return {
        team: Loans(rounded(gpus, LOAN_PLACES), cost if is_running else None)
        for team, (gpus, cost) in sums.items()
        if gpus
    }


def _sums(rows: Iterable[SummaryRow]) -> dict[str, Decimal]:
    found: dict[str, Decimal] = dict.fromkeys((*AMOUNTS, *POSTINGS, "forward_cost"), NOTHING)
    for row in rows:
        for name in (*AMOUNTS, *POSTINGS):
            found[name] += row.amounts[name]
        found["forward_cost"] += row.loans.forward_cost or NOTHING
    return found
