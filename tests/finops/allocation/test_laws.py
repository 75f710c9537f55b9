"""Laws of every bill (FORMAT.md 7), on random months."""

from collections import defaultdict
from copy import deepcopy
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finops.allocation.bill import chargeback
from finops.allocation.encoding import as_json, outcome_of
from finops.allocation.reading import read_facts
from tests.finops.allocation import hour_by_hour
from tests.finops.allocation.months import HOURS, Document, at, exact, months

few = settings(max_examples=25)
CENT = Decimal("0.01")
LISTS = ("usage", "capacity", "quotas", "mappings", "prices", "iron", "tokens", "loads", "teams")


def bill(document: Document) -> dict[str, Any]:
    """The outcome of a document that has no problems."""
    return as_json(chargeback(read_facts(document)))


def sums_by(lines: list[Document], *names: str) -> dict[tuple[Any, ...], Decimal]:
    sums: dict[tuple[Any, ...], Decimal] = defaultdict(Decimal)
    for line in lines:
        sums[tuple(line.get(name) for name in names)] += Decimal(line["amount"])
    return dict(sums)


def check_sum_law(document: Document) -> None:
    outcome = bill(document)
    lines, totals = outcome["lines"], outcome["totals"]
    sources = {name: Decimal(amount) for name, amount in totals["sources"].items()}
    by_origin = sums_by(lines, "origin")
    total = sum(by_origin.values(), Decimal(0))
    assert total == sum(sources.values()) == Decimal(totals["total"])
    assert by_origin.get(("transfer",), Decimal(0)) == 0
    assert sources["capacity"] == sum(
        (by_origin.get((name,), Decimal(0)) for name in CAPACITY), Decimal(0)
    )
    accounts = sum((Decimal(one["amount"]) for one in totals["teams"]), Decimal(0))
    assert accounts + Decimal(totals["central"]) == total
    for line in lines:
        if "children" in line:
            parts = (Decimal(child["amount"]) for child in line["children"])
            assert sum(parts) == Decimal(line["amount"])


CAPACITY = ("direct", "idle", "over_allocation", "unmeasured")


@few
@given(months())
def test_lines_add_up_to_the_five_sources(document: Document) -> None:
    check_sum_law(document)


@few
@given(months())
def test_capacity_cost_is_inventory_times_price(document: Document) -> None:
    wanted = Fraction(0)
    for hour in range(HOURS):
        prices = {
            price["flavor"]: price for price in hour_by_hour.in_force(document["prices"], hour)
        }
        for row in hour_by_hour.in_force(document["capacity"], hour):
            price = prices[row["flavor"]]
            wanted += exact(row["gpus"]) * exact(price["gpu_hour"])
            wanted += exact(row["cpus"]) * exact(price["cpu_hour"])
            wanted += exact(row["memory_gib"]) * exact(price["gib_hour"])
    found = Decimal(bill(document)["totals"]["sources"]["capacity"])
    assert abs(Fraction(found) - wanted) <= Fraction(1, 200)


@few
@given(months(), st.randoms(use_true_random=False))
def test_the_order_of_rows_means_nothing(document: Document, dice: Any) -> None:
    shuffled = deepcopy(document)
    for name in LISTS:
        dice.shuffle(shuffled[name])
    assert outcome_of(shuffled) == outcome_of(document)


@few
@given(months())
def test_a_run_told_in_two_rows_is_the_same_run(document: Document) -> None:
    told = deepcopy(document)
    told["usage"] = [part for row in told["usage"] for part in in_two(row, "admitted")]
    told["capacity"] = [part for row in told["capacity"] for part in in_two(row)]
    told["quotas"] = [part for row in told["quotas"] for part in in_two(row)]
    told["mappings"] = [part for row in told["mappings"] for part in in_two(row)]
    assert outcome_of(told) == outcome_of(document)


def in_two(row: Document, kept: str = "") -> list[Document]:
    """Cut a row somewhere; a run keeps the instant it was admitted at."""
    start = datetime.fromisoformat(row.get("from", at(-100)))
    cut = start + timedelta(minutes=95)
    if "to" in row and cut >= datetime.fromisoformat(row["to"]):
        return [row]
    cut_at = cut.isoformat()
    second = row | {"from": cut_at} | ({kept: row["from"]} if kept else {})
    return [row | {"to": cut_at}, second]


@few
@given(months())
def test_ten_times_the_prices_are_ten_times_the_bill(document: Document) -> None:
    dear = deepcopy(document)
    for price in dear["prices"]:
        for name in ("gpu_hour", "cpu_hour", "gib_hour"):
            price[name] = f"{Decimal(price[name]) * 10}"
    for row in (document, dear):
        for name in ("iron", "tokens", "shared", "adjustments"):
            row[name] = []
    ours, theirs = (
        sums_by(bill(row)["lines"], "team", "bucket", "line_type", "queue")
        for row in (document, dear)
    )
    assert ours.keys() == theirs.keys()
    lines = len(bill(document)["lines"])
    for key, amount in ours.items():
        assert abs(amount * 10 - theirs[key]) < lines * 11 * CENT


@few
@given(months())
def test_policies_of_idle_leave_direct_lines_alone(document: Document) -> None:
    document["policy"]["usage_source"] = "scheduler"
    document["namespaces"] = []  # what passes on idle passes on direct cost as well
    found: dict[str, list[Document]] = {}
    for idle in ("separate", "hidden", "proportional", "even", "owner", "owner_net"):
        document["policy"]["idle"] = idle
        lines = bill(document)["lines"]
        found[idle] = [line for line in lines if line["origin"] == "direct"]
    assert found["separate"] == found["hidden"] == found["proportional"] == found["even"]
    assert found["owner"] == found["owner_net"]


@few
@given(months())
def test_telling_workloads_apart_changes_no_amount(document: Document) -> None:
    plain, told = deepcopy(document), deepcopy(document)
    plain["policy"]["detail"], told["policy"]["detail"] = "none", "workload"
    lines = [
        {name: value for name, value in line.items() if name != "children"}
        for line in bill(told)["lines"]
    ]
    assert lines == bill(plain)["lines"]


@few
@given(months())
def test_telling_days_apart_changes_no_amount(document: Document) -> None:
    facts = read_facts(document)
    told = chargeback(facts, by_day=True)
    assert as_json(told) == as_json(chargeback(facts))
    for line in told.lines:
        if line.days:
            assert sum(part.amount for part in line.days) == line.amount
            assert sum(part.quantity for part in line.days) == line.quantity


@few
@given(months())
def test_metering_and_loans_are_those_of_every_hour(document: Document) -> None:
    memo = chargeback(read_facts(document)).memo
    wanted = hour_by_hour.meter(document)
    for row in memo.metering:
        totals = wanted[row.cluster, row.flavor]["totals"]
        for name in ("capacity", "used", "net_idle", "unquota", "over"):
            assert getattr(row, name) == totals[name], name
        assert row.capacity == row.used + row.net_idle + row.unquota - row.over
    for queue in memo.queues:
        record = wanted[queue.cluster, queue.flavor]["queues"][queue.queue]
        for name in ("held", "nominal", "borrowed", "lent", "net_idle"):
            assert getattr(queue, name) == record[name], name
    loans: dict[tuple[str, str], dict[tuple[str, str], Fraction]] = defaultdict(dict)
    for loan in memo.loans:
        loans[loan.cluster, loan.flavor][loan.lender, loan.borrower] = loan.gpu_hours
    assert {key: dict(sums["loans"]) for key, sums in wanted.items() if sums["loans"]} == loans


@pytest.mark.long
@settings(max_examples=500)
@given(months())
def test_lines_add_up_on_500_months(document: Document) -> None:
    check_sum_law(document)
