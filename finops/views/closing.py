"""Pages of a month as a whole: its close board and its summary."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from finops import exports, services
from finops.closing import adjusting, steps
from finops.closing_forms import AcknowledgeForm, AdjustForm, StepForm
from finops.closing_json import board_json, summary_json
from finops.closing_words import BUTTONS, EFFECTS
from finops.models.periods import Step
from finops.selectors.board import Board, close_board
from finops.selectors.summary import SUMMARY_COLUMNS, month_summary, summary_cells
from finops.views.bills import bill_reader
from gpuplatform.common.pages import rows_response, wanted_format
from gpuplatform.common.problems import Rejected
from queues.access import Actor, actor_of, demand_visible, insist, require
from queues.forms import add_problems
from queues.models import User


@require()
@require_safe
def board(request: HttpRequest, month: str) -> HttpResponse:
    """Show where a month stands on its way to being closed, and what is in the way."""
    actor, view = _board(request, month)
    if wanted_format(request) == "json":
        return exports.json_response(board_json(view), f"close_{month}.json")
    if wanted_format(request) == "csv":
        rows = [_obstacle_cells(one) for one in board_json(view)["obstacles"]]
        return rows_response(request, f"close_{month}", OBSTACLE_COLUMNS, rows)
    return _page(request, actor, view)


OBSTACLE_COLUMNS = ("code", "subject", "sentence", "blocks", "by", "reason")


def _page(
    request: HttpRequest, actor: Actor, view: Board, form: AdjustForm | None = None
) -> HttpResponse:
    refused = view.is_refused(actor)
    context = {
        "view": view.month,
        "board": view,
        "actor": actor,
        "buttons": [
            (step, BUTTONS[step], EFFECTS[step], step == Step.CLOSED and refused)
            for step in view.next_steps
        ],
        "takes_back": view.may_be_adjusted and actor.may_price,
        "form": form or AdjustForm(),
    }
    return render(request, "finops/board.html", context)


@require_POST
@require()
def take_step(request: HttpRequest, month: str, step: str) -> HttpResponse:
    """Take a step of the month."""
    demand_visible(step in BUTTONS)
    form = StepForm(request.POST)
    form.is_valid()
    reason, seen = form.cleaned_data.get("reason", ""), form.cleaned_data.get("seen", "")
    asked = steps.Asked(step, _closer(request, month), reason, seen)
    said = _("{month}: {what}.").format(month=month, what=Step(step).label)
    return _done(request, month, lambda: steps.take_step(month, asked), said)


@require_POST
@require()
def acknowledge(request: HttpRequest, month: str) -> HttpResponse:
    """Let a finding not stand in the way."""
    user = _closer(request, month)
    form = AcknowledgeForm(request.POST)
    form.is_valid()
    names = ("code", "subject", "reason")
    code, subject, reason = (form.cleaned_data.get(name, "") for name in names)
    said = _("{code} is acknowledged.").format(code=code)
    return _done(
        request, month, lambda: steps.acknowledge(month, code, subject, user, reason), said
    )


@require_POST
@require()
def adjust(request: HttpRequest, month: str) -> HttpResponse:
    """Add an adjustment by hand."""
    user = _closer(request, month)
    form = AdjustForm(request.POST)
    if form.is_valid():
        try:
            adjusting.adjust(month, adjusting.AdjustmentSpec(**form.cleaned_data), user)
        except Rejected as refusal:
            add_problems(form, refusal.problems)
        else:
            messages.success(request, _("The line is added."))
            return redirect("close-board", month)
    actor, view = _board(request, month)
    page = _page(request, actor, view, form)
    page.status_code = 422
    return page


@require_POST
@require()
def take_back(request: HttpRequest, month: str, pk: int) -> HttpResponse:
    """Take an adjustment by hand back."""
    user = _closer(request, month)
    said = _("The line is taken back.")
    return _done(request, month, lambda: adjusting.take_back(month, pk, user), said)


@require()
@require_safe
def summary(request: HttpRequest, month: str) -> HttpResponse:
    """Show a month with one row per team."""
    actor = bill_reader(request)
    view = month_summary(actor, month)
    if view is None:
        raise Http404
    if wanted_format(request) == "json":
        return exports.json_response(summary_json(view), f"summary_{month}.json")
    if wanted_format(request) == "csv":
        services.record_download(actor.user, f"{month} summary", "")
        rows = [summary_cells(row) for row in view.rows]
        return rows_response(request, f"summary_{month}", SUMMARY_COLUMNS, rows)
    context = {"view": view.month, "summary": view, "actor": actor}
    return render(request, "finops/summary.html", context)


def _board(request: HttpRequest, month: str) -> tuple[Actor, Board]:
    actor = bill_reader(request)
    view = close_board(actor, month)
    if view is None:
        raise Http404
    return actor, view


def _closer(request: HttpRequest, month: str) -> User:
    """Return who works on the month: 404 to those who may not see it, 403 to those who look."""
    actor = actor_of(request)
    _board(request, month)
    insist(actor, "may_price")
    assert isinstance(actor.user, User), "require() let somebody in"
    return actor.user


def _done(request: HttpRequest, month: str, act: Callable[[], object], said: str) -> HttpResponse:
    try:
        act()
    except Rejected as refusal:
        for problem in refusal.problems:
            messages.error(request, problem.message)
        actor, view = _board(request, month)
        page = _page(request, actor, view)
        page.status_code = 422
        return page
    messages.success(request, said)
    return redirect("close-board", month)


def _obstacle_cells(one: dict[str, Any]) -> dict[str, Any]:
    given = one["acknowledged"] or {}
    return {**one, "by": given.get("by", ""), "reason": given.get("reason", "")}
