"""The outcome as JSON (FORMAT.md 6): fixed decimals, half-up, fields without a value absent."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from finops.allocation import memo as memos
from finops.allocation.bill import Outcome, chargeback
from finops.allocation.facts import Number
from finops.allocation.findings import Finding
from finops.allocation.lines import Line
from finops.allocation.money import from_units, round_half_up
from finops.allocation.places import Account
from finops.allocation.problems import BadFacts
from finops.allocation.reading import read_facts
from finops.allocation.unit_cost import UnitCost

HOURS, COSTS, UNIT_PRICES, PER_MILLION, RATIOS = 6, 6, 8, 4, 4
_TEXTS = (
    "cluster",
    "namespace",
    "queue",
    "flavor",
    "lender",
    "model_group",
    "counterparty",
    "ref",
)
_COUNTS = frozenset({"rows", "tokens"})
_PLACES = {"ratio": RATIOS, "drift": RATIOS, "declared": UNIT_PRICES, "resolved": UNIT_PRICES}

Json = dict[str, Any]


def outcome_of(document: object) -> Json:
    """Return the outcome of the facts in a JSON document: the bill, or its problems."""
    try:
        facts = read_facts(document)
    except BadFacts as error:
        return {"problems": [problem._asdict() for problem in error.problems]}
    return as_json(chargeback(facts))


def as_json(outcome: Outcome) -> Json:
    """Return a bill as JSON."""
    return {
        "lines": [_line(line) for line in outcome.lines],
        "totals": _totals(outcome),
        "memo": memo_json(outcome.memo),
        "findings": [_finding(finding) for finding in outcome.findings],
    }


def shown(value: Number | Decimal, places: int) -> str:
    """Return a number with ``places`` decimals, halves away from zero, never ``-0``."""
    return f"{round_half_up(value, places):f}"


def _line(line: Line) -> Json:
    key = line.key
    found: Json = {
        **_account(line.account),
        "origin": line.origin,
        "line_type": key.line_type,
        **{name: text for name in _TEXTS if (text := getattr(key, name))},
    }
    if line.unit:
        found |= {"quantity": shown(line.quantity, HOURS), "unit": line.unit}
    if key.unit_price is not None:
        found["unit_price"] = shown(key.unit_price, UNIT_PRICES)
    found["amount"] = shown(line.amount, 2)
    if line.is_hidden:
        found["hidden"] = True
    if line.children:
        found["children"] = [
            {
                "workload": child.workload,
                "quantity": shown(child.quantity, HOURS),
                "amount": shown(child.amount, 2),
            }
            for child in line.children
        ]
    return found


def _account(account: Account) -> Json:
    return {"bucket" if account.is_bucket else "team": account.name}


# ---- totals ----------------------------------------------------------------------------------
def _totals(outcome: Outcome) -> Json:
    sums: dict[Account, Decimal] = {}
    zero = from_units(0)
    for line in outcome.lines:
        sums[line.account] = sums.get(line.account, zero) + line.amount
    teams = sorted(outcome.facts.teams, key=lambda team: team.id)
    amounts = {team.id: sums.get(Account(False, team.id), zero) for team in teams}
    buckets = sorted(account for account in sums if account.is_bucket)
    modes = {
        mode: sum((amounts[t.id] for t in teams if t.accounting_mode == mode), zero)
        for mode in ("chargeback", "showback")
    }
    sources = outcome.sources
    return {
        "currency": outcome.facts.period.currency,
        "teams": [
            {
                "team": team.id,
                "accounting_mode": team.accounting_mode,
                "amount": shown(amounts[team.id], 2),
            }
            for team in teams
        ],
        "buckets": [{"bucket": one.name, "amount": shown(sums[one], 2)} for one in buckets],
        "chargeback": shown(modes["chargeback"], 2),
        "showback": shown(modes["showback"], 2),
        "central": shown(sum((sums[one] for one in buckets), zero), 2),
        "total": shown(sum(sums.values(), zero), 2),
        "sources": {
            "capacity": shown(sources.capacity, 2),
            "other": shown(sources.other, 2),
            "external": shown(sources.external, 2),
            "fixed": shown(sources.fixed, 2),
            "adjustments": shown(sources.adjustments, 2),
        },
    }


# ---- memo ------------------------------------------------------------------------------------
def memo_json(memo: memos.Memo) -> Json:
    """Return the memo of a bill as JSON."""
    found: Json = {
        "gpu_hours": [
            _hours(one, "cluster", "capacity", "used", "idle") for one in memo.gpu_hours
        ],
        "metering": [
            _hours(one, "cluster", "flavor", "capacity", "used", "net_idle", "unquota", "over")
            for one in memo.metering
        ],
        "queues": [
            _hours(
                one,
                *("cluster", "queue", "flavor"),
                *("held", "nominal", "borrowed", "lent", "net_idle"),
            )
            for one in memo.queues
        ],
        "loans": [_loan(one) for one in memo.loans],
        "models": [{"model_group": one.name, **_unit_cost(one)} for one in memo.models],
        "teams": [{"team": one.name, **_unit_cost(one)} for one in memo.teams],
        "tags": [
            {"tag": one.tag, "tokens": one.tokens, "token_cost": shown(one.token_cost, COSTS)}
            for one in memo.tags
        ],
    }
    if memo.workloads is not None:
        found["workloads"] = [
            _hours(one, "workload", "held", "borrowed", "preempted") for one in memo.workloads
        ]
    return found


def _hours(row: object, *names: str) -> Json:
    """Return the named fields: texts as they are, hours with their decimals."""
    values = {name: getattr(row, name) for name in names}
    return {
        name: value if isinstance(value, str) else shown(value, HOURS)
        for name, value in values.items()
    }


def _loan(loan: memos.LoanHours) -> Json:
    found: Json = {"cluster": loan.cluster, "flavor": loan.flavor}
    if loan.lender:
        found["lender"] = loan.lender
    return found | {
        "borrower": loan.borrower,
        "gpu_hours": shown(loan.gpu_hours, HOURS),
        "amount": shown(loan.amount, COSTS),
        "open_gpus": shown(loan.open_gpus, HOURS),
        "forward_cost": shown(loan.forward_cost, 2),
    }


def _unit_cost(cost: UnitCost) -> Json:
    def ratio(value: Fraction | None) -> str | None:
        return None if value is None else shown(value, RATIOS)

    return {
        "tokens": cost.tokens,
        "token_cost": shown(cost.token_cost, COSTS),
        "iron_direct": shown(cost.iron_direct, COSTS),
        "iron_with_idle": shown(cost.iron_with_idle, COSTS),
        "real_per_million_direct": ratio(cost.per_million(cost.iron_direct)),
        "real_per_million_with_idle": ratio(cost.per_million(cost.iron_with_idle)),
        "recovery": ratio(cost.recovery),
        "drift": ratio(cost.drift),
    }


# ---- findings --------------------------------------------------------------------------------
def _finding(finding: Finding) -> Json:
    found: Json = {
        "code": finding.code,
        "level": finding.level,
        "subject": dict(finding.subject),
        "numbers": _numbers(finding.numbers),
    }
    if finding.cause:
        found["cause"] = finding.cause
    return found


def _numbers(numbers: Mapping[str, Number]) -> Json:
    return {
        name: int(value) if name in _COUNTS else shown_number(name, value)
        for name, value in numbers.items()
    }


def shown_number(name: str, value: Number) -> str:
    """Return a number of a finding with the decimals of its name."""
    return shown(value, 0 if name in _COUNTS else _PLACES.get(name, COSTS))
