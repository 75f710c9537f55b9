"""Tables of what it costs."""

from finops.models.bills import Bill, BillingPeriod, BillLine, Finding
from finops.models.budgets import Budget, BudgetState
from finops.models.drift import DriftSeen
from finops.models.limits import GatewayLimit
from finops.models.mappings import Mapping
from finops.models.periods import (
    Acknowledgement,
    Adjustment,
    Freeze,
    IssuedBill,
    NumberSeries,
    PeriodStep,
)
from finops.models.prices import Price
from finops.models.replays import QuotaReplay
from finops.models.shared_costs import SharedCost
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
    "Acknowledgement",
    "Adjustment",
    "AssetRow",
    "Bill",
    "BillLine",
    "BillingPeriod",
    "Budget",
    "BudgetState",
    "CostRow",
    "Coverage",
    "DriftSeen",
    "Fetch",
    "Finding",
    "Freeze",
    "GatewayLimit",
    "GpuUseRow",
    "IssuedBill",
    "Mapping",
    "NodePriceRow",
    "NumberSeries",
    "Payload",
    "PeriodStep",
    "Price",
    "QuotaReplay",
    "SharedCost",
    "Source",
    "TeamDayRow",
    "TokenRow",
]
