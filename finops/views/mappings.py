"""Pages of mappings: the list with what is unmatched, a new one, an end, a file of many."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from finops import mapping_services
from finops.forms import PriceEndForm
from finops.mapping_forms import (
    COLUMNS,
    AssignForm,
    MappingFileForm,
    MappingForm,
    kinds,
    team_choices,
)
from finops.models.mappings import MappingKind
from finops.selectors import mappings
from gpuplatform.common import clock
from gpuplatform.common.narrowing import narrowing, refused
from gpuplatform.common.pages import asked, rows_response, wanted_format
from gpuplatform.common.problems import Rejected
from queues.access import actor_of, demand_visible, require
from queues.forms import add_problems

MOST_SAID = 20  # problems of a file that a page shows


@require()
@require_safe
def mapping_list(request: HttpRequest) -> HttpResponse:
    """List mappings with their validity, and what costs and belongs to nobody."""
    actor = actor_of(request)
    demand_visible(actor.may_see_prices)
    asks = narrowing(request, ("kind", "q"), choices={"kind": MappingKind.values})
    if refusal := refused(request, asks.told):
        return refusal
    kind, text = asks.wanted["kind"], asks.wanted["q"][:253]
    rows = [] if asks.told else mappings.mapping_rows(actor, clock.now(), kind=kind, text=text)
    if wanted_format(request):
        return rows_response(request, "mappings", (*COLUMNS, "state"), map(_cells, rows))
    period = mappings.latest_period() if actor.may_see_bills else None
    lacking = mappings.unmatched(period)
    context = {
        "rows": rows,
        "kinds": list(kinds()),
        "kind": kind,
        "text": text,
        "asks": asks,
        "not_understood": asks.told,
        "period": period,
        "unmatched": lacking,
        "unmatched_sum": mappings.unmatched_total(period),
        "teams": team_choices() if actor.may_price else [],
        "actor": actor,
    }
    return render(request, "finops/mappings.html", context)


@require(lambda actor: actor.may_price)
@require_http_methods(["GET", "HEAD", "POST"])
def mapping_new(request: HttpRequest) -> HttpResponse:
    """Make a mapping; ``?kind=`` says of what."""
    kind = request.POST.get("kind") or asked(request, "kind") or MappingKind.NAMESPACE.value
    if kind not in MappingKind.values:
        raise Http404
    form = MappingForm(kind, request.POST or None, initial=request.GET.dict())
    if form.is_valid():
        try:
            spec = form.spec()
            row = mapping_services.set_mapping(spec, actor_of(request).user, spec.note)
            messages.success(request, _("{value} is assigned.").format(value=row.value))
            return redirect("mappings")
        except Rejected as refusal:
            add_problems(form, refusal.problems)
    status = 422 if form.is_bound and form.errors else 200
    context = {"form": form, "kinds": list(kinds()), "actor": actor_of(request)}
    return render(request, "finops/mapping_form.html", context, status=status)


@require(lambda actor: actor.may_price)
@require_http_methods(["GET", "HEAD", "POST"])
def mapping_end(request: HttpRequest, pk: int) -> HttpResponse:
    """End a mapping, with a reason; one that is still to come is taken back."""
    row = mappings.mapping_in_force(pk, clock.now())
    if row is None:
        raise Http404
    form = PriceEndForm(request.POST or None, begins_at=row.valid_from)
    if form.is_valid():
        ends_at, reason = form.cleaned_data["valid_to"], form.cleaned_data["reason"]
        try:
            ended = mapping_services.end_mapping(pk, actor_of(request).user, reason, ends_at)
            taken_back = ended.valid_to == ended.valid_from
            said = _("{value} is taken back.") if taken_back else _("{value} has ended.")
            messages.success(request, said.format(value=ended.value))
            return redirect("mappings")
        except Rejected as refusal:
            add_problems(form, refusal.problems)
    status = 422 if form.is_bound and form.errors else 200
    context = {"form": form, "mapping": row}
    return render(request, "finops/mapping_end.html", context, status=status)


@require_POST
@require(lambda actor: actor.may_price)
def mapping_assign(request: HttpRequest) -> HttpResponse:
    """Assign an unmatched thing to a team, for all that is not closed."""
    form = AssignForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Choose a team."))
        return redirect("mappings")
    try:
        spec = form.spec()
        row = mapping_services.set_mapping(spec, actor_of(request).user, spec.note)
    except Rejected as refusal:
        for problem in refusal.problems:
            messages.error(request, problem.message)
    else:
        said = _("{value} belongs to {team} now; bills of open months are being made anew.")
        messages.success(request, said.format(value=row.value, team=row.team))
    return redirect("mappings")


@require(lambda actor: actor.may_price)
@require_http_methods(["GET", "HEAD", "POST"])
def mapping_import(request: HttpRequest) -> HttpResponse:
    """Take mappings from a CSV file: all or none."""
    form = MappingFileForm(request.POST or None, request.FILES or None)
    if form.is_valid():
        try:
            reason = form.cleaned_data["reason"]
            rows = mapping_services.set_mappings(form.specs(), actor_of(request).user, reason)
            messages.success(request, _("{number} mappings hold.").format(number=len(rows)))
            return redirect("mappings")
        except Rejected as refusal:
            for problem in refusal.problems[:MOST_SAID]:
                form.add_error("file", form.told(problem))
    status = 422 if form.is_bound and form.errors else 200
    context = {"form": form, "columns": COLUMNS}
    return render(request, "finops/mapping_import.html", context, status=status)


def _cells(row: mappings.MappingRow) -> dict[str, Any]:
    return {**mapping_services.describe_mapping(row.mapping), "state": row.state}
