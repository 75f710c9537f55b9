"""Prices out of LiteLLM's configuration and OpenCost's Helm values."""

from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine

from finops import services
from finops.manifests import read_litellm, read_opencost
from finops.models import Price
from gpuplatform.common.manifests import load_documents
from scheduling.models import Node

from . import rows

pytestmark = pytest.mark.django_db


def body(text):
    (document,) = load_documents(text)
    return document.body


def said(reading):
    return [diagnostic.code for diagnostic in reading.diagnostics]


def opencost(**model):
    prices = {"enabled": True, "costModel": model}
    return {"opencost": {"customPricing": prices}}


def litellm(name, **costs):
    return {"model_list": [{"model_name": name, "litellm_params": costs}]}


def test_the_articles_litellm_configuration_gives_the_prices_of_two_models(manifests):
    reading = read_litellm(body((manifests / "litellm-config.yaml").read_text()))
    assert [(spec.subject, spec.unit, spec.amount) for spec in reading.specs] == [
        ("llama-3-70b-onprem", "input_million", Decimal("1.40")),
        ("llama-3-70b-onprem", "output_million", Decimal("1.40")),
        ("llama-3-8b-onprem", "input_million", Decimal("0.35")),
        ("llama-3-8b-onprem", "output_million", Decimal("0.35")),
    ]
    warning, *notes = reading.diagnostics
    assert (warning.code, warning.severity) == ("TOKEN_PRICE_ABOVE_IRON", "warning")
    assert [(note.code, note.severity, note.path) for note in notes] == [
        ("CURRENCY_ASSUMED", "info", "model_list"),
        ("SECTION_NOT_READ", "info", "litellm_settings"),
    ]
    assert "EUR" in notes[0].sentence
    assert warning.numbers == {
        "model": "llama-3-70b-onprem",
        "price": "1.40",
        "iron": "0.7778",
        "times": "1.8",
        "node_per_hour": "5.60",
        "tokens_per_second": 2000,
        "gpus": 4,
    }
    assert "0.7778" in warning.sentence
    assert "1.8 times" in warning.sentence


def test_the_articles_opencost_values_give_four_prices_and_say_that_the_node_is_counted_twice(
    manifests,
):
    reading = read_opencost(body((manifests / "opencost-helm-values.yaml").read_text()))
    assert [(spec.unit, spec.subject, str(spec.amount)) for spec in reading.specs] == [
        ("cpu_hour", "*", "0.025"),
        ("gib_hour", "*", "0.003"),
        ("gpu_hour", "*", "1.40"),
        ("storage_gb_hour", "*", "0.0002"),
    ]
    (warning,) = reading.diagnostics
    assert warning.code == "NODE_PRICE_COUNTED_TWICE"
    assert (warning.numbers["extra"], warning.numbers["node"]) == ("6.27", "5.60")
    assert "6.27" in warning.sentence


def test_the_node_that_is_known_takes_the_place_of_the_default_one():
    Node.objects.create(name="n1", capacity={"cpu": 64_000, "memory": 512 * 1024**3, rows.GPU: 8})
    (warning,) = read_opencost(opencost(CPU="0.1", RAM="0", GPU="1")).diagnostics
    assert (warning.numbers["extra"], warning.numbers["node"]) == ("6.40", "8.00")


def test_the_price_in_force_and_the_benchmarks_of_the_settings_decide_what_is_dear(settings):
    rows.price("2.80", subject="*", valid_from=rows.JUNE)
    with time_machine.travel(rows.JUNE + timedelta(days=1), tick=False):
        cheap = litellm("llama-3-70b", input_cost_per_token=1.4e-06)
        assert said(read_litellm(cheap)) == ["CURRENCY_ASSUMED"]
        settings.TOKEN_BENCHMARKS = {}
        dear = litellm("llama-3-70b", input_cost_per_token=1)
        assert said(read_litellm(dear)) == ["CURRENCY_ASSUMED"]


def test_what_was_read_is_saved_and_reading_it_again_changes_nothing(manifests, ada):
    for _time in range(2):
        reading = read_opencost(body((manifests / "opencost-helm-values.yaml").read_text()))
        services.set_prices(reading.specs, ada)
    assert Price.objects.filter(source="opencost").count() == 4


@pytest.mark.parametrize(
    ("reader", "values", "codes"),
    [
        (read_litellm, {"model_list": "no"}, ["BAD_TYPE"]),
        (read_litellm, {"model_list": [{"litellm_params": {}}]}, ["REQUIRED"]),
        (
            read_litellm,
            litellm("m", input_cost_per_token=-1),
            ["NEGATIVE", "TOKEN_PRICE_MISSING"],
        ),
        (
            read_litellm,
            litellm("m", input_cost_per_token="dear"),
            ["BAD_TYPE", "TOKEN_PRICE_MISSING"],
        ),
        (read_litellm, litellm("m"), ["TOKEN_PRICE_MISSING"]),
        (read_opencost, {}, ["REQUIRED", "REQUIRED", "REQUIRED", "CUSTOM_PRICING_DISABLED"]),
        (read_opencost, opencost(GPU="free"), ["BAD_TYPE"]),
        (read_opencost, opencost(GPU="-1"), ["NEGATIVE"]),
        (read_opencost, opencost(GPU="1", internetNetworkEgress="0.1"), ["PRICE_NOT_USED"]),
        (read_opencost, opencost(GPU="1", petrol="2"), ["UNKNOWN_FIELD"]),
    ],
)
def test_what_cannot_be_read_is_said_by_code(reader, values, codes):
    assert said(reader(values)) == codes


def test_deployments_of_one_model_at_different_prices_give_the_dearest_and_a_warning():
    first = litellm("m", input_cost_per_token=1e-6)["model_list"]
    second = litellm("m", input_cost_per_token=2e-6)["model_list"]
    reading = read_litellm({"model_list": [*first, *second]})
    assert [spec.amount for spec in reading.specs] == [Decimal(2)]
    assert said(reading) == ["TOKEN_PRICE_AMBIGUOUS", "CURRENCY_ASSUMED"]


def test_every_section_that_is_not_read_is_named_once():
    deployment = {"model_name": "m", "litellm_params": {"input_cost_per_token": 0}, "tpm": 5}
    reading = read_litellm({"router_settings": {}, "model_list": [deployment, deployment]})
    assert [(d.code, d.path) for d in reading.diagnostics] == [
        ("CURRENCY_ASSUMED", "model_list"),
        ("SECTION_NOT_READ", "router_settings"),
        ("SECTION_NOT_READ", "model_list[].tpm"),
    ]
    values = opencost(GPU="1.40", gpuLabel="accelerator")
    values["ingress"] = {"enabled": True}
    values["opencost"] |= {"exporter": {}, "customPricing": values["opencost"]["customPricing"]}
    values["opencost"]["customPricing"]["configmapName"] = "prices"
    reading = read_opencost(values)
    assert [d.path for d in reading.diagnostics if d.code == "SECTION_NOT_READ"] == [
        "ingress",
        "opencost.exporter",
        "opencost.customPricing.configmapName",
        "opencost.customPricing.costModel.gpuLabel",
    ]
    assert {d.severity for d in reading.diagnostics} == {"info"}


def test_a_price_of_another_kind_is_not_ignored_in_silence():
    reading = read_litellm(litellm("m", input_cost_per_token=0, input_cost_per_second=1))
    assert said(reading) == ["PRICE_NOT_USED", "CURRENCY_ASSUMED"]


def test_switched_off_prices_are_not_taken():
    values = opencost(GPU="1.40")
    values["opencost"]["customPricing"]["enabled"] = False
    reading = read_opencost(values)
    assert reading.specs == ()
    assert said(reading) == ["CUSTOM_PRICING_DISABLED"]
