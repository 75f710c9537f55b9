"""Exact amounts to lines in cents, down the tree of FORMAT.md 5."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction

from finops.allocation.apportion import split_cents, split_in_order, split_tree
from finops.allocation.facts import Facts, Number
from finops.allocation.ledger import Ledger, LineKey, Origin, Tally
from finops.allocation.money import exact_sum, from_units, round_half_up
from finops.allocation.places import Account
from finops.allocation.transfers import Transfer

UNITS = {
    "gpu_direct": "gpu_hours",
    "gpu_borrowed": "gpu_hours",
    "gpu_preempted": "gpu_hours",
    "cpu": "cpu_hours",
    "memory": "gib_hours",
    "idle_owned": "gpu_hours",
    "loan_income": "gpu_hours",
    "loan_surcharge": "gpu_hours",
    "lender_credit": "gpu_hours",
    "tokens_external": "tokens",
    "tokens_transfer": "tokens",
}
CAPACITY_ORIGINS = frozenset({"direct", "idle", "over_allocation", "unmeasured"})

Path = tuple[str, Account, tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Child:
    """The part of a line that one workload caused."""

    workload: str
    quantity: Fraction
    amount: Decimal


@dataclass(frozen=True, slots=True)
class DayPart:
    """The part of a line that fell on one local day."""

    day: date
    quantity: Fraction
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a bill: amount in cents, and what it is a rounding of; exact quantity."""

    account: Account
    origin: Origin
    key: LineKey
    quantity: Fraction
    amount: Decimal
    exact: Fraction
    is_hidden: bool = False
    children: tuple[Child, ...] = ()
    days: tuple[DayPart, ...] = ()

    @property
    def unit(self) -> str | None:
        """What the quantity is in, None where there is none."""
        return UNITS.get(self.key.line_type) if self.quantity else None


@dataclass(frozen=True, slots=True)
class Sources:
    """The five totals that the lines add up to."""

    capacity: Decimal
    other: Decimal
    external: Decimal
    fixed: Decimal
    adjustments: Decimal


@dataclass(frozen=True, slots=True)
class Bill:
    """Lines in order, and what they add up to."""

    lines: tuple[Line, ...]
    sources: Sources


def to_cents(
    facts: Facts, ledger: Ledger, fixed: Mapping[str, Number], moved: Iterable[Transfer]
) -> Bill:
    """Round each source once and split it down origin, account, line and workload."""
    by_source: dict[str, dict[tuple[Origin, Account, LineKey], Tally]] = defaultdict(dict)
    for origin, account, key, tally in ledger.settled():
        by_source[_source(origin, key)][origin, account, key] = tally
    lines: list[Line] = []
    totals: dict[str, Decimal] = defaultdict(lambda: from_units(0))
    for source, tallies in by_source.items():
        exact = exact_sum(tally.amount for tally in tallies.values())
        totals[source] = round_half_up(exact)
        lines += _split(facts, totals[source], tallies)
    for transfer in moved:
        quantity = Fraction(transfer.quantity)
        exact = Fraction(transfer.amount)  # rounded once, and a source of nothing
        lines.append(
            Line(transfer.account, "transfer", transfer.key, quantity, transfer.amount, exact)
        )
    lines.sort(key=lambda line: (line.account, line.origin, line.key.order, line.amount))
    return Bill(tuple(lines), _sources(totals, fixed))


def _source(origin: Origin, key: LineKey) -> str:
    """Return the source of a line; each fixed amount and each adjustment is one of its own."""
    if origin in CAPACITY_ORIGINS:
        return "capacity"
    return f"{origin} {key.ref}" if origin in {"fixed", "adjustment"} else origin


def _sources(totals: Mapping[str, Decimal], fixed: Mapping[str, Number]) -> Sources:
    zero = from_units(0)
    corrections = (total for source, total in totals.items() if source.startswith("adjustment "))
    return Sources(
        capacity=totals.get("capacity", zero),
        other=totals.get("other", zero),
        external=totals.get("external", zero),
        fixed=sum((round_half_up(Fraction(amount)) for amount in fixed.values()), zero),
        adjustments=sum(corrections, zero),
    )


def _split(
    facts: Facts, total: Decimal, tallies: Mapping[tuple[Origin, Account, LineKey], Tally]
) -> list[Line]:
    paths = {key: (key[0], key[1], key[2].order) for key in tallies}
    cents = split_tree(
        total, {paths[key]: Fraction(tally.amount) for key, tally in tallies.items()}
    )
    is_hiding = facts.policy.idle == "hidden"
    return [
        Line(
            account,
            origin,
            key,
            Fraction(tally.quantity),
            cents[paths[origin, account, key]],
            Fraction(tally.amount),
            is_hidden=is_hiding and key.line_type == "idle",
            children=_children(tally, cents[paths[origin, account, key]]),
            days=_days(tally, cents[paths[origin, account, key]]),
        )
        for (origin, account, key), tally in tallies.items()
    ]


def _children(tally: Tally, amount: Decimal) -> tuple[Child, ...]:
    if not tally.workloads:
        return ()
    cents = split_cents(
        amount, {name: Fraction(part.amount) for name, part in tally.workloads.items()}
    )
    return tuple(
        Child(name, Fraction(tally.workloads[name].quantity), cents[name])
        for name in sorted(tally.workloads)
    )


def _days(tally: Tally, amount: Decimal) -> tuple[DayPart, ...]:
    if not tally.days:
        return ()
    exact = {day: Fraction(part.amount) for day, part in tally.days.items()}
    cents = split_in_order(amount, exact)
    return tuple(
        DayPart(day, Fraction(tally.days[day].quantity), cents[day]) for day in sorted(tally.days)
    )
