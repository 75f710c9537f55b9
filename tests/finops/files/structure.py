"""What a FOCUS 1.2 file must be (finops.md 7): columns, types, nulls, words, price x quantity."""

import csv
import io
import json
import re
from decimal import Decimal

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
NUMBER = re.compile(r"-?\d+(\.\d+)?")
MANDATORY = (
    *("BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency"),
    *("BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory", "ChargeDescription"),
    *("ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart", "ContractedCost"),
    *("EffectiveCost", "InvoiceIssuerName", "ListCost", "ServiceCategory", "ServiceName"),
)
WORDS = {
    "ChargeCategory": {"Usage", "Purchase", "Tax", "Credit", "Adjustment"},
    "ChargeClass": {"", "Correction"},
    "ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"},
    "PricingCategory": {"", "Standard", "Dynamic", "Committed", "Other"},
    "CapacityReservationStatus": {"", "Used", "Unused"},
    "ServiceCategory": {"Compute", "AI and Machine Learning", "Storage", "Networking", "Other"},
}
# Where the first is null, so are the others; and where it is not, neither are they.
TOGETHER = (
    ("CapacityReservationId", "CapacityReservationStatus"),
    ("ConsumedQuantity", "ConsumedUnit"),
    ("PricingQuantity", "PricingUnit"),
    ("ResourceId", "ResourceType"),
    ("SubAccountId", "SubAccountName"),
    ("SubAccountId", "SubAccountType"),
    ("ListUnitPrice", "SkuPriceId"),
    ("ListUnitPrice", "ContractedUnitPrice"),
)


def rows_of(content):
    return list(csv.DictReader(io.StringIO(content.decode())))


def problems(rows, provider="ProviderName"):
    """Return every rule that a row breaks: (row, column, why)."""
    found = []
    for number, row in enumerate(rows):
        found += [(number, column, why) for column, why in _row(row, provider)]
    return found


def _row(row, provider):
    yield from ((name, "null") for name in (*MANDATORY, provider) if not row[name])
    yield from ((name, row[name]) for name, words in WORDS.items() if row[name] not in words)
    yield from (cell for cell in row.items() if cell[1] and not _is_of_its_type(*cell))
    yield from ((many, one) for one, many in TOGETHER if bool(row[one]) != bool(row[many]))
    if row["ChargePeriodStart"] >= row["ChargePeriodEnd"]:
        yield "ChargePeriodEnd", "not after its start"
    if row["InvoiceIssuerName"] != row[provider] and Decimal(row["BilledCost"]):
        yield "InvoiceIssuerName", "not the provider"
    if row["ChargeCategory"] != "Usage" and row["ConsumedQuantity"]:
        yield "ConsumedQuantity", "of no usage"
    yield from _prices(row)


def _is_of_its_type(name, value):
    if name.endswith(("PeriodStart", "PeriodEnd")):
        return INSTANT.fullmatch(value)
    if name.endswith(("Cost", "Price", "Quantity")):
        return NUMBER.fullmatch(value)
    return name not in {"Tags", "SkuPriceDetails"} or _is_flat(value)


def _prices(row):
    if row["ChargeClass"] == "Correction" or not row["ListUnitPrice"]:
        return
    quantity = Decimal(row["PricingQuantity"])
    for price, cost in (("ListUnitPrice", "ListCost"), ("ContractedUnitPrice", "ContractedCost")):
        if Decimal(row[price]) * quantity != Decimal(row[cost]):
            yield cost, f"{row[price]} x {quantity} is not {row[cost]}"
    if abs(Decimal(row["ListCost"]) - Decimal(row["BilledCost"])) >= Decimal("0.01"):
        yield "BilledCost", "a cent or more beside price x quantity"


def _is_flat(text):
    values = json.loads(text)
    return isinstance(values, dict) and not any(
        isinstance(v, dict | list) for v in values.values()
    )
