"""The bill of a period: facts in, lines that add up to what everything cost out.

``chargeback`` is the one arithmetic of money in the product. It is pure: the same facts, in any
order of rows, give the same bill. Every step is exact; cents are made once, in ``lines``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from finops.allocation import findings, places
from finops.allocation.direct import Used, by_place, used
from finops.allocation.facts import Facts, Number
from finops.allocation.findings import Finding
from finops.allocation.ground import Ground, ground
from finops.allocation.idle import Idle, Where, idle_by_day, share_idle
from finops.allocation.ledger import Ledger, LineKey
from finops.allocation.lines import Bill, Line, Sources, to_cents
from finops.allocation.memo import Memo, memo
from finops.allocation.price_check import price_anomalies
from finops.allocation.sharing import Consumers, pass_on_serving, share_costs, unweighted_items
from finops.allocation.token_findings import token_findings
from finops.allocation.tokens import TokenRow, bill_external, serving_weights, token_rows
from finops.allocation.transfers import transfers
from finops.allocation.unit_cost import ServingIron, model_costs, team_costs


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that follows from facts; its shape as JSON is ``encoding``'s."""

    facts: Facts
    lines: tuple[Line, ...]
    sources: Sources
    memo: Memo
    findings: tuple[Finding, ...]
    tokens: tuple[TokenRow, ...]
    idle_by_day: Mapping[Where, Mapping[date, Number]]  # by local day in money, where asked


def chargeback(facts: Facts, *, by_day: bool = False) -> Outcome:
    """Bill the period of ``facts``, which ``reading`` or ``checks`` found free of problems.

    ``by_day`` tells lines of metered use day by day as well, and changes no amount.
    Costs O(n log n) in the facts, times the slots that a row lasts through.
    """
    base = ground(facts, by_day=by_day)
    consumed = used(base)
    idle = Idle(base, consumed)
    rows = token_rows(base)
    consumers = Consumers(facts, serving_weights(base, rows))

    ledger = by_place(consumed)
    share_idle(base, idle, ledger)
    bill_external(rows, ledger)
    pass_on_serving(consumers, ledger)
    unweighted = unweighted_items(base, ledger)
    fixed = share_costs(base, ledger)
    _adjust(facts, ledger)
    bill = to_cents(facts, ledger, fixed, transfers(base, consumed, rows))

    iron = ServingIron(base, consumed, idle)
    models = tuple(model_costs(base, rows, iron))
    teams = tuple(team_costs(base, rows, iron, consumers))
    shown = memo(base, consumed, rows, models, teams)
    found = [
        *_findings(base, consumed, idle, bill, shown),
        *token_findings(facts, rows),
        *(Finding("zero_weights", "info", {"ref": item}) for item in unweighted),
    ]
    found.sort(key=lambda one: one.order)
    days = idle_by_day(base, consumed)
    return Outcome(facts, bill.lines, bill.sources, shown, tuple(found), tuple(rows), days)


def _adjust(facts: Facts, ledger: Ledger) -> None:
    for row in facts.adjustments:
        key = LineKey("adjustment", ref=row.id)
        ledger.add("adjustment", places.team(row.team), key, row.amount)


def _findings(
    base: Ground, consumed: Used, idle: Idle, bill: Bill, shown: Memo
) -> Iterator[Finding]:
    gaps = list(findings.missing_coverage(base))
    yield from gaps
    yield from findings.over_allocation(base, idle)
    yield from findings.unallocated(bill.lines)
    yield from findings.quotas(base)
    yield from findings.hours_differ(consumed)
    yield from price_anomalies(base.facts)
    if not gaps:
        yield from findings.drift(shown)
