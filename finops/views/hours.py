"""What teams, queues and work made of their GPUs in a window: hours, no money."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from finops import words
from finops.hours import HOURS_WINDOW, hours_by
from gpuplatform.common import clock
from gpuplatform.common.narrowing import narrowing, refuse_untold, refused
from gpuplatform.common.pages import asked, rows_response, wanted_format
from gpuplatform.common.problems import Rejected
from queues.access import actor_of, require
from scheduling.selectors.counters import COUNTER_COLUMNS, GROUPS, counter_cells


@require()
@require_safe
def hours(request: HttpRequest) -> HttpResponse:
    """Show counters of GPU-hours by team, queue or workload; the address says which."""
    window, group = asked(request, "window") or HOURS_WINDOW, asked(request, "group") or "team"
    asks = narrowing(request, ("window", "group"))
    if plain := refused(request, asks.told):
        return plain
    context: dict[str, Any] = {
        "asked_window": window,
        "group": group,
        "groups": GROUPS,
        "windows": words.WINDOWS,
    }
    try:
        refuse_untold(asks)
        view = hours_by(actor_of(request), window, group, clock.now())
    except Rejected as refusal:
        context["problems"] = refusal.problems
        return render(request, "finops/hours.html", context, status=422)
    rows = [counter_cells(*row) for row in view.rows]
    if wanted_format(request):
        name = f"gpu-hours_{group}_{view.window.start:%Y-%m-%d}"
        return rows_response(request, name, COUNTER_COLUMNS, rows)
    context |= {"view": view, "rows": rows, "total": counter_cells("", view.total)}
    return render(request, "finops/hours.html", context)
