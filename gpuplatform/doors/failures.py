"""The page of what failed lately by itself: tasks, and readings of other systems."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from finops.selectors.sources import failed_readings
from gpuplatform.common import clock
from gpuplatform.common.models import TaskFailure
from gpuplatform.common.pages import rows_response, wanted_format
from queues.access import actor_of, demand_visible, require

COLUMNS = ("kind", "name", "day", "error", "times", "first_at", "last_at")
LOOKED_BACK = timedelta(days=14)


@require()
@require_safe
def failures_page(request: HttpRequest) -> HttpResponse:
    """Show to readers of everything what failed in the last two weeks, newest first."""
    demand_visible(actor_of(request).sees_everything)
    since = clock.now() - LOOKED_BACK
    tasks = list(TaskFailure.objects.filter(last_at__gte=since).order_by("-last_at", "-pk"))
    readings = failed_readings(since)
    if wanted_format(request):
        return rows_response(request, "failures", COLUMNS, _cells(tasks, readings))
    context = {"tasks": tasks, "readings": readings, "days": LOOKED_BACK.days}
    return render(request, "doors/failures.html", context)


def _cells(tasks: list[TaskFailure], readings: list[Any]) -> Iterator[dict[str, Any]]:
    for row in tasks:
        yield {
            "kind": "task",
            "name": row.task,
            "error": row.error,
            "times": row.count,
            "first_at": row.first_at,
            "last_at": row.last_at,
        }
    for one in readings:
        yield {
            "kind": "source",
            "name": one.source.name,
            "day": one.day,
            "error": one.sentence,
            "times": 1,
            "first_at": one.at,
            "last_at": one.at,
        }
