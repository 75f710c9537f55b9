"""The rules of the bill one by one, each in a world as small as it can be (FORMAT.md 2 to 6)."""

import json
import os
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from finops.allocation.documents import text_of
from finops.allocation.encoding import outcome_of
from tests.finops.allocation.months import Document, june

GOLDEN = Path(__file__).parent / "golden"
DAY = {"from": "2026-06-01T00:00:00Z", "to": "2026-06-02T00:00:00Z"}
NOON = "2026-06-01T12:00:00Z"
TEAMS = ("a", "b", "c")


def day(**facts: Any) -> Document:
    """One day of 4 GPUs at 1.00 in cluster c; teams a, b, c own namespaces and queues so named."""
    mapped = [
        {"kind": kind, "value": f"{kind[0]}-{team}", "team": team}
        for kind in ("queue", "namespace")
        for team in TEAMS
    ]
    base: Document = {
        "period": {"start": DAY["from"], "end": DAY["to"]},
        "teams": [{"id": team} for team in TEAMS],
        "mappings": mapped,
        "prices": [{"flavor": "f", "gpu_hour": "1"}],
        "capacity": [{"cluster": "c", "node": "n1", "flavor": "f", "gpus": 4, **DAY}],
    }
    more = facts.pop("mappings", [])
    return base | facts | {"mappings": mapped + more}


def run(name: str, gpus: Any = 1, **fields: Any) -> Document:
    row = {"workload": name, "cluster": "c", "flavor": "f", "gpus": gpus, **DAY}
    return row | fields


def quota(queue: str, nominal: int, **fields: Any) -> Document:
    return {
        "cluster": "c",
        "queue": queue,
        "flavor": "f",
        "nominal": nominal,
        "cohort": "m",
    } | fields


def lines(document: Document) -> list[Document]:
    outcome = outcome_of(document)
    assert "lines" in outcome, outcome
    found: list[Document] = outcome["lines"]
    return found


def amounts(document: Document, *names: str) -> dict[Any, str]:
    """Line amounts by account (teams plain, buckets in brackets) and the named fields."""
    found: dict[Any, str] = {}
    for line in lines(document):
        account = line.get("team") or f"[{line['bucket']}]"
        key = " ".join([account, *(line.get(name, "-") for name in names)])
        assert key not in found, key
        found[key] = line["amount"]
    return found


def findings(document: Document, code: str) -> list[Document]:
    return [one for one in outcome_of(document)["findings"] if one["code"] == code]


# ---- the articles' month -----------------------------------------------------------------------
IDLE = {
    "separate": {"[idle] idle": "1562.40"},
    "hidden": {"[idle] idle": "1562.40"},
    "proportional": {
        "datos idle_share": "956.57",
        "ia idle_share": "382.63",
        "plataforma idle_share": "223.20",
    },
    "even": dict.fromkeys(
        ("datos idle_share", "ia idle_share", "plataforma idle_share"), "520.80"
    ),
    "owner": {
        "datos idle_owned": "504.00",
        "ia idle_owned": "403.20",
        "plataforma idle_owned": "655.20",
    },
}


@pytest.mark.parametrize("policy", [*IDLE, "owner_net"])
def test_the_articles_month(policy: str) -> None:
    found = amounts(june(policy), "line_type")
    direct = {
        "datos gpu_direct": "1512.00",
        "ia gpu_direct": "604.80",
        "plataforma gpu_direct": "352.80",
    }
    assert found == direct | IDLE["owner" if policy == "owner_net" else policy]
    totals = outcome_of(june(policy))["totals"]
    assert totals["total"] == totals["sources"]["capacity"] == "4032.00"
    hidden = [line for line in lines(june(policy)) if line.get("hidden")]
    assert len(hidden) == (policy == "hidden")


@pytest.mark.parametrize("policy", [*IDLE, "owner_net"])
def test_the_articles_month_is_the_same_file_as_ever(policy: str) -> None:
    check_golden(f"june-{policy}", june(policy, detail="workload"))


def check_golden(name: str, document: Document) -> None:
    """Compare an outcome with the file of its name; ``GOLDEN=write`` writes it."""
    file = GOLDEN / f"{name}.json"
    text = text_of(outcome_of(document))
    if os.environ.get("GOLDEN") == "write":
        file.write_text(text)
    assert file.read_text() == text


# ---- whose it is -------------------------------------------------------------------------------
OWNERS = [
    ({"queue": "q-a", "namespace": "n-b", "annotations": {"o": "c"}}, "a"),
    ({"queue": "q-x", "namespace": "n-b", "annotations": {"o": "c"}}, "c"),
    ({"namespace": "n-b", "annotations": {"o": "c"}, "labels": {"t": "a"}}, "c"),
    ({"namespace": "n-b", "annotations": {"o": "?"}, "labels": {"t": "a"}}, "a"),
    ({"namespace": "n-b", "labels": {"z": "a", "t": "b"}}, "b"),
    ({"namespace": "n-b", "labels": {"z": "a"}}, "b"),
    ({"queue": "q-x", "namespace": "n-x"}, "[unallocated_namespace]"),
    ({"queue": "q-x"}, "[unallocated_queue]"),
    ({}, "[unallocated_label]"),
]


@pytest.mark.parametrize(("marks", "owner"), OWNERS)
def test_owner_is_queue_then_annotation_then_label_then_namespace(
    marks: Document, owner: str
) -> None:
    mapped = [
        {"kind": "annotation", "key": "o", "value": "c", "team": "c"},
        {"kind": "label", "key": "t", "value": "a", "team": "a"},
        {"kind": "label", "key": "t", "value": "b", "team": "b"},
        {"kind": "namespace", "value": "n-x", "cluster": "other", "team": "a"},
    ]
    found = amounts(day(mappings=mapped, usage=[run("w", 4, **marks)]))
    assert found == {owner: "96.00"}


def test_a_mapping_that_names_the_cluster_goes_first_while_it_is_in_force() -> None:
    mapped = [{"kind": "queue", "value": "q-a", "cluster": "c", "team": "b", "from": NOON}]
    found = amounts(day(mappings=mapped, usage=[run("w", 4, queue="q-a")]))
    assert found == {"a": "48.00", "b": "48.00"}


IRON = [
    ("__unmounted__", {}, "[unmounted_storage]"),
    ("__unallocated__", {}, "[unallocated_label]"),
    ("__unallocated__", {"labels": {"t": "a"}}, "a"),
    ("n-b", {}, "b"),
]


@pytest.mark.parametrize(("namespace", "marks", "owner"), IRON)
def test_rows_of_opencost_that_are_no_namespace(
    namespace: str, marks: Document, owner: str
) -> None:
    mapped = [
        {"kind": "label", "key": "t", "value": "a", "team": "a"},
        {"kind": "namespace", "value": "__unmounted__", "team": "a"},
        {"kind": "namespace", "value": "__unallocated__", "team": "a"},
    ]
    row = {"cluster": "c", "namespace": namespace, "pv_cost": "3", **DAY} | marks
    found = amounts(day(mappings=mapped, capacity=[], iron=[row]), "namespace")
    assert found == {f"{owner} {namespace}": "3.00"}


def test_idle_rows_of_opencost_are_never_used() -> None:
    row = {"cluster": "z", "namespace": "__idle__", "gpu_cost": "50", "pv_cost": "1", **DAY}
    document = day(policy={"usage_source": "opencost"}, iron=[row])
    assert amounts(document) == {"[idle]": "96.00"}
    assert [one["cluster"] for one in outcome_of(document)["memo"]["gpu_hours"]] == ["c"]


# ---- preempted work ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("policy", "account", "line_types"),
    [
        ("borrower", "a", {"gpu_direct": "48.00", "gpu_borrowed": "48.00"}),
        ("not_charged", "[preempted_work]", {"gpu_preempted": "96.00"}),
        ("reclaimer", "b", {"gpu_preempted": "96.00"}),
    ],
)
def test_who_pays_for_a_run_that_was_evicted(
    policy: str, account: str, line_types: dict[str, str]
) -> None:
    document = day(
        policy={"preempted": policy, "borrow_surcharge": "1.5"},
        quotas=[quota("q-a", 2), quota("q-b", 2)],
        usage=[run("w", 4, queue="q-a", preempted=True, reclaimed_by="b")],
    )
    found = amounts(document, "line_type")
    moved = {"a loan_surcharge": "24.00", "[platform] loan_surcharge": "-24.00"}
    wanted = {f"{account} {line_type}": cents for line_type, cents in line_types.items()}
    assert found == wanted | (moved if policy == "borrower" else {})


# ---- idle --------------------------------------------------------------------------------------
def test_more_use_than_capacity_is_a_negative_line_of_its_own() -> None:
    document = day(usage=[run("w", 5, queue="q-a")])
    assert amounts(document, "line_type") == {
        "a gpu_borrowed": "120.00",
        "[over_allocation] over_allocation": "-24.00",
    }
    (found,) = findings(document, "over_allocation")
    assert (found["level"], found["numbers"]) == (
        "warning",
        {"amount": "24.000000", "ratio": "0.2500"},
    )


def test_time_that_was_not_loaded_is_unmeasured_under_every_policy() -> None:
    for policy in ("separate", "proportional", "even", "owner", "owner_net"):
        document = day(
            policy={"idle": policy},
            quotas=[quota("q-a", 4)],
            usage=[run("w", 2, queue="q-a", to=NOON)],
            loads=[{"source": "usage", "from": DAY["from"], "to": NOON}],
        )
        assert amounts(document, "line_type")["[unmeasured] unmeasured"] == "48.00"
        (found,) = findings(document, "missing_coverage")
        assert found["numbers"] == {"hours": "12.000000"}


def test_what_is_lent_stays_owned_where_nothing_was_loaded() -> None:
    document = day(
        policy={"idle": "owner"},
        quotas=[quota("q-a", 0), quota("q-b", 4)],
        usage=[run("w", 2, queue="q-a")],
        loads=[{"source": "usage", "from": "2026-05-01T00:00:00Z", "to": DAY["from"]}],
    )
    assert amounts(document, "line_type") == {
        "a gpu_borrowed": "48.00",
        "b idle_owned": "48.00",
        "[platform] loan_income": "-48.00",
        "[unmeasured] unmeasured": "48.00",
    }


# ---- loans and transfers -----------------------------------------------------------------------
def test_loans_are_exact_parts_of_gpus() -> None:
    document = day(
        quotas=[quota("q-a", 0), quota("q-b", 1), quota("q-c", 2)],
        usage=[run("w", 1, queue="q-a")],
    )
    quantities = {
        line["lender"]: line["quantity"]
        for line in lines(document)
        if line["line_type"] == "gpu_borrowed"
    }
    assert quantities == {"q-b": "8.000000", "q-c": "16.000000"}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (False, {"a": "9.60", "b": "-24.00", "[platform]": "14.40"}),
        (True, {}),  # the lending queue is the borrower's own
    ],
)
def test_surcharge_and_credit_are_written_twice(own: bool, expected: dict[str, str]) -> None:
    lender = {"kind": "queue", "value": "lender", "team": "a" if own else "b"}
    document = day(
        policy={"borrow_surcharge": "1.2", "lender_credit": "0.5"},
        mappings=[lender],
        quotas=[quota("q-a", 0), quota("lender", 4)],
        usage=[run("w", 2, queue="q-a")],
    )
    moved: dict[str, Decimal] = defaultdict(Decimal)
    for line in lines(document):
        if line["origin"] == "transfer":
            account = line.get("team") or f"[{line['bucket']}]"
            moved[account] += Decimal(line["amount"])
    assert {account: str(amount) for account, amount in moved.items()} == expected


# ---- serving -----------------------------------------------------------------------------------
def serving(mode: str, **facts: Any) -> Document:
    """Namespace n-c serves model m to a (300 tokens), b (100) and an unknown team (600)."""
    rows = [("t-a", 300), ("t-b", 100), ("gone", 600)]
    return day(
        mappings=[
            {"kind": "litellm_team", "value": f"t-{team}", "team": team} for team in ("a", "b")
        ],
        namespaces=[{"namespace": "n-c", "mode": mode}],
        deployments=[{"model_group": "m", "cluster": "c", "namespace": "n-c"}],
        token_prices=[
            {"model_group": "m", "input_per_million": "10000", "output_per_million": "0"}
        ],
        tokens=[
            {"at": NOON, "team_id": team, "model_group": "m", "prompt_tokens": tokens}
            for team, tokens in rows
        ],
        usage=[run("vllm", 4, namespace="n-c")],
        **facts,
    )


SERVING = [
    ("direct", "bucket", {"c gpu_direct": "96.00"}),
    (
        "serving_shared",
        "bucket",
        {
            "a serving_share": "28.80",
            "b serving_share": "9.60",
            "[unknown_team] serving_share": "57.60",
        },
    ),
    (
        "serving_shared",
        "owner",
        {"a serving_share": "28.80", "b serving_share": "9.60", "c serving_share": "57.60"},
    ),
    (
        "external",
        "bucket",
        {
            "a tokens_external": "3.00",
            "b tokens_external": "1.00",
            "c gpu_direct": "96.00",
            "[unknown_team] tokens_external": "6.00",
        },
    ),
]


@pytest.mark.parametrize(("mode", "nobodys", "expected"), SERVING)
def test_billing_modes_of_a_namespace(mode: str, nobodys: str, expected: dict[str, str]) -> None:
    document = serving(mode, policy={"tokens_without_team": nobodys})
    assert amounts(document, "line_type") == expected


def test_priced_tokens_move_money_and_add_none() -> None:
    assert amounts(serving("serving_priced"), "line_type", "counterparty") == {
        "a tokens_transfer c": "3.00",
        "b tokens_transfer c": "1.00",
        "c gpu_direct -": "96.00",
        "c tokens_transfer a": "-3.00",
        "c tokens_transfer b": "-1.00",
        "c tokens_transfer unknown_team": "-6.00",
        "[unknown_team] tokens_transfer c": "6.00",
    }


def test_a_model_without_deployment_is_a_finding_and_costs_nothing() -> None:
    document = serving("direct") | {"deployments": []}
    (found,) = findings(document, "unmapped_model")
    assert found["numbers"] == {"rows": 3, "tokens": 1000, "amount": "10.000000"}
    assert amounts(document, "line_type") == {"c gpu_direct": "96.00"}


# ---- shared ------------------------------------------------------------------------------------
SHARED = [
    ({"method": "even"}, {"a": "3.34", "b": "3.33", "c": "3.33"}),
    ({"method": "weighted"}, {"a": "7.50", "b": "2.50"}),
    ({"method": "fixed", "percentages": {"b": "10", "c": 90}}, {"b": "1.00", "c": "9.00"}),
    ({"method": "even", "from": NOON}, {"a": "1.67", "b": "1.67", "c": "1.66"}),
]


@pytest.mark.parametrize(("item", "expected"), SHARED)
def test_a_monthly_amount_is_given_out(item: Document, expected: dict[str, str]) -> None:
    document = day(
        usage=[run("x", 3, queue="q-a"), run("y", 1, queue="q-b")],
        shared=[{"id": "s", "amount": "10", **item}],
    )
    found = {line["team"]: line["amount"] for line in lines(document) if line.get("ref") == "s"}
    assert found == expected


def test_a_shared_namespace_takes_its_idle_first_and_goes_before_serving() -> None:
    document = serving("serving_shared", policy={"idle": "proportional"})
    document["usage"] = [run("vllm", 2, namespace="n-c"), run("x", 1, queue="q-a")]
    document["shared"] = [{"id": "s", "namespace": "n-c", "method": "weighted"}]
    assert amounts(document, "origin", "line_type") == {
        "a direct gpu_borrowed": "24.00",
        "a direct shared": "48.00",
        "a idle idle_share": "8.00",
        "a idle shared": "16.00",
    }


def test_nobody_who_weighs_is_even_with_a_finding() -> None:
    document = day(capacity=[], shared=[{"id": "s", "amount": "10", "method": "weighted"}])
    assert amounts(document) == {"a": "3.34", "b": "3.33", "c": "3.33"}
    assert [one["subject"] for one in findings(document, "zero_weights")] == [{"ref": "s"}]


def test_a_team_below_zero_weighs_nothing_of_shared_costs() -> None:
    rows = [("n-a", "30"), ("n-b", "10"), ("n-c", "-20")]
    document = day(
        iron=[{"cluster": "c", "namespace": name, "pv_cost": cost, **DAY} for name, cost in rows],
        shared=[{"id": "s", "amount": "10", "method": "weighted"}],
    )
    found = {line["team"]: line["amount"] for line in lines(document) if line.get("ref") == "s"}
    assert found == {"a": "7.50", "b": "2.50"}


# ---- who fills nominal, who weighs ------------------------------------------------------------
def test_who_was_admitted_first_fills_nominal_even_if_it_began_later() -> None:
    document = day(
        policy={"detail": "workload"},
        quotas=[quota("q-a", 1), quota("q-b", 3)],
        usage=[
            run("began-first", 1, queue="q-a", admitted="2026-05-31T12:00:00Z"),
            run("admitted-first", 1, queue="q-a", admitted="2026-05-30T12:00:00Z", to=NOON),
        ],
    )
    workloads = outcome_of(document)["memo"]["workloads"]
    assert {one["workload"]: one["borrowed"] for one in workloads} == {
        "admitted-first": "0.000000",
        "began-first": "12.000000",
    }


def test_a_negative_row_keeps_its_value_and_weighs_nothing_of_idle() -> None:
    rows = [("n-a", "60"), ("n-b", "20"), ("n-c", "-10")]
    document = day(
        policy={"usage_source": "opencost", "idle": "proportional"},
        iron=[{"cluster": "c", "namespace": name, "gpu_cost": cost, **DAY} for name, cost in rows],
    )
    assert amounts(document, "line_type") == {
        "a gpu_direct": "60.00",
        "a idle_share": "19.50",
        "b gpu_direct": "20.00",
        "b idle_share": "6.50",
        "c gpu_direct": "-10.00",
    }


# ---- memo and findings ------------------------------------------------------------------------
def test_a_request_counts_once_for_each_of_its_tags() -> None:
    document = serving("direct")
    document["tokens"][0]["tags"] = ["x", "y", "x"]
    document["tokens"][1]["tags"] = ["x"]
    assert outcome_of(document)["memo"]["tags"] == [
        {"tag": "x", "tokens": 400, "token_cost": "4.000000"},
        {"tag": "y", "tokens": 300, "token_cost": "3.000000"},
    ]


@pytest.mark.parametrize(
    ("price", "level"),
    [("0.0000960", None), ("0.0001030", "warning"), ("0.0001200", "critical")],
)
def test_drift_is_told_from_5_percent_on_and_critical_from_15(
    price: str, level: str | None
) -> None:
    document = serving("serving_shared")
    million = f"{Decimal(price) * 1_000_000:f}"
    document["token_prices"][0]["input_per_million"] = million
    document["tokens"] = [
        {"at": NOON, "team_id": "t-a", "model_group": "m", "prompt_tokens": 1_000_000}
    ]
    found = {json.dumps(one["subject"]): one["level"] for one in findings(document, "drift")}
    subjects = ('{"model_group": "m"}', '{"team": "a"}')
    assert found == (dict.fromkeys(subjects, level) if level else {})


PRICES = {"gpu_hour": "1", "cpu_hour": "0.1", "gib_hour": "0"}
CAUSES = [
    ({"gpu_hour": "1.0009", "cpu_hour": "0.1"}, None),
    ({"gpu_hour": "0.00137"}, "factor_730"),
    ({"gpu_hour": "730"}, "factor_730_high"),
    ({"gpu_hour": "0.001"}, "factor_1000"),
    ({"gpu_hour": "0.000001"}, "factor_1000000"),
    ({"gpu_hour": "1000000"}, "factor_1000000_high"),
    ({"gpu_hour": "1", "cpu_hour": "0"}, "zero_price"),
    ({"gpu_hour": "0.9", "cpu_hour": "0.09"}, "normalised_prices"),
    ({"gpu_hour": "0.9", "cpu_hour": "0.08"}, "differs"),
    ({"gpu_hour": "1", "gib_hour": "0.003"}, "undeclared"),
]


@pytest.mark.parametrize(("resolved", "cause"), CAUSES)
def test_a_resolved_price_that_was_not_declared_has_a_cause(
    resolved: dict[str, str], cause: str | None
) -> None:
    document = day(
        prices=[{"flavor": "f", **PRICES}],
        resolved_prices=[{"cluster": "c", "node": "n1", "flavor": "f", **resolved}],
    )
    assert [one["cause"] for one in findings(document, "price_anomaly")] == (
        [cause] if cause else []
    )


# ---- everything at once ------------------------------------------------------------------------
def test_a_whole_month_is_the_same_file_as_ever() -> None:
    document = json.loads((GOLDEN / "whole-month.facts.json").read_text())
    check_golden("whole-month", document)
