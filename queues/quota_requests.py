"""Pages of quota requests: a lead asks, an admin sees what it means and decides with a reason."""

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.timezone import make_aware
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from gpuplatform.common.consequences import carry_out
from gpuplatform.common.days import DayField
from gpuplatform.common.narrowing import narrowing, refused
from gpuplatform.common.pages import asked, rows_response, wanted_format
from gpuplatform.common.problems import Problem, Rejected
from queues.access import LEADERS, Actor, actor_of, demand, insist, require, visible
from queues.editors import REFUSED, form_page
from queues.forms.cells import MOST_ROWS, CellRows
from queues.models import ClusterQueue, FlavorQuota, QuotaRequest, Team, User
from queues.models.requests import RequestState
from queues.services import requests
from queues.services.cells import save_cells
from queues.specs import CellSpec, CellsSpec

GPU = "nvidia.com/gpu"
SHOWN = 100
COLUMNS = (
    *("number", "team", "state", "asked_by", "asked_at", "until", "reason", "cells"),
    *("decided_by", "decided_at", "note", "lender", "ended_at"),
)


class AskForm(forms.Form):
    """Why, and until when."""

    reason = forms.CharField(
        label=_("What it is for"),
        widget=forms.Textarea(attrs={"rows": 2}),
        max_length=2_000,
        help_text=_("At least 10 characters; whoever decides reads it."),
    )
    last_day = DayField(
        label=_("Until, last day included"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        help_text=_("A loan ends by itself then. Left empty it stays."),
    )

    def until(self) -> datetime | None:
        """Return the instant at which it ends."""
        day = self.cleaned_data["last_day"]
        if day is None:
            return None
        return make_aware(
            datetime.combine(day + timedelta(days=1), time()), ZoneInfo(settings.BILLING_TIME_ZONE)
        )


class DecideForm(forms.Form):
    """Yes or no, and why; out of whose quota."""

    note = forms.CharField(
        label=_("Reason"),
        widget=forms.Textarea(attrs={"rows": 2}),
        required=False,
        max_length=2_000,
        help_text=_("At least 10 characters; the team reads it."),
    )
    lender = forms.ChoiceField(
        label=_("Out of the quota of"),
        required=False,
        help_text=_("Its nominal quota shrinks by as much, and grows again when the loan ends."),
    )

    def __init__(self, row: QuotaRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        flavors = {told["flavor"] for told in row.cells}
        others = ClusterQueue.objects.exclude(team=row.team).order_by("name")
        others = others.filter(quotas__flavor__in=flavors, quotas__nominal__gt=0).distinct()
        names = [(name, name) for name in others.values_list("name", flat=True)]
        field = self.fields["lender"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", _("nobody: more is promised")), *names]


def _asks(actor: Actor) -> bool:
    return actor.may_edit_quota or any(actor.leads(team) for team in actor.team_ids)


@require_safe
@require()
def request_list(request: HttpRequest) -> HttpResponse:
    """List the requests that somebody may see, newest first."""
    actor = actor_of(request)
    asks = narrowing(request, ("state",), choices={"state": RequestState.values})
    state = asks.wanted["state"]
    rows = visible(QuotaRequest.objects.select_related("team"), actor)
    rows = rows.filter(state=state) if state else rows
    rows = rows.none() if asks.told else rows
    if refusal := refused(request, asks.told):
        return refusal
    if wanted_format(request):
        return rows_response(request, "requests", COLUMNS, map(_cells, rows.iterator()))
    context = {
        "rows": rows[:SHOWN],
        "waiting": visible(QuotaRequest.objects.filter(state=RequestState.OPEN), actor).count(),
        "states": RequestState.choices,
        "state": state,
        "is_filtered": asks.is_set,
        "not_understood": asks.told,
        "may_ask": _asks(actor),
        "actor": actor,
    }
    return render(request, "queues/requests.html", context)


@form_page
@require(_asks)
def request_new(request: HttpRequest) -> HttpResponse:
    """Ask for other amounts in the queues of one's team."""
    actor = actor_of(request)
    teams = Team.objects.order_by("name")
    own = teams if actor.may_edit_quota else teams.filter(pk__in=_led(actor))
    team = own.filter(name=asked(request, "team")).first() or own.first()
    if team is None:
        raise Http404
    data = request.POST if request.method == "POST" else None
    form, table = AskForm(data), CellRows(_own_cells(team), data)
    problems: list[dict[str, str]] = []
    if data is not None and (form.is_valid() & table.is_valid()):
        try:
            row = _ask(actor, team, form, table.wanted())
        except Rejected as refusal:
            problems = [_line(one, table.add_problem(one) or "") for one in refusal.problems]
        else:
            messages.success(request, gettext("Your request is written down."))
            return redirect("request", pk=row.pk)
    elif data is not None:
        problems = table.mistakes()
    context = {"form": form, "cells": table, "team": team, "teams": own, "problems": problems}
    status = 200 if data is None else REFUSED
    return render(request, "queues/request_form.html", context, status=status)


def _ask(actor: Actor, team: Team, form: AskForm, cells: Sequence[CellSpec]) -> QuotaRequest:
    assert isinstance(actor.user, User), "require() let somebody in"
    reason = form.cleaned_data["reason"]
    return requests.ask_quota(cells, team, actor=actor.user, reason=reason, until=form.until())


def _led(actor: Actor) -> list[int]:
    return [team for team in actor.team_ids if actor.leads(team)]


def _own_cells(team: Team) -> list[CellSpec]:
    rows = FlavorQuota.objects.filter(cluster_queue__team=team, resource=GPU)
    columns = ("cluster_queue__name", "flavor", "resource")
    amounts = ("nominal", "borrowing_limit", "lending_limit")
    found = rows.order_by(*columns).values_list(*columns, *amounts)[:MOST_ROWS]
    return [CellSpec(*cell) for cell in found]


@require_safe
@require()
def request_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one request."""
    actor = actor_of(request)
    return _show(request, actor, _row(actor, pk))


@require_POST
@require()
def request_decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Check what a request means, approve it, or decline it."""
    actor = actor_of(request)
    row = _row(actor, pk)
    insist(actor, "may_edit_quota")
    assert isinstance(actor.user, User), "require() let somebody in"
    form = DecideForm(row, request.POST)
    if not form.is_valid():
        return _show(request, actor, row, REFUSED, form=form)
    note, lender = form.cleaned_data["note"], form.cleaned_data["lender"]
    try:
        if "check" in request.POST:
            cells = requests.cells_with(row, lender)
            act = lambda: save_cells(cells, actor=None)  # noqa: E731
            _saved, found = carry_out(CellsSpec(tuple(cells)), act, keep=False)
            return _show(request, actor, row, form=form, checked=True, findings=found)
        if "approve" in request.POST:
            requests.approve(row, actor=actor.user, note=note, lender=lender)
        else:
            requests.decline(row, actor=actor.user, note=note)
    except Rejected as refusal:
        problems = [_line(one) for one in refusal.problems]
        return _show(request, actor, row, REFUSED, form=form, problems=problems)
    messages.success(request, gettext("Your decision is written down."))
    return redirect("request", pk=pk)


@require_POST
@require()
def request_withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    """Withdraw an open request of one's team."""
    actor = actor_of(request)
    row = _row(actor, pk)
    demand(actor.may_edit_quota or actor.leads(row.team_id), LEADERS)
    assert isinstance(actor.user, User), "require() let somebody in"
    try:
        requests.withdraw(row, actor=actor.user)
        messages.success(request, gettext("The request is withdrawn."))
    except Rejected as refusal:
        messages.error(request, " ".join(one.message for one in refusal.problems))
    return redirect("request", pk=pk)


def _row(actor: Actor, pk: int) -> QuotaRequest:
    row = visible(QuotaRequest.objects.select_related("team"), actor).filter(pk=pk).first()
    if row is None:
        raise Http404
    return row


def _show(
    request: HttpRequest,
    actor: Actor,
    row: QuotaRequest,
    status: int = 200,
    *,
    form: DecideForm | None = None,
    **more: Any,
) -> HttpResponse:
    decides = actor.may_edit_quota and row.is_open
    context = {
        "row": row,
        "actor": actor,
        "form": form or (DecideForm(row) if decides else None),
        "moved": requests.moved_since(row) if row.is_open else requests.given_otherwise(row),
        "may_decide": decides,
        "may_withdraw": row.is_open and (decides or actor.leads(row.team_id)),
    }
    return render(request, "queues/request.html", context | more, status=status)


def _cells(row: QuotaRequest) -> dict[str, Any]:
    names = ("state", "asked_at", "until", "reason", "decided_at", "note", "lender", "ended_at")
    changes = "; ".join(
        f"{one['queue']} {one['flavor']} {one['was']['nominal']} -> {one['nominal']}"
        for one in row.cells
    )
    return {
        **{name: getattr(row, name) for name in names},
        "number": row.pk,
        "team": row.team.name,
        "asked_by": row.asked_name,
        "decided_by": row.decided_name,
        "cells": changes,
    }


def _line(problem: Problem, field: str = "") -> dict[str, str]:
    line = {"code": problem.code, "path": problem.path, "message": problem.message}
    return {"field": field, **line}
