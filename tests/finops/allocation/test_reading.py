"""Facts that cannot be billed: every problem at once, by path and code (FORMAT.md 1)."""

from copy import deepcopy
from typing import Any

import pytest

from finops.allocation.documents import parse
from finops.allocation.encoding import outcome_of
from finops.allocation.facts import Usage
from finops.allocation.reading import read_facts
from tests.finops.allocation.months import june

ABSENT = object()


def problems(document: object) -> list[tuple[str, str]]:
    outcome = outcome_of(document)
    assert set(outcome) == {"problems"}, "was billed"
    return [(one["path"], one["code"]) for one in outcome["problems"]]


def changed(path: str, value: Any) -> dict[str, Any]:
    """The articles' month with one field set, or taken away; rows are named ``usage.0``."""
    document = deepcopy(FULL)
    place: Any = document
    *steps, last = path.split(".")
    for step in steps:
        place = place[int(step)] if isinstance(place, list) else place[step]
    if value is ABSENT:
        del place[last]
    elif isinstance(place, list):
        place[int(last)] = value
    else:
        place[last] = value
    return document


FULL = june() | {
    "iron": [{"cluster": "c1", "from": "2026-06-01T00:00:00Z", "to": "2026-06-02T00:00:00Z"}],
    "tokens": [{"at": "2026-06-10T12:00:00Z", "model_group": "m", "request_id": "r"}],
    "shared": [
        {"id": "s", "amount": "5", "method": "fixed", "percentages": {"ia": "40", "datos": 60}}
    ],
    "adjustments": [{"id": "a", "team": "ia", "amount": "-1.50", "reason": "late row"}],
    "loads": [{"source": "tokens", "from": "2026-06-01T00:00:00Z", "to": "2026-07-01T00:00:00Z"}],
    "deployments": [{"model_group": "m", "cluster": "c1", "namespace": "llm"}],
    "namespaces": [{"namespace": "llm", "mode": "serving_shared"}],
    "token_prices": [{"model_group": "m", "input_per_million": "1", "output_per_million": 2}],
}

FIELDS = [
    ("period", ABSENT, "period", "required"),
    ("period", None, "period", "required"),
    ("period", [], "period", "bad_type"),
    ("period.start", ABSENT, "period.start", "required"),
    ("period.start", "2026-06-01", "period.start", "bad_time"),
    ("period.end", "2026-06-01T00:00:00Z", "period.end", "empty_window"),
    ("period.time_zone", "Europe/Toledo", "period.time_zone", "unknown_time_zone"),
    ("period.time_zone", 1, "period.time_zone", "bad_type"),
    ("period.currency", "", "period.currency", "empty"),
    ("period.zone", "UTC", "period.zone", "unknown_field"),
    ("policy.idle", "fair", "policy.idle", "bad_choice"),
    ("policy.idle", 1, "policy.idle", "bad_choice"),
    ("policy.borrow_surcharge", "-1", "policy.borrow_surcharge", "negative"),
    ("teams", ABSENT, "teams", "required"),
    ("teams", [], "teams", "required"),
    ("teams", {}, "teams", "bad_type"),
    ("teams.0", None, "teams[0]", "bad_type"),
    ("teams.0.id", "", "teams[0].id", "empty"),
    ("teams.0.id", 7, "teams[0].id", "bad_type"),
    ("extra", [], "extra", "unknown_field"),
    ("usage.1.gpus", "four", "usage[1].gpus", "bad_number"),
    ("usage.1.gpus", True, "usage[1].gpus", "bad_number"),
    ("usage.1.gpus", 1.5, "usage[1].gpus", "bad_number"),
    ("usage.1.gpus", "1e3", "usage[1].gpus", "bad_number"),
    ("usage.1.gpus", " 1", "usage[1].gpus", "bad_number"),
    ("usage.1.gpus", "٣", "usage[1].gpus", "bad_number"),
    ("usage.1.gpus", "9" * 100, "usage[1].gpus", "bad_number"),
    ("usage.1.gpus", "NaN", "usage[1].gpus", "bad_number"),
    ("usage.1.gpus", ABSENT, "usage[1].gpus", "required"),
    ("usage.1.gpus", "-0.5", "usage[1].gpus", "negative"),
    ("usage.1.from", "2026-06-01T00:00Z", "usage[1].from", "bad_time"),
    ("usage.1.from", "2026-06-01T00:00:00", "usage[1].from", "bad_time"),
    ("usage.1.from", "2026-06-01T00:00:00.1234567Z", "usage[1].from", "bad_time"),
    ("usage.1.from", "2026-06-31T00:00:00Z", "usage[1].from", "bad_time"),
    ("usage.1.from", "2026-06-01T24:00:00Z", "usage[1].from", "bad_time"),
    ("usage.1.from", "2026-06-01T00:00:00+25:00", "usage[1].from", "bad_time"),
    ("usage.1.from", 0, "usage[1].from", "bad_time"),
    ("usage.1.to", "2026-05-01T00:00:00Z", "usage[1].to", "empty_window"),
    ("usage.1.preempted", "yes", "usage[1].preempted", "bad_type"),
    ("usage.1.labels", {"team": 1}, "usage[1].labels", "bad_type"),
    ("usage.1.labels", "team", "usage[1].labels", "bad_type"),
    ("iron.0.to", ABSENT, "iron[0].to", "required"),
    ("tokens.0.prompt_tokens", "5", "tokens[0].prompt_tokens", "bad_number"),
    ("tokens.0.prompt_tokens", -5, "tokens[0].prompt_tokens", "negative"),
    ("tokens.0.day", "2026-06-31", "tokens[0].day", "bad_time"),
    ("tokens.0.tags", ["a", 1], "tokens[0].tags", "bad_type"),
    ("tokens.0.status", "maybe", "tokens[0].status", "bad_choice"),
    ("shared.0.percentages", {"ia": "x"}, "shared[0].percentages", "bad_number"),
    ("shared.0.percentages", {"ia": "-1"}, "shared[0].percentages", "negative"),
    ("adjustments.0.reason", ABSENT, "adjustments[0].reason", "required"),
]
CONTRADICTIONS = [
    ("teams.1.id", "datos", "teams[1]", "duplicate"),
    ("teams.2.id", "unknown_team", "teams[2].id", "reserved"),
    ("mappings.0.team", "nobody", "mappings[0].team", "unknown_team"),
    ("mappings.1.value", "cq-datos", "mappings[1]", "overlap"),
    ("mappings.1.kind", "label", "mappings[1].key", "required"),
    ("mappings.1.key", "k", "mappings[1].key", "not_allowed"),
    ("usage.0.reclaimed_by", "nobody", "usage[0].reclaimed_by", "unknown_team"),
    ("usage.0.flavor", "a100", "usage[0].flavor", "price_missing"),
    ("capacity.0.flavor", "a100", "capacity[0].flavor", "price_missing"),
    ("prices.0.currency", "USD", "prices[0].currency", "currency_mismatch"),
    ("iron.0.currency", "USD", "iron[0].currency", "currency_mismatch"),
    ("shared.0.percentages", {"ia": "99.99"}, "shared[0].percentages", "not_100"),
    ("shared.0.percentages", ABSENT, "shared[0].percentages", "not_100"),
    ("shared.0.method", "even", "shared[0].percentages", "not_allowed"),
    ("shared.0.amount", ABSENT, "shared[0].amount", "required"),
    ("shared.0.namespace", "n", "shared[0].amount", "not_allowed"),
    ("shared.0.percentages", {"x": 100}, "shared[0].percentages.x", "unknown_team"),
    ("adjustments.0.amount", "1.005", "adjustments[0].amount", "not_cents"),
    ("tokens.0.at", ABSENT, "tokens[0].at", "required"),
    ("tokens.0.day", "2026-06-01", "tokens[0].at", "not_allowed"),
    ("loads.0.cluster", "c1", "loads[0].cluster", "not_allowed"),
]


@pytest.mark.parametrize(("path", "value", "wrong", "code"), FIELDS)
def test_a_field_that_is_wrong_is_named(path: str, value: Any, wrong: str, code: str) -> None:
    assert problems(changed(path, value)) == [(wrong, code)]


@pytest.mark.parametrize(("path", "value", "wrong", "code"), CONTRADICTIONS)
def test_facts_that_contradict_are_named(path: str, value: Any, wrong: str, code: str) -> None:
    if (path, value) == ("teams.1.id", "datos"):
        document = changed("teams", [{"id": name} for name in ("ia", "datos", "plataforma", "ia")])
        assert problems(document) == [("teams[3]", "duplicate")]
        return
    found = problems(changed(path, value))
    assert (wrong, code) in found
    assert {other for other, _ in found} <= {wrong, *KNOCK_ON.get(path, ())}


# Renaming a team takes it away from the rows that name it.
KNOCK_ON = {"teams.2.id": ("mappings[2].team",)}


def test_cross_checks_wait_until_every_field_is_right() -> None:
    document = changed("usage.0.gpus", "four")
    document["mappings"][0]["team"] = "nobody"
    assert problems(document) == [("usage[0].gpus", "bad_number")]
    document["usage"][0]["gpus"] = "4"
    assert problems(document) == [("mappings[0].team", "unknown_team")]


def test_all_problems_come_at_once_sorted_by_path() -> None:
    document = changed("usage.2.gpus", None)
    document["usage"][0] |= {"gpus": "x", "colour": "red"}
    document["aaa"] = 1
    assert problems(document) == [
        ("aaa", "unknown_field"),
        ("usage[0].colour", "unknown_field"),
        ("usage[0].gpus", "bad_number"),
        ("usage[2].gpus", "required"),
    ]


@pytest.mark.parametrize(
    ("policy", "wrong"),
    [
        ({"idle": "owner", "usage_source": "opencost"}, {("policy.idle", "needs_scheduler")}),
        (
            {"idle_scope": "node"},
            {(f"usage[{index}].node", "required") for index in range(3)},
        ),
        (
            {"token_weight": "gpu_seconds"},
            {
                ("deployments[0].gpus", "required"),
                ("deployments[0].tokens_per_second", "required"),
            },
        ),
    ],
)
def test_some_policies_need_more_facts(
    policy: dict[str, str], wrong: set[tuple[str, str]]
) -> None:
    assert set(problems(changed("policy", policy))) == wrong


def test_only_iron_with_cost_of_a_pool_needs_a_node() -> None:
    document = changed("policy", {"idle_scope": "node", "usage_source": "opencost"})
    row = document["iron"][0]
    costs = ({"pv_cost": "3"}, {"ram_cost": "-1"}, {"gpu_cost": "1", "namespace": "__idle__"})
    document["iron"] = [row | cost for cost in costs]
    assert problems(document) == [("iron[1].node", "required")]


def test_windows_of_one_key_may_touch_and_not_overlap() -> None:
    noon = "2026-06-01T12:00:00Z"
    document = changed("prices", [{"flavor": "h100", "gpu_hour": 2, "from": noon}])
    document["prices"].append({"flavor": "h100", "gpu_hour": 1, "to": "2026-06-01T14:00:00+02:00"})
    assert "lines" in outcome_of(document)
    document["prices"][1]["to"] = "2026-06-01T12:00:00.000001Z"
    assert problems(document) == [("prices[1]", "overlap")]


def test_a_gap_between_prices_is_not_free() -> None:
    document = changed("prices.0.to", "2026-06-30T23:59:59.999999Z")
    assert problems(document) == [
        ("capacity[0].flavor", "price_missing"),
        ("usage[0].flavor", "price_missing"),
        ("usage[1].flavor", "price_missing"),
        ("usage[2].flavor", "price_missing"),
    ]


def test_null_and_absent_are_the_same() -> None:
    document = changed("usage.0.namespace", None)
    document["iron"][0]["node"] = None
    document["quotas"][0]["lending_limit"] = None
    document["resolved_prices"] = None
    assert outcome_of(document) == outcome_of(FULL)


@pytest.mark.parametrize("text", ["1.0", "1e3", "NaN", "-Infinity", "9" * 5000])
def test_a_json_number_that_is_not_whole_is_refused_and_never_a_float(text: str) -> None:
    document = changed("usage.0.gpus", parse(text))
    assert problems(document) == [("usage[0].gpus", "bad_number")]
    document = changed("usage.0.workload", parse(text))
    assert problems(document) == [("usage[0].workload", "bad_type")]


@pytest.mark.parametrize("document", [None, [], "facts", 3])
def test_what_is_no_object_is_no_facts(document: object) -> None:
    assert problems(document) == [("", "bad_type")]


def test_rows_keep_their_order_and_take_their_defaults() -> None:
    usage = read_facts(june()).usage
    assert [use.workload for use in usage] == [
        "work-of-datos",
        "work-of-ia",
        "work-of-plataforma",
    ]
    assert isinstance(usage[0], Usage)
    assert (usage[0].cpus, usage[0].preempted, usage[0].labels) == (0, False, {})
