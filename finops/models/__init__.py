"""Tables of what it costs."""

from finops.models.bills import Bill, BillingPeriod, BillLine, Finding
from finops.models.prices import Price

__all__ = ["Bill", "BillLine", "BillingPeriod", "Finding", "Price"]
