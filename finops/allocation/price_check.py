"""Declared against resolved prices: what the cost source really applied (FORMAT.md 6)."""

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from finops.allocation.facts import Facts, Instant, Number, Price, ResolvedPrice
from finops.allocation.findings import Finding
from finops.allocation.timeline import InForce

SAME = Fraction(1, 1000)
FACTOR_TOLERANCE = Fraction(2, 100)
NORMALISED_TOLERANCE = Fraction(1, 100)
FACTORS = (730, 1000, 1_000_000)
PRICES = ("gpu_hour", "cpu_hour", "gib_hour")


class _Pair(NamedTuple):
    declared: Number
    resolved: Number

    @property
    def ratio(self) -> Fraction:
        return Fraction(self.resolved) / self.declared

    @property
    def is_same(self) -> bool:
        return abs(Fraction(self.resolved) - self.declared) <= SAME * self.declared


def price_anomalies(facts: Facts) -> Iterator[Finding]:
    """Yield the nodes whose resolved price is not the declared one, with the cause."""
    prices = InForce((price.flavor, price) for price in facts.prices)
    asked_at = _asked_at(facts)
    for row in facts.resolved_prices:
        declared = prices.at(row.flavor, asked_at.get(row.flavor, facts.period.start))
        found = _compare(declared, row) if declared else _undeclared(row)
        if found:
            cause, numbers = found
            subject = {"cluster": row.cluster, "node": row.node, "flavor": row.flavor}
            yield Finding("price_anomaly", "critical", subject, numbers, cause)


def _asked_at(facts: Facts) -> dict[str, Instant]:
    """Return by flavor the instant whose price is the declared one: the latest change."""
    latest: dict[str, Instant] = defaultdict(lambda: facts.period.start)
    for price in facts.prices:
        if price.start is not None and price.start < facts.period.end:
            latest[price.flavor] = max(latest[price.flavor], price.start)
    return latest


def _undeclared(row: ResolvedPrice) -> tuple[str, dict[str, Number]]:
    return "undeclared", {"resolved": row.gpu_hour}


def _compare(price: Price, row: ResolvedPrice) -> tuple[str, dict[str, Number]] | None:
    given = [
        _Pair(getattr(price, name), getattr(row, name))
        for name in PRICES
        if getattr(row, name) is not None
    ]
    pairs = [pair for pair in given if pair.declared > 0]
    if all(pair.is_same for pair in pairs):
        free = [pair for pair in given if not pair.declared and pair.resolved]
        return ("undeclared", free[0]._asdict()) if free else None
    zero = [pair for pair in pairs if not pair.resolved]
    if zero:
        return "zero_price", zero[0]._asdict()
    shown = max(pairs, key=lambda pair: abs(pair.ratio - 1))  # the first of equal ones
    return _cause(shown.ratio, [pair.ratio for pair in pairs]), shown._asdict()


def _cause(ratio: Fraction, ratios: list[Fraction]) -> str:
    for factor in FACTORS:
        if abs(ratio * factor - 1) <= FACTOR_TOLERANCE:
            return f"factor_{factor}"
    for factor in FACTORS:
        if abs(ratio / factor - 1) <= FACTOR_TOLERANCE:
            return f"factor_{factor}_high"
    if len(ratios) > 1 and max(ratios) <= min(ratios) * (1 + NORMALISED_TOLERANCE):
        return "normalised_prices"
    return "differs"
