"""Pages of bills: the months, a month, a bill."""

from typing import Any, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from finops import billing, charts, exports, words
from finops.files.answers import Asked, file_answer, wanted_file
from finops.files.printing import can_print
from finops.forms import IdlePolicyForm
from finops.models.bills import IdlePolicy
from finops.selectors import bills, shares
from finops.selectors.figures import NOTHING, Figures
from finops.selectors.forecasts import month_end
from finops.selectors.policies import policy_comparison
from gpuplatform.common.figures import figure_response, theme_of
from gpuplatform.common.pages import rows_response, wanted_format
from gpuplatform.common.problems import Rejected
from gpuplatform.common.templatetags.money import money
from queues.access import Actor, actor_of, demand_visible, insist, require
from queues.forms import add_problems

MONTH_COLUMNS = ("period", "status", "currency", "gpu_hours", *words.COLUMNS, "total")


@require()
@require_safe
def bill_months(request: HttpRequest) -> HttpResponse:
    """List the months that have bills."""
    actor = bill_reader(request)
    months = bills.bill_months(actor)
    if wanted_format(request):
        return rows_response(request, "bills", MONTH_COLUMNS, map(_month_cells, months))
    return render(request, "finops/months.html", {"months": months, "actor": actor})


@require()
@require_http_methods(["GET", "HEAD", "POST"])
def bill_month(request: HttpRequest, month: str) -> HttpResponse:
    """Show a month: one row a team, what nobody pays, and for finance the idle policy."""
    actor = bill_reader(request)
    if kind := wanted_file(request):
        return _file(request, actor, Asked(month, "", kind, request.GET.get("profile", "")))
    view = bills.bill_month(actor, month)
    if view is None:
        raise Http404
    scope = "all" if view.is_whole else "own"
    if request.method == "POST":
        insist(actor, "may_price")
        demand_visible(bool(view.bills))
        return _choose_policy(request, actor, view)
    if wanted_format(request) == "json":
        name = exports.file_name(month, scope, view.status, "json")
        return exports.json_response(exports.month_json(view), name)
    if not view.bills:
        return render(request, "finops/month_empty.html", {"view": view})
    return render(request, "finops/month.html", _month_context(request, actor, view))


@require()
@require_safe
def bill(request: HttpRequest, month: str, scope: str) -> HttpResponse:
    """Show one team's bill, or the central account's."""
    actor = bill_reader(request)
    if kind := wanted_file(request):
        return _file(request, actor, Asked(month, scope, kind, request.GET.get("profile", "")))
    view = _bill_or_404(actor, month, scope)
    if wanted_format(request) == "json":
        name = exports.file_name(month, scope, view.status, "json")
        return exports.json_response(exports.bill_json(view), name)
    head, rows = charts.bill_day_table(view)
    formulas = shares.share_formulas(view)
    context = {
        "view": view,
        "lines": [(line, exports.describe(line), formulas.get(line.pk)) for line in view.lines],
        "share_rule": words.SHARE_RULES[view.period.idle_policy],
        "pool_idle": shares.pool_idle(view),
        # At the prices of today: not beside figures that are older.
        "promise": None if view.is_stale else bills.team_promise(view),
        "month_end": None if view.is_stale else month_end([view]),
        "can_print": can_print(),
        "chart_url": reverse("bill-chart", args=[month, scope]),
        "chart_head": head,
        "chart_rows": rows,
        "actor": actor,
    }
    return render(request, "finops/bill.html", context)


@require()
@require_safe
def bill_chart(request: HttpRequest, month: str, scope: str) -> HttpResponse:
    """Answer the figure of a bill by day."""
    view = _bill_or_404(bill_reader(request), month, scope)
    return figure_response(charts.bill_by_day(theme_of(request), view))


def bill_reader(request: HttpRequest) -> Actor:
    """Return who asks; to somebody without any bill these pages are not there."""
    actor = actor_of(request)
    demand_visible(bills.may_see_bills(actor))
    return actor


def _bill_or_404(actor: Actor, month: str, scope: str) -> bills.BillView:
    view = bills.team_bill(actor, month, scope)
    if view is None:
        raise Http404
    return view


def _file(request: HttpRequest, actor: Actor, asked: Asked) -> HttpResponse:
    """Answer bills as a file; why there is none is said in plain words."""
    try:
        return cast("HttpResponse", file_answer(request, actor, asked))
    except Rejected as refusal:
        said = " ".join(problem.message for problem in refusal.problems)
        return HttpResponse(said, status=422, content_type="text/plain; charset=utf-8")


def _choose_policy(request: HttpRequest, actor: Actor, view: bills.MonthView) -> HttpResponse:
    form = IdlePolicyForm(request.POST)
    if form.is_valid():
        policy, reason, seen = (form.cleaned_data[n] for n in ("idle_policy", "reason", "seen"))
        try:
            billing.choose_idle_policy(view.period.name, policy, actor.user, reason, seen)
        except Rejected as refusal:
            add_problems(form, refusal.problems)
            # What is shown beside the refusal are the rules as they stand: they are seen now.
            form.data = {**request.POST.dict(), "seen": str(view.period.policy_version)}
        else:
            messages.success(request, _what_changed(actor, view))
            return redirect("bills-month", view.period.name)
    context = _month_context(request, actor, view, form)
    return render(request, "finops/month.html", context, status=422)


def _what_changed(actor: Actor, before: bills.MonthView) -> str:
    """Say which bill went from what to what: the month ``before`` and as it stands now."""
    after = bills.bill_month(actor, before.period.name)
    assert after is not None
    was = {one.scope: one.total for one in before.bills}
    moves = [
        _("{account} {before} to {after}").format(
            account=one.team or _("central account"),
            before=money(was.get(one.scope, NOTHING)),
            after=money(one.total),
        )
        for one in after.bills
        if one.total != was.get(one.scope, NOTHING)
    ]
    return _("Idle policy was {old}, is now {new}. {moves}.").format(
        old=before.period.get_idle_policy_display(),
        new=after.period.get_idle_policy_display(),
        moves="; ".join(moves) or _("No amount changed"),
    )


def _rules(view: bills.MonthView) -> dict[str, Any]:
    return {"idle_policy": view.period.idle_policy, "seen": view.period.policy_version}


def _month_context(
    request: HttpRequest,
    actor: Actor,
    view: bills.MonthView,
    form: IdlePolicyForm | None = None,
) -> dict[str, Any]:
    compares = actor.may_see_bills and "compare" in request.GET and not view.is_stale
    return {
        "view": view,
        "actor": actor,
        "policies": [
            (policy.value, policy.label, words.POLICY_RULES[policy.value]) for policy in IdlePolicy
        ],
        "share_rule": words.SHARE_RULES[view.period.idle_policy],
        "form": form or IdlePolicyForm(initial=_rules(view)),
        "comparison": policy_comparison(view) if compares else None,
    }


def figure_cells(figures: Figures) -> dict[str, Any]:
    """Return the columns that every list of costs has."""
    return {"gpu_hours": figures.gpu_hours, **figures.columns, "total": figures.total}


def _month_cells(view: bills.MonthView) -> dict[str, Any]:
    cells = {
        "period": view.period.name,
        "status": view.status,
        "currency": view.period.currency,
    }
    return cells | figure_cells(view.figures)
