from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from finops.allocation.draft.bill import FlavorHours, month_bill
from finops.allocation.draft.facts import (
    CapacityFact,
    Facts,
    Period,
    Policy,
    PriceFact,
    QuotaFact,
    UsageFact,
)
from finops.allocation.draft.findings import Finding
from finops.allocation.money import InvalidFieldError
from tests.finops.allocation.month_facts import (
    JUNE,
    NODE,
    PRICES,
    QUOTAS,
    RATE,
    SEED,
    TP4_USAGE,
    USAGE,
    amounts,
    euros,
    held,
    hours,
    june,
    only,
)

SEPARATE = Policy("separate")
DIRECT = {"datos": euros("1,512.00"), "ia": euros("604.80"), "plataforma": euros("352.80")}


def test_the_articles_month_line_by_line() -> None:
    bill = month_bill(SEED, SEPARATE)

    rows = [
        (line.row, line.kind, line.quantity, line.unit_price, line.amount) for line in bill.lines
    ]
    assert rows == [
        ("datos", "gpu_direct", Decimal(1080), RATE, euros("1,512.00")),
        ("ia", "gpu_direct", Decimal(432), RATE, euros("604.80")),
        ("plataforma", "gpu_direct", Decimal(252), RATE, euros("352.80")),
        ("__idle__", "idle", Decimal(1116), RATE, euros("1,562.40")),
    ]
    assert str(bill.lines[0].quantity) == "1080.000000"
    assert {(line.currency, line.policy) for line in bill.lines} == {("EUR", "separate")}
    assert bill.totals.total == euros("4,032.00")
    assert bill.totals.central == bill.totals.idle == euros("1,562.40")
    assert bill.totals.direct == euros("2,469.60")
    assert bill.gpu_hours == (FlavorHours("h100", Decimal(2880), Decimal(1764), Decimal(1116)),)
    assert bill.findings == ()


@pytest.mark.parametrize(
    ("idle", "usage", "by_team", "central"),
    [
        ("separate", USAGE, ("1,512.00", "604.80", "352.80"), "1,562.40"),
        ("hidden", USAGE, ("1,512.00", "604.80", "352.80"), "1,562.40"),
        ("proportional", USAGE, ("2,468.57", "987.43", "576.00"), "0.00"),
        ("even", USAGE, ("2,032.80", "1,125.60", "873.60"), "0.00"),
        ("owner", USAGE, ("2,016.00", "1,008.00", "1,008.00"), "0.00"),
        ("owner_net", USAGE, ("2,016.00", "1,008.00", "1,008.00"), "0.00"),
        ("owner_net", TP4_USAGE, ("2,772.00", "630.00", "630.00"), "0.00"),
        ("owner", TP4_USAGE, ("2,772.00", "1,008.00", "1,008.00"), "-756.00"),
    ],
)
def test_every_idle_policy_conserves_the_articles_month(idle, usage, by_team, central) -> None:
    bill = month_bill(replace(SEED, usage=usage), Policy(idle))

    expected = dict(zip(DIRECT, map(euros, by_team), strict=True))
    assert bill.totals.teams == expected
    assert bill.totals.central == euros(central)
    assert bill.totals.total == euros("4,032.00")


def test_the_proportional_shares_are_right_to_the_cent_and_not_the_articles() -> None:
    bill = month_bill(SEED, Policy("proportional"))

    assert amounts(bill, "gpu_direct") == DIRECT
    assert amounts(bill, "idle_share") == {
        "datos": euros("956.57"),
        "ia": euros("382.63"),
        "plataforma": euros("223.20"),
    }


def test_hidden_idle_is_marked_and_stays_in_the_sums() -> None:
    bill = month_bill(SEED, Policy("hidden"))

    assert only(bill, "idle").hidden
    assert [line.row for line in bill.lines if line.hidden] == ["__idle__"]


def test_borrowed_hours_are_a_line_for_each_lender() -> None:
    bill = month_bill(replace(SEED, usage=TP4_USAGE), SEPARATE)

    borrowed = [
        (line.row, line.lender, line.quantity, line.amount)
        for line in bill.lines
        if line.kind == "gpu_borrowed"
    ]
    assert borrowed == [
        ("datos", "cq-ia", Decimal(270), euros("378.00")),
        ("datos", "cq-plataforma", Decimal(270), euros("378.00")),
    ]


def test_a_price_change_cuts_the_month() -> None:
    prices = (
        PriceFact("h100", RATE, june(1), june(16)),
        PriceFact("h100", Decimal("1.60"), june(16)),
    )
    bill = month_bill(replace(SEED, prices=prices), SEPARATE)

    # Datos: 2 GPUs for 540 h, of these 360 h at 1.40 and 180 h at 1.60.
    datos = [line for line in bill.lines if line.team == "datos"]
    assert [(line.quantity, line.unit_price, line.amount) for line in datos] == [
        (720, RATE, euros("1,008.00")),
        (360, Decimal("1.60"), euros("576.00")),
    ]
    assert bill.totals.total == euros("4,320.00")


@pytest.mark.parametrize(
    ("number", "gpu_hours", "total"), [(10, 2980, "4,172.00"), (3, 2972, "4,160.80")]
)
def test_months_in_which_the_clock_changes(number, gpu_hours, total) -> None:
    madrid = ZoneInfo("Europe/Madrid")
    start = datetime(2026, number, 1, tzinfo=madrid)
    period = Period(start, datetime(2026, number + 1, 1, tzinfo=madrid), "Europe/Madrid")
    facts = Facts(
        period,
        (PriceFact("h100", RATE, start),),
        (CapacityFact("node-1", "h100", 4, start),),
        (held("datos", 4, start, None),),
    )
    bill = month_bill(facts, SEPARATE)

    (line,) = bill.lines
    assert (line.quantity, line.amount) == (gpu_hours, euros(total))
    assert sum(bill.days_of("datos").values()) == euros(total)
    assert len(line.days) == 31


def test_days_for_the_chart_add_up_to_the_line() -> None:
    usage = (held("datos", 1, june(1), june(4)),)
    prices = (PriceFact("h100", Decimal("0.0007"), june(1)),)
    bill = month_bill(replace(SEED, usage=usage, prices=prices), SEPARATE)

    # 0.0504 EUR in three days of 0.0168 each.
    assert bill.days_of("datos") == {
        date(2026, 6, 1): Decimal("0.02"),
        date(2026, 6, 2): Decimal("0.02"),
        date(2026, 6, 3): Decimal("0.01"),
    }
    assert bill.lines[0].amount == Decimal("0.05")


def test_time_without_a_price_is_a_finding_and_not_a_silent_zero() -> None:
    prices = (PriceFact("h100", RATE, june(2)),)
    bill = month_bill(replace(SEED, prices=prices), SEPARATE)

    assert bill.findings == (
        Finding(
            "unpriced",
            "critical",
            {"flavor": "h100", "source": "capacity"},
            {"gpu_hours": Decimal(96)},
        ),
        Finding(
            "unpriced",
            "critical",
            {"flavor": "h100", "source": "usage"},
            {"gpu_hours": Decimal(72)},
        ),
    )
    assert bill.totals.total == euros("3,897.60")
    datos = [line for line in bill.lines if line.team == "datos"]
    assert [(line.quantity, line.unit_price, line.amount) for line in datos] == [
        (48, None, 0),
        (1032, RATE, euros("1,444.80")),
    ]


def test_a_flavor_without_any_price_stays_visible() -> None:
    bill = month_bill(replace(SEED, prices=()), SEPARATE)

    assert [(line.row, line.amount) for line in bill.lines] == [
        ("datos", 0),
        ("ia", 0),
        ("plataforma", 0),
        ("__idle__", 0),
    ]
    assert [finding.code for finding in bill.findings] == ["unpriced", "unpriced"]


@pytest.mark.parametrize("idle", ["separate", "proportional", "owner_net"])
def test_over_allocation_is_shown_and_nobody_is_scaled(idle) -> None:
    usage = (held("datos", 5, june(1), None),)
    bill = month_bill(replace(SEED, usage=usage), Policy(idle))

    assert [(line.row, line.kind, line.quantity, line.amount) for line in bill.lines] == [
        ("datos", "gpu_direct", Decimal(3600), euros("5,040.00")),
        ("__over_allocation__", "over_allocation", Decimal(-720), euros("-1,008.00")),
    ]
    assert bill.totals.total == euros("4,032.00")
    assert bill.findings == (
        Finding(
            "over_allocation",
            "warning",
            {"flavor": "h100", "resource": "gpu"},
            {"amount": Decimal(1008), "ratio": Decimal("0.25")},
        ),
    )


def test_use_that_nobody_owns_lands_in_named_buckets() -> None:
    usage = (
        hours("datos", 1, 10, june(1)),
        held(None, 1, june(1), june(1, 10), queue="cq-old"),
        held(None, 1, june(1), june(1, 10), queue="", holding="unmanaged"),
        held("gone", 1, june(1), june(1, 10)),
        held("ia", 1, june(2), june(2, 10), queue="", holding="unmanaged"),
    )
    facts = replace(SEED, usage=usage, teams=("datos", "ia", "plataforma"))
    bill = month_bill(facts, SEPARATE)

    rows = [(line.row, line.kind) for line in bill.lines if line.origin == "direct"]
    assert rows == [
        ("datos", "gpu_direct"),
        ("ia", "unmanaged"),
        ("__unallocated_label__", "unmanaged"),
        ("__unallocated_queue__", "gpu_direct"),
        ("__unknown_team__", "gpu_direct"),
    ]
    assert [(one.code, one.level, one.numbers) for one in bill.findings] == [
        ("unallocated", "warning", {"amount": Decimal(42), "ratio": Decimal("0.0104")}),
        ("unknown_team", "warning", {"gpu_hours": Decimal(10)}),
    ]
    assert bill.totals.teams["plataforma"] == 0


@pytest.mark.parametrize("idle", ["proportional", "even"])
def test_idle_that_nobody_can_share_is_central(idle) -> None:
    facts = Facts(JUNE, PRICES, NODE, ())
    bill = month_bill(facts, Policy(idle))

    assert [(line.row, line.kind) for line in bill.lines] == [
        ("__idle_unattributed__", "idle_unattributed")
    ]
    assert bill.totals.total == euros("4,032.00")


def test_idle_is_shared_in_the_pool_it_was_left_in() -> None:
    capacity = (*NODE, CapacityFact("node-2", "a100", 1, june(1)))
    prices = (*PRICES, PriceFact("a100", Decimal("1.00"), june(1)))
    usage = (held("datos", 3, june(1), None), held("ia", 1, june(1), june(16), flavor="a100"))
    facts = Facts(JUNE, prices, capacity, usage)

    by_flavor = month_bill(facts, Policy("proportional"))
    by_cluster = month_bill(facts, Policy("proportional", "cluster"))

    assert amounts(by_flavor, "idle_share") == {"datos": euros("1008.00"), "ia": euros("360.00")}
    # 1,368.00 by direct cost 3,024.00 to 360.00.
    assert amounts(by_cluster, "idle_share") == {"datos": euros("1222.47"), "ia": euros("145.53")}
    assert by_cluster.lines[1].flavor is None


def test_owner_idle_scales_quotas_that_promise_more_than_there_is() -> None:
    quotas = (*QUOTAS, QuotaFact("cq-late", None, "h100", 4, june(1)))
    bill = month_bill(Facts(JUNE, PRICES, NODE, (), quotas), Policy("owner_net"))

    assert amounts(bill, "idle_owned") == {
        "datos": euros("1008.00"),
        "ia": euros("504.00"),
        "plataforma": euros("504.00"),
        "__unallocated_queue__": euros("2016.00"),
    }


def test_capacity_in_no_quota_stays_central_under_owner_policies() -> None:
    bill = month_bill(Facts(JUNE, PRICES, NODE, (), QUOTAS[:1]), Policy("owner"))

    assert bill.totals.teams == {"datos": euros("2,016.00")}
    assert only(bill, "idle").amount == euros("2,016.00")


def test_lent_hours_come_back_as_income_of_the_platform() -> None:
    bill = month_bill(replace(SEED, usage=TP4_USAGE), Policy("owner"))

    income = [
        (line.row, line.lender, line.quantity, line.amount)
        for line in bill.lines
        if line.kind == "loan_income"
    ]
    assert income == [
        ("__platform__", "cq-ia", Decimal(270), euros("-378.00")),
        ("__platform__", "cq-plataforma", Decimal(270), euros("-378.00")),
    ]


NAIVE = datetime(2026, 6, 1)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: Period(june(2), june(2)), "end"),
        (lambda: Period(NAIVE, june(2)), "start"),
        (lambda: Period(june(1), june(2), "Mars/Olympus"), "time_zone"),
        (lambda: PriceFact("h100", 1.4, june(1)), "gpu_hour"),
        (lambda: PriceFact("h100", Decimal(-1), june(1)), "gpu_hour"),
        (lambda: PriceFact("h100", Decimal("Infinity"), june(1)), "gpu_hour"),
        (lambda: CapacityFact("n", "h100", -1, june(1)), "gpus"),
        (lambda: CapacityFact("n", "h100", True, june(1)), "gpus"),
        (lambda: held("", 1, june(1), None), "team"),
        (lambda: held("ia", 1, june(1), None, lender="cq-x"), "lender"),
        (lambda: held("ia", 1, june(1), None, holding="stolen"), "holding"),
        (lambda: Policy("sometimes"), "idle"),
        (lambda: replace(SEED, prices=PRICES * 2), "prices"),
        (lambda: replace(SEED, capacity=NODE * 2), "capacity"),
        (lambda: replace(SEED, quotas=QUOTAS * 2), "quotas"),
        (lambda: replace(SEED, prices=(replace(PRICES[0], currency="USD"),)), "prices"),
    ],
)
def test_facts_that_cannot_be_meant_are_refused_by_field(build, field) -> None:
    with pytest.raises(InvalidFieldError) as refusal:
        build()
    assert refusal.value.field == field


def test_work_outside_the_period_is_not_billed() -> None:
    usage = (
        held("datos", 4, june(1) - timedelta(days=9), june(1)),
        UsageFact("w", "ia", "cq-ia", "h100", 0, "nominal", None, june(1)),
    )
    bill = month_bill(replace(SEED, usage=usage), SEPARATE)

    assert [line.row for line in bill.lines] == ["__idle__"]


def test_an_owner_pays_net_idle_of_all_its_queues() -> None:
    quotas = (*QUOTAS, QuotaFact("cq-datos-2", "datos", "h100", 1, june(1)))
    capacity = (CapacityFact("node-1", "h100", 5, june(1)),)
    usage = (
        held("ia", 1, june(1), None),
        held("ia", 1, june(1), None, holding="borrowed", lender="cq-datos"),
    )
    bill = month_bill(Facts(JUNE, PRICES, capacity, usage, quotas), Policy("owner_net"))

    # Datos: 2 + 1 nominal, one of them lent; Plataforma 1; Ia holds its own.
    assert amounts(bill, "idle_owned") == {
        "datos": euros("2,016.00"),
        "plataforma": euros("1,008.00"),
    }
