"""Tables of what it costs."""

from finops.models.bills import Bill, BillingPeriod, BillLine, Finding
from finops.models.mappings import Mapping
from finops.models.prices import Price
from finops.models.source_rows import (
    AssetRow,
    CostRow,
    GpuUseRow,
    NodePriceRow,
    TeamDayRow,
    TokenRow,
)
from finops.models.sources import Coverage, Fetch, Payload, Source

__all__ = [
    "AssetRow",
    "Bill",
    "BillLine",
    "BillingPeriod",
    "CostRow",
    "Coverage",
    "Fetch",
    "Finding",
    "GpuUseRow",
    "Mapping",
    "NodePriceRow",
    "Payload",
    "Price",
    "Source",
    "TeamDayRow",
    "TokenRow",
]
