"""LiteLLM's own limits: read now, and pushed after a preview."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from finops.budgets import limits
from gpuplatform.common.problems import Rejected
from queues.access import actor_of, demand_visible, require
from queues.models import User

REASON_LENGTH = 500


@require_POST
@require(lambda actor: actor.may_price)
def limits_read(request: HttpRequest) -> HttpResponse:
    """Ask all gateways for their limits now."""
    told_by = limits.read_gateways()
    demand_visible(bool(told_by))
    for name, told in told_by.items():
        if "code" in told:
            messages.error(request, f"{name}: {told['detail']}")
        else:
            words = _("{name} told the limits of {number} teams.")
            messages.success(request, words.format(name=name, number=told["teams"]))
    return redirect("budgets")


@require(lambda actor: actor.may_price)
@require_http_methods(["GET", "HEAD", "POST"])
def limit_push(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what would be sent to LiteLLM, and send it once somebody says so."""
    actor = actor_of(request)
    row = next((one for one in limits.compared_limits(actor) if one.limit.pk == pk), None)
    if row is None or row.order is None:
        raise Http404
    order = limits.written(row.order)
    context: dict[str, Any] = {"row": row, "order": order, "fields": limits.said_and_sent(row)}
    if request.method != "POST":
        return render(request, "finops/limit_push.html", context)
    assert isinstance(actor.user, User), "require() let somebody in"
    seen = {name: request.POST.get(name, "") for name in order}
    reason = request.POST.get("reason", "")[:REASON_LENGTH]
    try:
        after = limits.push_limit(pk, actor.user, reason, seen)
    except Rejected as refusal:
        context["problems"] = refusal.problems
        return render(request, "finops/limit_push.html", context, status=422)
    if after.verdict == limits.SAME:
        messages.success(request, _("LiteLLM limits the team as the budget does."))
    else:
        messages.warning(request, _("LiteLLM took it, and still says something else."))
    return redirect("budgets")
