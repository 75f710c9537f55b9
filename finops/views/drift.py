"""The page of drift: do inventory, scheduler, OpenCost and LiteLLM say the same of a month?"""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from finops.closing_words import CAUSES, CHECKS
from finops.models import BillingPeriod
from finops.selectors.reconciliation import CHECK_COLUMNS, check_cells, reconciliation
from gpuplatform.common.pages import asked, rows_response, wanted_format
from queues.access import actor_of, demand_visible, require


@require()
@require_safe
def drift(request: HttpRequest) -> HttpResponse:
    """Show the checks of a month, ``?month=``; the latest with bills if none is named."""
    actor = actor_of(request)
    demand_visible(actor.may_see_bills)
    periods = {period.name: period for period in BillingPeriod.objects.all()}
    month = asked(request, "month") or next(iter(periods), "")
    found = reconciliation(actor, periods.get(month))
    if found is None and asked(request, "month"):
        raise Http404
    rows = found.rows if found else ()
    if wanted_format(request):
        cells = [check_cells(found.period, row) for row in rows] if found else []
        return rows_response(request, f"drift_{month or 'none'}", CHECK_COLUMNS, cells)
    context = {
        "found": found,
        "months": list(periods),
        "month": month,
        "rows": [(row, CHECKS[row.check.id], CAUSES.get(row.check.cause, "")) for row in rows],
    }
    return render(request, "finops/drift.html", context)
