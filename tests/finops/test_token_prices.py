"""What a million tokens should cost: calculator, drift against LiteLLM, lines to copy."""

from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine
import yaml

from finops import billing
from finops.mapping_services import set_mapping
from finops.selectors.token_prices import litellm_snippet, token_price_rows
from finops.specs import MappingSpec

from . import rows

pytestmark = pytest.mark.django_db
END = rows.JULY - timedelta(hours=1)


@pytest.fixture
def june():
    with time_machine.travel(END, tick=False):
        rows.june()
        benchmark = {"tokens_per_second": Decimal(2000), "gpus": Decimal(4)}
        set_mapping(MappingSpec("deployment", "llama", namespace="ns", **benchmark), None)
        yield rows.source("litellm_api")


def row_of(model):
    return next(row for row in token_price_rows(END) if row.model == model)


@pytest.mark.parametrize(
    ("spend", "drift", "level"),
    [
        ("1.40", "0.7999", "critical"),  # EUR per GPU-hour pasted as EUR per million
        ("0.78", "0.0028", "ok"),
        ("0.72", "-0.0743", "warning"),
        ("0.00106", "-0.9986", "critical"),
    ],
)
def test_what_is_charged_stands_beside_what_the_iron_gives(june, spend, drift, level):
    rows.tokens(june, "t", "llama", 1_000_000, spend, day=9)
    rows.tokens(june, "t", "llama", 5_000_000, "0", day=9)  # logged without a cost
    rows.tokens(june, "t", "llama", 5_000_000, "9", day=9, cache_hit=True)
    found = row_of("llama")
    assert found.full_load == Decimal("0.7778")
    assert (found.drift, found.level) == (Decimal(drift), level)


def test_a_declared_price_counts_where_nothing_was_charged(june):
    for unit in ("input_million", "output_million"):
        rows.price("0.78", subject="llama", unit=unit, valid_from=rows.JUNE)
    assert (row_of("llama").charged, row_of("llama").level) == (None, "ok")


def test_without_benchmark_or_deployment_nothing_is_made_up(june):
    set_mapping(MappingSpec("deployment", "bare", namespace="ns"), None)
    rows.tokens(june, "t", "gpt", 1_000_000, "12")
    bare, gpt = row_of("bare"), row_of("gpt")
    assert (bare.full_load, bare.drift, bare.level, bare.snippet) == (None, None, "", "")
    assert (gpt.charged, gpt.drift) == (Decimal(12), None)


def test_real_cost_is_that_of_the_bill(june):
    rows.tokens(june, "t", "llama", 380_000_000, "296.40", day=9)
    billing.rebuild_draft("2026-06", now=END)
    # Every GPU-hour of the month ran in the model's namespace.
    assert row_of("llama").real == Decimal("6.4989")


@pytest.mark.parametrize("name", ["llama-3.1-70b", 'a"b: c', "no", "x\\y", "1e3"])
def test_the_lines_for_litellm_are_yaml_whatever_the_name(name):
    text = "model_list:\n" + litellm_snippet(name, "0.0000007778")
    (entry,) = yaml.safe_load(text)["model_list"]
    assert entry["model_name"] == name
    assert entry["litellm_params"] == dict.fromkeys(
        ("input_cost_per_token", "output_cost_per_token"), 7.778e-07
    )


def test_page_file_and_answer_say_the_same(june, fin, signed_in, token_of, client):
    rows.tokens(june, "t", "llama", 1_000_000, "1.40", day=9)
    browser = signed_in(fin)
    page = browser.get("/prices/tokens/?node_hour=5.60&tokens_per_second=2000").content.decode()
    assert "0.7778" in page
    assert "input_cost_per_token: 0.0000007778" in page
    assert ",0.7778,1.4000," in browser.get("/prices/tokens/?format=csv").content.decode()
    headers = {"Authorization": token_of(fin, "cost:read")}
    (answer,) = client.get("/api/v1/prices/tokens/", headers=headers).json()
    assert (answer["full_load"], answer["level"]) == ("0.7778", "critical")
    assert browser.get("/prices/tokens/?node_hour=5&tokens_per_second=0").status_code == 200
