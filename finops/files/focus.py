"""FOCUS: the FinOps Foundation's cost and usage columns, 1.2, and 1.4 by renaming (finops.md 7).

A null is an empty cell, numbers have a decimal point, period ends are exclusive. ``ListCost`` is
price x quantity exactly, ``BilledCost`` the line's cents; lines without a price of their own (a
share of idle, a transfer) have no unit price and no price id.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings

from finops.exports import describe, guarded, revision
from finops.models import BillLine
from finops.selectors.bills import BillView
from finops.words import CAPACITY_KINDS, TOKEN_KINDS, plane_of
from gpuplatform.common.money import plain

ACCOUNT, PLATFORM = "gpu-platform", "GPU platform"
VERSIONS = ("1.2", "1.4")
COLUMNS = (
    *("AvailabilityZone", "BilledCost", "BillingAccountId", "BillingAccountName"),
    *("BillingAccountType", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart"),
    *("CapacityReservationId", "CapacityReservationStatus", "ChargeCategory", "ChargeClass"),
    *("ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart"),
    *("CommitmentDiscountCategory", "CommitmentDiscountId", "CommitmentDiscountName"),
    *("CommitmentDiscountStatus", "CommitmentDiscountType", "ConsumedQuantity", "ConsumedUnit"),
    *("ContractedCost", "ContractedUnitPrice", "EffectiveCost", "InvoiceId"),
    *("InvoiceIssuerName", "ListCost", "ListUnitPrice", "PricingCategory", "PricingCurrency"),
    *("PricingCurrencyContractedUnitPrice", "PricingCurrencyEffectiveCost"),
    *("PricingCurrencyListUnitPrice", "PricingQuantity", "PricingUnit", "ProviderName"),
    *("PublisherName", "RegionId", "RegionName", "ResourceId", "ResourceName", "ResourceType"),
    *("ServiceCategory", "ServiceName", "ServiceSubcategory", "SkuId", "SkuMeter"),
    *("SkuPriceDetails", "SkuPriceId", "SubAccountId", "SubAccountName", "SubAccountType", "Tags"),
    *("x_AllocationMethod", "x_ClusterQueue", "x_CostCenter", "x_ModelGroup", "x_Namespace"),
    *("x_RunId", "x_SourcePlane"),
)
NUMBERS = frozenset(name for name in COLUMNS if name.endswith(("Cost", "Price", "Quantity")))
RENAMED = {"ProviderName": "ServiceProviderName", "PublisherName": "HostProviderName"}
CREDITS = frozenset({"lender_credit", "loan_income"})
MOVES = frozenset({"tokens_transfer", "loan_surcharge", "adjustment"})
UNITS = {
    "gpu_hours": "GPU Hours",
    "cpu_hours": "CPU Hours",
    "gib_hours": "GiB-Hours",
    "tokens": "Tokens",
}
SERVICES = {
    "storage": ("Storage", "Other (Storage)", "Storage"),
    "network": ("Networking", "Network Infrastructure", "Network"),
    "load_balancer": ("Networking", "Network Routing", "Load balancers"),
    "shared": ("Other", "Other (Other)", "Shared cost"),
    "adjustment": ("Other", "Other (Other)", "Adjustments"),
}
Row = dict[str, Any]


def columns(version: str) -> tuple[str, ...]:
    """Return the columns of a version in their order: its own by name, then the custom ones."""
    if version == VERSIONS[0]:
        return COLUMNS
    names = (RENAMED.get(name, name) for name in COLUMNS)
    return tuple(sorted(names, key=lambda name: (name.startswith("x_"), name)))


def focus_lines(
    lines: Iterable[tuple[BillView, BillLine]], version: str = VERSIONS[0]
) -> Iterator[bytes]:
    """Yield the file line by line.

    Raises:
        ValueError: a version that is not written here.
    """
    if version not in VERSIONS:
        raise ValueError(f"FOCUS {version[:8]!r} is not written here")
    names = columns(version)
    source = {RENAMED[name]: name for name in RENAMED} if version != VERSIONS[0] else {}
    yield (",".join(names) + "\r\n").encode()
    for view, line in lines:
        row = focus_row(view, line)
        cells = (_cell(source.get(name, name), row) for name in names)
        yield (",".join(cells) + "\r\n").encode()


def focus_row(view: BillView, line: BillLine) -> Row:
    """Return one line of a bill in the columns of 1.2; what is absent is null."""
    return {
        **_account(view, line),
        **_periods(view),
        **_charge(line),
        **_costs(line),
        **_service(line),
        **_own_columns(view, line),
    }


def _cell(name: str, row: Mapping[str, Any]) -> str:
    value = row.get(name)
    if value is None or value == "":
        return ""
    return plain(value, 0, 16) if name in NUMBERS else guarded(str(value))


def _account(view: BillView, line: BillLine) -> Row:
    team = view.team
    return {
        "BillingAccountId": ACCOUNT,
        "BillingAccountName": PLATFORM,
        "BillingAccountType": "Internal",
        "BillingCurrency": line.currency,
        "InvoiceId": view.number,
        "InvoiceIssuerName": PLATFORM,
        "ProviderName": PLATFORM,
        "PublisherName": PLATFORM,
        "RegionId": line.cluster or settings.CLUSTER_NAME,
        "RegionName": line.cluster or settings.CLUSTER_NAME,
        "SubAccountId": team.name if team else None,
        "SubAccountName": view.team_name if team else None,
        "SubAccountType": "Team" if team else None,
        "Tags": json.dumps({"team": team.name}) if team else None,
    }


def _periods(view: BillView) -> Row:
    start, end = _instant(view.period.starts_at), _instant(view.period.ends_at)
    return {
        "BillingPeriodStart": start,
        "BillingPeriodEnd": end,
        "ChargePeriodStart": start,
        "ChargePeriodEnd": end,
    }


def _charge(line: BillLine) -> Row:
    is_usage = category(line) == "Usage"
    return {
        "ChargeCategory": category(line),
        "ChargeClass": "Correction" if line.original_line else None,
        "ChargeDescription": describe(line),
        "ChargeFrequency": "One-Time" if line.kind == "adjustment" else "Usage-Based",
        "PricingCategory": _pricing(line) if is_usage else None,
        "PricingCurrency": line.currency,
    }


def category(line: BillLine) -> str:
    """Return the charge category: usage, or a move between accounts."""
    if line.kind in CREDITS:
        return "Credit"
    return "Adjustment" if line.kind in MOVES else "Usage"


def _pricing(line: BillLine) -> str:
    return "Dynamic" if line.kind == "gpu_borrowed" else "Standard"


def _costs(line: BillLine) -> Row:
    has_quantity = category(line) == "Usage" and line.quantity is not None
    quantity = line.quantity if has_quantity else None
    unit = UNITS.get(line.unit, line.unit) if has_quantity else None
    price = line.unit_price if quantity is not None and _has_own_price(line) else None
    listed = line.amount if price is None else price * (quantity or Decimal(0))
    found = dict.fromkeys(("BilledCost", "EffectiveCost"), line.amount)
    found |= dict.fromkeys(("ListCost", "ContractedCost"), listed)
    prices = ("ListUnitPrice", "ContractedUnitPrice")
    return {
        **found,
        **dict.fromkeys((*prices, *(f"PricingCurrency{name}" for name in prices)), price),
        "PricingCurrencyEffectiveCost": line.amount,
        "ConsumedQuantity": quantity,
        "ConsumedUnit": unit,
        "PricingQuantity": quantity,
        "PricingUnit": unit,
        "SkuPriceId": None if price is None else _price_id(line, price),
        "SkuMeter": unit,
    }


def _has_own_price(line: BillLine) -> bool:
    """A share of idle has hours and cost, but nobody sold those hours at a price."""
    return line.unit_price is not None and line.kind not in CAPACITY_KINDS


def _price_id(line: BillLine, price: Decimal) -> str:
    return f"{_sku(line)}@{plain(price)}"


def _sku(line: BillLine) -> str | None:
    name = line.flavor or line.model_group
    if category(line) != "Usage" or line.quantity is None:
        return None
    return f"{name or line.kind}-idle" if line.kind in CAPACITY_KINDS else name or line.kind


def _service(line: BillLine) -> Row:
    group, kind, name = SERVICES.get(line.kind, ("Compute", "Containers", ""))
    if line.kind in TOKEN_KINDS:
        group, kind, name = "AI and Machine Learning", "Generative AI", line.model_group
    return {
        "ServiceCategory": group,
        "ServiceSubcategory": kind,
        "ServiceName": name or f"GPU {line.flavor}".strip(),
        "SkuId": _sku(line),
        **_resource(line),
    }


def _resource(line: BillLine) -> Row:
    for kind, name in (
        ("ClusterQueue", line.cluster_queue),
        ("Flavor", line.flavor),
        ("Model", line.model_group),
    ):
        if name:
            identity = f"{kind.lower()}/{name}"
            return {"ResourceId": identity, "ResourceName": name, "ResourceType": kind}
    return {}


def _own_columns(view: BillView, line: BillLine) -> Row:
    is_share = line.kind == "idle_share"
    return {
        **_reservation(view, line),
        "x_AllocationMethod": line.policy if is_share else line.origin or "adjustment",
        "x_ClusterQueue": line.cluster_queue,
        "x_CostCenter": view.cost_center,
        "x_ModelGroup": line.model_group,
        "x_Namespace": line.namespace,
        "x_RunId": f"{view.period.name}-r{revision(view.status)}",
        "x_SourcePlane": plane_of(line.kind),
    }


def _reservation(view: BillView, line: BillLine) -> Row:
    """Nominal quota is a reservation of its team: used, or paid and unused; loans are none."""
    status = {"gpu_direct": "Used", "idle_owned": "Unused"}.get(line.kind)
    if status is None or view.team is None:
        return {}
    return {
        "CapacityReservationId": f"quota/{view.team.name}",
        "CapacityReservationStatus": status,
    }


def _instant(value: datetime) -> str:
    return f"{value:%Y-%m-%dT%H:%M:%SZ}"
