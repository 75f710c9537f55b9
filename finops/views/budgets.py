"""Pages of budgets: how far each is gone, and an editor."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from finops.budget_forms import BudgetEndForm, BudgetForm
from finops.budgets.limits import compared_limits
from finops.budgets.saving import delete_budget, save_budget
from finops.ingest.limits import gateways
from finops.models import Budget
from finops.selectors.budgets import BUDGET_COLUMNS, budget_cells, budget_rows, unusual_days
from finops.views.bills import bill_reader
from gpuplatform.common.pages import rows_response, wanted_format
from gpuplatform.common.problems import Rejected, Stale
from queues.access import actor_of, require
from queues.forms import add_problems
from queues.models import User


@require()
@require_safe
def budget_list(request: HttpRequest) -> HttpResponse:
    """List the budgets with what is spent of each in its window, and unusual days."""
    actor = bill_reader(request)
    rows = budget_rows(actor)
    if wanted_format(request):
        return rows_response(request, "budgets", BUDGET_COLUMNS, map(budget_cells, rows))
    context = {
        "rows": rows,
        "gone": sum(row.is_gone for row in rows),
        "unmeasured": sum(row.state is None for row in rows),
        "unusual": unusual_days(actor),
        "limits": compared_limits(actor),
        "has_gateways": bool(gateways()),
        "actor": actor,
    }
    return render(request, "finops/budgets.html", context)


@require(lambda actor: actor.may_price)
@require_http_methods(["GET", "HEAD", "POST"])
def budget_edit(request: HttpRequest, name: str = "") -> HttpResponse:
    """Make a budget, or change one."""
    standing = Budget.objects.filter(name=name).first() if name else None
    if name and standing is None:
        raise Http404
    form = BudgetForm(standing, data=request.POST or None)
    if form.is_valid():
        user = actor_of(request).user
        assert isinstance(user, User), "require() let somebody in"
        try:
            seen = form.version() if standing else 0
            row = save_budget(form.spec(), user, form.cleaned_data["reason"], seen)
        except Rejected as refusal:
            add_problems(form, refusal.problems)
        else:
            messages.success(request, _("{name} is saved.").format(name=row.name))
            return redirect("budgets")
    context: dict[str, Any] = {"form": form, "budget": standing}
    failed = form.is_bound and bool(form.errors)
    return render(request, "finops/budget_form.html", context, status=422 if failed else 200)


@require_POST
@require(lambda actor: actor.may_price)
def budget_delete(request: HttpRequest, name: str) -> HttpResponse:
    """Take a budget away."""
    user = actor_of(request).user
    assert isinstance(user, User), "require() let somebody in"
    form = BudgetEndForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Say why, in at most 500 characters."))
        return redirect("budget-edit", name)
    said = form.cleaned_data
    try:
        if not delete_budget(name, user, said["reason"], said["seen"]):
            raise Http404
    except Stale as refusal:
        messages.error(request, " ".join(one.message for one in refusal.problems))
        return redirect("budget-edit", name)
    messages.success(request, _("{name} is taken away.").format(name=name))
    return redirect("budgets")
