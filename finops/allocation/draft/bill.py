"""The bill of a period: facts and policy in, lines that add up to the capacity cost out."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction

from finops.allocation.apportion import split_cents, split_tree
from finops.allocation.draft.facts import Facts, IdlePolicy, Policy, UsageFact
from finops.allocation.draft.findings import Finding, bill_findings
from finops.allocation.draft.idle import idle_ledger
from finops.allocation.draft.metering import clip, cut_by_day
from finops.allocation.draft.pricing import PriceList
from finops.allocation.draft.tally import (
    Ledger,
    LineKey,
    LineKind,
    Origin,
    Tally,
    owner_account,
)
from finops.allocation.money import (
    HOURS_PLACES,
    RATE_PLACES,
    ZERO,
    from_units,
    round_half_up,
)

KIND_BY_HOLDING: Mapping[str, LineKind] = {
    "nominal": "gpu_direct",
    "borrowed": "gpu_borrowed",
    "unmanaged": "unmanaged",
}


@dataclass(frozen=True, slots=True)
class DayAmount:
    """The part of a line that fell on one local day."""

    day: date
    gpu_hours: Decimal
    amount: Decimal


@dataclass(frozen=True, slots=True)
class BillLine:
    """One row of a bill; either ``team`` or ``bucket`` is set.

    ``quantity`` is in GPU-hours (6 decimals). ``unit_price`` (8 decimals) is None when
    several prices, or none, were in force. ``lender`` is the lending queue of a borrowed or
    loan income line. ``hidden`` lines are left out of team pages, never out of sums. ``days``
    (lines of use only) add up to ``amount``.
    """

    team: str | None
    bucket: str | None
    origin: Origin
    kind: LineKind
    flavor: str | None
    lender: str | None
    quantity: Decimal
    unit_price: Decimal | None
    amount: Decimal
    currency: str
    policy: IdlePolicy
    hidden: bool
    days: tuple[DayAmount, ...]

    @property
    def row(self) -> str:
        """The name of the row: the team, or the bucket as OpenCost writes it, ``__idle__``."""
        return self.team if self.team is not None else f"__{self.bucket}__"


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums in cents: by team (all of them), by bucket (those with lines), and of everything.

    ``total`` is the capacity cost to the cent; ``direct`` + ``idle`` + ``over_allocation``
    is the same sum by origin.
    """

    currency: str
    teams: Mapping[str, Decimal]
    buckets: Mapping[str, Decimal]
    central: Decimal
    direct: Decimal
    idle: Decimal
    over_allocation: Decimal
    total: Decimal


@dataclass(frozen=True, slots=True)
class FlavorHours:
    """GPU-hours of a flavor in the period, 6 decimals; idle is the difference."""

    flavor: str
    capacity: Decimal
    used: Decimal
    idle: Decimal


@dataclass(frozen=True, slots=True)
class MonthBill:
    """The whole bill of a period."""

    lines: tuple[BillLine, ...]
    totals: Totals
    gpu_hours: tuple[FlavorHours, ...]
    findings: tuple[Finding, ...]

    def days_of(self, team: str) -> dict[date, Decimal]:
        """Return the team's cost of use by local day, for a chart."""
        amounts: dict[date, Decimal] = defaultdict(lambda: from_units(0))
        for line in self.lines:
            if line.team == team:
                for part in line.days:
                    amounts[part.day] += part.amount
        return dict(sorted(amounts.items()))


def month_bill(facts: Facts, policy: Policy) -> MonthBill:
    """Bill the period of ``facts``: every cent of capacity goes to exactly one line.

    Pure: the same facts in any order give the same bill. Costs O(n log n) in the facts, and
    O(events x queues) more under the owner policies.
    """
    prices = PriceList(facts.prices)
    capacity = _capacity_by_flavor(facts, prices)
    direct = _direct_ledger(facts, prices)
    idle = idle_ledger(facts, policy, prices, capacity, direct)

    ledger = Ledger()
    ledger.update(direct)
    ledger.update(idle)
    capacity_cost = sum((tally.cost for tally in capacity.values()), ZERO)
    lines = _lines_in_cents(facts, policy, ledger, capacity_cost)
    return MonthBill(
        lines=lines,
        totals=_totals(facts, lines),
        gpu_hours=_flavor_hours(capacity, direct),
        findings=bill_findings(facts, capacity, ledger),
    )


def _capacity_by_flavor(facts: Facts, prices: PriceList) -> dict[str, Tally]:
    """Return hours and cost of everything that is paid for, used or not."""
    capacity: dict[str, Tally] = defaultdict(Tally)
    for fact in facts.capacity:
        window = clip(fact.start, fact.end, facts.period.window)
        for piece in prices.pieces(fact.flavor, window) if window else ():
            capacity[fact.flavor].charge(fact.gpus, piece)
    return dict(capacity)


def _direct_ledger(facts: Facts, prices: PriceList) -> Ledger:
    """Return the cost of what was held, by owner, kind, flavor and lender, day by day."""
    ledger = Ledger()
    billed_teams = facts.billed_teams
    for use in facts.usage:
        window = clip(use.start, use.end, facts.period.window)
        if window is None or not use.gpus:
            continue
        line = _direct_key(use, billed_teams)
        for piece in prices.pieces(use.flavor, window):
            rate = () if piece.unit_price is None else (piece.unit_price,)
            tally = ledger[line._replace(rate=rate)]
            tally.charge(use.gpus, piece)
            for day, part in cut_by_day(piece.window, facts.period.time_zone):
                tally.days[day].charge(use.gpus, replace(piece, window=part))
    return ledger


def _direct_key(use: UsageFact, billed_teams: frozenset[str]) -> LineKey:
    account = owner_account(use.team, use.queue, billed_teams)
    return LineKey("direct", account, KIND_BY_HOLDING[use.holding], use.flavor, use.lender or "")


def _lines_in_cents(
    facts: Facts, policy: Policy, ledger: Ledger, capacity_cost: Fraction
) -> tuple[BillLine, ...]:
    """Round the capacity cost once and split it down origin, account, line (FORMAT.md 5)."""
    rows = list(ledger.rows())
    assert sum((tally.cost for _, tally in rows), ZERO) == capacity_cost
    total = round_half_up(capacity_cost)
    cents = split_tree(total, {_path(key): tally.cost for key, tally in rows})
    lines = tuple(_line(facts, policy, key, tally, cents[_path(key)]) for key, tally in rows)
    assert sum((line.amount for line in lines), from_units(0)) == total, "a cent went missing"
    return lines


def _path(key: LineKey) -> tuple[str, tuple[bool, str], LineKey]:
    return (key.origin, key.account, key)


def _line(facts: Facts, policy: Policy, key: LineKey, tally: Tally, amount: Decimal) -> BillLine:
    name = key.account.name
    price = tally.unit_price
    return BillLine(
        team=None if key.account.is_bucket else name,
        bucket=name if key.account.is_bucket else None,
        origin=key.origin,
        kind=key.kind,
        flavor=key.flavor or None,
        lender=key.lender or None,
        quantity=round_half_up(tally.gpu_hours, HOURS_PLACES),
        unit_price=None if price is None else round_half_up(price, RATE_PLACES),
        amount=amount,
        currency=facts.period.currency,
        policy=policy.idle,
        hidden=policy.idle == "hidden" and key.kind == "idle",
        days=_days(tally, amount),
    )


def _days(tally: Tally, amount: Decimal) -> tuple[DayAmount, ...]:
    """Split a line's cents among its days; lines without days stay whole."""
    if not tally.days:
        return ()
    cents = split_cents(amount, {day: part.cost for day, part in tally.days.items()})
    return tuple(
        DayAmount(day, round_half_up(tally.days[day].gpu_hours, HOURS_PLACES), cents[day])
        for day in sorted(tally.days)
    )


def _totals(facts: Facts, lines: tuple[BillLine, ...]) -> Totals:
    teams = {team: from_units(0) for team in sorted(facts.billed_teams)}
    buckets: dict[str, Decimal] = {}
    origins: dict[Origin, Decimal] = defaultdict(lambda: from_units(0))
    for line in lines:
        if line.team is not None:
            teams[line.team] += line.amount
        if line.bucket is not None:
            buckets[line.bucket] = buckets.get(line.bucket, from_units(0)) + line.amount
        origins[line.origin] += line.amount
    return Totals(
        currency=facts.period.currency,
        teams=teams,
        buckets=buckets,
        central=sum(buckets.values(), from_units(0)),
        direct=origins["direct"],
        idle=origins["idle"],
        over_allocation=origins["over_allocation"],
        total=sum((line.amount for line in lines), from_units(0)),
    )


def _flavor_hours(capacity: Mapping[str, Tally], direct: Ledger) -> tuple[FlavorHours, ...]:
    used: dict[str, Fraction] = defaultdict(Fraction)
    for key, tally in direct.items():
        used[key.flavor] += tally.gpu_hours
    rows = []
    for flavor in sorted({*capacity, *used}):
        paid = capacity[flavor].gpu_hours if flavor in capacity else ZERO
        hours = (paid, used[flavor], paid - used[flavor])
        rows.append(FlavorHours(flavor, *(round_half_up(part, HOURS_PLACES) for part in hours)))
    return tuple(rows)
