"""Read-only views of the rows, for a superuser who looks into a question."""

from typing import TYPE_CHECKING

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from finops.models import Bill, BillingPeriod, BillLine, Finding, Price

if TYPE_CHECKING:  # the class is generic for the type checker only
    _Admin = admin.ModelAdmin[Model]
else:
    _Admin = admin.ModelAdmin


class ReadOnly(_Admin):
    """Show rows; money changes through services only."""

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Return no."""
        return False

    def has_change_permission(self, _request: HttpRequest, _row: Model | None = None) -> bool:
        """Return no."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _row: Model | None = None) -> bool:
        """Return no."""
        return False


for model in (Bill, BillingPeriod, BillLine, Finding, Price):
    admin.site.register(model, ReadOnly)
