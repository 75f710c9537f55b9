"""The page of drift: do inventory, scheduler, OpenCost and LiteLLM say the same of a month?"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from finops.closing_words import ABOUT, CAUSES, CHECKS, SILENT, STATES
from finops.finding_words import subject_words
from finops.models import BillingPeriod
from finops.selectors.reconciliation import (
    CHECK_COLUMNS,
    CheckRow,
    check_cells,
    reconciliation,
)
from gpuplatform.common.pages import asked, rows_response, wanted_format
from queues.access import actor_of, demand_visible, require
from queues.models import Team


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
        "rows": _shown(rows),
        "silent": [
            (identity, CHECKS[identity][0], SILENT[identity][0 if ran else 1], ran)
            for identity, ran in (found.silent if found else ())
        ],
    }
    return render(request, "finops/drift.html", context)


def _shown(rows: Sequence[CheckRow]) -> list[dict[str, Any]]:
    """Return rows with their words: what is compared, of whom, the likely cause."""
    teams = {team.name: str(team) for team in Team.objects.all()}
    return [
        {
            "row": row,
            "words": CHECKS[row.check.id],
            "about": subject_words(_with_names(row.check.subject, teams))
            or ABOUT.get(row.check.id, ""),
            "state": STATES[row.check.status],
            "cause": CAUSES.get(row.check.cause, ""),
        }
        for row in rows
    ]


def _with_names(subject: str, teams: Mapping[str, str]) -> str:
    """Return a subject with the name of its team, where it is about one."""
    mark, _equals, name = subject.partition("=")
    return f"team={teams.get(name, name)}" if mark == "team" else subject
