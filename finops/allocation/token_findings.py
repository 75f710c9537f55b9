"""What is wrong with rows of tokens: all rows of the period, in any mode (FORMAT.md 6)."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction

from finops.allocation import places
from finops.allocation.facts import Facts, Number
from finops.allocation.findings import Finding
from finops.allocation.money import Sum, exact_sum
from finops.allocation.tokens import TokenRow

SPEND_TOLERANCE = Fraction(1, 1000)


def token_findings(facts: Facts, rows: list[TokenRow]) -> Iterator[Finding]:
    """Yield all findings about rows of tokens."""
    yield from _grouped("zero_spend", rows, _is_zero_spend, _by_model)
    for finding in _grouped("no_price", rows, _has_no_price, _by_model):
        numbers = {name: n for name, n in finding.numbers.items() if name != "amount"}
        yield Finding(finding.code, finding.level, finding.subject, numbers)
    yield from _grouped("unknown_team", rows, _is_unknown_team, _by_team)
    yield from _grouped("unmapped_model", rows, lambda row: row.deployment is None, _by_model)
    yield from _spend_mismatch(rows)
    days = sum(row.use.day is not None for row in rows)
    if days and facts.period.time_zone != "UTC":
        yield Finding("utc_day_rows", "warning", {}, {"rows": days})


def _by_model(row: TokenRow) -> dict[str, str]:
    return {"model_group": row.use.model_group}


def _by_team(row: TokenRow) -> dict[str, str]:
    return {"team_id": row.use.team_id or ""}


def _is_zero_spend(row: TokenRow) -> bool:
    """Tokens without spend, and a price that says what it should have been."""
    return bool(not row.use.spend and row.tokens and row.listed)


def _has_no_price(row: TokenRow) -> bool:
    return bool(not row.use.spend and row.tokens and row.listed is None)


def _is_unknown_team(row: TokenRow) -> bool:
    return row.account == places.UNKNOWN_TEAM


def _grouped(
    code: str,
    rows: list[TokenRow],
    is_found: Callable[[TokenRow], bool],
    subject: Callable[[TokenRow], dict[str, str]],
) -> Iterator[Finding]:
    groups: dict[tuple[tuple[str, str], ...], list[TokenRow]] = defaultdict(list)
    for row in rows:
        if is_found(row):
            groups[tuple(subject(row).items())].append(row)
    for key, found in groups.items():
        numbers: dict[str, Number] = {
            "rows": len(found),
            "tokens": sum(row.tokens for row in found),
            "amount": exact_sum(row.cost for row in found),
        }
        yield Finding(code, "warning", dict(key), numbers)


def _spend_mismatch(rows: list[TokenRow]) -> Iterator[Finding]:
    """Compare what LiteLLM counted with tokens x price, where it counted anything."""
    spend: dict[str, Sum] = defaultdict(Sum)
    listed: dict[str, Sum] = defaultdict(Sum)
    for row in rows:
        is_counted = row.is_billable and (row.use.spend or not row.tokens)
        if is_counted and row.listed is not None:
            spend[row.use.model_group].add(row.use.spend)
            listed[row.use.model_group].add(row.listed)
    for model, summed in spend.items():
        counted, expected = summed.total, listed[model].total
        if abs(counted - expected) > SPEND_TOLERANCE * expected:
            numbers: dict[str, Number] = {"spend": counted, "listed": expected}
            yield Finding("spend_mismatch", "warning", {"model_group": model}, numbers)
