"""The question of a replay as a form: the window, and amounts of quota."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from finops.replaying.asking import ReplaySpec
from gpuplatform.common.days import DayField
from gpuplatform.common.periods import month_at, month_before
from queues.forms.cells import CellRows
from queues.models import FlavorQuota
from queues.specs import CellSpec
from scheduling.engine.machines import GPU

PATHS = {"from": "first_day", "to": "last_day", "note": "note"}


class ReplayForm(forms.Form):
    """The window in local days of the billing time zone."""

    first_day = DayField(
        label=_("First day"), widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )
    last_day = DayField(
        label=_("Last day"), widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )
    note = forms.CharField(
        label=_("What is the question"),
        max_length=200,
        required=False,
        help_text=_("Kept with the answer and in the audit log."),
    )

    def spec(self, cells: CellRows) -> ReplaySpec:
        """Return what is asked."""
        data = self.cleaned_data
        return ReplaySpec(data["first_day"], data["last_day"], tuple(cells.wanted()), data["note"])


def last_month(now: datetime) -> dict[str, Any]:
    """Return the window that the form offers: the last month that has ended."""
    last = month_before(month_at(now, settings.BILLING_TIME_ZONE))
    return {"first_day": last.first_day, "last_day": last.last_day}


def gpu_cells(kept: Mapping[str, str]) -> list[CellSpec]:
    """Return the GPU cells of all queues, by cohort and queue; ``kept``: of which. 1 query."""
    rows = FlavorQuota.objects.filter(resource=GPU, cluster_queue__isnull=False)
    names = {"cohort": "cluster_queue__cohort__name", "team": "cluster_queue__team__name"}
    rows = rows.filter(**{names[name]: value for name, value in kept.items() if value})
    columns = ("cluster_queue__name", "flavor", "resource")
    amounts = ("nominal", "borrowing_limit", "lending_limit")
    ordered = rows.order_by("cluster_queue__cohort__name", *columns)
    return [CellSpec(*cell) for cell in ordered.values_list(*columns, *amounts)]
