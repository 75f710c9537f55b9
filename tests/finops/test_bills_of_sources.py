"""Rows of OpenCost and LiteLLM on the bill: whose they are, what is added, what is missing."""

from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine

from finops import billing
from finops.mapping_services import set_mapping
from finops.models import Bill, BillingPeriod, BillLine, Finding
from finops.specs import MappingSpec
from queues.models import ClusterQueue

from . import rows

pytestmark = pytest.mark.django_db
AFTER = rows.JULY + timedelta(days=1)


@pytest.fixture
def june():
    with time_machine.travel(AFTER):
        yield rows.june()


def rebuilt(now=AFTER, **columns):
    BillingPeriod.objects.get_or_create(
        name="2026-06", defaults={"starts_at": rows.JUNE, "ends_at": rows.JULY}
    )
    BillingPeriod.objects.update(**columns)
    return billing.rebuild_draft("2026-06", now=now)


def lines(**wanted):
    found = BillLine.objects.filter(**wanted).select_related("bill__team")
    return {
        (line.bill.team.name if line.bill.team else line.bucket, line.kind): line.amount
        for line in found
    }


def findings(code):
    found = Finding.objects.filter(code=code)
    return [(one.severity, one.subject, one.numbers) for one in found]


def sums_match(period):
    total = sum(line.amount for line in BillLine.objects.all())
    assert total == sum(bill.total for bill in Bill.objects.all()) == period.total_cost


def test_storage_and_network_are_added_to_whoever_owns_the_namespace(june):
    opencost = rows.source("opencost", cluster="gpu-onprem")
    rows.cost(opencost, 3, "ns-ia", pv_cost="4.00", network_cost="1.00", gpu_cost="99")
    rows.cost(opencost, 3, "__unmounted__", pv_cost="14.40")
    rows.cost(opencost, 3, "__idle__", gpu_cost="50", pv_cost="7")  # never used
    set_mapping(MappingSpec("namespace", "ns-ia", "ia"), None)
    period = rebuilt()
    assert lines(origin="other") == {
        ("ia", "storage"): Decimal("4.00"),
        ("ia", "network"): Decimal("1.00"),
        ("unmounted_storage", "storage"): Decimal("14.40"),
    }
    assert (period.capacity_cost, period.other_cost) == (Decimal("4032.00"), Decimal("19.40"))
    sums_match(period)


def test_tokens_of_our_own_models_are_a_memo_and_those_of_others_are_added(june):
    gateway = rows.source("litellm_api")
    rows.tokens(gateway, "t-ia", "llama", 2_000_000, "1.56")
    rows.tokens(gateway, "t-ia", "gpt", 1_000_000, "12.345")
    rows.tokens(gateway, "t-ia", "gpt", 500, "9", cache_hit=True)
    rows.tokens(gateway, "", "gpt", 1000, "1.00")
    rows.tokens(gateway, "t-gone", "gpt", 1000, "2.00")
    rows.tokens(gateway, "t-ia", "claude", 1000, "3.00")
    set_mapping(MappingSpec("litellm_team", "t-ia", "ia"), None)
    set_mapping(MappingSpec("deployment", "llama", namespace="ns"), None)
    set_mapping(MappingSpec("deployment", "gpt", namespace="out"), None)
    set_mapping(MappingSpec("mode", "out", mode="external"), None)
    period = rebuilt()
    assert lines(kind="tokens_external") == {
        ("ia", "tokens_external"): Decimal("12.35"),
        ("unallocated_tokens", "tokens_external"): Decimal("1.00"),
        ("unknown_team", "tokens_external"): Decimal("2.00"),
    }
    assert period.external_cost == Decimal("15.35")
    (llama,) = period.memo["models"]
    assert (llama["model_group"], llama["token_cost"]) == ("llama", "1.560000")
    assert [one[1] for one in findings("unknown_team")] == ["team_id=t-gone"]
    assert [one[1] for one in findings("unmapped_model")] == ["model_group=claude"]
    sums_match(period)


def test_a_team_is_its_id_whatever_its_alias_or_its_key_and_two_tags_are_one_request(june):
    gateway = rows.source("litellm_api")
    more = {"key_hash": "a", "team_alias": "equipo-ia"}
    rows.tokens(gateway, "t-ia", "gpt", 1000, "1.00", day=9, **more)
    more = {"key_hash": "b", "team_alias": "inteligencia", "tags": ["cc:1001", "cc:1002"]}
    rows.tokens(gateway, "t-ia", "gpt", 1000, "2.00", day=20, **more)  # renamed, key rotated
    rows.tokens(gateway, "t-other", "gpt", 1000, "4.00", team_alias="equipo-ia")
    set_mapping(MappingSpec("litellm_team", "t-ia", "ia"), None)
    set_mapping(MappingSpec("deployment", "gpt", namespace="out"), None)
    set_mapping(MappingSpec("mode", "out", mode="external"), None)
    period = rebuilt()
    assert lines(kind="tokens_external") == {
        ("ia", "tokens_external"): Decimal("3.00"),
        ("unknown_team", "tokens_external"): Decimal("4.00"),
    }
    tags = {row["tag"]: row["token_cost"] for row in period.memo["tags"]}
    assert tags == {"cc:1001": "2.000000", "cc:1002": "2.000000"}


def test_who_asks_a_shared_model_pays_a_part_of_its_iron(june):
    gateway = rows.source("litellm_api")
    ClusterQueue.objects.filter(name="cq-ia").update(team=None)
    rows.tokens(gateway, "t-d", "llama", 3_000_000, "3.00")
    rows.tokens(gateway, "t-p", "llama", 1_000_000, "1.00")
    rows.use(june["ia"], 1, rows.JUNE, rows.JULY, queue="", namespace="serve")
    for team, name in (("t-d", "datos"), ("t-p", "plataforma")):
        set_mapping(MappingSpec("litellm_team", team, name), None)
    set_mapping(MappingSpec("deployment", "llama", namespace="serve"), None)
    set_mapping(MappingSpec("mode", "serve", mode="serving_shared"), None)
    period = rebuilt()
    assert lines(kind="serving_share") == {
        ("datos", "serving_share"): Decimal("756.00"),
        ("plataforma", "serving_share"): Decimal("252.00"),
    }
    sums_match(period)


def test_a_month_of_another_time_zone_rests_on_every_day_that_has_a_part_in_it(june, settings):
    settings.BILLING_TIME_ZONE = "Europe/Madrid"
    rows.source("opencost", days=32, first=rows.JULY - timedelta(days=1))  # of UTC
    period = billing.rebuild_draft("2026-07", now=rows.JULY + timedelta(days=40))
    told = {name: period.rests_on[0][name] for name in ("days", "there", "missing")}
    assert told == {"days": 32, "there": 32, "missing": 0}


def test_a_bill_of_opencosts_hours_says_what_was_not_loaded(june):
    opencost = rows.source("opencost", cluster="gpu-onprem", missing={7})
    for day in range(1, 31):
        if day != 7:
            hours = {"gpu_hours": "24", "gpu_cost": "33.60", "node": "h100-node-01"}
            rows.cost(opencost, day, "ns-ia", **hours)
    set_mapping(MappingSpec("namespace", "ns-ia", "ia"), None)
    period = rebuilt(usage_source="opencost")
    assert lines(bill__team__name="ia") == {("ia", "gpu_direct"): Decimal("974.40")}
    assert lines(kind="unmeasured") == {("unmeasured", "unmeasured"): Decimal("134.40")}
    assert period.capacity_cost == Decimal("4032.00")
    ((severity, subject, numbers),) = findings("missing_coverage")
    assert (severity, subject, numbers) == ("critical", "source=iron", {"hours": "24.000000"})
    assert period.rests_on == [
        {"name": "opencost", "kind": "opencost", "plane": "iron"}
        | {"days": 30, "there": 29, "loaded": 29, "partial": 0, "missing": 1}
    ]
    sums_match(period)


def test_a_source_in_another_currency_is_left_out_and_said(june):
    opencost = rows.source("opencost")
    type(opencost).objects.update(currency="USD")
    rows.cost(opencost, 3, "ns", pv_cost="4.00")
    assert rebuilt().other_cost == 0
    assert [one[:2] for one in findings("source_currency")] == [
        ("critical", "currency=USD source=opencost")
    ]


def test_what_a_source_said_before_it_was_switched_off_counts_but_for_days_told_anew(june):
    old = rows.source("opencost", name="old", days=20, enabled=False)
    new = rows.source("opencost", name="new", first=rows.JUNE + timedelta(days=9), days=21)
    rows.cost(old, 3, "ns", pv_cost="4.00")
    rows.cost(old, 15, "ns", pv_cost="1.00")  # both told of that day
    rows.cost(new, 15, "ns", pv_cost="2.00")
    period = rebuilt()
    assert period.other_cost == Decimal("6.00")
    assert [(one["name"], one["there"]) for one in period.rests_on] == [("new", 21), ("old", 20)]
    assert findings("missing_coverage") == []


def test_a_gap_of_the_new_source_is_not_hidden_by_the_old_one(june):
    rows.source("opencost", name="old", days=5, enabled=False)
    rows.source("opencost", name="new", missing={20})
    rebuilt()
    assert [one[2] for one in findings("missing_coverage")] == [{"hours": "24.000000"}]


@pytest.mark.parametrize(
    ("first", "days", "missing", "hours"),
    [
        (rows.JUNE, 10, (), None),
        (rows.JUNE, 10, (4,), "24.000000"),
        (rows.JUNE, 9, (), "24.000000"),
        (rows.JUNE + timedelta(days=5), 5, (), None),
    ],
)
def test_neither_today_nor_the_time_before_its_first_day_is_missing(
    june, first, days, missing, hours
):
    """It is noon of the eleventh: ten days are over."""
    rows.source("litellm_api", first=first, days=days, missing=missing)
    rebuilt(now=rows.JUNE + timedelta(days=10, hours=12))
    assert [one[2] for one in findings("missing_coverage")] == (
        [{"hours": hours}] if hours else []
    )


def test_of_two_gateways_a_day_is_there_if_both_have_it(june):
    rows.source("litellm_api", name="one", cluster="a", missing={3})
    rows.source("litellm_api", name="two", cluster="b", missing={4})
    rebuilt()
    assert [one[2] for one in findings("missing_coverage")] == [{"hours": "48.000000"}]


def test_a_price_of_tokens_holds_while_both_its_sides_do(june):
    gateway = rows.source("litellm_api")
    rows.price("1", subject="gpt", unit="input_million", valid_from=rows.JUNE)
    middle = rows.JUNE + timedelta(days=15)
    rows.price("2", subject="gpt", unit="output_million", valid_from=middle)
    rows.tokens(gateway, "t-ia", "gpt", 1_000_000, "0", day=10)
    rows.tokens(gateway, "t-ia", "gpt", 1_000_000, "0", day=20)
    set_mapping(MappingSpec("deployment", "gpt", namespace="out"), None)
    set_mapping(MappingSpec("mode", "out", mode="external"), None)
    assert rebuilt().external_cost == Decimal("2.00")
    assert [one[2]["tokens"] for one in findings("no_price")] == ["1000000"]
