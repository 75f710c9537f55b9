"""Prices that other systems declare: a LiteLLM configuration, OpenCost's Helm values.

Both come without ``kind``; the importer recognises them by their keys. Readers return specs and
diagnostics; saving is ``finops.services.set_prices``.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.conf import settings

from finops.allocation.node_price import token_price
from finops.loader import node_shape
from finops.models.prices import PriceUnit
from finops.rules import PLACES
from finops.selectors.prices import PriceBook
from finops.specs import Benchmark, NodeShape, PriceSpec
from gpuplatform.common import clock
from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.fields import Fields
from gpuplatform.common.money import plain, rounded

# What a GPU-hour costs, what a node is and what it serves where nothing better is known here:
# the node of the articles, 4 x H100 for 5.60 EUR/h (decisions.md 6).
DEFAULT_GPU_HOUR = Decimal("1.40")
DEFAULT_NODE = NodeShape(cpus=128, memory_gib=1024, gpus=4)
# Part of a model's name -> its benchmark; the setting TOKEN_BENCHMARKS takes its place.
DEFAULT_BENCHMARKS: Mapping[str, Benchmark] = {"llama-3-70b": Benchmark(2000, 4)}
TOLERANCE = Decimal("1.05")  # drift up to 5 % is fine (finops.md 4.4)
MILLION = 1_000_000
_INDEX = re.compile(r"\[\d+\]")
TOKEN_COSTS = (
    ("input_cost_per_token", PriceUnit.INPUT_MILLION),
    ("output_cost_per_token", PriceUnit.OUTPUT_MILLION),
)
OPENCOST_UNITS = (
    ("CPU", PriceUnit.CPU_HOUR),
    ("RAM", PriceUnit.GIB_HOUR),
    ("GPU", PriceUnit.GPU_HOUR),
    ("storage", PriceUnit.STORAGE_GB_HOUR),
)
OPENCOST_UNUSED = (
    "spotCPU",
    "spotRAM",
    "spotGPU",
    "zoneNetworkEgress",
    "regionNetworkEgress",
    "internetNetworkEgress",
)
OPENCOST_QUIET = ("description",)
OPENCOST_SECTIONS = ("gpuLabel", "gpuLabelValue", "defaultIdle")


@dataclass(frozen=True, slots=True)
class PriceReading:
    """The prices that a document declares, and everything worth saying about them."""

    specs: tuple[PriceSpec, ...]
    diagnostics: tuple[Diagnostic, ...]


# ---- LiteLLM -----------------------------------------------------------------------------------
def read_litellm(body: Mapping[str, Any]) -> PriceReading:
    """Return the token prices of a LiteLLM configuration (``model_list``), per million tokens.

    Its other sections and its teams, which live behind its API, are no prices and are left alone;
    each is named once. LiteLLM counts in US dollars and says so nowhere in the file.
    """
    diagnostics: list[Diagnostic] = []
    top = Fields(body, "LiteLLM", diagnostics)
    rows: dict[str, list[dict[PriceUnit, Decimal]]] = defaultdict(list)
    entries = top.children("model_list", required=True)
    for entry in entries:
        name = entry.text("model_name", required=True)
        prices = _token_prices(entry)
        if name:
            rows[name].append(prices)
    specs: list[PriceSpec] = []
    for name, deployments in rows.items():
        prices = _dearest(name, deployments, diagnostics)
        specs += [_spec(unit, name, amount, "litellm") for unit, amount in prices.items()]
        diagnostics += _above_iron(name, prices)
    if specs:
        top.report("CURRENCY_ASSUMED", "model_list", currency=settings.CURRENCY)
    _name_unread(top, *entries)
    return PriceReading(tuple(specs), tuple(diagnostics))


def _name_unread(*levels: Fields) -> None:
    """Name every section beside those that were read, the same one of many rows once."""
    said: set[str] = set()
    for fields in levels:
        for key in fields.unread():
            path = _INDEX.sub("[]", fields.at(key))
            if path not in said:
                said.add(path)
                numbers = {"section": path[:253]}
                fields.diagnostics.append(
                    Diagnostic("SECTION_NOT_READ", fields.subject, path, numbers)
                )


def _token_prices(entry: Fields) -> dict[PriceUnit, Decimal]:
    """Return a deployment's prices per million; they stand in its parameters or in its info."""
    prices: dict[PriceUnit, Decimal] = {}
    for section in ("model_info", "litellm_params"):
        fields = entry.child(section)
        for key, unit in TOKEN_COSTS:
            cost = fields.decimal(key)
            if cost is not None:
                prices[unit] = rounded(cost * MILLION, PLACES)
        for key in fields.unread():
            if "cost" in key:  # per second, per image, of cached tokens: nothing here is billed so
                fields.report("PRICE_NOT_USED", key, field=key[:64])
    return prices


def _dearest(
    name: str, deployments: list[dict[PriceUnit, Decimal]], diagnostics: list[Diagnostic]
) -> dict[PriceUnit, Decimal]:
    """Return one price per unit; deployments of one model that differ are worth a warning."""
    prices = {
        unit: max(row[unit] for row in deployments if unit in row)
        for _key, unit in TOKEN_COSTS
        if any(unit in row for row in deployments)
    }
    if not prices:
        diagnostics.append(Diagnostic("TOKEN_PRICE_MISSING", f"Model/{name}", "", {"model": name}))
    elif any(row != deployments[0] for row in deployments):
        numbers: dict[str, str | int] = {
            "model": name,
            "times": len(deployments),
            "price": plain(max(prices.values())),
        }
        diagnostics.append(Diagnostic("TOKEN_PRICE_AMBIGUOUS", f"Model/{name}", "", numbers))
    return prices


def _above_iron(name: str, prices: Mapping[PriceUnit, Decimal]) -> Iterator[Diagnostic]:
    """Compare the declared price with what the tokens cost in iron at full load."""
    benchmark = _benchmark(name)
    if benchmark is None or not prices:
        return
    node = _gpu_hour(benchmark.flavor) * benchmark.gpus
    iron = token_price(node, benchmark.tokens_per_second)
    declared = max(prices.values())
    if not iron or declared <= iron * TOLERANCE:
        return
    numbers: dict[str, str | int] = {
        "model": name,
        "price": plain(declared),
        "iron": f"{iron:.4f}",
        "times": f"{rounded(declared / iron, 1)}",
        "node_per_hour": plain(node),
        "tokens_per_second": benchmark.tokens_per_second,
        "gpus": benchmark.gpus,
    }
    yield Diagnostic("TOKEN_PRICE_ABOVE_IRON", f"Model/{name}", "model_list", numbers)


def _benchmark(name: str) -> Benchmark | None:
    """Return the benchmark of the longest known name that is a part of the model's."""
    known: Mapping[str, Benchmark] = getattr(settings, "TOKEN_BENCHMARKS", DEFAULT_BENCHMARKS)
    matches = [part for part in known if part in name.lower()]
    return known[max(matches, key=len)] if matches else None


def _gpu_hour(flavor: str) -> Decimal:
    book = PriceBook(clock.now())
    price = book.gpu_hour(flavor) or book.only_gpu_hour()
    return price.amount if price else DEFAULT_GPU_HOUR


# ---- OpenCost ----------------------------------------------------------------------------------
def read_opencost(body: Mapping[str, Any]) -> PriceReading:
    """Return the prices of OpenCost's Helm values (``opencost.customPricing.costModel``).

    Amounts may be texts; all are read as decimals, per hour. They hold for every flavor without
    a price of its own.
    """
    diagnostics: list[Diagnostic] = []
    top = Fields(body, "OpenCost", diagnostics)
    chart = top.child("opencost", required=True)
    pricing = chart.child("customPricing", required=True)
    pricing.accept("provider")
    model = pricing.child("costModel", required=True)
    amounts = {key: model.decimal(key) for key, _unit in OPENCOST_UNITS}
    enabled = pricing.flag("enabled")
    _name_unread(top, chart, pricing)
    if not enabled:
        pricing.report("CUSTOM_PRICING_DISABLED", "enabled")
        return PriceReading((), tuple(diagnostics))
    _report_unused(model)
    specs = tuple(
        _spec(unit, "*", amount, "opencost")
        for key, unit in OPENCOST_UNITS
        if (amount := amounts[key]) is not None
    )
    diagnostics += _counted_twice(amounts)
    return PriceReading(specs, tuple(diagnostics))


def _report_unused(model: Fields) -> None:
    for key in OPENCOST_UNUSED:
        if model.decimal(key):
            model.report("PRICE_NOT_USED", key, field=key)
    model.accept(*OPENCOST_QUIET)
    for key in OPENCOST_SECTIONS:
        if model.raw(key) is not None:
            model.report("SECTION_NOT_READ", key, section=key)
    model.close()


def _counted_twice(amounts: Mapping[str, Decimal | None]) -> Iterator[Diagnostic]:
    """Warn where CPU and RAM are charged on top of a GPU price that already holds the node."""
    cpu, ram, gpu = (amounts[key] or Decimal(0) for key in ("CPU", "RAM", "GPU"))
    shape = node_shape() or DEFAULT_NODE
    extra = shape.cpus * cpu + shape.memory_gib * ram
    if not gpu or not extra:
        return
    numbers: dict[str, str | int] = {
        "extra": plain(rounded(extra)),
        "node": plain(rounded(shape.gpus * gpu)),
        "cpus": shape.cpus,
        "cpu_hour": plain(cpu),
        "memory_gib": shape.memory_gib,
        "gib_hour": plain(ram),
        "gpus": shape.gpus,
        "gpu_hour": plain(gpu),
    }
    path = "opencost.customPricing.costModel"
    yield Diagnostic("NODE_PRICE_COUNTED_TWICE", "OpenCost", path, numbers)


def _spec(unit: PriceUnit, subject: str, amount: Decimal, source: str) -> PriceSpec:
    return PriceSpec(
        unit=unit.value,
        subject=subject,
        amount=amount,
        currency=settings.CURRENCY,
        source=source,
    )
