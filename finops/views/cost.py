"""The cost page: the month so far."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from finops import charts, words
from finops.allocation.money import HOURS_PLACES, round_half_up
from finops.cost_rows import ASKED, GROUP_COLUMNS, group_rows, query_of
from finops.models.bills import IdlePolicy
from finops.selectors import bills, forecasts, groups, prices
from finops.views.bills import MONTH_COLUMNS, bill_reader, figure_cells
from gpuplatform.common import clock
from gpuplatform.common.figures import figure_response, theme_of
from gpuplatform.common.narrowing import narrowing, refuse_untold, refused
from gpuplatform.common.pages import rows_response, wanted_format
from gpuplatform.common.periods import month_at
from gpuplatform.common.problems import Rejected
from queues.access import demand_visible, require

FORECAST_COLUMNS = ("expected", "low", "high", "assumption")
COST_COLUMNS = ("team", *MONTH_COLUMNS, *FORECAST_COLUMNS)


@require()
@require_safe
def cost(request: HttpRequest) -> HttpResponse:
    """Show what the running month has cost so far, and what open loans will cost."""
    actor = bill_reader(request)
    view = bills.cost_so_far(actor, clock.now())
    loans = prices.open_loans(actor, clock.now())
    days = {} if view.is_stale else forecasts.days_of_accounts()
    if wanted_format(request):
        name = f"cost_{view.month.name}"
        rows = [_bill_cells(one, days) for one in view.bills]
        return rows_response(request, name, COST_COLUMNS, rows)
    head, rows_of_idle = charts.idle_table(view)
    context = {
        "view": view,
        "month_end": forecasts.month_end(view.bills, days) if days else None,
        "loans": loans,
        "sums": prices.loan_sums(loans),
        "next_month": month_at(view.month.ends_at, view.month.time_zone),
        "currency": charts.currency_of(view),
        "idle_head": head,
        "idle_rows": rows_of_idle,
        "actor": actor,
    }
    return render(request, "finops/cost.html", context)


@require()
@require_safe
def cost_chart(request: HttpRequest, kind: str) -> HttpResponse:
    """Answer a figure of the cost page: ``idle`` by day, or the month by ``team``."""
    figures = {"idle": charts.idle_by_day, "team": charts.cost_by_team}
    demand_visible(kind in figures)
    view = bills.cost_so_far(bill_reader(request), clock.now())
    return figure_response(figures[kind](theme_of(request), view))


@require()
@require_safe
def cost_by(request: HttpRequest) -> HttpResponse:
    """Show the cost of a window by a dimension; the address says which."""
    actor = bill_reader(request)
    asks, query = narrowing(request, ASKED), query_of(request.GET)
    if plain := refused(request, asks.told):
        return plain
    context: dict[str, Any] = {
        "query": query,
        "dimensions": words.DIMENSIONS,
        "windows": words.WINDOWS,
        "policies": IdlePolicy.choices,
        "kept": {name: query.kept.get(name, "") for name in groups.FILTERS},
        "actor": actor,
    }
    try:
        refuse_untold(asks)
        view = groups.cost_by_group(actor, query, clock.now())
    except Rejected as refusal:
        context["problems"] = refusal.problems
        return render(request, "finops/cost_by.html", context, status=422)
    if wanted_format(request):
        name = f"cost_{query.group}_{view.window.start:%Y-%m-%d}"
        return rows_response(request, name, GROUP_COLUMNS, group_rows(view))
    rows = list(group_rows(view))
    context |= {
        "view": view,
        "rows": rows,
        "has_tokens": any(row["tokens"] for row in rows),
        "hours": round_half_up(view.found.gpu_hours, HOURS_PLACES),
        "idle_hours": round_half_up(view.found.idle_gpu_hours, HOURS_PLACES),
    }
    return render(request, "finops/cost_by.html", context)


def _bill_cells(view: bills.BillView, days: forecasts.Days) -> dict[str, Any]:
    end = forecasts.month_end([view], days) if days else None
    cells = {
        "team": view.scope,
        "period": view.period.name,
        "status": view.status,
        "currency": view.period.currency,
    }
    forecast = {name: getattr(end, name, None) for name in FORECAST_COLUMNS}
    return cells | figure_cells(view.figures) | forecast
