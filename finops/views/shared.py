"""Pages of what all teams carry, and of the rules of a month."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from finops import choosing, shared_costs
from finops.forms import PriceEndForm
from finops.models import SharedCost
from finops.rule_words import said
from finops.selectors import bills
from finops.shared_forms import RulesForm, SharedCostForm
from gpuplatform.common import clock
from gpuplatform.common.pages import rows_response, wanted_format
from gpuplatform.common.problems import Rejected
from queues.access import actor_of, demand_visible, insist, require
from queues.forms import add_problems

COLUMNS = (
    "name",
    "method",
    "amount",
    "namespace",
    "cluster",
    "percentages",
    "currency",
    "valid_from",
    "valid_to",
    "note",
)


@require()
@require_safe
def shared_cost_list(request: HttpRequest) -> HttpResponse:
    """List what all teams carry together, what has ended too."""
    actor = actor_of(request)
    demand_visible(actor.may_see_bills)
    rows = list(SharedCost.objects.all())
    if wanted_format(request):
        cells = map(shared_costs.describe, rows)
        return rows_response(request, "shared_costs", COLUMNS, cells)
    context = {"rows": rows, "now": clock.now(), "actor": actor}
    return render(request, "finops/shared_costs.html", context)


@require(lambda actor: actor.may_price)
@require_http_methods(["GET", "HEAD", "POST"])
def shared_cost_set(request: HttpRequest, name: str = "") -> HttpResponse:
    """Set a shared cost, or let another one follow the one in force of that name."""
    form = SharedCostForm(request.POST or None, initial=_standing(name))
    if form.is_valid():
        try:
            row = shared_costs.set_shared_cost(
                form.spec(), actor_of(request).user, form.cleaned_data["reason"]
            )
        except Rejected as refusal:
            add_problems(form, refusal.problems)
        else:
            said = _("{name} is shared from {start} UTC on; open bills are made anew.")
            start = f"{row.valid_from:%Y-%m-%d %H:%M}"
            messages.success(request, said.format(name=row.name, start=start))
            return redirect("shared-costs")
    status = 422 if form.is_bound and form.errors else 200
    context = {"form": form, "name": name}
    return render(request, "finops/shared_cost_form.html", context, status=status)


def _standing(name: str) -> dict[str, Any]:
    """Return what the form starts with: the cost in force of that name, empty for a new one."""
    if not name:
        return {}
    row = SharedCost.objects.filter(name=name, valid_to=None).first()
    if row is None:
        raise Http404
    names = ("name", "method", "amount", "namespace", "cluster")
    lines = [f"{team} {part}" for team, part in row.parts]
    return {key: getattr(row, key) for key in names} | {"percentages": "\n".join(lines)}


@require(lambda actor: actor.may_price)
@require_http_methods(["GET", "HEAD", "POST"])
def shared_cost_end(request: HttpRequest, name: str) -> HttpResponse:
    """Let a shared cost end, with a reason; what was shared until then stays on its bills."""
    row = SharedCost.objects.filter(name=name, valid_to=None).first()
    if row is None:
        raise Http404
    form = PriceEndForm(request.POST or None, begins_at=row.valid_from)
    if form.is_valid():
        ends_at, reason = form.cleaned_data["valid_to"], form.cleaned_data["reason"]
        try:
            ended = shared_costs.end_shared_cost(name, actor_of(request).user, reason, ends_at)
        except Rejected as refusal:
            add_problems(form, refusal.problems)
        else:
            taken_back = ended is not None and ended.valid_to == ended.valid_from
            said = _("{value} is taken back.") if taken_back else _("{value} is not shared now.")
            messages.success(request, said.format(value=name))
            return redirect("shared-costs")
    status = 422 if form.is_bound and form.errors else 200
    context = {"form": form, "name": name, "row": row}
    return render(request, "finops/shared_cost_form.html", context, status=status)


@require()
@require_http_methods(["GET", "HEAD", "POST"])
def month_rules(request: HttpRequest, month: str) -> HttpResponse:
    """Show by which rules a month is billed; finance changes them while it is open."""
    actor = actor_of(request)
    demand_visible(actor.may_see_bills)
    view = bills.bill_month(actor, month)
    if view is None:
        raise Http404
    standing = choosing.choices_of(view.period)
    changes = request.method == "POST"
    if changes:
        insist(actor, "may_price")
    form = RulesForm(standing, view.period.policy_version, request.POST if changes else None)
    if form.is_valid():
        reason = form.cleaned_data["reason"]
        try:
            seen = form.cleaned_data["seen"]
            choosing.choose(month, form.wanted(), actor.user, reason, seen)
        except Rejected as refusal:
            add_problems(form, refusal.problems)
        else:
            messages.success(request, _("The rules of the month hold; its bills are made anew."))
            return redirect("bills-month", month)
    status = 422 if form.is_bound and form.errors else 200
    context = {"form": form, "view": view, "actor": actor, "rules": said(standing)}
    return render(request, "finops/rules.html", context, status=status)
