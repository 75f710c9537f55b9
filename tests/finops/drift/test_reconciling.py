"""The eight checks as tables: values, tolerances, causes (finops.md 4.4, 5 and 8)."""

from decimal import Decimal

import pytest

from finops.reconciling import (
    Benchmark,
    Served,
    Spend,
    billed,
    capacity,
    drift,
    hours_cause,
    implied_throughput,
    latency,
    load_of,
    spends,
    wanted_price,
)

# The articles' deployment: 4 GPUs at 1.40, 2,000 tokens/s, 0.7778 EUR per million.
FULL = Benchmark(Decimal(2000), Decimal(4), Decimal("1.40"))


def served(iron, tokens, cost, name="model_group=llama"):
    return Served(name, tokens, Decimal(cost), Decimal(iron))


@pytest.mark.parametrize(
    ("assets", "status"),
    [("2880", "ok"), ("2866", "ok"), ("2865", "warning"), ("2900", "warning"), (None, "unknown")],
)
def test_r1_capacity_to_half_a_percent_and_what_is_not_loaded_is_not_zero(assets, status):
    check = capacity("a", Decimal(2880), None if assets is None else Decimal(assets))
    assert (check.status, check.difference is None) == (status, assets is None)


@pytest.mark.parametrize(
    ("allocated", "status"),
    [("100", "info"), ("95", "info"), ("94.9", "warning"), ("0", "warning")],
)
def test_r3_warns_where_starting_takes_more_than_a_twentieth(allocated, status):
    assert latency(Decimal(100), Decimal(allocated)).status == status
    assert latency(Decimal(0), Decimal(0)).status == "info"


def test_r4_is_to_the_cent():
    assert billed(Decimal("4032.00"), Decimal("4032.00")).status == "ok"
    assert billed(Decimal("4032.00"), Decimal("4032.01")).status == "critical"


def test_r5_t10_the_daily_table_dropped_keys():
    (check,) = spends(
        {"g 2026-06-01 t": Spend(250, Decimal(250))}, {"g 2026-06-01 t": Spend(100, Decimal(100))}
    )
    assert (check.difference, check.status, check.cause) == (150, "critical", "lost_sums")


@pytest.mark.parametrize(
    ("ours", "theirs", "found"),
    [
        (Spend(5, Decimal("1.00")), Spend(5, Decimal("1.01")), 0),
        (Spend(5, Decimal("1.00")), Spend(5, Decimal("1.011")), 1),
        (Spend(5, Decimal("1.00")), Spend(6, Decimal("1.00")), 1),
        (Spend(), Spend(7, Decimal(2)), 1),
    ],
)
def test_r5_spend_to_a_cent_and_tokens_to_the_last(ours, theirs, found):
    assert len(list(spends({"d": ours}, {"d": theirs}))) == found


@pytest.mark.parametrize(
    ("one", "status", "cause", "part"),
    [
        # The articles' month: 80.4, 87.8 and 92.1 % of the iron is not recovered.
        (served("1512.00", 380_000_000, "296.40"), "critical", "utilisation", "0.1960"),
        (served("604.80", 210_000_000, "73.50"), "critical", "utilisation", "0.1215"),
        # 1.40 EUR per million is the price of a GPU-hour; the deployment is full.
        (served("77.78", 100_000_000, "140"), "critical", "price", "1.7999"),
        (served("1512.00", 1_900_000_000, "1482"), "ok", "", "0.9802"),
        (served("1512.00", 1_700_000_000, "1326"), "warning", "utilisation", "0.8770"),
        # More than the iron could serve.
        (served("100", 300_000_000, "234"), "critical", "attribution", "2.3400"),
        (served("49.99", 380_000_000, "296.40"), "info", "too_little", None),
        (served("1512.00", 999_999, "1"), "info", "too_little", None),
        (served("0", 5_000_000, "4"), "info", "attribution", None),
    ],
)
def test_r8_levels_and_causes(one, status, cause, part):
    check = drift(one, FULL)
    assert (check.status, check.cause) == (status, cause)
    if part:
        assert round(check.a / check.b, 4) == Decimal(part)


def test_r8_says_the_price_that_recovers_and_the_throughput_it_stands_for():
    datos = served("1512.00", 380_000_000, "296.40")
    assert round(wanted_price(datos), 4) == Decimal("3.9789")
    assert round(load_of(datos, FULL), 1) == Decimal("19.5")
    assert round(implied_throughput(FULL, FULL.per_million)) == 2000
    assert round(implied_throughput(FULL, wanted_price(datos))) == 391
    assert wanted_price(served("10", 0, "0")) is None
    assert wanted_price(served("0", 5_000_000, "4")) is None  # without iron there is no price
    assert drift(datos).cause == "no_benchmark"


@pytest.mark.parametrize(
    ("ours", "theirs", "is_running", "cause"),
    [
        (100, 50, False, "opencost_less"),
        (50, 100, False, "opencost_more"),
        (100, 50, True, "not_read_yet"),
        (50, 100, True, "opencost_more"),
        (None, 50, False, ""),
    ],
)
def test_who_saw_fewer_hours_is_the_cause(ours, theirs, is_running, cause):
    sides = (None if one is None else Decimal(one) for one in (ours, theirs))
    assert hours_cause(*sides, is_running=is_running) == cause
