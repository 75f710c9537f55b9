"""Pages of replays: past work under other quotas, asked, followed and read."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from finops import replay_charts as charts
from finops.models import QuotaReplay
from finops.replay_forms import PATHS, ReplayForm, gpu_cells, last_month
from finops.replaying import showing
from finops.replaying.asking import ask, cancel
from gpuplatform.common import clock
from gpuplatform.common.figures import figure_response, theme_of
from gpuplatform.common.pages import asked, rows_response, wanted_format
from gpuplatform.common.problems import Problem, Rejected
from queues.access import Actor, actor_of, require
from queues.forms.cells import MOST_ROWS, CellRows
from queues.models import Cohort, Team, User

REFUSED = 422


def _may_see(actor: Actor) -> bool:
    return actor.sees_everything


@require_safe
@require(_may_see)
def replay_list(request: HttpRequest) -> HttpResponse:
    """List the questions, newest first."""
    actor = actor_of(request)
    rows = showing.replay_rows(actor)
    return render(request, "finops/replays.html", {"rows": rows, "actor": actor})


@require_http_methods(["GET", "HEAD", "POST"])
@require(lambda actor: actor.may_edit_quota)
def replay_new(request: HttpRequest) -> HttpResponse:
    """Ask how the work of a window would have fared under other quotas."""
    kept = {name: asked(request, name) for name in ("cohort", "team")}
    known = gpu_cells(kept)
    data = request.POST if request.method == "POST" else None
    form = ReplayForm(data, initial=last_month(clock.now()))
    cells = CellRows(known[:MOST_ROWS], data)
    problems: list[dict[str, str]] = []
    if data is not None and (form.is_valid() & cells.is_valid()):
        user = actor_of(request).user
        assert isinstance(user, User), "require() let somebody in"
        try:
            return redirect("replay", uid=ask(form.spec(cells), actor=user).uid)
        except Rejected as refusal:
            problems = [_placed(form, cells, problem) for problem in refusal.problems]
    elif data is not None:
        problems = cells.mistakes()
    context = {
        "form": form,
        "cells": cells,
        "kept": kept,
        "left_out": max(0, len(known) - MOST_ROWS),
        "cohorts": Cohort.objects.order_by("name").values_list("name", flat=True),
        "teams": Team.objects.order_by("name").values_list("name", flat=True),
        "problems": problems,
    }
    status = REFUSED if data is not None else 200
    return render(request, "finops/replay_form.html", context, status=status)


def _placed(form: ReplayForm, cells: CellRows, problem: Problem) -> dict[str, str]:
    """Put a problem at its input; return it for the summary."""
    where = cells.add_problem(problem)
    if where is None and (name := PATHS.get(problem.path)):
        form.add_error(name, problem.message)
        where = str(form[name].id_for_label)
    line = {"code": problem.code, "path": problem.path, "message": problem.message}
    return {"field": where or "", **line}


@require_safe
@require(_may_see)
def replay(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show one replay: how far it is, or what came out."""
    actor = actor_of(request)
    row = _row(actor, uid)
    if wanted_format(request):
        cells = showing.team_cells(row, actor)
        return rows_response(request, f"replay-{uid}", showing.TEAM_COLUMNS, cells)
    teams = showing.team_rows(row, actor)
    context: dict[str, Any] = {
        "row": row,
        "actor": actor,
        "sentence": charts.sentence(row),
        "problem": showing.problem_words(row),
        "teams": teams,
        "totals": showing.total_row(teams) if actor.may_see_bills else None,
        "sides": charts.side_table(row),
        "uses": charts.use_rows(row),
        "wait_head": charts.wait_head(),
        "wait_rows": charts.wait_rows(row),
        "cost_head": charts.cost_head(row),
        "cost_rows": charts.cost_rows(teams),
    }
    return render(request, "finops/replay.html", context)


@require_safe
@require(_may_see)
def replay_chart(request: HttpRequest, uid: UUID, kind: str) -> HttpResponse:
    """Answer a figure: ``waits`` or ``cost`` of teams, before and after."""
    actor = actor_of(request)
    row = _row(actor, uid)
    teams = showing.team_rows(row, actor)
    if kind == "waits":
        return figure_response(charts.waits_figure(theme_of(request), row))
    if kind == "cost" and actor.may_see_bills:
        return figure_response(charts.cost_figure(theme_of(request), row, teams))
    raise Http404


@require_POST
@require(lambda actor: actor.may_edit_quota)
def replay_cancel(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Let a replay be over."""
    actor = actor_of(request)
    _row(actor, uid)
    assert isinstance(actor.user, User), "require() let somebody in"
    if cancel(uid, actor=actor.user):
        messages.success(request, _("The replay is cancelled."))
    else:
        messages.error(request, _("The replay was over already."))
    return redirect("replay", uid=uid)


def _row(actor: Actor, uid: UUID) -> QuotaReplay:
    row = showing.replay_of(actor, uid)
    if row is None:
        raise Http404
    return row
