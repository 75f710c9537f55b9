"""What holds for every month, whatever is in it."""

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from finops.allocation.draft.bill import month_bill
from finops.allocation.draft.facts import Facts, Policy
from finops.allocation.draft.metering import clip, hours_between
from finops.allocation.money import CENT, round_half_up
from tests.finops.allocation.month_facts import END, START, months, policies_st

laws = settings(max_examples=80, deadline=None)


def capacity_cost(facts: Facts) -> Fraction:
    """Price the capacity the slow way: every price with every node."""
    cost = Fraction(0)
    for node in facts.capacity:
        for price in facts.prices:
            window = clip(node.start, node.end, facts.period.window)
            part = window and clip(price.start, price.end, window)
            if part and price.flavor == node.flavor:
                cost += node.gpus * hours_between(part.start, part.end) * Fraction(price.gpu_hour)
    return cost


@laws
@given(facts=months(), policy=policies_st)
def test_every_cent_is_billed_once(facts, policy) -> None:
    bill = month_bill(facts, policy)

    totals = bill.totals
    assert sum(line.amount for line in bill.lines) == totals.total
    assert totals.total == round_half_up(capacity_cost(facts))
    assert sum(totals.teams.values()) + totals.central == totals.total
    assert totals.direct + totals.idle + totals.over_allocation == totals.total
    assert all(line.amount == line.amount.quantize(CENT) for line in bill.lines)


@laws
@given(facts=months(), policy=policies_st)
def test_days_add_up_to_their_line(facts, policy) -> None:
    for line in month_bill(facts, policy).lines:
        assert bool(line.days) == (line.origin == "direct")
        if line.days:
            assert sum(part.amount for part in line.days) == line.amount


@laws
@given(facts=months(), policy=policies_st, chance=st.randoms(use_true_random=False))
def test_the_order_of_facts_means_nothing(facts, policy, chance) -> None:
    def shuffled(rows):
        return tuple(chance.sample(rows, len(rows)))

    lists = ("prices", "capacity", "usage", "quotas", "teams")
    other = replace(facts, **{name: shuffled(getattr(facts, name)) for name in lists})

    assert repr(month_bill(other, policy)) == repr(month_bill(facts, policy))


@laws
@given(facts=months(), policy=policies_st, cut=st.integers(-86_400, 8 * 86_400))
def test_splitting_intervals_in_two_changes_nothing(facts, policy, cut) -> None:
    instant = START + timedelta(seconds=cut)

    def split(rows):
        for row in rows:
            if row.start < instant and (row.end is None or instant < row.end):
                yield from (replace(row, end=instant), replace(row, start=instant))
            else:
                yield row

    lists = ("prices", "capacity", "usage", "quotas")
    other = replace(facts, **{name: tuple(split(getattr(facts, name))) for name in lists})

    assert month_bill(other, policy) == month_bill(facts, policy)


@laws
@given(facts=months(), cut=st.integers(1, 7 * 86_400 - 1))
def test_two_periods_side_by_side_have_the_hours_of_both(facts, cut) -> None:
    middle = START + timedelta(seconds=cut)
    facts = replace(facts, teams=("datos", "ia"))

    def quantities(start, end):
        period = replace(facts.period, start=start, end=end)
        bill = month_bill(replace(facts, period=period), Policy("separate"))
        lines = [line for line in bill.lines if line.origin == "direct"]
        return {(ln.row, ln.kind, ln.flavor, ln.lender, ln.unit_price): ln for ln in lines}

    whole, first, second = (
        quantities(START, END),
        quantities(START, middle),
        quantities(middle, END),
    )
    assert set(whole) == {*first, *second}
    for key, line in whole.items():
        parts = [half[key] for half in (first, second) if key in half]
        # Rounded once in each period: two micro-hours and two cents at most.
        assert abs(sum(part.quantity for part in parts) - line.quantity) <= CENT / 5000
        assert abs(sum(part.amount for part in parts) - line.amount) <= 3 * CENT


@laws
@given(facts=months())
def test_quantity_times_unit_price_is_the_amount_of_every_line_of_use(facts) -> None:
    for line in month_bill(facts, Policy("separate")).lines:
        if line.origin == "direct" and line.unit_price is not None:
            # Hours are rounded to a millionth and cents are given out once.
            assert abs(line.quantity * line.unit_price - line.amount) <= CENT


@laws
@given(facts=months())
def test_direct_lines_are_the_same_whoever_pays_the_idle(facts) -> None:
    def direct(idle):
        bill = month_bill(facts, Policy(idle))
        return [(line.row, line.amount, line.days) for line in bill.lines if line.days]

    assert direct("separate") == direct("hidden") == direct("proportional") == direct("even")
    assert direct("owner") == direct("owner_net")


@laws
@given(facts=months(), policy=policies_st)
def test_idle_is_never_negative(facts, policy) -> None:
    for line in month_bill(facts, policy).lines:
        assert line.amount >= 0 or line.kind in {"over_allocation", "loan_income"}
