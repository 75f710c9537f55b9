"""What finance must look at before it believes a bill (FORMAT.md 6, findings)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from finops.allocation.draft.facts import CapacityFact, Facts, UsageFact
from finops.allocation.draft.metering import clip, gpu_hours
from finops.allocation.draft.pricing import PriceList
from finops.allocation.draft.tally import UNALLOCATED, Ledger, Tally
from finops.allocation.money import HOURS_PLACES, ZERO, round_half_up

OVER_ALLOCATION_TOLERANCE = Fraction(5, 1000)
UNALLOCATED_TOLERANCE = Fraction(5, 100)

AMOUNT_PLACES = 6
RATIO_PLACES = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at: ``subject`` says where, ``numbers`` how much."""

    code: str
    level: Literal["info", "warning", "critical"]
    subject: Mapping[str, str]
    numbers: Mapping[str, Decimal]


def bill_findings(
    facts: Facts, capacity: Mapping[str, Tally], ledger: Ledger
) -> tuple[Finding, ...]:
    """Return all findings, sorted by code and subject."""
    total = sum((tally.cost for tally in capacity.values()), ZERO)
    found = [
        *_unpriced(facts),
        *_over_allocation(ledger, total),
        *_unallocated(ledger, total),
        *_unknown_teams(facts),
    ]
    return tuple(sorted(found, key=lambda one: (one.code, sorted(one.subject.items()))))


def _unpriced(facts: Facts) -> Iterator[Finding]:
    """Hours without a price cost nothing on the bill, which is never what was meant."""
    prices = PriceList(facts.prices)
    hours: dict[tuple[str, str], Fraction] = {}
    rows: list[tuple[str, CapacityFact | UsageFact]] = [
        *(("capacity", fact) for fact in facts.capacity),
        *(("usage", fact) for fact in facts.usage),
    ]
    for source, fact in rows:
        window = clip(fact.start, fact.end, facts.period.window)
        for piece in prices.pieces(fact.flavor, window) if window else ():
            if piece.unit_price is None and fact.gpus:
                key = (source, fact.flavor)
                hours[key] = hours.get(key, ZERO) + fact.gpus * piece.hours
    for (source, flavor), unpriced in hours.items():
        subject = {"flavor": flavor, "source": source}
        numbers = {"gpu_hours": round_half_up(unpriced, HOURS_PLACES)}
        yield Finding("unpriced", "critical", subject, numbers)


def _over_allocation(ledger: Ledger, total: Fraction) -> Iterator[Finding]:
    for key, tally in ledger.items():
        if key.kind != "over_allocation" or not (tally.cost or tally.gpu_hours):
            continue
        ratio = -tally.cost / total if total else None
        is_small = ratio is not None and ratio <= OVER_ALLOCATION_TOLERANCE
        yield Finding(
            "over_allocation",
            "info" if is_small else "warning",
            {"flavor": key.flavor, "resource": "gpu"} if key.flavor else {"resource": "gpu"},
            _amount_and_ratio(-tally.cost, ratio),
        )


def _unallocated(ledger: Ledger, total: Fraction) -> Iterator[Finding]:
    amount = sum(
        (tally.cost for key, tally in ledger.items() if key.account in UNALLOCATED),
        ZERO,
    )
    if not amount:
        return
    ratio = amount / total if total else None
    is_small = ratio is not None and abs(ratio) <= UNALLOCATED_TOLERANCE
    level: Literal["warning", "critical"] = "warning" if is_small else "critical"
    yield Finding("unallocated", level, {}, _amount_and_ratio(amount, ratio))


def _unknown_teams(facts: Facts) -> Iterator[Finding]:
    """Name the teams that hold GPUs and are on nobody's list."""
    hours: dict[str, Fraction] = {}
    billed_teams = facts.billed_teams
    for use in facts.usage:
        if use.team is not None and use.team not in billed_teams:
            held = gpu_hours(use.gpus, use.start, use.end, facts.period.window)
            hours[use.team] = hours.get(use.team, ZERO) + held
    for team in [team for team, held in hours.items() if held]:
        numbers = {"gpu_hours": round_half_up(hours[team], HOURS_PLACES)}
        yield Finding("unknown_team", "warning", {"team": team}, numbers)


def _amount_and_ratio(amount: Fraction, ratio: Fraction | None) -> dict[str, Decimal]:
    numbers = {"amount": round_half_up(amount, AMOUNT_PLACES)}
    if ratio is not None:
        numbers["ratio"] = round_half_up(ratio, RATIO_PLACES)
    return numbers
